/** Settings of a cluster over SSH: changes in its file reach machines that are nodes already, and the file of an adopted one changes nothing. */
import { readFile, writeFile } from 'node:fs/promises';
import { adoptCluster } from '../../src/app/cluster-adopt.ts';
import { diffClusters } from '../../src/app/cluster-diff.ts';
import { applyCluster } from '../../src/app/cluster-apply.ts';
import { clusterPlan } from '../../src/app/cluster-plan.ts';
import { upgradeMachine } from '../../src/app/machine.ts';
import { openApi } from '../../src/cluster/kube/api.ts';
import { openCalls } from '../../src/cluster/kube/call.ts';
import { REMOTE } from '../../src/machine/run/look.ts';
import { seenNodes } from '../../src/machine/run/nodes.ts';
import type { PlannedCluster } from '../../src/machine/run/planned-cluster.ts';
import { apiClient } from '../support/api-client.ts';
import { startMemoryApiServer } from '../support/api-server/server.ts';
import { appears } from '../support/appears.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { missing, unless } from '../support/needs.ts';
import { hostScene, type HostScene } from '../support/ssh-hosts.ts';
import { SSHD } from '../support/sshd.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';

const test = suite('components/cluster-ssh-settings', { timeoutMs: 120_000 });
const isRoot = process.getuid?.() === 0;
const tests = unless(isRoot ? missing(SSHD, 'ssh', 'ssh-keygen', 'unshare', 'flock') : 'needs root', test);
const certificate = await makeCertificate();

const MACHINES = { p1: { role: 'control-plane' }, p2: { address: 'localhost' } };

function steps({ steps: found }: Pick<PlannedCluster, 'steps'>): readonly string[] {
  return found.map(({ host, phase, reason }) => `${host} ${phase}: ${reason}`);
}

async function writeWith(at: HostScene, kubernetes: object): Promise<void> {
  await at.write(MACHINES, { installer: { kubernetes } });
}

tests(
  'a setting that changes in the file reaches the control plane, then the worker, and is recorded there',
  async () => {
    await using at = await hostScene('p1', 'p2');
    await writeWith(at, { maxPodsPerNode: 50, bootstrapToken: 'aaaaaa.0123456789abcdef' });
    await at.apply();
    const before = (await at.calls()).length;
    await writeWith(at, { maxPodsPerNode: 60, clusterConfiguration: 'apiServer: { certSANs: [a] }' });
    const planned = await at.plan({ bundle: 'b.tar.gz' });
    assert.equal(steps(planned), [
      'p1 configure: the file has another kubernetes.clusterConfiguration.apiServer, kubernetes.maxPodsPerNode',
      'p2 configure: the file has another kubernetes.maxPodsPerNode',
    ]);
    const applied = await at.apply();
    assert.equal([applied.failed, applied.steps, applied.uncompared], [[], [], undefined]);
    assert.equal((await at.calls()).slice(before), [
      'install.sh p1 airgap installer-spec-file=../input',
      'upgrade.sh p2 airgap installer-spec-file=../input',
    ]);
    for (const name of ['p1', 'p2']) {
      const { kubernetes } = JSON.parse(await readFile(`${at.api}/input-${name}`, 'utf8')).spec;
      assert.is(kubernetes.maxPodsPerNode, 60);
      // No value of a setting is recorded, and no one else can read the record.
      const record = await at.on(name, `cd ${REMOTE} && stat -c %a settings && cat settings`);
      assert.match(record, /^600\n\{"by":"(?:init|join)","digests":\{/);
      assert.not.match(record, /[^0-9a-f]60[^0-9a-f]|aaaaaa/);
    }
    const again = await at.apply();
    assert.equal([again.done, again.steps, again.held, again.refused], [[], [], [], []]);
    await writeWith(at, { maxPodsPerNode: 60, serviceCIDR: '10.9.0.0/16' });
    const fixed = await at.plan({ bundle: 'b.tar.gz' });
    assert.equal(fixed.steps, []);
    assert.match(fixed.refused[0]?.reason ?? '', 'another kubernetes.serviceCIDR, which stays as it was');
  },
);

tests(
  'a setting that a machine refuses is not recorded, reaches no other machine, and its correction heals',
  async () => {
    await using at = await hostScene('p1', 'p2');
    await writeWith(at, { maxPodsPerNode: 50 });
    await at.apply();
    await writeWith(at, { maxPodsPerNode: -5 });
    await writeFile(`${at.api}/fail-p1`, 'the kubelet does not run with the new settings\n');
    const failed = await at.apply();
    assert.equal(
      failed.failed.map(({ host, phase }) => `${host} ${phase}`),
      ['p1 configure'],
    );
    assert.match(failed.failed[0]?.reason ?? '', 'does not run with the new settings');
    assert.equal(
      failed.steps.map(({ host, phase }) => `${host} ${phase}`),
      ['p1 configure', 'p2 configure'],
    );
    await writeWith(at, { maxPodsPerNode: 70 });
    await writeFile(`${at.api}/fail-p1`, '');
    await at.on('p1', `rm ${at.api}/fail-p1`);
    const healed = await at.apply();
    assert.equal(
      healed.done.map(({ host, phase }) => `${host} ${phase}`),
      ['p1 configure', 'p2 configure'],
    );
    assert.equal(healed.steps, []);
  },
);

tests('a change whose operator is gone ends on the host, and another change is not taken for it', async () => {
  await using at = await hostScene('p1');
  const write = async (maxPodsPerNode: number): Promise<void> =>
    at.write({ p1: { role: 'control-plane' } }, { installer: { kubernetes: { maxPodsPerNode } } });
  await write(50);
  await at.apply();
  await at.on('p1', `rm -f ${at.api}/began-p1`);
  await write(60);
  await writeFile(`${at.api}/hold-p1`, '');
  const operator = new AbortController();
  const first = at.apply({ signal: operator.signal });
  await appears(`${at.api}/began-p1`);
  at.cut('p1');
  operator.abort(new Error('gone'));
  assert.match(String(await first.catch((error: unknown) => error)), 'gone');
  await write(70);
  const busy = await at.apply();
  assert.match(
    busy.failed[0]?.reason ?? '',
    /configure p1 runs there for a file with other settings: wait until it ends, then run the same command again/,
  );
  await at.on('p1', `rm ${at.api}/hold-p1; flock -s ${REMOTE}/run.lock true`);
  const last = await at.apply();
  assert.equal([last.done.map(({ phase }) => phase), last.steps], [['configure'], []]);
});

tests('a machine that has no record is not changed until a person names it, which is said', async () => {
  await using at = await hostScene('p1', 'p2');
  await writeWith(at, { maxPodsPerNode: 50 });
  await at.apply();
  await at.on('p2', `rm ${REMOTE}/settings`);
  await writeWith(at, { maxPodsPerNode: 60 });
  const applied = await at.apply();
  assert.equal(
    applied.done.map(({ host, phase }) => `${host} ${phase}`),
    ['p1 configure'],
  );
  assert.match(applied.uncompared?.join() ?? '', 'settings of p2 are not compared');
  const { done = [] } = await upgradeMachine(
    { file: 'paris.yaml', name: 'p2', bundle: 'b.tar.gz', yes: true },
    at.context,
  );
  assert.equal(
    done.map(({ host, phase }) => `${host} ${phase}`),
    ['p2 configure'],
  );
  assert.is((await at.plan()).uncompared, undefined);
});

tests('the file that adopts a cluster is the one that a person has written, and plans nothing', async () => {
  await using at = await hostScene('p1', 'p2');
  const taints = [{ key: 'dedicated', value: 'db', effect: 'NoSchedule' }];
  const machines = { ...MACHINES, p2: { address: 'localhost', labels: { disk: 'ssd' }, taints } };
  const networks = { pods: '10.32.0.0/20', services: '10.96.0.0/22', domain: 'cluster.local' };
  await at.write(machines, { networks });
  assert.equal((await at.apply()).failed, []);
  await using server = await startMemoryApiServer({ certificate });
  await writeFile(at.at('adopted.conf'), server.kubeconfig);
  const api = apiClient(server.kubeconfig);
  const config = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: paris
kubernetesVersion: v1.34.4
networking: { podSubnet: 10.32.0.0/20, serviceSubnet: 10.96.0.0/22, dnsDomain: cluster.local }
`;
  await api.create('/api/v1/namespaces/kube-system/configmaps', {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'kubeadm-config', namespace: 'kube-system' },
    data: { ClusterConfiguration: config },
  });
  for (const name of ['p1', 'p2']) {
    const isControl = name === 'p1';
    const system = {
      'kubernetes.io/hostname': name,
      ...(isControl && { 'node-role.kubernetes.io/control-plane': '' }),
    };
    const own = isControl ? [{ key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }] : taints;
    const labels = { ...system, ...(!isControl && { disk: 'ssd' }) };
    await api.create('/api/v1/nodes', {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, labels },
      spec: { taints: own },
    });
    await api.merge(`/api/v1/nodes/${name}/status`, {
      status: {
        conditions: [{ type: 'Ready', status: 'True' }],
        addresses: [{ type: 'InternalIP', address: isControl ? at.host('p1').address : 'localhost' }],
        nodeInfo: { kubeletVersion: 'v1.34.4', osImage: 'Debian' },
      },
    });
  }
  // What the control plane lists is what the API server has.
  const kube = await openApi({ env: { KUBECONFIG: at.at('adopted.conf') } });
  assert.ok(kube);
  for (const node of await seenNodes(openCalls(kube, { patienceMs: 0, signal: never })))
    await writeFile(`${at.api}/node-${node.name}`, JSON.stringify(node));
  await adoptCluster({ kubeconfig: 'adopted.conf', out: 'adopted.yaml' }, at.context);
  let text = await readFile(at.at('adopted.yaml'), 'utf8');
  // A person adds the host keys, and how the machines are reached.
  for (const name of ['p1', 'p2']) {
    const { user, port, hostKey } = at.host(name);
    text = text.replace(/# ssh: .*/, `ssh: { user: ${user}, port: ${port}, hostKey: '${hostKey}' }`);
  }
  await writeFile(at.at('adopted.yaml'), text);
  const files = ['adopted.yaml'];
  for (const bundle of [undefined, 'b.tar.gz']) {
    const plan = await clusterPlan({ files, ...(bundle !== undefined && { bundle }) }, at.context);
    assert.equal([plan.steps, plan.held, plan.refused, plan.uncompared], [[], [], [], undefined]);
  }
  const { done } = await applyCluster({ files, bundle: 'b.tar.gz' }, at.context);
  assert.equal(done, []);
  const { differences } = await diffClusters({ files: ['paris.yaml', ...files] }, at.context);
  assert.equal(differences, []);
});

test.run();
