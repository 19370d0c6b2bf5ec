/** The flags of kURL's scripts, and what stands for them. */
import { rows, type Row } from './kurl-rows.ts';

/** The setting of the installer spec that says the same. */
const SETTING_OF: Readonly<Record<string, string>> = {
  'additional-no-proxy-addresses': 'kurl.additionalNoProxyAddresses',
  'cert-key': 'kubernetes.certKey',
  'control-plane': 'kubernetes.controlPlane',
  'docker-registry-ip': 'docker.dockerRegistryIP',
  'ekco-enable-internal-load-balancer': 'ekco.enableInternalLoadBalancer',
  ha: 'kubernetes.haCluster',
  'kubernetes-cis-compliance': 'kubernetes.cisCompliance',
  'kubernetes-cluster-name': 'kubernetes.clusterName',
  'aws-exclude-storage-class': 'aws.excludeStorageClass',
  'ignore-remote-load-images-prompt': 'kurl.ignoreRemoteLoadImagesPrompt',
  'ignore-remote-upgrade-prompt': 'kurl.ignoreRemoteUpgradePrompt',
  'container-log-max-size': 'kubernetes.containerLogMaxSize',
  'container-log-max-files': 'kubernetes.containerLogMaxFiles',
  'kubernetes-max-pods-per-node': 'kubernetes.maxPodsPerNode',
  'kubeadm-token': 'kubernetes.kubeadmToken',
  'kubeadm-token-ca-hash': 'kubernetes.kubeadmTokenCAHash',
  'kubernetes-load-balancer-use-first-primary': 'kubernetes.loadBalancerUseFirstPrimary',
  'kubernetes-master-address': 'kubernetes.masterAddress',
  'kubernetes-version': 'kubernetes.version',
  'kubernetes-init-ignore-preflight-errors': 'kubernetes.initIgnorePreflightErrors',
  'kubernetes-upgrade-ignore-preflight-errors': 'kubernetes.upgradeIgnorePreflightErrors',
  'load-balancer-address': 'kubernetes.loadBalancerAddress',
  'preflight-ignore': 'kurl.hostPreflightIgnore',
  'host-preflight-ignore': 'kurl.hostPreflightIgnore',
  'host-preflight-enforce-warnings': 'kurl.hostPreflightEnforceWarnings',
  'preserve-docker-config': 'docker.preserveConfig',
  'preserve-firewalld-config': 'firewalldConfig.preserveConfig',
  'preserve-iptables-config': 'iptablesConfig.preserveConfig',
  'preserve-selinux-config': 'selinuxConfig.preserveConfig',
  'public-address': 'kurl.publicAddress',
  'private-address': 'kurl.privateAddress',
  airgap: 'kurl.airgap',
  'skip-system-package-install': 'kurl.skipSystemPackageInstall',
  'exclude-builtin-preflights': 'kurl.excludeBuiltinHostPreflights',
  'exclude-builtin-host-preflights': 'kurl.excludeBuiltinHostPreflights',
  'app-version-label': 'kotsadm.applicationVersionLabel',
  ipv6: 'kurl.ipv6',
  'velero-restic-timeout': 'velero.resticTimeout',
  'velero-server-flags': 'velero.serverFlags',
};

const NOTES: Readonly<Record<string, string>> = {
  'kurl-install-directory': 'absent: `--install-dir` says it',
  'installer-spec-file': 'absent: not there yet: the installer spec of the bundle counts',
  'preflight-ignore-warnings': 'absent: without effect in kURL too, where it is the default',
  'dismiss-host-packages-preflight': 'absent: without effect in kURL too',
  'auto-upgrades-enabled': 'absent: without effect in kURL too',
  'force-reapply-addons': 'absent: `--reapply` does it; in kURL it only warns',
  yes: 'absent: not there yet: hooks answer by default',
  labels: 'absent: not there yet: no step of curlew labels nodes',
  'primary-host': 'absent: not there yet: no preflight asks other nodes',
  'secondary-host': 'absent: not there yet: no preflight asks other nodes',
  'kurl-registry-ip': 'absent: not there yet',
  'ekco-address': 'absent: not there yet',
  'ekco-auth-token': 'absent: not there yet',
  'storage-migration-ready-timeout': 'absent: migrations of storage are not supported',
};

const NAMES = `
installer-spec-file airgap kurl-registry-ip ekco-address ekco-auth-token kurl-install-directory
labels storage-migration-ready-timeout dismiss-host-packages-preflight yes primary-host
secondary-host force-reapply-addons skip-system-package-install exclude-builtin-preflights
exclude-builtin-host-preflights app-version-label ipv6 velero-restic-timeout velero-server-flags
auto-upgrades-enabled additional-no-proxy-addresses cert-key control-plane docker-registry-ip
ekco-enable-internal-load-balancer ha kubernetes-cis-compliance kubernetes-cluster-name
aws-exclude-storage-class ignore-remote-load-images-prompt ignore-remote-upgrade-prompt
container-log-max-size container-log-max-files kubernetes-max-pods-per-node kubeadm-token
kubeadm-token-ca-hash kubernetes-load-balancer-use-first-primary kubernetes-master-address
kubernetes-version kubernetes-init-ignore-preflight-errors
kubernetes-upgrade-ignore-preflight-errors load-balancer-address preflight-ignore
host-preflight-ignore preflight-ignore-warnings host-preflight-enforce-warnings
preserve-docker-config preserve-firewalld-config preserve-iptables-config preserve-selinux-config
public-address private-address
`;

export const FLAGS: readonly Row[] = rows(NAMES, {
  ...Object.fromEntries(
    Object.entries(SETTING_OF).map(([flag, setting]) => [
      flag,
      `absent: not there yet: the setting \`${setting}\` says it`,
    ]),
  ),
  ...NOTES,
});
