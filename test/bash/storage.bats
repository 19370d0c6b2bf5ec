#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2034,SC2317
load setup

@test "an object store exists when all of it is known" {
  run ! object_store_exists
  OBJECT_STORE_ACCESS_KEY=a OBJECT_STORE_SECRET_KEY=b
  run ! object_store_exists
  OBJECT_STORE_CLUSTER_IP=10.0.0.1
  object_store_exists
}

@test "an object store runs when the cluster has its credentials" {
  kubectl() { [ "$2 $5" = 'minio minio-credentials' ]; }
  object_store_running
  kubectl() { return 1; }
  run ! object_store_running
}

@test "HMAC-SHA1 of RFC 2202, with short and long keys" {
  [ "$(curlew_hmac_sha1 Jefe 'what do ya want for nothing?')" = 7/zfauXrL6LSdBbV8YTfnCWafHk= ]
  long="$(printf 'k%.0s' {1..100})"
  [ "$(curlew_hmac_sha1 "$long" text)" = "$(printf text | openssl dgst -sha1 -hmac "$long" -binary | base64)" ]
}

# A store that has the buckets in the file of that name.
store() {
  touch buckets
  curl() {
    cat >config
    printf '%s\n' "$@" >words
    local bucket="${*: -1}"
    bucket="${bucket##*/}"
    if [[ " $* " == *' --head '* ]]; then grep -qx "$bucket" buckets; else echo "$bucket" >>buckets; fi
  }
  OBJECT_STORE_ACCESS_KEY=access OBJECT_STORE_SECRET_KEY=topsecret OBJECT_STORE_CLUSTER_IP=fd00::1
}

@test "object_store_create_bucket makes a bucket once" {
  store
  [ "$(object_store_create_bucket kotsadm)" = 'object store bucket kotsadm created' ]
  [ "$(tail -n 1 words)" = 'http://[fd00::1]/kotsadm' ]
  grep -q 'Authorization: AWS access:' config
  run ! grep -q topsecret config words
  run ! grep -q access words
  [ "$(object_store_create_bucket kotsadm)" = 'object store bucket kotsadm exists' ]
}

@test "object_store_create_bucket refused is status 1, and bails without a store" {
  curl() { return 22; }
  run object_store_create_bucket kotsadm
  [ "$status" -eq 1 ]
  [[ "$output" == *'no object store configured'* ]]
  store
  curl() { return 22; }
  run object_store_create_bucket kotsadm
  [ "$status" -eq 1 ]
  [ "$output" = '' ]
}

@test "current_ceph_version is without the build number" {
  kubectl() { printf 16.2.9-0; }
  [ "$(current_ceph_version)" = 16.2.9 ]
  kubectl() { return 1; }
  [ "$(current_ceph_version)" = '' ]
}

# A healthy Ceph, with the labels in the variable.
ceph() {
  check_for_running_pods() { return 0; }
  printf '#!/bin/sh\nexit 0\n' >kurl
  chmod +x kurl
  BIN_KURL="$PWD/kurl"
  kubectl() { printf '%s\n' "${labels[@]}"; }
  labels=(v1.9.12 v1.9.12)
}

@test "rook_is_healthy_to_upgrade" {
  ceph
  rook_is_healthy_to_upgrade
  rook_is_healthy_to_migrate_from
  labels=(v1.9.12 v1.8.10)
  run rook_is_healthy_to_upgrade
  [ "$status" -eq 1 ]
  [[ "$output" == *'Multiple rook-versions detected: v1.8.10 v1.9.12'* ]]
  printf '#!/bin/sh\nexit 1\n' >kurl
  run rook_is_healthy_to_upgrade
  [ "$status" -eq 1 ]
  [[ "$output" == *'Rook Ceph is unhealthy'* ]]
  check_for_running_pods() { return 1; }
  run rook_is_healthy_to_migrate_from
  [ "$status" -eq 1 ]
  [[ "$output" == *'unhealthy Pod(s)'* ]]
}

@test "without kURL's programs Rook's health cannot be asked, and it is said which package lacks" {
  ceph
  BIN_KURL=/none
  run rook_is_healthy_to_upgrade
  [ "$status" -eq 1 ]
  [[ "$output" == *"kurl rook wait-for-health 600: not supported; put kURL's own program into bin of the install folder"* ]]
}

@test "EKCO is stopped and started where it is" {
  kubectl() { if [ "$3" != pods ] && [ "$4" != pods ]; then echo "$*" >>calls; fi; }
  rook_disable_ekco_operator
  grep -q -- '--replicas=0' calls
  rook_enable_ekco_operator
  grep -q -- '--replicas=1' calls
  ekco_pods_gone() { return 1; }
  run rook_disable_ekco_operator
  [ "$status" -eq 1 ]
  kubectl() { return 1; }
  rook_disable_ekco_operator
  rook_enable_ekco_operator
}

@test "migrations of data say that they are not supported, and change nothing" {
  kubectl() { echo "$*" >>calls; }
  for call in 'migrate_object_store ns a b c d e f' migrate_rgw_to_minio migrate_minio_to_rgw \
    'rook_ceph_to_sc_migration local 0' 'longhorn_to_sc_migration local 0' longhorn_prepare_for_migration \
    longhorn_restore_migration_replicas; do
    # shellcheck disable=SC2086
    run $call
    [ "$status" -eq 1 ]
    [[ "$output" == *'is not supported here'* ]]
  done
  run ! grep -vE 'get ' calls
  kubectl() { return 1; }
  migrate_minio_to_rgw
}

@test "what was migrated from Rook is noted" {
  kubectl() { echo "$*" >>calls; }
  add_rook_pvc_migration_status 1
  [ "$DID_MIGRATE_ROOK_PVCS" = 1 ]
  [ "$(tail -n 1 calls)" = \
    '-n kurl patch configmap kurl-migration-from-rook --type merge -p {"data":{"DID_MIGRATE_ROOK_PVCS":"1"}}' ]
  add_rook_store_object_migration_status 0
  [ "$DID_MIGRATE_ROOK_OBJECT_STORE" = 0 ]
}

@test "a storage add-on that left the spec is not removed, and that is said" {
  kubectl() { [ "$1" = get ]; }
  run maybe_cleanup_rook
  [ "$status" -eq 0 ]
  [[ "$output" == *'Rook is no longer in the installer spec'* ]]
  run maybe_cleanup_longhorn
  [[ "$output" == *Longhorn* ]]
  ROOK_VERSION=1 LONGHORN_VERSION=1
  [ "$(maybe_cleanup_rook 2>&1; maybe_cleanup_longhorn 2>&1)" = '' ]
}
