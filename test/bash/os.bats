#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2034,SC2317
load setup

on() {
  printf 'ID=%s\nVERSION_ID="%s"\n' "$1" "$2" >os-release
  CURLEW_OS_RELEASE=os-release detectLsbDist
}

@test "detectLsbDist reads os-release" {
  on ubuntu 22.04
  [ "$LSB_DIST $DIST_VERSION $DIST_VERSION_MAJOR $DIST_VERSION_MINOR" = 'ubuntu 22.04 22 04' ]
  on '"rhel"' 9
  [ "$LSB_DIST $DIST_VERSION $DIST_VERSION_MAJOR [$DIST_VERSION_MINOR]" = 'rhel 9 9 []' ]
}

@test "a system without os-release is unknown, and no failure" {
  CURLEW_OS_RELEASE=none detectLsbDist
  [ "$LSB_DIST" = '' ]
}

@test "host_packages_shipped" {
  for old in 'ubuntu 22.04' 'ubuntu 18.04' 'centos 7' 'rhel 8.9' 'amzn 2'; do
    # shellcheck disable=SC2086
    on $old
    host_packages_shipped
  done
  for new in 'ubuntu 24.04' 'ubuntu 26.04' 'rhel 9.3' 'rocky 10' 'ol 9' 'amzn 2023'; do
    # shellcheck disable=SC2086
    on $new
    run host_packages_shipped
    [ "$status" -eq 1 ]
  done
}

@test "the predicates of Ubuntu versions" {
  on ubuntu 24.04
  is_ubuntu_2404
  run ! is_ubuntu_2604
  on ubuntu 26.04
  is_ubuntu_2604
  run ! is_ubuntu_2404
}

@test "use_os_containerd" {
  for own in 'ubuntu 24.04' 'ubuntu 26.04' 'amzn 2023'; do
    # shellcheck disable=SC2086
    on $own
    use_os_containerd
  done
  for shipped in 'ubuntu 22.04' 'rhel 9.3' 'rocky 10' 'rhel 8.9'; do
    # shellcheck disable=SC2086
    on $shipped
    run ! use_os_containerd
  done
}
