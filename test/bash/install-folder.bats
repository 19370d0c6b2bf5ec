#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2034,SC2317
load setup

@test "pushd_install_directory makes the folder and goes there" {
  KURL_INSTALL_DIRECTORY="$PWD/sub/../new"
  mkdir sub
  before="$PWD"
  pushd_install_directory
  [ "$PWD" = "$before/new" ]
  [ "$KURL_INSTALL_DIRECTORY" = "$before/new" ]
  popd_install_directory
  [ "$PWD" = "$before" ]
  KURL_INSTALL_DIRECTORY="$PWD/none/deeper" run pushd_install_directory
  [ "$status" -eq 1 ]
  [[ "$output" == *none* ]]
}

@test "move_airgap_assets replaces entries, and leaves the rest" {
  KURL_INSTALL_DIRECTORY="$PWD/install"
  mkdir -p kurl/addons/new install/{addons/old,assets}
  move_airgap_assets
  [ -d install/addons/new ]
  [ ! -e install/addons/old ]
  [ -d install/assets ]
  move_airgap_assets
  [ -d install/addons/new ]
}

@test "move_airgap_assets moves nothing when the folder is the install folder" {
  KURL_INSTALL_DIRECTORY="$PWD/kurl"
  mkdir -p kurl/addons
  move_airgap_assets
  [ -d kurl/addons ]
}

@test "get_common comes from the internet, or not at all" {
  package_download() {
    mkdir -p assets manifests
    tar czf assets/common.tar.gz manifests
    rmdir manifests
  }
  AIRGAP=1 DIST_URL=https://d get_common
  get_common
  [ ! -e assets ]
  DIST_URL=https://d get_common
  [ -d manifests ]
}
