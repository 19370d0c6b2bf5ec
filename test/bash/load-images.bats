#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2034,SC2317
load setup

# A runtime that keeps what it is given, and the names it has in `present`.
runtime() {
  : >present
  ctr() {
    shift 4
    case "$*" in
      'images import -') cat >>imported || return ;;
      'images list --quiet') cat present ;;
      'images tag'*) echo "$3 $4" >>tagged ;;
    esac
    ! grep -q broken imported 2>/dev/null
  }
  docker() {
    case "$1" in
      load) cat >>imported ;;
      images) cat present ;;
      tag) echo "$2 $3" >>tagged ;;
    esac
  }
}

@test "load_images loads every archive below a folder, compressed or not" {
  runtime
  mkdir -p 'images/with blank'
  echo one | gzip >images/one.tar.gz
  echo two >'images/with blank/two.tar'
  load_images images
  [ "$(sort imported)" = "$(lines one two)" ]
  rm imported
  DOCKER_VERSION=20.10.17 load_images images
  [ "$(sort imported)" = "$(lines one two)" ]
}

@test "load_images loads an image layout as a whole" {
  runtime
  mkdir -p images/blobs/sha256
  echo '{}' >images/oci-layout
  echo blob >images/blobs/sha256/a
  load_images images
  tar -tf imported | grep -qx ./blobs/sha256/a
}

@test "load_images goes on after a failure and ends with status 123" {
  ctr() {
    echo x >>tries
    return 1
  }
  mkdir images
  echo one >images/one.tar
  echo two >images/two.tar
  run load_images images
  [ "$status" -eq 123 ]
  [ "$(wc -l <tries)" -eq 2 ]
}

@test "load_images of a missing folder is a message, and no failure" {
  runtime
  run load_images none
  [ "$status" -eq 0 ]
  [[ "$output" == *none* ]]
}

@test "retag_gcr_images makes the aliases that lack" {
  runtime
  lines k8s.gcr.io/pause:3.5 registry.k8s.io/coredns/coredns:v1.9.3 k8s.gcr.io/coredns/coredns:v1.8.0 \
    registry.k8s.io/pause:3.5 docker.io/library/a:1 >present
  retag_gcr_images
  [ "$(sort tagged)" = "$(lines 'k8s.gcr.io/coredns/coredns:v1.8.0 registry.k8s.io/coredns/coredns:v1.8.0' \
    'k8s.gcr.io/coredns/coredns:v1.8.0 registry.k8s.io/coredns:v1.8.0' \
    'registry.k8s.io/coredns/coredns:v1.9.3 k8s.gcr.io/coredns/coredns:v1.9.3' \
    'registry.k8s.io/coredns/coredns:v1.9.3 registry.k8s.io/coredns:v1.9.3')" ]
  rm tagged
  echo k8s.gcr.io/pause:3.6 >present
  DOCKER_VERSION=20 retag_gcr_images
  [ "$(cat tagged)" = 'k8s.gcr.io/pause:3.6 registry.k8s.io/pause:3.6' ]
}

@test "retag_gcr_images without a runtime is no failure" {
  ctr() { return 1; }
  retag_gcr_images
}

@test "kubernetes_load_images loads a version once, with conformance for Sonobuoy" {
  DIR=.
  load_images() { echo "$1" >>loaded; }
  kubernetes_load_images 1.27.3
  kubernetes_load_images 1.27.3
  [ "$(cat loaded)" = ./packages/kubernetes/1.27.3/images ]
  mkdir -p packages/kubernetes-conformance/1.28.0/images
  SONOBUOY_VERSION=0.57 kubernetes_load_images 1.28.0
  [ "$(tail -n 1 loaded)" = ./packages/kubernetes-conformance/1.28.0/images ]
}

@test "get_shared loads kURL's helper image where it is" {
  runtime
  get_shared
  [ ! -e imported ]
  mkdir shared
  echo util >shared/kurl-util.tar
  get_shared
  [ "$(cat imported)" = util ]
}
