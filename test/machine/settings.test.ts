/** Settings of machines that are nodes already, next to those of their file. */
import { readFile } from 'node:fs/promises';
import type { DesiredCluster, Policy, SeenCluster, SeenMachine } from '../../src/machine/cluster.ts';
import { readFacts } from '../../src/machine/facts.ts';
import { planCluster, type ClusterPlan } from '../../src/machine/plan.ts';
import { readChanged } from '../../src/machine/run/cluster-file.ts';
import { kubeadmSettingsOf } from '../../src/machine/run/kubeadm-settings.ts';
import { changedSettings, settingNotes, settingsAfter } from '../../src/machine/settings.ts';
import type { MachineSettings } from '../../src/machine/cluster.ts';
import * as assert from '../support/assert.ts';
import { never, noReport } from '../support/context.ts';
import { cluster, documents } from '../support/fleet-files.ts';
import { suite } from '../support/suite.ts';
import { desired, machine, NEW, OLD, reasons, seen, titles } from './seen-cluster.ts';

const test = suite('settings of machines');

function kubernetes(settings: Readonly<Record<string, unknown>>): MachineSettings {
  return kubeadmSettingsOf({ kubernetes: settings });
}

const BEFORE = kubernetes({ maxPodsPerNode: 50 });
const AFTER = kubernetes({ maxPodsPerNode: 60 });

interface Asked {
  readonly recorded?: MachineSettings | undefined;
  readonly settings?: MachineSettings;
  readonly spec?: Partial<DesiredCluster>;
  readonly policy?: Policy;
  /** What differs on a machine. */
  readonly own?: Readonly<Record<string, Partial<SeenMachine>>>;
  readonly cluster?: Partial<SeenCluster>;
}

/** A plan for machines that all have the version of the file and these settings. */
function planned(names: string, asked: Asked = {}): ClusterPlan {
  const { recorded = BEFORE, settings = AFTER, spec, policy, own = {}, cluster } = asked;
  const machines = names.split(' ').map((name) => {
    const now = { kubelet: NEW, ...(name.startsWith('cp') && { apiServer: NEW }), images: [NEW] };
    return machine(name, { ...now, settings: { by: 'join', digests: recorded }, ...own[name] });
  });
  return planCluster(desired(names.split(' '), { settings, ...spec }), seen(machines, cluster), policy);
}

test('changed settings reach control planes one after the other, then workers, and are named', () => {
  const { steps, held, refused } = planned('cp0 cp1 cp2 w0 w1');
  assert.equal(
    steps.map(({ host, phase, waits }) => `${phase} ${host} after ${waits.join()}`),
    [
      'configure cp0 after ',
      'configure cp1 after configure cp0',
      'configure cp2 after configure cp1',
      'configure w0 after configure cp2',
      'configure w1 after configure w0',
    ],
  );
  assert.is(steps[0]?.reason, 'the file has another kubernetes.maxPodsPerNode');
  assert.equal([held, refused], [[], []]);
  assert.equal(titles(planned('cp0 w0', { recorded: AFTER })), []);
  const many = kubernetes({ kubeletConfiguration: '{a: 1, b: 2, c: 3, d: 4, e: 5}' });
  assert.match(
    planned('cp0', { recorded: {}, settings: many }).steps[0]?.reason ?? '',
    'kubernetes.kubeletConfiguration.a, kubernetes.kubeletConfiguration.b, kubernetes.kubeletConfiguration.c, kubernetes.kubeletConfiguration.d and 1 others',
  );
});

test('a control plane waits for the health of the others, and a host without the bundle gets it first', () => {
  const broken = planned('cp0 cp1 cp2', { own: { cp1: { ready: false } } });
  assert.equal(titles(broken), ['configure cp1', 'configure cp0', 'configure cp2']);
  const two = planned('cp0 cp1 cp2', { own: { cp1: { ready: false }, cp2: { ready: false } } });
  assert.equal(titles(two), []);
  assert.match(reasons(two.held).join(), 'cp2 is not healthy: repair it first');
  assert.equal(titles(planned('cp0', { own: { cp0: { images: [] } } })), [`images cp0 ${NEW}`, 'configure cp0']);
  // A machine that does not answer is not counted as done.
  const away = planned('cp0 w0', { own: { w0: { answers: false } } });
  assert.equal(
    [titles(away), reasons(away.held)],
    [['configure cp0'], ['w0: it does not answer: turn it on, or curlew machine remove takes it out of the cluster']],
  );
});

test('an upgrade brings the settings along, and a worker that stays behind gets them with its version', () => {
  const old = { kubelet: OLD, images: [NEW], settings: { digests: BEFORE } };
  const { steps } = planned('cp0 w0', { own: { cp0: { ...old, apiServer: OLD }, w0: old } });
  assert.equal(
    steps.filter(({ phase }) => phase === 'configure'),
    [],
  );
  const machines = desired(['cp0', 'w0']).machines.map((one) => ({
    ...one,
    ...(one.name === 'w0' && { kubeletVersion: OLD }),
  }));
  const behind = planned('cp0 w0', { spec: { machines }, own: { w0: old } });
  assert.equal(titles(behind), ['configure cp0']);
  assert.equal(reasons(behind.held), [
    'w0: the file has another kubernetes.maxPodsPerNode, which it gets once its kubeletVersion is that of the cluster',
  ]);
});

test('a machine without a record has no changes, unless a person names it', () => {
  const own = { cp0: { settings: undefined }, w0: { settings: undefined } };
  assert.equal(planned('cp0 w0', { own }), { steps: [], held: [], refused: [] });
  const named = planned('cp0 w0', { own, policy: { named: 'cp0' } });
  assert.equal(titles(named), ['configure cp0']);
  assert.match(named.steps[0]?.reason ?? '', 'not known');
  // Nothing is to be applied.
  assert.equal(titles(planned('cp0', { own, settings: {}, policy: { named: 'cp0' } })), []);
});

test('a setting that the file no longer has is noted, and dropped by another change or where a person names the machine', () => {
  const recorded = { ...BEFORE, ...kubernetes({ serviceCIDR: '10.9.0.0/16' }) };
  assert.equal(planned('cp0 w0', { recorded, settings: {} }), { steps: [], held: [], refused: [] });
  const has = (settings: MachineSettings) => machine('w0', { settings: { digests: settings } });
  assert.equal(settingNotes({}, [has(BEFORE), has({})]), [
    'w0: the file no longer has kubernetes.maxPodsPerNode: the next upgrade or another change drops that, or curlew machine upgrade of each',
  ]);
  assert.equal(settingNotes(AFTER, [has(AFTER), machine('w1')]), [
    'settings of w1 are not compared, since it is not recorded which they have: the next upgrade records them, or curlew machine upgrade of each',
  ]);
  assert.equal(settingNotes({}, [machine('w1')]), []);
  const named = planned('cp0 w0', { settings: {}, policy: { named: 'w0' } });
  assert.equal(
    named.steps.map(({ host, reason }) => `${host}: ${reason}`),
    ['w0: the file no longer has kubernetes.maxPodsPerNode'],
  );
  const settings = kubernetes({ kubeReserved: true });
  assert.is(
    planned('cp0', { settings }).steps[0]?.reason,
    'the file has another kubernetes.kubeReserved, and no longer kubernetes.maxPodsPerNode',
  );
  // A run would drop that, too.
  assert.match(
    reasons(planned('cp0', { recorded, settings }).refused).join(),
    'another kubernetes.serviceCIDR, which stays',
  );
});

test('what kubeadm fixes is refused once with the way out, and on a worker it is nothing', () => {
  for (const settings of [
    kubernetes({ serviceCIDR: '10.9.0.0/16' }),
    kubernetes({ clusterName: 'other' }),
    kubernetes({ loadBalancerAddress: '10.0.0.9:6443' }),
    kubernetes({ clusterConfiguration: 'networking: { podSubnet: 10.9.0.0/16 }' }),
    kubeadmSettingsOf({ flannel: { podCIDR: '10.9.0.0/16' } }),
    kubeadmSettingsOf({ flannel: { podCIDRRange: 22 } }),
  ]) {
    const plan = planned('cp0 cp1 cp2 w0', { recorded: {}, settings });
    const [path = ''] = Object.keys(settings);
    assert.equal(plan, {
      steps: [],
      held: [],
      refused: [
        {
          reason: `the file has another ${path}, which stays as it was when the cluster was made: take the change back, or make a new cluster`,
        },
      ],
    });
    assert.equal(titles(planned('cp0 w0', { recorded: {}, settings, own: { cp0: { settings: undefined } } })), []);
  }
});

test('what a machine takes only when it joins is held for those that joined with another, and stops nothing', () => {
  const by = (way: 'init' | 'join', flag: string) =>
    kubernetes({
      [`${way}Configuration`]: `nodeRegistration: { kubeletExtraArgs: [{ name: v, value: "${flag}" }], ignorePreflightErrors: [Swap] }`,
    });
  const changed = planned('cp0 w0', {
    recorded: by('join', '1'),
    settings: { ...by('join', '2'), ...AFTER },
    own: { cp0: { settings: { by: 'init', digests: {} } } },
  });
  assert.equal(titles(changed), ['configure cp0', 'configure w0']);
  assert.equal(reasons(changed.held), [
    'w0: the file has another kubernetes.joinConfiguration.nodeRegistration.kubeletExtraArgs, which kubeadm uses only when a machine joins: curlew machine remove, then curlew machine add',
  ]);
  // Checks of a join that is over.
  const passing = kubernetes({
    joinConfiguration: 'nodeRegistration: { ignorePreflightErrors: [Swap] }\ntimeouts: { discovery: 1m }',
    nodeTaints: 'a=b:NoSchedule',
    initIgnorePreflightErrors: 'x',
    version: '1.31.4',
  });
  assert.equal(passing, {});
});

test('fields of kubeadm are compared one by one, in any notation, and workers have only their own', () => {
  const one = kubernetes({ kubeletConfiguration: 'maxPods: 5\nserializeImagePulls: false\n' });
  assert.equal(Object.keys(one), [
    'kubernetes.kubeletConfiguration.maxPods',
    'kubernetes.kubeletConfiguration.serializeImagePulls',
  ]);
  assert.equal(kubernetes({ kubeletConfiguration: '{serializeImagePulls: false, maxPods: 5} # the same' }), one);
  const flags = kubernetes({
    clusterConfiguration: 'apiServer: { certSANs: [a] }',
    kubeProxyConfiguration: 'mode: nftables',
    certificateRenewal: 'manual',
  });
  assert.equal(titles(planned('cp0 w0', { recorded: {}, settings: flags })), ['configure cp0']);
  assert.equal(Object.keys(kubernetes({ kubeletConfiguration: 'a: [' })), ['kubernetes.kubeletConfiguration']);
  // No value is in a digest that others could guess from another setting.
  const secrets = kubeadmSettingsOf({ x: { a: 'hunter2', b: 'hunter2' } });
  assert.not.equal(secrets['x.a'], secrets['x.b']);
  assert.not.match(JSON.stringify(secrets), 'hunter2');
});

test('the record after a run is what the machine has got by it', () => {
  const join = kubernetes({
    joinConfiguration: 'nodeRegistration: { taints: [] }',
    maxPodsPerNode: 60,
    certificateRenewal: 'manual',
  });
  const wanted = { ...join, ...kubeadmSettingsOf({ containerd: { x: 1 } }) };
  const control = machine('cp0', { settings: { by: 'init', digests: BEFORE } });
  assert.equal(settingsAfter('init', wanted, { own: undefined, others: [] }), { by: 'init', digests: wanted });
  // kubeadm has given it what the control plane has, and not yet what the file has.
  const joined = settingsAfter('join', wanted, { own: undefined, others: [control] });
  assert.equal(joined?.digests, { ...wanted, ...BEFORE });
  assert.is(settingsAfter('join', wanted, { own: undefined, others: [machine('cp0')] }), undefined);
  const first = machine('cp1', { settings: { by: 'join', digests: wanted } });
  assert.equal(settingsAfter('join', wanted, { own: undefined, others: [control, first] })?.digests, wanted);
  // An upgrade does not let it join again.
  const own = { by: 'join', digests: BEFORE } as const;
  const { 'kubernetes.joinConfiguration.nodeRegistration.taints': _, ...applied } = wanted;
  assert.equal(settingsAfter('upgrade', wanted, { own, others: [] }), { by: 'join', digests: applied });
  assert.equal(settingsAfter('upgrade', wanted, { own: undefined, others: [] }), { by: undefined, digests: applied });
});

test('a record of a host that cannot be read is none', () => {
  const read = (text: string) => readFacts(`hostname=p1\narch=x86_64\nsettings=${text}\n`)?.settings;
  assert.equal(read(JSON.stringify({ by: 'join', digests: BEFORE })), { by: 'join', digests: BEFORE });
  assert.equal(read(`{"by":"x","digests":{"a":"${'b'.repeat(1000)}","c":1}}`), {
    by: undefined,
    digests: { a: 'b'.repeat(1000) },
  });
  for (const text of ['', '{"digests":', '[]', '{"by":"init"}']) assert.is(read(text), undefined);
});

test('each setting that is told apart is one of the package', async () => {
  const schema = await readFile('packages/kubernetes/template/files/schema.json', 'utf8');
  const names = Object.keys(JSON.parse(schema).properties);
  const about = (name: string): string => {
    const { able, once, fixed } = changedSettings(
      kubernetes({ [name]: 'x: 1' }),
      machine('cp0', { settings: { by: 'join', digests: {} } }),
    );
    return fixed.length > 0 ? 'fixed' : able.length > 0 ? 'able' : once.length > 0 ? 'once' : 'passing';
  };
  const of = (what: string): readonly string[] => names.filter((name) => about(name) === what);
  assert.equal(of('fixed'), ['clusterName', 'serviceCIDR', 'serviceCidrRange', 'loadBalancerAddress']);
  assert.equal(of('able'), [
    'containerLogMaxFiles',
    'containerLogMaxSize',
    'maxPodsPerNode',
    'certificateRenewal',
    'kubeReserved',
    'systemReservedResources',
    'evictionThresholdResources',
    'useStandardNodePortRange',
    'clusterConfiguration',
    'kubeletConfiguration',
    'kubeProxyConfiguration',
  ]);
});

test('YAML for kubeadm that cannot be read is refused with the file, before any machine is asked', async () => {
  const machines = [
    { name: 'p1', role: 'control-plane', address: '127.0.0.9', ssh: { hostKey: `SHA256:${'A'.repeat(43)}` } },
  ];
  const read = async (kubeletConfiguration: unknown) => {
    const installer = { kubernetes: { kubeletConfiguration } };
    const text = documents(cluster('paris', {}, { kubernetes: { version: NEW }, machines, installer }));
    const context = { signal: never, report: noReport, env: {}, cwd: '/' };
    return (await readChanged({ file: 'paris.yaml', text }, 'plan', context)).installer;
  };
  const at =
    /^cannot plan paris: spec\.installer\.kubernetes\.kubeletConfiguration must be a text that is a map in YAML: /;
  const refused = async (value: unknown, why: string) => {
    await assert.rejectsWith(read(value), 'SPEC_INVALID', new RegExp(at.source + why));
  };
  await refused('maxPods: 9\nevictionHard: {', 'line 2: ');
  await refused('- maxPods', 'it is not a map$');
  await refused({ maxPods: 9 }, 'write it as text: kubeletConfiguration: \\|$');
  assert.equal(await read('{ maxPods: 9 }'), { kubernetes: { kubeletConfiguration: '{ maxPods: 9 }' } });
});

test.run();
