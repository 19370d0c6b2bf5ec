import { parseInstaller } from '../../src/spec/parse.ts';
import { settingOf, type SettingKind } from '../../src/spec/settings.ts';
import { upperSnake } from '../../src/spec/variable-names.ts';
import { compareText } from '../../src/core/ref.ts';
import { hookVariables, shellVariables } from '../../src/spec/variables.ts';
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

/** kurl.md 4.4, row by row: spec key, fields, variables. */
const TABLE: readonly (readonly [specName: string, fields: string, variables: string])[] = [
  [
    'docker',
    'bypassStorageDriverWarning dockerRegistryIP hardFailOnLoopback noCEOnEE preserveConfig',
    'BYPASS_STORAGEDRIVER_WARNINGS DOCKER_REGISTRY_IP HARD_FAIL_ON_LOOPBACK NO_CE_ON_EE PRESERVE_DOCKER_CONFIG',
  ],
  ['kubernetes', 'controlPlane HACluster masterAddress', 'MASTER HA_CLUSTER KUBERNETES_MASTER_ADDR'],
  ['kubernetes', 'loadBalancerAddress bootstrapToken', 'LOAD_BALANCER_ADDRESS BOOTSTRAP_TOKEN'],
  ['kubernetes', 'bootstrapTokenTTL certKey kubeadmToken', 'BOOTSTRAP_TOKEN_TTL CERT_KEY KUBEADM_TOKEN'],
  ['kubernetes', 'kubeadmTokenCAHash serviceCIDR', 'KUBEADM_TOKEN_CA_HASH SERVICE_CIDR'],
  ['kubernetes', 'serviceCidrRange useStandardNodePortRange', 'SERVICE_CIDR_RANGE USE_STANDARD_PORT_RANGE'],
  ['kubernetes', 'kubeReserved systemReservedResources', 'KUBE_RESERVED SYSTEM_RESERVED'],
  ['kubernetes', 'evictionThresholdResources maxPodsPerNode', 'EVICTION_THRESHOLD KUBERNETES_MAX_PODS_PER_NODE'],
  ['kubernetes', 'containerLogMaxSize containerLogMaxFiles', 'CONTAINER_LOG_MAX_SIZE CONTAINER_LOG_MAX_FILES'],
  ['kubernetes', 'clusterName cisCompliance', 'KUBERNETES_CLUSTER_NAME KUBERNETES_CIS_COMPLIANCE'],
  ['kurl', 'airgap ipv6 licenseURL hostnameCheck', 'AIRGAP IPV6_ONLY LICENSE_URL HOSTNAME_CHECK'],
  ['kurl', 'noProxy proxyAddress privateAddress', 'NO_PROXY PROXY_ADDRESS PRIVATE_ADDRESS'],
  ['kurl', 'publicAddress nameserver', 'PUBLIC_ADDRESS NAMESERVER'],
  ['kurl', 'additionalNoProxyAddresses', 'ADDITIONAL_NO_PROXY_ADDRESSES'],
  ['kurl', 'ignoreRemoteLoadImagesPrompt', 'KURL_IGNORE_REMOTE_LOAD_IMAGES_PROMPT'],
  ['kurl', 'ignoreRemoteUpgradePrompt', 'KURL_IGNORE_REMOTE_UPGRADE_PROMPT'],
  ['kurl', 'hostPreflightIgnore hostPreflightEnforceWarnings', 'HOST_PREFLIGHT_IGNORE HOST_PREFLIGHT_ENFORCE_WARNINGS'],
  ['kurl', 'excludeBuiltinHostPreflights', 'EXCLUDE_BUILTIN_HOST_PREFLIGHTS'],
  ['kurl', 'skipSystemPackageInstall', 'SKIP_SYSTEM_PACKAGE_INSTALL'],
  ['weave', 'podCIDR podCidrRange', 'POD_CIDR POD_CIDR_RANGE'],
  ['antrea', 'isEncryptionDisabled podCIDR', 'ANTREA_DISABLE_ENCRYPTION ANTREA_POD_CIDR'],
  ['flannel', 'podCIDR podCIDRRange', 'FLANNEL_POD_CIDR FLANNEL_POD_CIDR_RANGE'],
  ['rook', 'cephReplicaCount storageClassName', 'CEPH_POOL_REPLICAS STORAGE_CLASS'],
  ['rook', 'isBlockStorageEnabled', 'ROOK_BLOCK_STORAGE_ENABLED'],
  ['rook', 'isSharedFilesystemDisabled', 'ROOK_SHARED_FILESYSTEM_DISABLED'],
  ['minio', 'hostPath claimSize', 'MINIO_HOSTPATH MINIO_CLAIM_SIZE'],
  ['openebs', 'isLocalPVEnabled isCstorEnabled namespace', 'OPENEBS_LOCALPV OPENEBS_CSTOR OPENEBS_NAMESPACE'],
  ['openebs', 'localPVStorageClassName', 'OPENEBS_LOCALPV_STORAGE_CLASS'],
  ['openebs', 'cstorStorageClassName', 'OPENEBS_CSTOR_STORAGE_CLASS'],
  ['kotsadm', 'applicationNamespace disableS3', 'KOTSADM_APPLICATION_NAMESPACES KOTSADM_DISABLE_S3'],
  ['velero', 'localBucket namespace disableCLI', 'VELERO_LOCAL_BUCKET VELERO_NAMESPACE VELERO_DISABLE_CLI'],
  ['fluentd', 'fluentdConfPath fullEFKStack', 'FLUENTD_CONF_FILE FLUENTD_FULL_EFK_STACK'],
  ['ekco', 'nodeUnreachableToleration', 'EKCO_NODE_UNREACHABLE_TOLERATION_DURATION'],
  ['ekco', 'shouldDisableRebootServices', 'EKCO_SHOULD_DISABLE_REBOOT_SERVICE'],
  ['ekco', 'rookShouldDisableReconcileMDSPlacement', 'EKCO_ROOK_SHOULD_DISABLE_RECONCILE_MDS_PLACEMENT'],
  ['ekco', 'rookShouldDisableReconcileCephCSIResources', 'EKCO_ROOK_SHOULD_DISABLE_RECONCILE_CEPH_CSI_RESOURCES'],
  ['contour', 'tlsMinimumProtocolVersion httpsPort', 'CONTOUR_TLS_MINIMUM_PROTOCOL_VERSION CONTOUR_HTTPS_PORT'],
  ['longhorn', 'storageOverProvisioningPercentage', 'LONGHORN_STORAGE_OVER_PROVISIONING_PERCENTAGE'],
  ['firewalldConfig', 'bypassFirewalldWarning disableFirewalld', 'BYPASS_FIREWALLD_WARNING DISABLE_FIREWALLD'],
  ['firewalldConfig', 'hardFailOnFirewalld', 'HARD_FAIL_ON_FIREWALLD'],
  ['ufwConfig', 'bypassUFWWarning disableUFW hardFailOnUFW', 'BYPASS_UFW_WARNING DISABLE_UFW HARD_FAIL_ON_UFW'],
  ['selinuxConfig', 'disableSelinux', 'DISABLE_SELINUX'],
  ['selinuxConfig', 'preserveConfig', 'PRESERVE_SELINUX_CONFIG'],
  ['iptablesConfig', 'preserveConfig', 'PRESERVE_IPTABLES_CONFIG'],
];

/** A value of each kind as YAML, and what comes of it. */
const SAMPLES: Readonly<Record<SettingKind, readonly [yaml: string, variable: string]>> = {
  switch: ['true', '1'],
  text: ['"a text"', 'a text'],
  integer: ['42', '42'],
  texts: ['[a, b]', 'a,b'],
  commands: ['[[a, b]]', ''],
  document: ['{a: b}', ''],
};

for (const [specName, fields, names] of TABLE) {
  test(`${specName}: ${fields}`, () => {
    const list = fields.split(' ');
    const samples = list.map((field) => SAMPLES[settingOf(specName, field)?.kind ?? 'document']);
    const lines = list.map((field, index) => `    ${field}: ${samples[index]?.[0] ?? ''}\n`);
    const out = variables(
      `  ${specName}:\n${/Config$|^kurl$/.test(specName) ? '' : '    version: "1"\n'}${lines.join('')}`,
    );
    assert.equal(
      names.split(' ').map((name) => out[name]),
      samples.map(([, value]) => value),
    );
    const unset = variables('  demo: {version: "1"}\n');
    for (const name of names.split(' ')) assert.ok(name in unset, `${name} is inherited from the caller`);
  });
}

test('firewalld: preserve beats disable', () => {
  const out = variables('  firewalldConfig: {disableFirewalld: true, preserveConfig: true}\n');
  assert.is(out['DISABLE_FIREWALLD'], '');
  assert.is(out['PRESERVE_FIREWALLD_CONFIG'], '1');
});

test('the proxy of a spec is for https too; there is no setting of its own', () => {
  for (const [settings, address] of [
    ['{proxyAddress: "http://p:1"}', 'http://p:1'],
    ['{}', ''],
  ] as const) {
    const text = `apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nspec:\n  kurl: ${settings}\n`;
    const { installer } = parseInstaller('i.yaml', text);
    const found = installer === undefined ? [] : hookVariables(installer, new Map());
    assert.is(Object.fromEntries(found)['PROXY_HTTPS_ADDRESS'], address);
    const names = found.map(([name]) => name);
    assert.equal(names, names.toSorted(compareText), 'a run is resumed only with its variables in their order');
  }
  assert.not('PROXY_HTTPS_ADDRESS' in variables('  kurl: {}\n'));
});

test('what is not set is empty, so that nothing is inherited from the caller', () => {
  const out = variables('  demo: {version: "1"}\n');
  for (const name of ['AIRGAP', 'NO_PROXY', 'ROOK_VERSION', 'VELERO_S3_OVERRIDE', 'DISABLE_SELINUX', 'MASTER']) {
    assert.is(out[name], '');
  }
  assert.is(out['KUBERNETES_CLUSTER_NAME'], 'kubernetes');
});

test('irregular fields are found whatever their case', () => {
  const out = variables('  kubernetes: {version: "1", haCluster: true}\n  ufwConfig: {disableUFW: true}\n');
  assert.is(out['HA_CLUSTER'], '1');
  assert.is(out['DISABLE_UFW'], '1');
});

test('weave.isEncryptionDisabled takes effect', () => {
  assert.is(variables('  weave: {version: "1", isEncryptionDisabled: true}\n')['ENCRYPT_NETWORK'], '0');
  assert.is(variables('  weave: {version: "1"}\n')['ENCRYPT_NETWORK'], '');
});

test('20: what only other tools read has no variable', () => {
  const out = variables(
    '  docker: {version: "1", daemonConfig: "{}"}\n  kurl: {installerVersion: v1}\n  selinuxConfig: {type: x, chconCmds: [[a]]}\n',
  );
  for (const name of ['DOCKER_DAEMON_CONFIG', 'KURL_INSTALLER_VERSION', 'SELINUX_CONFIG_TYPE'])
    assert.not.ok(name in out);
});

test('settings under the names that they had before become the variables of those of today', () => {
  const text = `apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nspec:
  weave: {version: "1", encryptNetwork: false, IPAllocRange: /22}
  rook: {version: "1", storageClass: a, cephPoolReplicas: 2}
  fluentd: {version: "1", efkStack: true}
  collectd: {version: 0.0.1}\n`;
  const { installer, diagnostics } = parseInstaller('i.yaml', text);
  assert.equal(
    diagnostics.map(({ code, place }) => `${code} ${place.line}:${place.column}`),
    [
      'installer/old-name 4:25',
      'installer/old-name 4:48',
      'installer/old-name 5:24',
      'installer/old-name 5:41',
      'installer/old-name 6:27',
    ],
  );
  if (installer === undefined) throw new Error('no installer');
  const out = Object.fromEntries(shellVariables(installer, new Map()));
  const names = ['ENCRYPT_NETWORK', 'POD_CIDR_RANGE', 'STORAGE_CLASS', 'CEPH_POOL_REPLICAS', 'FLUENTD_FULL_EFK_STACK'];
  assert.equal(
    [...names, 'COLLECTD_VERSION'].map((name) => out[name]),
    ['0', '22', 'a', '2', '1', 'v5'],
  );
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
