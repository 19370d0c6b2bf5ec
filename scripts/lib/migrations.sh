# shellcheck shell=bash
# Data migrations between storage add-ons. They need programs and add-ons that are no longer
# maintained: unsupported migrations print an error and change nothing.

# usage: curlew_not_migrated WHAT
curlew_not_migrated() {
  bail "$1 is not supported here. Migrate with kURL before moving to curlew, or move the data by hand."
}

# usage: migrate_object_store NAMESPACE SOURCE KEY SECRET DESTINATION KEY SECRET
migrate_object_store() {
  curlew_not_migrated "Copying the object store ${2//%/%%} to ${5//%/%%}"
}

migrate_rgw_to_minio() {
  curlew_not_migrated 'Moving objects from Rook to MinIO'
}

# Without MinIO there is nothing to migrate.
migrate_minio_to_rgw() {
  if ! kubernetes_resource_exists "${MINIO_NAMESPACE:-minio}" deployment minio; then return 0; fi
  curlew_not_migrated 'Moving objects from MinIO to Rook'
}

# usage: rook_ceph_to_sc_migration STORAGE-CLASS SKIP-CHECKS
rook_ceph_to_sc_migration() {
  curlew_not_migrated "Moving volumes from Rook to ${1//%/%%}"
}

# usage: longhorn_to_sc_migration STORAGE-CLASS SKIP-CHECKS
longhorn_to_sc_migration() {
  curlew_not_migrated "Moving volumes from Longhorn to ${1//%/%%}"
}

longhorn_prepare_for_migration() {
  curlew_not_migrated 'Moving volumes from Longhorn'
}

longhorn_restore_migration_replicas() {
  curlew_not_migrated 'Moving volumes from Longhorn'
}

# usage: curlew_note_migration KEY VALUE
curlew_note_migration() {
  local note=(kubectl -n kurl)
  kubernetes_resource_exists kurl configmap kurl-migration-from-rook ||
    "${note[@]}" create configmap kurl-migration-from-rook
  "${note[@]}" patch configmap kurl-migration-from-rook --type merge -p "{\"data\":{\"$1\":\"$2\"}}"
}

# usage: add_rook_pvc_migration_status VALUE
add_rook_pvc_migration_status() {
  export DID_MIGRATE_ROOK_PVCS="$1"
  curlew_note_migration DID_MIGRATE_ROOK_PVCS "$1"
}

# usage: add_rook_store_object_migration_status VALUE
add_rook_store_object_migration_status() {
  export DID_MIGRATE_ROOK_OBJECT_STORE="$1"
  curlew_note_migration DID_MIGRATE_ROOK_OBJECT_STORE "$1"
}

# Removing a storage add-on destroys its data, so a message leaves that to the operator.
maybe_cleanup_rook() {
  if [[ -n "${ROOK_VERSION-}" ]] || ! kubectl get namespace rook-ceph >/dev/null 2>&1; then return 0; fi
  logWarn 'Rook is no longer in the installer spec, but still in the cluster. It is not removed: not supported.'
}

maybe_cleanup_longhorn() {
  if [[ -n "${LONGHORN_VERSION-}" ]] || ! kubectl get namespace longhorn-system >/dev/null 2>&1; then return 0; fi
  logWarn 'Longhorn is no longer in the installer spec, but still in the cluster. It is not removed: not supported.'
}
