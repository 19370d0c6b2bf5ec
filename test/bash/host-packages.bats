#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2034,SC2317
load setup

system() {
  LSB_DIST="$1" DIST_VERSION="$2" DIST_VERSION_MAJOR="${2%%.*}"
}

folder_on() {
  system "$1" "$2"
  curlew_os_folder d /archives
}

@test "each system has its folder" {
  [ "$(folder_on ubuntu 22.04)" = d/ubuntu-22.04/archives ]
  [ "$(folder_on centos 7)" = d/rhel-7/archives ]
  [ "$(folder_on rocky 8.5)" = d/rhel-8/archives ]
  [ "$(folder_on rhel 9.3)" = d/rhel-9/archives ]
  [ "$(folder_on rhel 10.0)" = d/rhel-9/archives ]
  [ "$(folder_on amzn 2023)" = d/amazon-2023/archives ]
  [ "$(folder_on amzn 2)" = d/rhel-7/archives ]
  [ "$(folder_on ol 8.4)" = d/rhel-8/archives ]
}

@test "a system's own folder goes first when it holds packages" {
  mkdir -p d/ol-7/archives d/rhel-7-force/archives
  touch d/ol-7/archives/a.rpm d/rhel-7-force/archives/a.rpm
  [ "$(folder_on ol 7.9)" = d/ol-7/archives ]
  [ "$(folder_on amzn 2)" = d/rhel-7-force/archives ]
}

@test "an unknown system is refused" {
  system plan9 4
  run install_host_packages d x
  [ "$status" -eq 1 ]
  [[ "$output" == *'not supported on plan9 4'* ]]
}

@test "nothing is installed when system packages are to be left alone" {
  SKIP_SYSTEM_PACKAGE_INSTALL=1
  run install_host_archives d lvm2
  [ "$status" -eq 0 ]
  [[ "$output" == *'Skipping installation of host packages: lvm2'* ]]
}

@test "no package file is a message, and no failure" {
  system ubuntu 22.04
  dpkg() { echo called; }
  run install_host_archives d lvm2
  [ "$status" -eq 0 ]
  [[ "$output" == *'nothing to install'* && "$output" != *called* ]]
  system rhel 8
  run install_host_packages d lvm2
  [ "$status" -eq 0 ]
}

@test "dpkg gets every package file in one call" {
  system ubuntu 22.04
  mkdir -p d/ubuntu-22.04/archives
  touch d/ubuntu-22.04/archives/{a,b}.deb
  dpkg() { printf '%s\n' "$@" >calls; }
  apt-get() { :; }
  run install_host_archives d lvm2
  [ "$status" -eq 0 ]
  [ "$(cat calls)" = "$(lines --install --force-depends-version --force-confold --auto-deconfigure \
    d/ubuntu-22.04/archives/a.deb d/ubuntu-22.04/archives/b.deb)" ]
}

@test "flat packages lie in the folder itself" {
  system ubuntu 22.04
  mkdir -p d/ubuntu-22.04
  touch d/ubuntu-22.04/a.deb
  dpkg() { printf '%s\n' "${@: -1}" >calls; }
  apt-get() { :; }
  run install_host_packages d containerd
  [ "$(cat calls)" = d/ubuntu-22.04/a.deb ]
}

@test "dpkg is tried three times" {
  system ubuntu 22.04
  mkdir -p d/ubuntu-22.04/archives
  touch d/ubuntu-22.04/archives/a.deb
  dpkg() {
    echo x >>calls
    return 2
  }
  run dpkg_install_host_archives d lvm2
  [ "$status" -eq 1 ]
  [ "$(wc -l <calls)" -eq 3 ]
}

@test "broken dependencies are repaired without removing anything" {
  system ubuntu 22.04
  mkdir -p d/ubuntu-22.04/archives
  touch d/ubuntu-22.04/archives/a.deb
  dpkg() { :; }
  apt-get() {
    echo "$*" >>calls
    [ "$1" != check ]
  }
  run install_host_archives d lvm2
  [ "$status" -eq 0 ]
  [ "$(cat calls)" = "$(lines check 'install --fix-broken --yes --no-remove')" ]
}

@test "rpm packages are refused in plain words" {
  system rhel 8
  mkdir -p d/rhel-8/archives
  touch d/rhel-8/archives/a.rpm
  run install_host_archives d lvm2
  [ "$status" -eq 1 ]
  [[ "$output" == *'not supported'* ]]
}
