#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2034,SC2317
load setup

# A machine whose packages are in the file `installed`, and whose repositories offer what is in `offered`.
machine() {
  LSB_DIST="$1" DIST_VERSION="$2" DIST_VERSION_MAJOR="${2%%.*}"
  touch installed offered
  dpkg-query() { if grep -qx "${*: -1}" installed; then echo 'installed 1'; fi; }
  rpm() { grep -qx "${*: -1}" installed; }
  apt-cache() { grep -qx "$2" offered; }
  from_repository() {
    echo "$*" >>calls
    case "$*" in
      *list*) grep -qx "${*: -1}" offered ;;
      *) grep -qx "${*: -1}" offered && echo "${*: -1}" >>installed ;;
    esac
  }
  apt-get() { from_repository "$@"; }
  dnf() { from_repository "$@"; }
}

@test "ensure_host_package installs what lacks, by the name of this kind of system" {
  machine ubuntu 24.04
  lines containerd git-deb >offered
  run ensure_host_package skip containerd
  [ "$status" -eq 0 ]
  [ "$(cat calls)" = 'install -y containerd' ]
  run ensure_host_package skip containerd
  [ "$(wc -l <calls)" -eq 1 ]
  for nothing in '' skip; do ensure_host_package containerd "$nothing"; done
  [ "$(wc -l <calls)" -eq 1 ]
  machine rocky 9.3
  echo git >offered
  run ensure_host_package git git-deb
  [ "$(tail -n 1 calls)" = 'install -y git' ]
}

@test "ensure_host_package that fails names the command" {
  machine ubuntu 24.04
  run ensure_host_package x zebra
  [ "$status" -eq 1 ]
  [[ "$output" == *'apt-get install -y zebra'* ]]
  machine plan9 4
  run ensure_host_package x zebra
  [ "$status" -eq 1 ]
  [[ "$output" == *'not supported on plan9 4'* ]]
}

deps() {
  mkdir -p "$1"
  printf '%s' "$2" >"$1/Deps"
}

@test "everything that lacks is told at once, with who needs it and the command" {
  machine rocky 9.3
  deps addons/longhorn/1.3/rhel-9 $'nfs-utils\niscsi-initiator-utils\n'
  deps addons/openebs/2.0/rhel-9 $'nfs-utils\nlvm2'
  deps addons/openebs/1.0/rhel-9 $'from-another-version\n'
  deps addons/openebs/2.0/ubuntu-24.04 $'from-another-system\n'
  deps packages/kubernetes/1.27.3/rhel-9 $'git\n'
  deps packages/host/fio/rhel-9 $'libaio\n'
  LONGHORN_VERSION=1.3 OPENEBS_VERSION=2.0 KUBERNETES_VERSION=1.27.3
  echo git >installed
  lines nfs-utils iscsi-initiator-utils lvm2 >offered
  run preflights_require_host_packages
  [ "$status" -eq 1 ]
  [[ "$output" == *'Host package nfs-utils is required by longhorn 1.3, openebs 2.0'* ]]
  [[ "$output" == *'Host package lvm2 is required by openebs 2.0'* ]]
  [[ "$output" == *'libaio is required by fio (no repository of this machine offers it)'* ]]
  [[ "$output" == *'dnf install -y nfs-utils iscsi-initiator-utils lvm2 libaio'* ]]
  [[ "$output" != *another* && "$output" != *git* ]]
}

@test "nothing lacks" {
  machine ubuntu 26.04
  deps addons/containerd/2.2/ubuntu-26.04 $'containerd\n\n'
  CONTAINERD_VERSION=2.2
  echo containerd >installed
  run preflights_require_host_packages
  [ "$status" -eq 0 ]
}

@test "systems whose packages are shipped have no lists" {
  machine ubuntu 22.04
  deps addons/containerd/2.2/ubuntu-22.04 $'containerd\n'
  CONTAINERD_VERSION=2.2
  run preflights_require_host_packages
  [ "$status" -eq 0 ]
}

@test "a list that holds something else than names is damaged, by file and line" {
  machine ubuntu 24.04
  deps addons/containerd/2.2/ubuntu-24.04 $'containerd\n$(reboot)\n-y\n'
  CONTAINERD_VERSION=2.2
  echo containerd >installed
  run preflights_require_host_packages
  [ "$status" -eq 1 ]
  [[ "$output" == *'addons/containerd/2.2/ubuntu-24.04/Deps:2: this is not a package name'* ]]
  [[ "$output" == *'Deps:3: '* ]]
}
