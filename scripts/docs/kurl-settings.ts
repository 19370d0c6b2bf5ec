/** Every setting of an installer spec that kURL turns into a shell variable: spec key, field, variable. */
import { rows, type Row } from './kurl-rows.ts';

/** What there is to say, by `specKey.field`. */
const NOTES: Readonly<Record<string, string>> = {
  'docker.hardFailOnLoopback': 'same: `1` when it is not in the spec',
  'firewalldConfig.disableFirewalld': 'same: empty when `preserveConfig` is set',
  'kubernetes.haCluster': 'same: `1` when `loadBalancerAddress` is set',
  'selinuxConfig.disableSelinux': 'same: empty when `preserveConfig` is set',
  'weave.noMasqLocal': 'same: `1`, or `0` when it is false',
  'weave.isEncryptionDisabled':
    'differs: `true` gives `0`, which the add-on tests for; kURL gives `1`, so that disabling never took effect',
  'velero.namespace': 'differs: kURL writes it into the variable of `localBucket` too, by chance one or the other',
  'kurl.hostPreflights': 'differs: a document is no text, so the variable is always empty, here as there',
};

const NAMES = `
antrea isEncryptionDisabled ANTREA_DISABLE_ENCRYPTION
antrea podCIDR ANTREA_POD_CIDR
antrea podCidrRange ANTREA_POD_CIDR_RANGE
antrea s3Override ANTREA_S3_OVERRIDE
antrea version ANTREA_VERSION
aws excludeStorageClass AWS_EXCLUDE_STORAGE_CLASS
aws s3Override AWS_S3_OVERRIDE
aws version AWS_VERSION
calico s3Override CALICO_S3_OVERRIDE
calico version CALICO_VERSION
certManager s3Override CERT_MANAGER_S3_OVERRIDE
certManager version CERT_MANAGER_VERSION
collectd s3Override COLLECTD_S3_OVERRIDE
collectd version COLLECTD_VERSION
containerd preserveConfig CONTAINERD_PRESERVE_CONFIG
containerd s3Override CONTAINERD_S3_OVERRIDE
containerd tomlConfig CONTAINERD_TOML_CONFIG
containerd version CONTAINERD_VERSION
contour httpPort CONTOUR_HTTP_PORT
contour httpsPort CONTOUR_HTTPS_PORT
contour s3Override CONTOUR_S3_OVERRIDE
contour tlsMinimumProtocolVersion CONTOUR_TLS_MINIMUM_PROTOCOL_VERSION
contour version CONTOUR_VERSION
docker bypassStorageDriverWarning BYPASS_STORAGEDRIVER_WARNINGS
docker dockerRegistryIP DOCKER_REGISTRY_IP
docker hardFailOnLoopback HARD_FAIL_ON_LOOPBACK
docker noCEOnEE NO_CE_ON_EE
docker preserveConfig PRESERVE_DOCKER_CONFIG
docker s3Override DOCKER_S3_OVERRRIDE
docker version DOCKER_VERSION
ekco autoUpgradeSchedule EKCO_AUTO_UPGRADE_SCHEDULE
ekco enableInternalLoadBalancer EKCO_ENABLE_INTERNAL_LOAD_BALANCER
ekco envoyPodsNotReadyDuration EKCO_ENVOY_PODS_NOT_READY_DURATION
ekco kotsadmShouldDisableManagement EKCO_KOTSADM_SHOULD_DISABLE_MANAGEMENT
ekco minioShouldDisableManagement EKCO_MINIO_SHOULD_DISABLE_MANAGEMENT
ekco minReadyMasterNodeCount EKCO_MIN_READY_MASTER_NODE_COUNT
ekco minReadyWorkerNodeCount EKCO_MIN_READY_WORKER_NODE_COUNT
ekco nodeUnreachableToleration EKCO_NODE_UNREACHABLE_TOLERATION_DURATION
ekco podImageOverrides EKCO_POD_IMAGE_OVERRIDES
ekco rookShouldDisableReconcileCephCSIResources EKCO_ROOK_SHOULD_DISABLE_RECONCILE_CEPH_CSI_RESOURCES
ekco rookShouldDisableReconcileMDSPlacement EKCO_ROOK_SHOULD_DISABLE_RECONCILE_MDS_PLACEMENT
ekco rookShouldUseAllNodes EKCO_ROOK_SHOULD_USE_ALL_NODES
ekco s3Override EKCO_S3_OVERRIDE
ekco shouldDisableClearNodes EKCO_SHOULD_DISABLE_CLEAR_NODES
ekco shouldDisableRebootServices EKCO_SHOULD_DISABLE_REBOOT_SERVICE
ekco shouldDisableRestartFailedEnvoyPods EKCO_SHOULD_DISABLE_RESTART_FAILED_ENVOY_PODS
ekco shouldEnablePurgeNodes EKCO_SHOULD_ENABLE_PURGE_NODES
ekco version EKCO_VERSION
firewalldConfig bypassFirewalldWarning BYPASS_FIREWALLD_WARNING
firewalldConfig disableFirewalld DISABLE_FIREWALLD
firewalldConfig hardFailOnFirewalld HARD_FAIL_ON_FIREWALLD
firewalldConfig preserveConfig PRESERVE_FIREWALLD_CONFIG
flannel podCIDR FLANNEL_POD_CIDR
flannel podCIDRRange FLANNEL_POD_CIDR_RANGE
flannel s3Override FLANNEL_S3_OVERRIDE
flannel version FLANNEL_VERSION
fluentd fluentdConfPath FLUENTD_CONF_FILE
fluentd fullEFKStack FLUENTD_FULL_EFK_STACK
fluentd s3Override FLUENTD_S3_OVERRIDE
fluentd version FLUENTD_VERSION
goldpinger s3Override GOLDPINGER_S3_OVERRIDE
goldpinger version GOLDPINGER_VERSION
helm additionalImages HELM_ADDITIONAL_IMAGES
helm helmfileSpec HELM_HELMFILE_SPEC
iptablesConfig preserveConfig PRESERVE_IPTABLES_CONFIG
kotsadm applicationNamespace KOTSADM_APPLICATION_NAMESPACES
kotsadm applicationSlug KOTSADM_APPLICATION_SLUG
kotsadm applicationVersionLabel KOTSADM_APPLICATION_VERSION_LABEL
kotsadm disableS3 KOTSADM_DISABLE_S3
kotsadm hostname KOTSADM_HOSTNAME
kotsadm s3Override KOTSADM_S3_OVERRIDE
kotsadm uiBindPort KOTSADM_UI_BIND_PORT
kotsadm version KOTSADM_VERSION
kubernetes bootstrapToken BOOTSTRAP_TOKEN
kubernetes bootstrapTokenTTL BOOTSTRAP_TOKEN_TTL
kubernetes certKey CERT_KEY
kubernetes cisCompliance KUBERNETES_CIS_COMPLIANCE
kubernetes clusterName KUBERNETES_CLUSTER_NAME
kubernetes containerLogMaxFiles CONTAINER_LOG_MAX_FILES
kubernetes containerLogMaxSize CONTAINER_LOG_MAX_SIZE
kubernetes controlPlane MASTER
kubernetes evictionThresholdResources EVICTION_THRESHOLD
kubernetes haCluster HA_CLUSTER
kubernetes initIgnorePreflightErrors KUBERNETES_INIT_IGNORE_PREFLIGHT_ERRORS
kubernetes kubeadmToken KUBEADM_TOKEN
kubernetes kubeadmTokenCAHash KUBEADM_TOKEN_CA_HASH
kubernetes kubeReserved KUBE_RESERVED
kubernetes loadBalancerAddress LOAD_BALANCER_ADDRESS
kubernetes loadBalancerUseFirstPrimary KUBERNETES_LOAD_BALANCER_USE_FIRST_PRIMARY
kubernetes masterAddress KUBERNETES_MASTER_ADDR
kubernetes maxPodsPerNode KUBERNETES_MAX_PODS_PER_NODE
kubernetes s3Override SERVICE_S3_OVERRIDE
kubernetes serviceCIDR SERVICE_CIDR
kubernetes serviceCidrRange SERVICE_CIDR_RANGE
kubernetes systemReservedResources SYSTEM_RESERVED
kubernetes upgradeIgnorePreflightErrors KUBERNETES_UPGRADE_IGNORE_PREFLIGHT_ERRORS
kubernetes useStandardNodePortRange USE_STANDARD_PORT_RANGE
kubernetes version KUBERNETES_VERSION
kurl additionalNoProxyAddresses ADDITIONAL_NO_PROXY_ADDRESSES
kurl airgap AIRGAP
kurl excludeBuiltinHostPreflights EXCLUDE_BUILTIN_HOST_PREFLIGHTS
kurl hostnameCheck HOSTNAME_CHECK
kurl hostPreflightEnforceWarnings HOST_PREFLIGHT_ENFORCE_WARNINGS
kurl hostPreflightIgnore HOST_PREFLIGHT_IGNORE
kurl hostPreflights HOST_PREFLIGHTS
kurl ignoreRemoteLoadImagesPrompt KURL_IGNORE_REMOTE_LOAD_IMAGES_PROMPT
kurl ignoreRemoteUpgradePrompt KURL_IGNORE_REMOTE_UPGRADE_PROMPT
kurl ipv6 IPV6_ONLY
kurl licenseURL LICENSE_URL
kurl nameserver NAMESERVER
kurl noProxy NO_PROXY
kurl privateAddress PRIVATE_ADDRESS
kurl proxyAddress PROXY_ADDRESS
kurl publicAddress PUBLIC_ADDRESS
kurl skipSystemPackageInstall SKIP_SYSTEM_PACKAGE_INSTALL
longhorn s3Override LONGHORN_S3_OVERRIDE
longhorn storageOverProvisioningPercentage LONGHORN_STORAGE_OVER_PROVISIONING_PERCENTAGE
longhorn uiBindPort LONGHORN_UI_BIND_PORT
longhorn uiReplicaCount LONGHORN_UI_REPLICA_COUNT
longhorn version LONGHORN_VERSION
metricsServer s3Override METRICS_SERVER_S3_OVERRIDE
metricsServer version METRICS_SERVER_VERSION
minio claimSize MINIO_CLAIM_SIZE
minio hostPath MINIO_HOSTPATH
minio namespace MINIO_NAMESPACE
minio s3Override MINIO_S3_OVERRIDE
minio version MINIO_VERSION
openebs cstorStorageClassName OPENEBS_CSTOR_STORAGE_CLASS
openebs isCstorEnabled OPENEBS_CSTOR
openebs isLocalPVEnabled OPENEBS_LOCALPV
openebs localPVStorageClassName OPENEBS_LOCALPV_STORAGE_CLASS
openebs namespace OPENEBS_NAMESPACE
openebs s3Override OPENEBS_S3_OVERRIDE
openebs version OPENEBS_VERSION
prometheus s3Override PROMETHEUS_S3_OVERRIDE
prometheus serviceType PROMETHEUS_SERVICE_TYPE
prometheus version PROMETHEUS_VERSION
registry publishPort REGISTRY_PUBLISH_PORT
registry s3Override REGISTRY_S3_OVERRIDE
registry version REGISTRY_VERSION
rook blockDeviceFilter ROOK_BLOCK_DEVICE_FILTER
rook bypassUpgradeWarning ROOK_BYPASS_UPGRADE_WARNING
rook cephReplicaCount CEPH_POOL_REPLICAS
rook hostpathRequiresPrivileged ROOK_HOSTPATH_REQUIRES_PRIVILEGED
rook isBlockStorageEnabled ROOK_BLOCK_STORAGE_ENABLED
rook isSharedFilesystemDisabled ROOK_SHARED_FILESYSTEM_DISABLED
rook minimumNodeCount ROOK_MINIMUM_NODE_COUNT
rook nodes ROOK_NODES
rook s3Override ROOK_S3_OVERRIDE
rook storageClassName STORAGE_CLASS
rook version ROOK_VERSION
selinuxConfig disableSelinux DISABLE_SELINUX
selinuxConfig preserveConfig PRESERVE_SELINUX_CONFIG
sonobuoy s3Override SONOBUOY_S3_OVERRIDE
sonobuoy version SONOBUOY_VERSION
ufwConfig bypassUFWWarning BYPASS_UFW_WARNING
ufwConfig disableUFW DISABLE_UFW
ufwConfig hardFailOnUFW HARD_FAIL_ON_UFW
velero disableCLI VELERO_DISABLE_CLI
velero disableRestic VELERO_DISABLE_RESTIC
velero localBucket VELERO_LOCAL_BUCKET
velero namespace VELERO_LOCAL_BUCKET
velero resticRequiresPrivileged VELERO_RESTIC_REQUIRES_PRIVILEGED
velero resticTimeout VELERO_RESTIC_TIMEOUT
velero s3Override VELERO_S3_OVERRIDE
velero serverFlags VELERO_SERVER_FLAGS
velero version VELERO_VERSION
weave isEncryptionDisabled ENCRYPT_NETWORK
weave noMasqLocal NO_MASQ_LOCAL
weave podCIDR POD_CIDR
weave podCidrRange POD_CIDR_RANGE
weave s3Override WEAVE_S3_OVERRIDE
weave version WEAVE_VERSION
`;

/** `name` is `specKey.field`, `variable` the one that kURL fills. */
export interface SettingRow extends Row {
  readonly variable: string;
}

export const SETTINGS: readonly SettingRow[] = NAMES.trim()
  .split('\n')
  .map((line) => {
    const [specKey = '', field = '', variable = ''] = line.split(' ');
    const [row] = rows(`${specKey}.${field}`, NOTES);
    return { name: '', status: 'same', note: '', ...row, variable };
  });
