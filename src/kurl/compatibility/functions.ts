/** The functions of kURL that add-ons call, and how they work here. */
import { rows, type Row } from './rows.ts';

const HOST_PACKAGES =
  'same: newer versions of packages on the machine are kept, with a message; the repository of rpm packages exists only during the call; conflicts are explained';

const NOTES: Readonly<Record<string, string>> = {
  spinner_until: 'same: the spinner is drawn only on a terminal',
  sleep_spinner: 'same: the spinner is drawn only on a terminal',
  spinnerPodRunning: 'same: it checks every second',
  bail: 'same: its message is also in the error of the failed run',
  confirmY: 'same: curlew asks if it has a terminal; otherwise the answer is yes, with a warning',
  confirmN: 'same: curlew asks if it has a terminal; otherwise the answer is no, with a warning',
  prompt: 'same: curlew asks if it has a terminal; otherwise it bails',
  try_1m: 'same: arguments with spaces are passed unchanged; kURL splits them again',
  try_5m: 'same: arguments with spaces are passed unchanged; kURL splits them again',
  try_1m_stderr: 'same: arguments with spaces are passed unchanged; kURL splits them again',
  insert_resources: 'same: a warning names the file and line if the result is empty or not valid YAML',
  insert_patches_strategic_merge: 'same: with the warning of insert_resources',
  insert_patches_json_6902: 'same: with the warning of insert_resources',
  cert_has_san: 'same: the name is compared literally, not as a pattern',
  check_for_running_pods: 'same: it asks the API server once, not for each pod',
  check_network:
    "differs: if KURL_UTIL_IMAGE is empty (no package `curlew-utils`), it bails with a message; it does not look for Weave's program",
  install_host_packages: HOST_PACKAGES,
  install_host_archives: HOST_PACKAGES,
  yum_install_host_archives: `${HOST_PACKAGES}; does nothing on Debian-based systems`,
  dpkg_install_host_archives: `${HOST_PACKAGES}; does nothing on rpm-based systems; first completes an interrupted dpkg run`,
  load_images: 'same: also accepts an image layout; existing aliases are not created again',
  object_store_running: 'same: also finds the secret of MinIO; the check for it in kURL is broken',
  object_store_create_bucket: 'same: the secret key is never passed as an argument of a program',
  migrate_object_store:
    'absent: not supported: it bails with a message; copying needs programs of kURL that are no longer maintained',
  migrate_rgw_to_minio: 'absent: not supported: it bails with a message',
  migrate_minio_to_rgw: 'absent: not supported: it bails with a message if there is a MinIO to migrate from',
  rook_ceph_to_sc_migration:
    'absent: not supported: it bails with a message; migrate volumes with kURL before the switch',
  longhorn_to_sc_migration:
    'absent: not supported: it bails with a message; migrate volumes with kURL before the switch',
  longhorn_prepare_for_migration: 'absent: not supported: it bails with a message',
  longhorn_restore_migration_replicas: 'absent: not supported: it bails with a message',
  maybe_cleanup_rook: 'differs: nothing is removed; a warning reports that Rook remains',
  maybe_cleanup_longhorn: 'differs: nothing is removed; a warning reports that Longhorn remains',
  report_addon_start: 'same: nothing is reported',
  report_addon_success: 'same: nothing is reported',
  addon_install:
    "same: recorded in kURL's ConfigMap only if MERGED_YAML_SPEC names a spec; runs keep their own records",
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
export const KURL_FUNCTIONS: readonly (readonly [topic: string, functions: readonly Row[]])[] = Object.entries(
  NAMES,
).map(([topic, names]) => [topic, rows(names, NOTES)]);
