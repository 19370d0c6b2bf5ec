/**
 * The collectors and analyzers of Troubleshoot's API v1beta2 and their settings, after the Go types of
 * github.com/replicatedhq/troubleshoot (pkg/apis/troubleshoot/v1beta2) and docs at troubleshoot.sh.
 *
 * A setting is written `name:form`, with the default form `text`, and followed by `!` if it is required. Every collector also
 * has `collectorName` and `exclude`; every analyzer has `checkName`, `exclude` and, unless a table says `open`, `outcomes`.
 */

/** `open`: its settings are not checked. */
export type KindSettings = string;
export type Kinds = Readonly<Record<string, KindSettings>>;

export const FORMS = {
  text: { type: ['string', 'null'] },
  number: { type: ['integer', 'null'] },
  yesno: { type: ['boolean', 'null'] },
  texts: { type: ['array', 'null'], items: { type: 'string' } },
  map: { type: ['object', 'null'] },
  list: { type: ['array', 'null'] },
  any: {},
} as const;

const REQUEST = 'get:map post:map put:map';
const OS_PACKAGES =
  'ubuntu ubuntu16 ubuntu18 ubuntu20 ubuntu22 ubuntu24 rhel rhel7 rhel8 rhel9 rocky rocky8 rocky9 centos centos7 centos8 centos9 ' +
  'ol ol7 ol8 ol9 amzn amzn2 amzn2023';

export const HOST_COLLECTORS: Kinds = {
  blockDevices: '',
  certificate: 'certificatePath! keyPath!',
  certificatesCollection: 'paths:texts!',
  cgroups: 'mountPoint',
  copy: 'path!',
  cpu: '',
  diskUsage: 'path!',
  dns: 'hostnames:texts!',
  filesystemPerformance:
    'operationSize:number directory fileSize sync:yesno datasync:yesno runTime timeout enableBackgroundIOPS:yesno ' +
    'backgroundIOPSWarmupSeconds:number backgroundWriteIOPS:number backgroundReadIOPS:number ' +
    'backgroundWriteIOPSJobs:number backgroundReadIOPSJobs:number',
  hostOS: '',
  hostServices: '',
  http: REQUEST,
  httpLoadBalancer: 'address! port:number! path timeout',
  ipv4Interfaces: '',
  journald: 'system:yesno dmesg:yesno units:texts since until output lines:number reverse:yesno utc:yesno timeout',
  kernelConfigs: '',
  kernelModules: '',
  kubernetes: '',
  memory: '',
  networkNamespaceConnectivity: 'fromCIDR! toCIDR! timeout port:number',
  run: 'command! args:texts outputDir input:map env:texts inheritEnvs:texts ignoreParentEnvs:yesno timeout',
  subnetAvailable: 'CIDRRangeAlloc! desiredCIDR:number!',
  subnetContainsIP: 'cidr! ip!',
  sysctl: '',
  systemPackages: OS_PACKAGES.replaceAll(/\S+/g, '$&:texts'),
  tcpConnect: 'address! timeout',
  tcpLoadBalancer: 'address! port:number! timeout',
  tcpPortStatus: 'interface port:number!',
  time: '',
  udpPortStatus: 'interface port:number!',
};

const NAMED = 'collectorName';

export const HOST_ANALYZERS: Kinds = {
  blockDevices: `${NAMED} minimumAcceptableSize:number includeUnmountedPartitions:yesno`,
  certificate: NAMED,
  certificatesCollection: NAMED,
  cpu: NAMED,
  diskUsage: NAMED,
  filesystemPerformance: NAMED,
  hostOS: NAMED,
  hostServices: NAMED,
  http: NAMED,
  httpLoadBalancer: NAMED,
  ipv4Interfaces: NAMED,
  jsonCompare: 'open',
  kernelConfigs: `${NAMED} selectedConfigs:texts`,
  kernelModules: NAMED,
  memory: NAMED,
  networkNamespaceConnectivity: NAMED,
  subnetAvailable: NAMED,
  subnetContainsIP: `${NAMED} cidr ip`,
  sysctl: NAMED,
  systemPackages: NAMED,
  tcpConnect: NAMED,
  tcpLoadBalancer: NAMED,
  tcpPortStatus: NAMED,
  textAnalyze: `${NAMED} fileName regex regexGroups ignoreIfNoFiles:yesno excludeFiles:texts`,
  time: NAMED,
  udpPortStatus: NAMED,
};

const OBJECT = 'name selector:texts namespace key includeValue:yesno includeAllData:yesno';
const DATABASE = 'uri parameters:texts tls:map';
const POD = 'name namespace image imagePullPolicy imagePullSecret:map timeout';

export const CLUSTER_COLLECTORS: Kinds = {
  ceph: 'namespace timeout',
  certificates: 'secrets:list configMaps:list',
  clusterInfo: '',
  clusterResources: 'namespaces:texts ignoreRBAC:yesno',
  collectd: `${POD} hostPath`,
  configMap: OBJECT,
  copy: 'name selector:texts namespace containerPath containerName extractArchive:yesno',
  copyFromHost: `${POD} hostPath extractArchive:yesno`,
  customMetrics: 'metricRequests:list',
  data: 'name data',
  dns: 'timeout image nonResolvable',
  etcd: 'image',
  exec: 'name selector:texts namespace containerName command:texts args:texts timeout',
  goldpinger: 'namespace image serviceAccountName collectDelay podLaunchOptions:map',
  helm: 'namespace releaseName collectValues:yesno',
  http: `name ${REQUEST}`,
  logs: 'name selector:texts namespace containerNames:texts limits:map timestamps:yesno',
  longhorn: 'namespace timeout',
  mssql: DATABASE,
  mysql: DATABASE,
  nodeMetrics: 'nodeNames:texts selector:texts',
  postgres: DATABASE,
  redis: DATABASE,
  registryImages: 'images:texts namespace imagePullSecret:map',
  run: `${POD} command:texts args:texts serviceAccountName`,
  runDaemonSet: 'name timeout namespace imagePullSecret:map podSpec:map',
  runPod: 'name namespace timeout imagePullSecret:map podSpec:map annotations:map allowImagePullRetries:yesno',
  s3Status: 'bucketName region endpoint accessKeyID secretAccessKey usePathStyle:yesno insecure:yesno',
  secret: OBJECT,
  sonobuoy: 'namespace',
  supportBundleMetadata: 'namespace',
  sysctl: POD,
};

const WORKLOAD = 'name namespace namespaces:texts selector:texts';

export const CLUSTER_ANALYZERS: Kinds = {
  cephStatus: `${NAMED} namespace`,
  certificates: '',
  clusterContainerStatuses: 'open',
  clusterPodStatuses: 'namespaces:texts',
  clusterResource: 'open',
  clusterVersion: '',
  collectd: NAMED,
  configMap: 'configMapName namespace key',
  containerRuntime: '',
  customResourceDefinition: 'customResourceDefinitionName',
  deploymentStatus: WORKLOAD,
  distribution: '',
  event: 'open',
  goldpinger: 'open',
  http: NAMED,
  imagePullSecret: 'registryName',
  ingress: 'ingressName namespace',
  jobStatus: WORKLOAD,
  jsonCompare: 'open',
  llm: 'open',
  longhorn: `${NAMED} namespace`,
  mssql: `${NAMED} fileName`,
  mysql: `${NAMED} fileName`,
  nodeMetrics: 'open',
  nodeResources: 'filters:map',
  postgres: `${NAMED} fileName`,
  redis: `${NAMED} fileName`,
  registryImages: NAMED,
  replicasetStatus: WORKLOAD,
  secret: 'secretName namespace key',
  statefulsetStatus: WORKLOAD,
  storageClass: 'storageClassName',
  sysctl: '',
  textAnalyze: `${NAMED} fileName regex regexGroups ignoreIfNoFiles:yesno excludeFiles:texts`,
  velero: 'open',
  weaveReport: 'reportFileGlob',
  yamlCompare: 'open',
};
