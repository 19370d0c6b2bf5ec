/** The variables of kURL that do not come from settings, and their values here. */
import { notedRows, type Row } from './rows.ts';

const REPLACED = "same: without kURL's package kurl-bin-utils, curlew replaces the program";
const STEPS = 'absent: a run upgrades to one version; each step is its own run';
const REQUIRES_PACKAGE = "same: requires kURL's package kurl-bin-utils; without it, it prints a message";

const TOPICS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'The run and its folder': {
    'DIR KURL_INSTALL_DIRECTORY': 'same: ',
    INSTALLER_YAML: 'absent: the spec is not in a variable',
    MERGED_YAML_SPEC: 'absent: hooks see settings as variables, and runs keep their own records',
    KURL_URL: 'same: empty: commands that add-ons print are those of the bundle',
    'DIST_URL FALLBACK_URL': 'absent: empty: packages come with the bundle or from a store',
    KURL_VERSION: 'same: empty: commands that add-ons print are those of the bundle',
    INSTALLER_ID: 'same: the ID of the spec with its overlay; kURL uses the spec without it; `curlew installer id`',
    INSTALLATION_ID: 'same: empty, as in an airgap: nothing is reported',
    REPLICATED_APP_URL: 'absent: empty: nothing is downloaded from a vendor',
    REPORTING_CONTEXT_INFO: 'differs: set by addon_install only; nothing is reported',
    SUPPORT_BUNDLE_READY: 'absent: empty: no support bundle is collected',
    ADDONS_HAVE_HOST_COMPONENTS: 'differs: set by addon_install only',
    ASSUME_YES: 'same: set by the flag `yes` or the environment',
    OFFLINE_DOCKER_INSTALL: 'same: `1` in an airgap',
    ONLY_APPLY_MERGED: 'absent: empty: no spec is written into the cluster',
    DISABLE_REPORTING: 'same: nothing is reported in any case',
    TEST_PROMPT_RESULT: 'same: ',
    KURL_BIN_UTILS_FILE: 'absent: empty: programs come with the bundle',
    'PROMPT_RESULT SEMVER_COMPARE_RESULT': 'same: ',
    'HOST PORT': 'same: set by splitHostPort',
    UNHEALTHY_PODS: 'same: ',
    'MACHINE_ID KURL_INSTANCE_UUID': 'same: empty, as in an airgap: nothing is reported',
    'STEP_VERSIONS ROOK_STEP_VERSIONS CONTAINERD_STEP_VERSIONS': STEPS,
    CRICTL_VERSION: "absent: used by kURL's own build only",
    'CONTAINERD_INSTALL_VERSIONS AIRGAP_MULTI_ADDON_PACKAGE_PATH': 'same: ',
  },
  Colors: {
    'GREEN BLUE LIGHT_BLUE YELLOW RED NC': 'same: ',
  },
  'The node': {
    'KUBEADM_CONF_DIR KUBEADM_CONF_FILE KUBECTL_PLUGINS_PATH PV_BASE_PATH LSB_DIST DIST_VERSION': 'same: ',
    'DIST_VERSION_MAJOR DIST_VERSION_MINOR KERNEL_MAJOR KERNEL_MINOR': 'same: ',
    HOSTNAME: 'same: get_local_node_name prints it in lowercase',
    PRIVATE_ADDRESS: 'same: without one in the spec, the address of the default route, without a question',
    PUBLIC_ADDRESS: 'differs: from the spec; discover_public_ip queries the cloud if a hook calls it',
    'KURL_HOSTNAME_OVERRIDE KUBELET_FLAGS_FILE': 'same: ',
    EXISTING_POD_CIDR: 'same: from the control plane on this node or from kubeadm, unless the network add-on sets it',
    'NO_PROXY_ADDRESSES PROXY_HTTPS_ADDRESS': 'same: ',
  },
  'The cluster': {
    'K8S_DISTRO KUBECONFIG MASTER': 'same: ',
    CURRENT_KUBERNETES_VERSION: 'same: from the manifest of the API server on this node',
    'KUBERNETES_TARGET_VERSION_MAJOR KUBERNETES_TARGET_VERSION_MINOR KUBERNETES_TARGET_VERSION_PATCH': 'same: ',
    KUBERNETES_UPGRADE:
      "same: `1` if the run installs a newer version than the running one, until kubernetes' own hook",
    KUBERNETES_REMOTE_PRIMARIES: "absent: used by kURL's own steps only; each node has its own upgrade run",
    NODE_LABELS: 'same: set by the flag `labels`; the package of kubernetes uses it',
    SKIP_KUBERNETES_HOST: 'same: set and read by hooks',
    LOAD_BALANCER_PORT: 'absent: it is after the colon in LOAD_BALANCER_ADDRESS; use splitHostPort',
    PRIMARY_HOST: 'same: set by the flag `primary-host`',
    SECONDARY_HOST: 'same: set by the flag `secondary-host`',
    KURL_REGISTRY_IP: 'same: set by the flag `kurl-registry-ip`',
    'EKCO_ADDRESS EKCO_AUTH_TOKEN': 'same: set and read by hooks',
    KURL_UTIL_IMAGE:
      'differs: the image of the package `curlew-utils` if the release has it; otherwise the one that kURL left in the install folder',
    API_SERVICE_ADDRESS: 'same: ',
    CEPH_DASHBOARD_URL: 'same: set and read by hooks',
    'DID_MIGRATE_ROOK_PVCS DID_MIGRATE_ROOK_OBJECT_STORE': 'same: ',
  },
  'The object store': {
    'OBJECT_STORE_ACCESS_KEY OBJECT_STORE_SECRET_KEY OBJECT_STORE_CLUSTER_IP': 'same: set and read by hooks',
    OBJECT_STORE_CLUSTER_HOST: 'same: set and read by hooks',
  },
  "kURL's programs": {
    BIN_KURL:
      "same: without kURL's package kurl-bin-utils, curlew replaces the verbs that add-ons call; other verbs report that the package is missing",
    'BIN_YAMLUTIL BIN_SUBNET': REPLACED,
    BIN_DOCKER_CONFIG: REQUIRES_PACKAGE,
    BIN_INSTALLERMERGE: REPLACED,
    BIN_YAMLTOBASH: `${REPLACED}; text is never expanded when its file is sourced`,
    'BIN_BASHMERGE BIN_HTPASSWD': REPLACED,
    BIN_PVMIGRATE: REQUIRES_PACKAGE,
    BIN_VENDORFLIGHTS: REPLACED,
  },
};

/** By topic. */
export const VARIABLES: readonly (readonly [topic: string, variables: readonly Row[]])[] = Object.entries(TOPICS).map(
  ([topic, notes]) => [topic, notedRows(notes)],
);
