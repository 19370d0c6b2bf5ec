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

@test "what a system looks into is told from the first to the last" {
  system ol 7.9
  run curlew_os_names
  [ "$output" = "$(lines ol-7 rhel-7)" ]
  system amzn 2
  run curlew_os_names
  [ "$output" = "$(lines rhel-7-force rhel-7)" ]
  system plan9 4
  run curlew_os_names
  [ "$status" -eq 1 ]
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

# Package files are text here: `name version`. What is installed lies in the file `installed`.
dpkg_system() {
  system ubuntu 22.04
  mkdir -p "$1"
  : >installed
  dpkg-deb() { awk '{ print $1 ":amd64\t" $2 }' "${*: -1}"; }
  dpkg-query() { awk -v name="${*: -1}" '$1 ":amd64" == name || $1 == name { print "installed", $2 }' installed; }
  dpkg() {
    case "$1" in
      --audit) cat audit 2>/dev/null || true ;;
      --compare-versions) command dpkg "$@" ;;
      *) printf '%s\n' "$@" >>calls ;;
    esac
  }
  apt-get() { :; }
}

@test "no package file is a message, and no failure" {
  system ubuntu 22.04
  dpkg() { echo called; }
  run install_host_archives d lvm2
  [ "$status" -eq 0 ]
  [[ "$output" == *'no packages found'* && "$output" != *called* ]]
  system rhel 8
  run install_host_packages d lvm2
  [ "$status" -eq 0 ]
  run dpkg_install_host_archives d lvm2
  [ "$status" -eq 0 ]
  system ubuntu 22.04
  run yum_install_host_archives d lvm2
  [ "$status" -eq 0 ]
}

@test "dpkg gets every package file in one call" {
  dpkg_system d/ubuntu-22.04/archives
  echo a 1 >d/ubuntu-22.04/archives/a.deb
  echo b 1 >d/ubuntu-22.04/archives/b.deb
  run install_host_archives d lvm2
  [ "$status" -eq 0 ]
  [ "$(cat calls)" = "$(lines --install --force-depends-version --force-confold --auto-deconfigure \
    d/ubuntu-22.04/archives/a.deb d/ubuntu-22.04/archives/b.deb)" ]
}

@test "flat packages lie in the folder itself" {
  dpkg_system d/ubuntu-22.04
  echo a 1 >d/ubuntu-22.04/a.deb
  run install_host_packages d containerd
  [ "$(tail -n 1 calls)" = d/ubuntu-22.04/a.deb ]
}

@test "what the machine has in a newer version stays; what it has is not installed again" {
  dpkg_system d/ubuntu-22.04/archives
  lines 'new 2' 'same 1' 'old 1' >installed
  for name in new same old absent; do echo "$name 1" >"d/ubuntu-22.04/archives/$name.deb"; done
  echo old 2 >d/ubuntu-22.04/archives/old.deb
  run install_host_archives d lvm2
  [ "$status" -eq 0 ]
  [[ "$output" == *'new 2 of this machine is newer than 1 in the package, and stays'* ]]
  [ "$(tail -n +5 calls)" = "$(lines d/ubuntu-22.04/archives/absent.deb d/ubuntu-22.04/archives/old.deb)" ]
  rm calls
  lines 'new 1' 'same 1' 'old 2' 'absent 1' >installed
  run install_host_archives d lvm2
  [ "$status" -eq 0 ]
  [[ "$output" == *'are installed already'* ]]
  [ ! -e calls ]
}

@test "containerd.io is downgraded when it is requested" {
  dpkg_system d/ubuntu-22.04
  echo containerd.io 2 >installed
  echo containerd.io 1 >d/ubuntu-22.04/c.deb
  run install_host_packages d containerd.io
  [[ "$output" == *'containerd.io is downgraded from 2 to 1'* ]]
  [ "$(tail -n 1 calls)" = d/ubuntu-22.04/c.deb ]
}

@test "dpkg is tried three times, and what is in the way is said" {
  dpkg_system d/ubuntu-22.04/archives
  echo a 1 >d/ubuntu-22.04/archives/a.deb
  dpkg() {
    [ "$1" != --audit ] || return 0
    echo x >>tries
    lines 'dpkg: dependency problems prevent configuration of a:' ' a depends on libzebra (>= 2); however:' \
      '  Package libzebra is not installed.' >&2
    return 1
  }
  run dpkg_install_host_archives d lvm2
  [ "$status" -eq 1 ]
  [ "$(wc -l <tries)" -eq 3 ]
  [[ "$output" == *'a needs libzebra (>= 2), which neither this machine nor the add-on has'* ]]
}

@test "what an interrupted dpkg left is finished first" {
  dpkg_system d/ubuntu-22.04/archives
  echo a 1 >d/ubuntu-22.04/archives/a.deb
  echo 'half installed' >audit
  run install_host_archives d lvm2
  [ "$status" -eq 0 ]
  [ "$(head -n 3 calls)" = "$(lines --configure --pending --force-confold)" ]
  [[ "$output" == *'dpkg was interrupted'* ]]
}

@test "a file that is no package is named" {
  dpkg_system d/ubuntu-22.04/archives
  echo a 1 >d/ubuntu-22.04/archives/a.deb
  dpkg-deb() { return 2; }
  run install_host_archives d lvm2
  [ "$status" -eq 1 ]
  [[ "$output" == *'archives/a.deb is not a package that dpkg can read'* ]]
}

@test "broken dependencies are repaired without removing anything" {
  dpkg_system d/ubuntu-22.04/archives
  echo a 1 >d/ubuntu-22.04/archives/a.deb
  apt-get() {
    echo "$*" >>repairs
    [ "$1" != check ]
  }
  run install_host_archives d lvm2
  [ "$status" -eq 0 ]
  [ "$(cat repairs)" = "$(lines check 'install --fix-broken --yes --no-remove')" ]
}

# A machine with dnf; `fails` is what it says when it fails.
rpm_system() {
  system "$1" "$2"
  mkdir -p "$3/repodata"
  touch "$3/a.rpm" "$3/repodata/repomd.xml"
  rpm() { echo "rpm $*" >>calls; }
  dnf() {
    echo "$*" >>calls
    if [[ "$*" == *install* ]]; then
      cat "${1#--setopt=reposdir=}"/*.repo >repository
      [ -z "${fails-}" ] || { echo "$fails" && return 1; }
    fi
  }
}

@test "dnf sees the folder as its only repository, for that call" {
  rpm_system rocky 8.5 d/rhel-8/archives
  before="$(ls /etc/yum.repos.d 2>/dev/null || true)"
  run install_host_archives d lvm2
  [ "$status" -eq 0 ]
  grep -q "^baseurl=file://$PWD/d/rhel-8/archives\$" repository
  grep -qE -- "--disablerepo=\* --enablerepo=curlew-local --noplugins -y install lvm2\$" calls
  [ "$before" = "$(ls /etc/yum.repos.d 2>/dev/null || true)" ]
  run yum_install_host_archives d lvm2
  [ "$status" -eq 0 ]
}

@test "containerd.io may take the place of what is in its way" {
  rpm_system rocky 8.5 d/rhel-8
  run install_host_packages d containerd.io
  grep -q -- '-y install --allowerasing containerd.io$' calls
}

@test "a folder without an index is installed by its files" {
  rpm_system rhel 9.3 d/rhel-9
  rm -r d/rhel-9/repodata
  run install_host_packages d kubelet
  grep -q -- "install $PWD/d/rhel-9/a.rpm\$" calls
}

@test "Amazon Linux 2 gets its own packages by force" {
  rpm_system amzn 2 d/rhel-7-force/archives
  run install_host_archives d lvm2
  [ "$status" -eq 0 ]
  [ "$(cat calls)" = "rpm --upgrade --force --nodeps --nosignature $PWD/d/rhel-7-force/archives/a.rpm" ]
}

@test "what dnf says is put in a line for each problem" {
  rpm_system rhel 8.9 d/rhel-8/archives
  fails='Error:
 Problem: conflicting requests
  - nothing provides libzebra.so.2()(64bit) needed by app-1.0-1.x86_64 from curlew-local'
  run install_host_archives d app
  [ "$status" -eq 1 ]
  [[ "$output" == *'app-1.0-1.x86_64 needs libzebra.so.2()(64bit), which neither this machine nor the add-on has'* ]]
}

@test "yum_is_host_package_installed" {
  dnf() { [ "$*" = 'list installed lvm2' ]; }
  yum_is_host_package_installed lvm2
  run ! yum_is_host_package_installed other
}
