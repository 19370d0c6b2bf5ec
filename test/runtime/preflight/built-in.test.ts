import { assembleSpecs, type AddonSpec } from '../../../src/runtime/preflight/assemble.ts';
import { builtInSpec } from '../../../src/runtime/preflight/built-in.ts';
import { NO_INSTALLATION, type Situation } from '../../../src/runtime/preflight/situation.ts';
import { parseInstaller } from '../../../src/spec/parse.ts';
import { systemPackagesSpec } from '../../../src/runtime/preflight/system-packages-spec.ts';
import * as assert from '../../support/assert.ts';
import { specText } from '../../support/preflight.ts';
import { suite } from '../../support/suite.ts';

const test = suite('preflight/built-in');

function situation(spec: string, more: Partial<Situation> = {}): Situation {
  const text = `apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nspec:\n${spec}`;
  const { installer, diagnostics } = parseInstaller('installer.yaml', text);
  if (installer === undefined) throw new Error(JSON.stringify(diagnostics));
  return { ...NO_INSTALLATION, installer, ...more };
}

/** Titles of the checks of a kind that are made. */
function made(at: Situation, kind: string): readonly string[] {
  return builtInSpec(at)
    .analyzers.filter((one) => one.kind === kind && !one.excluded)
    .map(({ checkName = '' }) => checkName);
}

function address(at: Situation): readonly (string | undefined)[] {
  return builtInSpec(at)
    .collectors.filter(({ kind, excluded }) => kind === 'tcpConnect' && !excluded)
    .map(({ settings }) => settings.text('address'));
}

const KUBERNETES = '  kubernetes: {version: 1.29.1}\n';

test('every analyzer has its collector, and they are excluded together', () => {
  const at = situation(`${KUBERNETES}  containerd: {version: 1.6.2}\n  docker: {version: 20.10.5}\n`);
  for (const one of [at, { ...at, isUpgrade: true }, { ...at, isPrimary: false, isJoin: true }]) {
    const { collectors, analyzers } = builtInSpec(one);
    for (const { kind, collectorName, excluded } of analyzers.filter((analyzer) => analyzer.kind !== 'hostOS')) {
      const found = collectors.find((collector) => collector.kind === kind && collector.name === collectorName);
      assert.is(found?.excluded, excluded, `${kind} ${collectorName ?? ''}`);
    }
  }
});

test('kurl.md 11, case 30: without a load balancer it is not asked, with docker its disk is', () => {
  const find = (at: Situation, kind: string, name: string): boolean | undefined =>
    builtInSpec(at).collectors.find((one) => one.kind === kind && one.name?.includes(name))?.excluded;
  assert.is(find(situation(KUBERNETES), 'tcpLoadBalancer', 'Load Balancer'), true);
  assert.is(find(situation('  docker: {version: 20.10.17}\n'), 'diskUsage', '/var/lib/docker'), false);
  assert.is(find(situation(KUBERNETES), 'diskUsage', '/var/lib/docker'), true);
  const balanced = situation('  kubernetes: {version: 1.29.1, loadBalancerAddress: "lb:6443"}\n');
  assert.is(find(balanced, 'tcpLoadBalancer', 'Load Balancer'), false);
  assert.is(find({ ...balanced, isJoin: true }, 'tcpLoadBalancer', 'Load Balancer'), true);
  assert.is(find({ ...balanced, isUpgrade: true }, 'http', 'Load Balancer Upgrade'), false);
});

test('ports are asked for on machines that are new, those of the control plane on primaries only', () => {
  assert.is(made(situation(KUBERNETES), 'tcpPortStatus').length, 8);
  assert.equal(made(situation(KUBERNETES, { isPrimary: false, isJoin: true }), 'tcpPortStatus'), [
    'Kubelet Health Server TCP Port Status',
    'Kubelet API TCP Port Status',
  ]);
  assert.equal(made(situation(KUBERNETES, { isUpgrade: true }), 'tcpPortStatus'), []);
  // Such as a second join: kubelet has its ports.
  assert.equal(
    made(situation(KUBERNETES, { isJoin: true, isPrimary: false, hasKubernetes: true }), 'tcpPortStatus'),
    [],
  );
});

test('a node that joins has to reach the others', () => {
  const others = { primaryHosts: ['10.0.0.1'], secondaryHosts: ['fd00::1'], isJoin: true };
  assert.equal(address(situation(KUBERNETES, { ...others, isPrimary: false })), ['10.0.0.1:6443']);
  assert.equal(address(situation(KUBERNETES, others)), [
    '10.0.0.1:6443',
    '10.0.0.1:10250',
    '[fd00::1]:10250',
    '10.0.0.1:2379',
    '10.0.0.1:2380',
  ]);
  assert.equal(address(situation(KUBERNETES, { ...others, isUpgrade: true })), []);
  const master = '  kubernetes: {version: 1.29.1, masterAddress: "10.0.0.9:6443"}\n';
  assert.equal(address(situation(master, { isJoin: true })), ['10.0.0.9:6443']);
  assert.equal(made(situation(master, { isJoin: true }), 'http'), ['Clock of the Kubernetes API']);
  assert.equal(made(situation(master, { isJoin: false }), 'http'), []);
  const internal = `${master}  ekco: {version: 0.28.0, enableInternalLoadBalancer: true}\n`;
  assert.equal(address(situation(internal, { isJoin: true })), []);
});

test('key pairs and health are looked at when a primary is upgraded', () => {
  assert.is(made(situation(KUBERNETES, { isUpgrade: true }), 'certificate').length, 2);
  assert.equal(made(situation(KUBERNETES, { isUpgrade: true, isPrimary: false }), 'certificate'), []);
  assert.equal(made(situation(KUBERNETES, { isUpgrade: true }), 'http'), ['Kubernetes API Health']);
});

test('versions that do not fit together, or not the system, are asked for by the resolved version', () => {
  const at = (spec: string): readonly string[] => made(situation(spec), 'hostOS');
  assert.equal(at('  weave: {version: 2.8.1}\n  containerd: {version: 1.6.2}\n'), [
    'Containerd and Weave Compatibility',
  ]);
  assert.equal(at('  weave: {version: 2.8.1}\n  containerd: {version: 1.6.5}\n'), []);
  assert.equal(at('  docker: {version: 19.03.15}\n'), ['Docker Support', 'Docker Support']);
  assert.equal(at('  docker: {version: 20.10.17}\n'), ['Docker Support']);
  assert.equal(at('  kubernetes: {version: 1.23.17}\n'), ['Kubernetes Support']);
  assert.equal(at(`${KUBERNETES}  kotsadm: {version: 1.96.2}\n`), ['Kots and Kubernetes Compatibility']);
  assert.equal(at(`${KUBERNETES}  kotsadm: {version: nightly}\n`), []);
  const resolved = situation('  docker: {version: latest}\n', { versions: new Map([['docker', '19.03.15']]) });
  assert.is(made(resolved, 'hostOS').length, 2);
});

const SPEC = specText('  collectors: []\n').replace('name: test', 'name: NAME');
const spec = (addon: string): AddonSpec => ({ addon, file: addon, text: SPEC.replace('NAME', addon) });

test('specs come in the order built-in, vendor, add-ons, container runtime, by hand', () => {
  const vendor = `  kurl:
    hostPreflights: {apiVersion: troubleshoot.sh/v1beta2, kind: HostPreflight, metadata: {name: vendor}, spec: {}}
`;
  const at = situation(KUBERNETES + vendor);
  const addons = ['containerd', 'mine', 'prometheus', 'rook'].map(spec);
  const options = { addons, others: [spec('hand')], builtIn: true };
  const names = (one: Situation, builtIn = true): readonly (string | undefined)[] =>
    assembleSpecs(one, { ...options, builtIn }).specs.map(({ name }) => name);
  assert.equal(names(at), ['built-in', 'vendor', 'rook', 'prometheus', 'mine', 'containerd', 'hand']);
  assert.equal(names(at, false), ['vendor', 'rook', 'prometheus', 'mine', 'containerd', 'hand']);
  assert.equal(names(situation(vendor)), names(at, false), 'what is built in is for nodes of Kubernetes');
  const without = situation(`${KUBERNETES}${vendor}    excludeBuiltinHostPreflights: true\n`);
  assert.equal(names(without), ['vendor', 'hand']);
});

test('templates in the spec of the vendor see the installer spec', () => {
  const at = situation(`  rook: {version: 1.0.4, blockDeviceFilter: 'sd[b-z]'}
  kurl:
    hostPreflights:
      apiVersion: troubleshoot.sh/v1beta2
      kind: HostPreflight
      spec:
        analyzers:
          - blockDevices:
              exclude: '{{kurl not .Installer.Spec.Rook.Version }}'
              outcomes: [{pass: {when: '{{kurl .Installer.Spec.Rook.BlockDeviceFilter }} > 0', message: m}}]
`);
  const [vendor] = assembleSpecs(at, { addons: [], others: [], builtIn: false }).specs;
  assert.is(vendor?.analyzers[0]?.excluded, false);
  assert.is(vendor?.analyzers[0]?.outcomes[0]?.when, 'sd[b-z] > 0');
});

test('mistakes of all specs are one error that names their files', () => {
  const broken = (file: string): AddonSpec => ({ addon: file, file, text: '{{kurl nosuch }}' });
  const error = assert.throwsWith(
    () => assembleSpecs(NO_INSTALLATION, { addons: [broken('a'), spec('b'), broken('c')], others: [], builtIn: false }),
    'SPEC_INVALID',
    /a, c: not valid/,
  );
  assert.equal(
    error.diagnostics.map(({ place }) => place.file),
    ['a', 'c'],
  );
  const old = situation('  kurl: {hostPreflights: {apiVersion: troubleshoot.sh/v1beta1, kind: HostPreflight}}\n');
  assert.throwsWith(() => assembleSpecs(old, { addons: [], others: [], builtIn: false }), 'SPEC_INVALID', /v1beta1/);
});

test('the host packages of a Manifest become a spec of their own', () => {
  const manifest = 'image a b:1\napt nfs-common\nyum nfs-utils\nyum8 lvm2\nyumol  iscsi\n# apt none\napt24 x';
  const made = systemPackagesSpec('rook', manifest);
  const [parsed] = assembleSpecs(NO_INSTALLATION, {
    addons: made === undefined ? [] : [made],
    others: [],
    builtIn: false,
  }).specs;
  const settings = parsed?.collectors[0]?.settings;
  assert.equal(
    ['ubuntu', 'centos', 'rhel', 'ol', 'amzn', 'rhel8', 'ol9'].map((list) => settings?.texts(list)),
    [['nfs-common'], ['nfs-utils'], ['nfs-utils'], ['nfs-utils', 'iscsi'], ['nfs-utils'], ['lvm2'], ['lvm2']],
  );
  assert.is(systemPackagesSpec('rook', 'image a b:1\n'), undefined);
});

test.run();
