/**
 * Every setting that kURL knows: its type, and its shell variable. The schema, checks, variables, `--set`, flags and the
 * compatibility page all read this table.
 */
import { variableByRule } from './variable-names.ts';

/** The type of a setting. `commands`: a list of lists of texts; `document`: a map that other tools read. */
export type SettingKind = 'switch' | 'text' | 'integer' | 'texts' | 'commands' | 'document';

/** A kind alone has the variable by rule; with an empty name there is no variable: other tools read the setting. */
type Field = SettingKind | readonly [kind: SettingKind, variable: string];
type Fields = Readonly<Record<string, Field>>;

const UFW: Fields = {
  bypassUFWWarning: ['switch', 'BYPASS_UFW_WARNING'],
  disableUFW: ['switch', 'DISABLE_UFW'],
  hardFailOnUFW: ['switch', 'HARD_FAIL_ON_UFW'],
};

/** Keys of `spec` that have no version and no package. */
const SECTIONS: Readonly<Record<string, Fields>> = {
  firewalldConfig: {
    bypassFirewalldWarning: ['switch', 'BYPASS_FIREWALLD_WARNING'],
    disableFirewalld: ['switch', 'DISABLE_FIREWALLD'],
    firewalld: ['text', ''],
    firewalldCmds: ['commands', ''],
    hardFailOnFirewalld: ['switch', 'HARD_FAIL_ON_FIREWALLD'],
    preserveConfig: ['switch', 'PRESERVE_FIREWALLD_CONFIG'],
  },
  helm: { additionalImages: 'texts', helmfileSpec: 'text' },
  iptablesConfig: { iptablesCmds: ['commands', ''], preserveConfig: ['switch', 'PRESERVE_IPTABLES_CONFIG'] },
  kurl: {
    additionalNoProxyAddresses: ['texts', 'ADDITIONAL_NO_PROXY_ADDRESSES'],
    airgap: ['switch', 'AIRGAP'],
    excludeBuiltinHostPreflights: ['switch', 'EXCLUDE_BUILTIN_HOST_PREFLIGHTS'],
    hostnameCheck: ['text', 'HOSTNAME_CHECK'],
    hostPreflightEnforceWarnings: ['switch', 'HOST_PREFLIGHT_ENFORCE_WARNINGS'],
    hostPreflightIgnore: ['switch', 'HOST_PREFLIGHT_IGNORE'],
    hostPreflights: ['document', 'HOST_PREFLIGHTS'],
    ignoreRemoteLoadImagesPrompt: 'switch',
    ignoreRemoteUpgradePrompt: 'switch',
    installerVersion: ['text', ''],
    ipv6: ['switch', 'IPV6_ONLY'],
    licenseURL: ['text', 'LICENSE_URL'],
    nameserver: ['text', 'NAMESERVER'],
    noProxy: ['switch', 'NO_PROXY'],
    privateAddress: ['text', 'PRIVATE_ADDRESS'],
    proxyAddress: ['text', 'PROXY_ADDRESS'],
    publicAddress: ['text', 'PUBLIC_ADDRESS'],
    skipSystemPackageInstall: ['switch', 'SKIP_SYSTEM_PACKAGE_INSTALL'],
  },
  selinuxConfig: {
    chconCmds: ['commands', ''],
    disableSelinux: ['switch', 'DISABLE_SELINUX'],
    preserveConfig: ['switch', 'PRESERVE_SELINUX_CONFIG'],
    selinux: ['text', ''],
    semanageCmds: ['commands', ''],
    type: ['text', ''],
  },
  ufwConfig: UFW,
};

/** Settings of add-ons, in addition to `version` and `s3Override`, which all have. */
const ADDONS: Readonly<Record<string, Fields>> = {
  antrea: { isEncryptionDisabled: ['switch', 'ANTREA_DISABLE_ENCRYPTION'], podCIDR: 'text', podCidrRange: 'text' },
  aws: { excludeStorageClass: 'switch' },
  calico: {},
  certManager: {},
  collectd: {},
  containerd: { preserveConfig: 'switch', tomlConfig: 'text' },
  contour: { httpPort: 'integer', httpsPort: 'integer', tlsMinimumProtocolVersion: 'text' },
  docker: {
    bypassStorageDriverWarning: ['switch', 'BYPASS_STORAGEDRIVER_WARNINGS'],
    daemonConfig: ['text', ''],
    dockerRegistryIP: ['text', 'DOCKER_REGISTRY_IP'],
    hardFailOnLoopback: ['switch', 'HARD_FAIL_ON_LOOPBACK'],
    noCEOnEE: ['switch', 'NO_CE_ON_EE'],
    preserveConfig: ['switch', 'PRESERVE_DOCKER_CONFIG'],
    s3Override: ['text', 'DOCKER_S3_OVERRRIDE'],
  },
  ekco: {
    autoUpgradeSchedule: 'text',
    enableInternalLoadBalancer: 'switch',
    envoyPodsNotReadyDuration: 'text',
    kotsadmShouldDisableManagement: 'switch',
    minioShouldDisableManagement: 'switch',
    minReadyMasterNodeCount: 'integer',
    minReadyWorkerNodeCount: 'integer',
    nodeUnreachableToleration: ['text', 'EKCO_NODE_UNREACHABLE_TOLERATION_DURATION'],
    podImageOverrides: 'texts',
    rookShouldDisableReconcileCephCSIResources: 'switch',
    rookShouldDisableReconcileMDSPlacement: 'switch',
    rookShouldUseAllNodes: 'switch',
    shouldDisableClearNodes: 'switch',
    shouldDisableRebootServices: ['switch', 'EKCO_SHOULD_DISABLE_REBOOT_SERVICE'],
    shouldDisableRestartFailedEnvoyPods: 'switch',
    shouldEnablePurgeNodes: 'switch',
  },
  flannel: { podCIDR: 'text', podCIDRRange: 'text' },
  fluentd: { fluentdConfPath: ['text', 'FLUENTD_CONF_FILE'], fullEFKStack: 'switch' },
  goldpinger: {},
  kotsadm: {
    applicationNamespace: ['text', 'KOTSADM_APPLICATION_NAMESPACES'],
    applicationSlug: 'text',
    applicationVersionLabel: 'text',
    disableS3: 'switch',
    hostname: 'text',
    uiBindPort: 'integer',
  },
  kubernetes: {
    bootstrapToken: ['text', 'BOOTSTRAP_TOKEN'],
    bootstrapTokenTTL: ['text', 'BOOTSTRAP_TOKEN_TTL'],
    certKey: ['text', 'CERT_KEY'],
    cisCompliance: 'switch',
    clusterName: 'text',
    containerLogMaxFiles: ['integer', 'CONTAINER_LOG_MAX_FILES'],
    containerLogMaxSize: ['text', 'CONTAINER_LOG_MAX_SIZE'],
    controlPlane: ['switch', 'MASTER'],
    evictionThresholdResources: ['text', 'EVICTION_THRESHOLD'],
    HACluster: ['switch', 'HA_CLUSTER'],
    initIgnorePreflightErrors: 'text',
    kubeadmToken: ['text', 'KUBEADM_TOKEN'],
    kubeadmTokenCAHash: ['text', 'KUBEADM_TOKEN_CA_HASH'],
    kubeReserved: ['switch', 'KUBE_RESERVED'],
    loadBalancerAddress: ['text', 'LOAD_BALANCER_ADDRESS'],
    loadBalancerUseFirstPrimary: 'switch',
    masterAddress: ['text', 'KUBERNETES_MASTER_ADDR'],
    maxPodsPerNode: 'integer',
    s3Override: ['text', 'SERVICE_S3_OVERRIDE'],
    serviceCIDR: ['text', 'SERVICE_CIDR'],
    serviceCidrRange: ['text', 'SERVICE_CIDR_RANGE'],
    systemReservedResources: ['text', 'SYSTEM_RESERVED'],
    upgradeIgnorePreflightErrors: 'text',
    useStandardNodePortRange: ['switch', 'USE_STANDARD_PORT_RANGE'],
  },
  longhorn: { storageOverProvisioningPercentage: 'integer', uiBindPort: 'integer', uiReplicaCount: 'integer' },
  metricsServer: {},
  minio: { claimSize: 'text', hostPath: ['text', 'MINIO_HOSTPATH'], namespace: 'text' },
  openebs: {
    cstorStorageClassName: ['text', 'OPENEBS_CSTOR_STORAGE_CLASS'],
    isCstorEnabled: ['switch', 'OPENEBS_CSTOR'],
    isLocalPVEnabled: ['switch', 'OPENEBS_LOCALPV'],
    localPVStorageClassName: ['text', 'OPENEBS_LOCALPV_STORAGE_CLASS'],
    namespace: 'text',
  },
  prometheus: { serviceType: 'text' },
  registry: { publishPort: 'integer' },
  rook: {
    blockDeviceFilter: 'text',
    bypassUpgradeWarning: 'switch',
    cephReplicaCount: ['integer', 'CEPH_POOL_REPLICAS'],
    hostpathRequiresPrivileged: 'switch',
    isBlockStorageEnabled: ['switch', 'ROOK_BLOCK_STORAGE_ENABLED'],
    isSharedFilesystemDisabled: ['switch', 'ROOK_SHARED_FILESYSTEM_DISABLED'],
    minimumNodeCount: 'integer',
    nodes: 'text',
    storageClassName: ['text', 'STORAGE_CLASS'],
  },
  sonobuoy: {},
  velero: {
    disableCLI: 'switch',
    disableRestic: 'switch',
    localBucket: 'text',
    namespace: 'text',
    resticRequiresPrivileged: 'switch',
    resticTimeout: 'text',
    serverFlags: 'texts',
  },
  weave: {
    isEncryptionDisabled: ['switch', 'ENCRYPT_NETWORK'],
    noMasqLocal: ['switch', 'NO_MASQ_LOCAL'],
    podCIDR: ['text', 'POD_CIDR'],
    podCidrRange: ['text', 'POD_CIDR_RANGE'],
  },
};

export interface Setting {
  /** Name in the spec: `certManager`. */
  readonly specName: string;
  readonly field: string;
  readonly kind: SettingKind;
  /** Undefined if it has none. */
  readonly variable: string | undefined;
}

function settingsOf(specName: string, fields: Fields): readonly Setting[] {
  return Object.entries(fields).map(([field, row]) => {
    const [kind, name] = typeof row === 'string' ? [row, variableByRule(specName, field)] : row;
    return { specName, field, kind, variable: name === '' ? undefined : name };
  });
}

/** Settings in the order of the table: sections, then add-ons. */
export const SETTINGS: readonly Setting[] = [
  ...Object.entries(SECTIONS).flatMap(([specName, fields]) => settingsOf(specName, fields)),
  ...Object.entries(ADDONS).flatMap(([specName, fields]) =>
    settingsOf(specName, { s3Override: 'text', version: 'text', ...fields }),
  ),
];

/** Keys of `spec` that have no version and no package; parts of kURL call `ufwConfig` `ufw`. */
export const SECTION_NAMES: readonly string[] = [...Object.keys(SECTIONS), 'ufw'];
/** The add-ons of kURL, as written in a spec. */
export const ADDON_NAMES: readonly string[] = Object.keys(ADDONS);

function tableName(specName: string): string {
  return specName === 'ufw' ? 'ufwConfig' : specName;
}

const BY_NAME: ReadonlyMap<string, Setting> = new Map(
  SETTINGS.map((setting) => [`${setting.specName}.${setting.field}`.toLowerCase(), setting]),
);

/** A setting of every add-on that kURL does not have: the time limit of each hook. */
export const HOOK_TIMEOUT = 'hookTimeout';

/** The row of a setting that kURL knows. Fields are compared without case, as in kURL's decoder. */
export function settingOf(specName: string, field: string): Setting | undefined {
  return BY_NAME.get(`${tableName(specName)}.${field}`.toLowerCase());
}

/** The fields that kURL knows under this key of a spec; none under an unknown key. */
export function kurlFields(specName: string): readonly string[] {
  return SETTINGS.filter((setting) => setting.specName === tableName(specName)).map(({ field }) => field);
}

/** The variable of a setting, or undefined if it has none: kURL's, or by rule for settings that kURL does not know. */
export function variableName(specName: string, field: string): string | undefined {
  const known = settingOf(specName, field);
  const variable = known === undefined ? variableByRule(specName, field) : known.variable;
  return variable !== undefined && /^[A-Z_][A-Z0-9_]{0,200}$/.test(variable) ? variable : undefined;
}
