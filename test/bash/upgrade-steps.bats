#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2034,SC2317
load setup

STEPS='1.0.4-14.2.21 0.0.0 0.0.0 0.0.0 1.4.9 1.5.12 1.6.11 1.7.11 1.8.10 1.9.12 1.10.11 1.11.2'

steps() {
  common_upgrade_step_versions "$STEPS" "$1" "$2" | paste -sd' '
}

rook_steps() {
  rook_upgrade_step_versions "$STEPS" "$1" "$2" | paste -sd' '
}

@test "case 11: steps of an upgrade, without the minor it starts from" {
  [ "$(steps 1.6 1.6)" = '' ]
  [ "$(steps 1.6 1.9)" = '1.7.11 1.8.10 1.9.12' ]
  [ "$(steps 1.0 1.2)" = '0.0.0 0.0.0' ]
  [ "$(steps 1.9.3 1.10.9)" = 1.10.9 ]
  [ "$(steps 1.9.3 1.11.1)" = '1.10.11 1.11.1' ]
  [ "$(steps 1.9.3 1.11.3)" = '1.10.11 1.11.3' ]
  [ "$(steps 1.6 1.4)" = '' ]
  run common_upgrade_step_versions "$STEPS" 1.9 1.15
  [ "$status" -eq 1 ]
  [[ "$output" == *'from 1.9 to 1.15 is not supported'* ]]
  run common_upgrade_step_versions "$STEPS" 1.1 2.1
  [ "$status" -eq 1 ]
}

@test "case 12: steps of Rook, with the minor it starts from" {
  [ "$(rook_steps 1.6 1.6)" = 1.6.11 ]
  [ "$(rook_steps 1.6 1.9)" = '1.6.11 1.7.11 1.8.10 1.9.12' ]
  [ "$(rook_steps 1.9.3 1.10.9)" = '1.9.12 1.10.9' ]
  run rook_upgrade_step_versions "$STEPS" 1.9 1.15
  [ "$status" -eq 1 ]
}

@test "case 13: whether Rook is upgraded in steps" {
  for pair in '1.0.4 1.4.9' '1.0.4-14.2.21 1.4.9' '1.3.11 1.4.9' '1.0.4 1.7.11' '1.5.9 1.7.11' '1.9.12 1.11.2'; do
    # shellcheck disable=SC2086
    rook_upgrade_should_upgrade_rook $pair
  done
  for pair in '1.0.4 1.4.3' '1.5.9 1.5.12' '1.5.9 1.6.11'; do
    # shellcheck disable=SC2086
    run rook_upgrade_should_upgrade_rook $pair
    [ "$status" -eq 1 ]
  done
}

@test "case 14: size of Rook's packages in MB" {
  [ "$(rook_upgrade_required_archive_size 1.0 1.5)" -eq 6100 ]
  [ "$(rook_upgrade_required_archive_size 1.0 1.10)" -eq 14300 ]
  [ "$(rook_upgrade_required_archive_size 1.5 1.10)" -eq 8200 ]
  [ "$(rook_upgrade_required_archive_size 1.0 1.15)" -eq 24300 ]
}

@test "case 15: versions by major and minor" {
  [ "$(common_upgrade_major_minor_less_one 1.9.4)" = 1.8 ]
  [ "$(common_upgrade_major_minor_less_one 1.0)" = 1.0 ]
  run ! common_upgrade_is_version_included 1.0 1.4 1.0
  common_upgrade_is_version_included 1.0 1.4 1.4.1
  run ! common_upgrade_is_version_included 1.0 1.4 1.5
  [ "$(common_upgrade_print_list_of_minor_upgrades 1.0 1.4.1)" = \
    'This involves upgrading from 1.0 to 1.1, 1.1 to 1.2, 1.2 to 1.3, and 1.3 to 1.4.' ]
  [ "$(common_upgrade_print_list_of_minor_upgrades 1.0 1.1)" = 'This involves upgrading from 1.0 to 1.1.' ]
  [ "$(common_upgrade_max_version 1.0 1.4)" = 1.4 ]
  [ "$(common_upgrade_version_to_major_minor 1.9.12)" = 1.9 ]
}

@test "lists of images are merged, each image once" {
  [ "$(common_upgrade_merge_images_list ' a   b  c d   ' ' b  d a c d')" = 'a b c d' ]
  [ "$(common_upgrade_merge_images_list '' '')" = '' ]
}

@test "case 16: upgrades of containerd" {
  CONTAINERD_STEP_VERSIONS=(1.2.13 1.3.9 1.4.13 1.5.11 1.6.33 1.7.29 2.0.5)
  containerd_upgrade_is_possible 1.7.29 2.0.5
  [ "$(containerd_migration_steps 1.7.29 2.0.5)" = 2.0.5 ]
  [ "$(containerd_migration_steps 1.4.13 1.6.33)" = '1.5.11 1.6.33' ]
  run containerd_upgrade_is_possible 1.6.33 2.0.5
  [[ "$status" -eq 1 && "$output" == *1.7* ]]
  CURRENT_KUBERNETES_VERSION=1.25.0 run containerd_upgrade_is_possible 1.7.29 2.0.5
  [[ "$status" -eq 1 && "$output" == *'CRI v1'* ]]
  run containerd_upgrade_is_possible 2.0.5 1.7.29
  [[ "$status" -eq 1 && "$output" == *'not supported'* ]]
  run containerd_upgrade_is_possible 1.6.33 1.9.0
  [[ "$status" -eq 1 && "$output" == *'older containerd version first'* ]]
  run containerd_upgrade_is_possible 1.7.29 1.6.33
  [[ "$status" -eq 1 && "$output" == *'not supported'* ]]
  run containerd_migration_steps 1.2.13 1.9.0
  [ "$status" -eq 1 ]
}

@test "containerd_evaluate_upgrade collects the steps, but not where the system has its own" {
  CONTAINERD_STEP_VERSIONS=(1.5.11 1.6.33)
  LSB_DIST=ubuntu DIST_VERSION=22.04
  containerd_evaluate_upgrade 1.4.13 1.6.33
  [ "${CONTAINERD_INSTALL_VERSIONS[*]}" = '1.5.11 1.6.33' ]
  CONTAINERD_INSTALL_VERSIONS=()
  DIST_VERSION=24.04
  containerd_evaluate_upgrade 1.4.13 1.6.33
  [ "${#CONTAINERD_INSTALL_VERSIONS[@]}" -eq 0 ]
}

@test "the images of Ceph that a Manifest of Rook asks for" {
  lines 'image rook-ceph rook/ceph:v1.9.12' 'image ceph quay.io/ceph/ceph:v16.2.10' 'image rook-ceph-1411 docker.io/rook/ceph:v1.4.9' \
    'asset rook/ceph https://h/x' 'image csi rook/cephcsi:v3' >Manifest
  [ "$(rook_upgrade_list_rook_ceph_images_in_manifest_file Manifest)" = 'docker.io/rook/ceph:v1.9.12 docker.io/rook/ceph:v1.4.9' ]
}
