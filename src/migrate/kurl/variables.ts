/** The variables that add-ons find besides those of settings, and what they hold here. */
import { rows, type Row } from './rows.ts';

const TOPICS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'The run and its folder': {
    DIR: 'same: ',
    KURL_INSTALL_DIRECTORY: 'same: ',
    INSTALLER_YAML: 'absent: the spec is no variable here',
    MERGED_YAML_SPEC: 'absent: hooks see settings as variables, and runs keep records of their own',
    KURL_URL: 'absent: empty: there is no service to download from',
    DIST_URL: 'absent: empty: packages come with the bundle or from a store',
    FALLBACK_URL: 'absent: empty, as DIST_URL',
    KURL_VERSION: 'absent: empty: there is no release of kURL in use',
    INSTALLER_ID: 'differs: of the spec with its overlay, where kURL has that of the spec alone; `curlew installer id`',
    INSTALLATION_ID: 'absent: empty: nothing is reported',
    REPLICATED_APP_URL: 'absent: empty: nothing is downloaded from a vendor',
    REPORTING_CONTEXT_INFO: 'differs: set by addon_install only; nothing is reported',
    SUPPORT_BUNDLE_READY: 'absent: empty: no support bundle is collected',
    ADDONS_HAVE_HOST_COMPONENTS: 'differs: set by addon_install only',
    ASSUME_YES: 'same: by the flag `yes`, or taken from the environment',
    OFFLINE_DOCKER_INSTALL: 'same: `1` in an airgap',
    ONLY_APPLY_MERGED: 'absent: empty: no spec is written into the cluster',
    DISABLE_REPORTING: 'same: nothing is ever reported',
    TEST_PROMPT_RESULT: 'same: ',
    KURL_BIN_UTILS_FILE: 'absent: empty: programs come with the bundle',
    PROMPT_RESULT: 'same: ',
    SEMVER_COMPARE_RESULT: 'same: ',
    UNHEALTHY_PODS: 'same: ',
    MACHINE_ID: 'absent: empty: nothing is reported',
    KURL_INSTANCE_UUID: 'absent: empty: nothing is reported',
    STEP_VERSIONS: 'absent: a run upgrades to one version; steps are runs of their own',
    ROOK_STEP_VERSIONS: 'absent: as STEP_VERSIONS',
    CONTAINERD_STEP_VERSIONS: 'absent: as STEP_VERSIONS',
    CONTAINERD_INSTALL_VERSIONS: 'same: ',
    AIRGAP_MULTI_ADDON_PACKAGE_PATH: 'same: ',
  },
  Colours: {
    GREEN: 'same: ',
    BLUE: 'same: ',
    LIGHT_BLUE: 'same: ',
    YELLOW: 'same: ',
    RED: 'same: ',
    NC: 'same: ',
  },
  'The node': {
    LSB_DIST: 'same: ',
    DIST_VERSION: 'same: ',
    DIST_VERSION_MAJOR: 'same: ',
    DIST_VERSION_MINOR: 'same: ',
    KERNEL_MAJOR: 'same: ',
    KERNEL_MINOR: 'same: ',
    HOSTNAME: 'same: get_local_node_name prints it in lower case',
    PRIVATE_ADDRESS: 'differs: the address of the route to others when the spec has none; nobody is asked',
    PUBLIC_ADDRESS: 'differs: from the spec; discover_public_ip asks the cloud when a hook calls it',
    KURL_HOSTNAME_OVERRIDE: 'same: ',
    KUBELET_FLAGS_FILE: 'same: ',
    EXISTING_POD_CIDR: 'same: ',
    NO_PROXY_ADDRESSES: 'same: ',
    PROXY_HTTPS_ADDRESS: 'same: ',
  },
  'The cluster': {
    K8S_DISTRO: 'same: ',
    KUBECONFIG: 'same: ',
    MASTER: 'same: ',
    CURRENT_KUBERNETES_VERSION: 'differs: of the API server on this node, from its manifest',
    KUBERNETES_TARGET_VERSION_MAJOR: 'same: ',
    KUBERNETES_TARGET_VERSION_MINOR: 'same: ',
    KUBERNETES_TARGET_VERSION_PATCH: 'same: ',
    KUBERNETES_UPGRADE: "absent: of kURL's own steps; the package of kubernetes decides that here",
    KUBERNETES_REMOTE_PRIMARIES: 'absent: as KUBERNETES_UPGRADE',
    NODE_LABELS: 'same: by the flag `labels`; the package of kubernetes uses it',
    SKIP_KUBERNETES_HOST: 'same: of hooks among themselves',
    LOAD_BALANCER_PORT: 'absent: it stands behind the colon of LOAD_BALANCER_ADDRESS, for splitHostPort',
    PRIMARY_HOST: 'same: by the flag `primary-host`',
    SECONDARY_HOST: 'same: by the flag `secondary-host`',
    KURL_REGISTRY_IP: 'same: by the flag `kurl-registry-ip`',
    EKCO_ADDRESS: 'same: of hooks among themselves',
    EKCO_AUTH_TOKEN: 'same: of hooks among themselves',
    KURL_UTIL_IMAGE: "same: where the bundle has kURL's package `common`",
    CEPH_DASHBOARD_URL: 'same: of hooks among themselves',
    DID_MIGRATE_ROOK_PVCS: 'same: ',
    DID_MIGRATE_ROOK_OBJECT_STORE: 'same: ',
  },
  'The object store': {
    OBJECT_STORE_ACCESS_KEY: 'same: of hooks among themselves',
    OBJECT_STORE_SECRET_KEY: 'same: of hooks among themselves',
    OBJECT_STORE_CLUSTER_IP: 'same: of hooks among themselves',
    OBJECT_STORE_CLUSTER_HOST: 'same: of hooks among themselves',
  },
  "kURL's programs": {
    BIN_KURL:
      "same: without kURL's package kurl-bin-utils only `format-address` and `netutil format-ip-address` work; the rest says what lacks",
    BIN_YAMLUTIL: "same: without kURL's package kurl-bin-utils this tool does what it does",
    BIN_SUBNET: "same: the path below `bin/`; the program is there when the bundle has kURL's package kurl-bin-utils",
    BIN_DOCKER_CONFIG:
      "same: the path below `bin/`; the program is there when the bundle has kURL's package kurl-bin-utils",
    BIN_INSTALLERMERGE:
      "same: the path below `bin/`; the program is there when the bundle has kURL's package kurl-bin-utils",
    BIN_YAMLTOBASH:
      "same: the path below `bin/`; the program is there when the bundle has kURL's package kurl-bin-utils",
    BIN_BASHMERGE:
      "same: the path below `bin/`; the program is there when the bundle has kURL's package kurl-bin-utils",
    BIN_HTPASSWD: "same: without kURL's package kurl-bin-utils this tool does what it does",
    BIN_PVMIGRATE:
      "same: the path below `bin/`; the program is there when the bundle has kURL's package kurl-bin-utils",
    BIN_VENDORFLIGHTS:
      "same: the path below `bin/`; the program is there when the bundle has kURL's package kurl-bin-utils",
  },
};

/** By topic. */
export const VARIABLES: readonly (readonly [topic: string, variables: readonly Row[]])[] = Object.entries(TOPICS).map(
  ([topic, notes]) => [topic, rows(Object.keys(notes).join(' '), notes)],
);
