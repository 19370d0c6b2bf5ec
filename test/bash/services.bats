#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2034,SC2317
load setup

# systemd with one unit, whose main process is in `pid`; a restart puts `next` there.
systemd() {
  echo "${1-100000001}" >pid
  systemctl() {
    echo "$*" >>calls
    case "$1" in
      show) echo "MainPID=$(cat pid)" ;;
      restart) cp next pid ;;
    esac
  }
  journalctl() { echo journal; }
}

@test "restart_systemd_and_wait waits for a new process" {
  systemd
  echo 100000002 >next
  run restart_systemd_and_wait containerd
  [ "$status" -eq 0 ]
  [[ "$output" == *'Service containerd restarted'* ]]
  systemd 0
  run restart_systemd_and_wait containerd
  [ "$status" -eq 0 ]
}

@test "restart_systemd_and_wait shows the journal and bails" {
  systemd
  echo 100000001 >next
  run restart_systemd_and_wait containerd
  [ "$status" -eq 1 ]
  [[ "$output" == *journal*'Could not successfully restart systemd service containerd'* ]]
}

@test "clients of network volumes are installed once, and started" {
  systemctl() {
    echo "$*" >>calls
    [ "$1" != cat ] && [ "$1" != -q ]
  }
  LSB_DIST=ubuntu DIST_VERSION=22.04
  dpkg_install_host_archives() { echo "dpkg $*" >>calls; }
  install_nfs_utils_if_missing_common src
  [ "$(cat calls)" = "$(lines 'cat nfs-utils' 'dpkg src nfs-common' '-q is-active nfs-utils' 'start nfs-utils' \
    '-q is-enabled nfs-utils' 'enable nfs-utils')" ]
  LSB_DIST=rocky DIST_VERSION=9.3 DIST_VERSION_MAJOR=9
  ensure_host_package() { echo "ensure $*" >>calls; }
  longhorn_install_iscsi_if_missing_common src
  grep -qx 'ensure iscsi-initiator-utils open-iscsi' calls
  LSB_DIST=rhel DIST_VERSION=8 DIST_VERSION_MAJOR=8
  yum_install_host_archives() { echo "yum $*" >>calls; }
  longhorn_install_iscsi_if_missing_common src
  grep -qx 'yum src iscsi-initiator-utils' calls
  systemctl() { echo "$*" >>again; }
  install_nfs_utils_if_missing_common src
  [ "$(wc -l <again)" -eq 3 ]
}

@test "longhorn_host_init_common makes its folder" {
  systemctl() { :; }
  mkdir() { echo "mkdir $*" >>calls; }
  chmod() { echo "chmod $*" >>calls; }
  longhorn_host_init_common src
  [ "$(cat calls)" = "$(lines 'mkdir -p /var/lib/longhorn' 'chmod 700 /var/lib/longhorn')" ]
}
