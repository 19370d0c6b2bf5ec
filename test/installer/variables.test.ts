import { parseInstaller } from '../../src/installer/parse.ts';
import { upperSnake } from '../../src/installer/variable-names.ts';
import { shellVariables } from '../../src/installer/variables.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('installer/variables');

function variables(spec: string, versions: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const text = `apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nspec:\n${spec}`;
  const { installer, diagnostics } = parseInstaller('i.yaml', text);
  assert.equal(diagnostics, []);
  if (installer === undefined) throw new Error('no installer');
  const pairs = shellVariables(installer, new Map(Object.entries(versions)));
  assert.is(new Set(pairs.map(([name]) => name)).size, pairs.length);
  assert.equal(
    pairs.map(([name]) => name),
    pairs.map(([name]) => name).toSorted(),
  );
  return Object.fromEntries(pairs);
}

test('20: rule and table give the names', () => {
  const out = variables(
    '  contour: {version: latest}\n  rook: {version: "1", cephReplicaCount: 4}\n  openebs: {version: "1", isCstorEnabled: true}\n',
  );
  assert.is(out['CONTOUR_VERSION'], 'latest');
  assert.is(out['CEPH_POOL_REPLICAS'], '4');
  assert.is(out['OPENEBS_CSTOR'], '1');
});

test('20: a load balancer and airgap set a second variable each', () => {
  const out = variables(
    '  kubernetes: {version: "1", loadBalancerAddress: 192.168.1.1}\n  kurl: {airgap: true, additionalNoProxyAddresses: [10.0.0.1, .corp]}\n',
  );
  assert.is(out['LOAD_BALANCER_ADDRESS'], '192.168.1.1');
  assert.is(out['HA_CLUSTER'], '1');
  assert.is(out['AIRGAP'], '1');
  assert.is(out['OFFLINE_DOCKER_INSTALL'], '1');
  assert.is(out['ADDITIONAL_NO_PROXY_ADDRESSES'], '10.0.0.1,.corp');
});

test('20: a range loses its slash, preserve beats disable', () => {
  const out = variables(
    '  weave: {version: "1", podCidrRange: /24}\n  antrea: {version: "1", podCidrRange: /22}\n  selinuxConfig: {disableSelinux: true, preserveConfig: true}\n  firewalldConfig: {disableFirewalld: true}\n',
  );
  assert.is(out['POD_CIDR_RANGE'], '24');
  assert.is(out['ANTREA_POD_CIDR_RANGE'], '22');
  assert.is(out['DISABLE_SELINUX'], '');
  assert.is(out['PRESERVE_SELINUX_CONFIG'], '1');
  assert.is(out['DISABLE_FIREWALLD'], '1');
});

test('20: hardFailOnLoopback absent is 1, false is empty; noMasqLocal absent is 1, false is 0', () => {
  const absent = variables('  docker: {version: "1"}\n  weave: {version: "1"}\n');
  assert.is(absent['HARD_FAIL_ON_LOOPBACK'], '1');
  assert.is(absent['NO_MASQ_LOCAL'], '1');
  const off = variables(
    '  docker: {version: "1", hardFailOnLoopback: false}\n  weave: {version: "1", noMasqLocal: false}\n',
  );
  assert.is(off['HARD_FAIL_ON_LOOPBACK'], '');
  assert.is(off['NO_MASQ_LOCAL'], '0');
});

test('value rules: false, 0 and maps are empty or absent; texts stay as they are', () => {
  const out = variables(
    `  demo:\n    version: "1"\n    off: false\n    zero: 0\n    many: 12\n    ratio: 0.5\n    empty: ""\n    text: 'a $HOME \`id\` "q" $(x)'\n    lines: "a\\nb"\n    map: {a: 1}\n    maps: [{a: 1}]\n    nothing:\n`,
  );
  assert.is(out['DEMO_OFF'], '');
  assert.is(out['DEMO_ZERO'], '');
  assert.is(out['DEMO_MANY'], '12');
  assert.is(out['DEMO_RATIO'], '0.5');
  assert.is(out['DEMO_EMPTY'], '');
  assert.is(out['DEMO_TEXT'], 'a $HOME `id` "q" $(x)');
  assert.is(out['DEMO_LINES'], 'a\nb');
  for (const absent of ['DEMO_MAP', 'DEMO_MAPS', 'DEMO_NOTHING']) assert.not.ok(absent in out);
});

test('versions are the resolved ones; overrides have kURL’s names', () => {
  const out = variables(
    '  certManager: {version: 1.9.x, s3Override: "https://h/c"}\n  docker: {version: "1", s3Override: "https://h/d"}\n  kubernetes: {version: "1", s3Override: "https://h/k"}\n',
    { 'cert-manager': '1.9.1' },
  );
  assert.is(out['CERT_MANAGER_VERSION'], '1.9.1');
  assert.is(out['CERT_MANAGER_S3_OVERRIDE'], 'https://h/c');
  assert.is(out['DOCKER_S3_OVERRRIDE'], 'https://h/d');
  assert.is(out['SERVICE_S3_OVERRIDE'], 'https://h/k');
});

test('what is not set is empty, so that nothing is inherited from the caller', () => {
  const out = variables('  demo: {version: "1"}\n');
  for (const name of ['AIRGAP', 'NO_PROXY', 'ROOK_VERSION', 'VELERO_S3_OVERRIDE', 'DISABLE_SELINUX', 'MASTER']) {
    assert.is(out[name], '');
  }
  assert.is(out['KUBERNETES_CLUSTER_NAME'], 'kubernetes');
});

test('irregular fields are found whatever their case', () => {
  const out = variables('  kubernetes: {version: "1", HACluster: true}\n  ufwConfig: {disableUFW: true}\n');
  assert.is(out['HA_CLUSTER'], '1');
  assert.is(out['DISABLE_UFW'], '1');
});

test('weave.isEncryptionDisabled takes effect', () => {
  assert.is(variables('  weave: {version: "1", isEncryptionDisabled: true}\n')['ENCRYPT_NETWORK'], '0');
  assert.is(variables('  weave: {version: "1"}\n')['ENCRYPT_NETWORK'], '');
});

for (const [name, expected] of [
  ['podCIDR', 'POD_CIDR'],
  ['kubeadmTokenCAHash', 'KUBEADM_TOKEN_CA_HASH'],
  ['isLocalPVEnabled', 'IS_LOCAL_PV_ENABLED'],
  ['IPAllocRange', 'IP_ALLOC_RANGE'],
  ['cert-manager', 'CERT_MANAGER'],
  ['s3Override', 'S3_OVERRIDE'],
] as const) {
  test(`${name} is ${expected}`, () => assert.is(upperSnake(name), expected));
}

test.run();
