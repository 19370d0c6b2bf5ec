/** The functions of kURL that add-ons call, and what they are here. */
import { rows, type Row } from './rows.ts';

const HOST_PACKAGES =
  'differs: packages that the machine has in a newer version stay, and that is said; the repository of rpm packages exists only for that call; what is in the way is explained';

const NOTES: Readonly<Record<string, string>> = {
  spinner_until: 'same: the sign of life is drawn only where a terminal is',
  sleep_spinner: 'same: the sign of life is drawn only where a terminal is',
  spinnerPodRunning: 'same: it asks every second',
  bail: 'same: what it says also stands in the message of the failed run',
  confirmY: 'same: asked by curlew, where it has a terminal; otherwise the answer is yes, with a warning',
  confirmN: 'same: asked by curlew, where it has a terminal; otherwise the answer is no, with a warning',
  prompt: 'same: asked by curlew, where it has a terminal; otherwise it bails',
  try_1m: 'differs: arguments with blanks stay whole; kURL splits them again',
  try_5m: 'differs: arguments with blanks stay whole; kURL splits them again',
  try_1m_stderr: 'differs: arguments with blanks stay whole; kURL splits them again',
  insert_resources: 'same: a warning names file and line where nothing, or something that is no valid YAML, comes out',
  insert_patches_strategic_merge: 'same: with the warning of insert_resources',
  insert_patches_json_6902: 'same: with the warning of insert_resources',
  cert_has_san: 'differs: the name is taken as it is, not as a pattern',
  check_for_running_pods: 'same: it asks the API server once, not for each pod',
  check_network:
    "differs: where KURL_UTIL_IMAGE is empty (no package `curlew-utils`) it bails and says so; Weave's program is not looked for",
  install_host_packages: HOST_PACKAGES,
  install_host_archives: HOST_PACKAGES,
  yum_install_host_archives: `${HOST_PACKAGES}; nothing on systems of the Debian family`,
  dpkg_install_host_archives: `${HOST_PACKAGES}; nothing on systems of the rpm family; what an interrupted dpkg left is finished first`,
  load_images: 'differs: takes an image layout as well as archives; the aliases that exist are not made again',
  object_store_running: "differs: MinIO's secret is found too; kURL's test for it is broken",
  object_store_create_bucket: 'same: the secret key is no argument of a program',
  migrate_object_store:
    'absent: not supported: it says so and bails; copying needs programs of kURL that are no longer maintained',
  migrate_rgw_to_minio: 'absent: not supported: it says so and bails',
  migrate_minio_to_rgw: 'absent: not supported: it says so and bails, where there is a MinIO to move from',
  rook_ceph_to_sc_migration:
    'absent: not supported: it says so and bails; volumes are moved with kURL before moving over',
  longhorn_to_sc_migration:
    'absent: not supported: it says so and bails; volumes are moved with kURL before moving over',
  longhorn_prepare_for_migration: 'absent: not supported: it says so and bails',
  longhorn_restore_migration_replicas: 'absent: not supported: it says so and bails',
  maybe_cleanup_rook: 'differs: nothing is removed; a warning says that Rook is left',
  maybe_cleanup_longhorn: 'differs: nothing is removed; a warning says that Longhorn is left',
  report_addon_start: 'differs: nothing is reported to anybody',
  report_addon_success: 'differs: nothing is reported to anybody',
  addon_install:
    "differs: noted in kURL's ConfigMap only when MERGED_YAML_SPEC names a spec; runs keep records of their own",
};

const NAMES: Readonly<Record<string, string>> = {
  'Messages, questions, control flow': `
spinner_until bail log logStep logSubstep logSuccess logWarn logFail confirmY confirmN prompt
prompts_can_prompt commandExists try_1m try_5m try_1m_stderr sleep_spinner spinnerPodRunning
semverParse semverCompare splitHostPort canonical_image_name get_local_node_name
build_installer_prefix restart_systemd_and_wait cert_has_san common_upgrade_compare_versions`,
  'YAML and kustomize': `
insert_resources insert_patches_strategic_merge insert_patches_json_6902 insert_bases
render_yaml_file render_yaml_file_2 yaml_indent yaml_escape_string_quotes yaml_newline_to_literal
get_yaml_from_multidoc_yaml kubernetes_kustomize_config_migrate`,
  'The cluster': `
kubernetes_resource_exists kubernetes_secret_value kubernetes_is_master kubernetes_scale_down
kubernetes_service_healthy kubernetes_version_minor kubernetes_get_control_plane_label
kubernetes_pod_started kubernetes_pod_completed deployment_fully_updated statefulset_fully_updated
daemonset_fully_updated check_for_running_pods pods_gone_by_selector check_network
node_is_using_docker discover_pod_subnet discover_service_subnet parse_kubernetes_target_version`,
  'Host packages and images': `
host_packages_shipped ensure_host_package install_host_packages install_host_archives
yum_install_host_archives dpkg_install_host_archives yum_is_host_package_installed is_ubuntu_2404
is_ubuntu_2604 use_os_containerd install_nfs_utils_if_missing_common
longhorn_install_iscsi_if_missing_common longhorn_host_init_common load_images`,
  'Object store, migrations, other add-ons': `
object_store_exists object_store_create_bucket object_store_running migrate_object_store
migrate_rgw_to_minio migrate_minio_to_rgw rook_disable_ekco_operator rook_enable_ekco_operator
ekco_pods_gone prometheus_pods_gone rook_ceph_to_sc_migration longhorn_to_sc_migration
longhorn_prepare_for_migration longhorn_restore_migration_replicas add_rook_pvc_migration_status
add_rook_store_object_migration_status rook_is_healthy_to_upgrade rook_is_healthy_to_migrate_from
current_ceph_version maybe_cleanup_rook maybe_cleanup_longhorn report_addon_start
report_addon_success addon_install addon_load`,
};

/** By topic. */
export const FUNCTIONS: readonly (readonly [topic: string, functions: readonly Row[]])[] = Object.entries(NAMES).map(
  ([topic, names]) => [topic, rows(names, NOTES)],
);
