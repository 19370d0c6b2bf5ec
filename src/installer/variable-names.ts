/** Which shell variable a setting becomes: by rule `<NAME>_<FIELD>`, kURL's irregular ones by table (kurl.md 4.4). */

/** Fields and their variables, by spec key. Names are compared without regard to case, as kURL's decoder does. */
export const IRREGULAR: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  antrea: { isEncryptionDisabled: 'ANTREA_DISABLE_ENCRYPTION' },
  docker: {
    bypassStorageDriverWarning: 'BYPASS_STORAGEDRIVER_WARNINGS',
    dockerRegistryIP: 'DOCKER_REGISTRY_IP',
    hardFailOnLoopback: 'HARD_FAIL_ON_LOOPBACK',
    noCEOnEE: 'NO_CE_ON_EE',
    preserveConfig: 'PRESERVE_DOCKER_CONFIG',
    s3Override: 'DOCKER_S3_OVERRRIDE',
  },
  ekco: {
    nodeUnreachableToleration: 'EKCO_NODE_UNREACHABLE_TOLERATION_DURATION',
    shouldDisableRebootServices: 'EKCO_SHOULD_DISABLE_REBOOT_SERVICE',
  },
  firewalldConfig: {
    bypassFirewalldWarning: 'BYPASS_FIREWALLD_WARNING',
    disableFirewalld: 'DISABLE_FIREWALLD',
    hardFailOnFirewalld: 'HARD_FAIL_ON_FIREWALLD',
    preserveConfig: 'PRESERVE_FIREWALLD_CONFIG',
  },
  fluentd: { fluentdConfPath: 'FLUENTD_CONF_FILE' },
  iptablesConfig: { preserveConfig: 'PRESERVE_IPTABLES_CONFIG' },
  kotsadm: { applicationNamespace: 'KOTSADM_APPLICATION_NAMESPACES' },
  kubernetes: {
    bootstrapToken: 'BOOTSTRAP_TOKEN',
    bootstrapTokenTTL: 'BOOTSTRAP_TOKEN_TTL',
    certKey: 'CERT_KEY',
    containerLogMaxFiles: 'CONTAINER_LOG_MAX_FILES',
    containerLogMaxSize: 'CONTAINER_LOG_MAX_SIZE',
    controlPlane: 'MASTER',
    evictionThresholdResources: 'EVICTION_THRESHOLD',
    haCluster: 'HA_CLUSTER',
    kubeadmToken: 'KUBEADM_TOKEN',
    kubeadmTokenCAHash: 'KUBEADM_TOKEN_CA_HASH',
    kubeReserved: 'KUBE_RESERVED',
    loadBalancerAddress: 'LOAD_BALANCER_ADDRESS',
    masterAddress: 'KUBERNETES_MASTER_ADDR',
    maxPodsPerNode: 'KUBERNETES_MAX_PODS_PER_NODE',
    s3Override: 'SERVICE_S3_OVERRIDE',
    serviceCIDR: 'SERVICE_CIDR',
    serviceCidrRange: 'SERVICE_CIDR_RANGE',
    systemReservedResources: 'SYSTEM_RESERVED',
    useStandardNodePortRange: 'USE_STANDARD_PORT_RANGE',
  },
  kurl: {
    additionalNoProxyAddresses: 'ADDITIONAL_NO_PROXY_ADDRESSES',
    airgap: 'AIRGAP',
    excludeBuiltinHostPreflights: 'EXCLUDE_BUILTIN_HOST_PREFLIGHTS',
    hostnameCheck: 'HOSTNAME_CHECK',
    hostPreflightEnforceWarnings: 'HOST_PREFLIGHT_ENFORCE_WARNINGS',
    hostPreflightIgnore: 'HOST_PREFLIGHT_IGNORE',
    hostPreflights: 'HOST_PREFLIGHTS',
    ignoreRemoteLoadImagesPrompt: 'KURL_IGNORE_REMOTE_LOAD_IMAGES_PROMPT',
    ignoreRemoteUpgradePrompt: 'KURL_IGNORE_REMOTE_UPGRADE_PROMPT',
    ipv6: 'IPV6_ONLY',
    licenseURL: 'LICENSE_URL',
    nameserver: 'NAMESERVER',
    noProxy: 'NO_PROXY',
    privateAddress: 'PRIVATE_ADDRESS',
    proxyAddress: 'PROXY_ADDRESS',
    publicAddress: 'PUBLIC_ADDRESS',
    skipSystemPackageInstall: 'SKIP_SYSTEM_PACKAGE_INSTALL',
  },
  minio: { hostPath: 'MINIO_HOSTPATH' },
  openebs: {
    cstorStorageClassName: 'OPENEBS_CSTOR_STORAGE_CLASS',
    isCstorEnabled: 'OPENEBS_CSTOR',
    isLocalPVEnabled: 'OPENEBS_LOCALPV',
    localPVStorageClassName: 'OPENEBS_LOCALPV_STORAGE_CLASS',
  },
  rook: {
    cephReplicaCount: 'CEPH_POOL_REPLICAS',
    isBlockStorageEnabled: 'ROOK_BLOCK_STORAGE_ENABLED',
    isSharedFilesystemDisabled: 'ROOK_SHARED_FILESYSTEM_DISABLED',
    storageClassName: 'STORAGE_CLASS',
  },
  selinuxConfig: { disableSelinux: 'DISABLE_SELINUX', preserveConfig: 'PRESERVE_SELINUX_CONFIG' },
  ufw: { bypassUFWWarning: 'BYPASS_UFW_WARNING', disableUFW: 'DISABLE_UFW', hardFailOnUFW: 'HARD_FAIL_ON_UFW' },
  ufwConfig: { bypassUFWWarning: 'BYPASS_UFW_WARNING', disableUFW: 'DISABLE_UFW', hardFailOnUFW: 'HARD_FAIL_ON_UFW' },
  velero: { localBucket: 'VELERO_LOCAL_BUCKET' },
  weave: {
    isEncryptionDisabled: 'ENCRYPT_NETWORK',
    noMasqLocal: 'NO_MASQ_LOCAL',
    podCIDR: 'POD_CIDR',
    podCidrRange: 'POD_CIDR_RANGE',
  },
};

/** Other fields of kURL's add-ons, by spec key: the rule gives their variables. */
export const REGULAR: Readonly<Record<string, readonly string[]>> = {
  antrea: ['podCIDR', 'podCidrRange'],
  aws: ['excludeStorageClass'],
  containerd: ['preserveConfig', 'tomlConfig'],
  contour: ['httpPort', 'httpsPort', 'tlsMinimumProtocolVersion'],
  ekco: [
    'autoUpgradeSchedule',
    'enableInternalLoadBalancer',
    'envoyPodsNotReadyDuration',
    'kotsadmShouldDisableManagement',
    'minReadyMasterNodeCount',
    'minReadyWorkerNodeCount',
    'minioShouldDisableManagement',
    'podImageOverrides',
    'rookShouldDisableReconcileCephCSIResources',
    'rookShouldDisableReconcileMDSPlacement',
    'rookShouldUseAllNodes',
    'shouldDisableClearNodes',
    'shouldDisableRestartFailedEnvoyPods',
    'shouldEnablePurgeNodes',
  ],
  flannel: ['podCIDR', 'podCIDRRange'],
  fluentd: ['fullEFKStack'],
  helm: ['additionalImages', 'helmfileSpec'],
  kotsadm: ['applicationSlug', 'applicationVersionLabel', 'disableS3', 'hostname', 'uiBindPort'],
  kubernetes: [
    'cisCompliance',
    'clusterName',
    'initIgnorePreflightErrors',
    'loadBalancerUseFirstPrimary',
    'upgradeIgnorePreflightErrors',
  ],
  longhorn: ['storageOverProvisioningPercentage', 'uiBindPort', 'uiReplicaCount'],
  minio: ['claimSize', 'namespace'],
  openebs: ['namespace'],
  prometheus: ['serviceType'],
  registry: ['publishPort'],
  rook: ['blockDeviceFilter', 'bypassUpgradeWarning', 'hostpathRequiresPrivileged', 'minimumNodeCount', 'nodes'],
  // kURL writes the namespace into VELERO_LOCAL_BUCKET, as it does the bucket (kurl.md 4.4).
  velero: ['disableCLI', 'disableRestic', 'namespace', 'resticRequiresPrivileged', 'resticTimeout', 'serverFlags'],
};

const BY_FIELD: ReadonlyMap<string, string> = new Map(
  Object.entries(IRREGULAR).flatMap(([specName, fields]) =>
    Object.entries(fields).map(([field, variable]) => [`${specName}.${field}`.toLowerCase(), variable] as const),
  ),
);

/** `isLocalPVEnabled` is `IS_LOCAL_PV_ENABLED`. */
export function upperSnake(name: string): string {
  return name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .replaceAll(/[^A-Za-z0-9]+/g, '_')
    .toUpperCase();
}

/** The variable of a setting, or undefined when its name cannot be made one. */
export function variableName(specName: string, field: string): string | undefined {
  const variable = BY_FIELD.get(`${specName}.${field}`.toLowerCase()) ?? `${upperSnake(specName)}_${upperSnake(field)}`;
  return /^[A-Z_][A-Z0-9_]{0,200}$/.test(variable) ? variable : undefined;
}

const RESERVED_PREFIX = /^(?:CURLEW|BASH|LD|DYLD|GLIBC|MALLOC)_/;
const RESERVED =
  /^(?:_|BASH|BASHOPTS|BASHPID|DIR|ENV|E?UID|FUNCNAME|HOME|IFS|(?:OLD)?PWD|PATH|POSIXLY_CORRECT|PPID|PS[0-4]|SHELLOPTS|SHLVL)$/;

/** True for variables that bash, the dynamic linker or this tool listen to. */
export function isReservedVariable(variable: string): boolean {
  return RESERVED_PREFIX.test(variable) || RESERVED.test(variable);
}
