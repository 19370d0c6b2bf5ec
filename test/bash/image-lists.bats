#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2034,SC2317
load setup

@test "case 5: images of a Manifest, in its order" {
  lines 'image kube-apiserver registry.k8s.io/kube-apiserver:v1.26.3' \
    'image kube-controller-manager registry.k8s.io/kube-controller-manager:v1.26.3' \
    'image kube-scheduler registry.k8s.io/kube-scheduler:v1.26.3' 'image kube-proxy registry.k8s.io/kube-proxy:v1.26.3' \
    'image pause registry.k8s.io/pause:3.9' '' 'image etcd registry.k8s.io/etcd:3.5.6-0' \
    'image coredns registry.k8s.io/coredns/coredns:v1.9.3' 'asset kubeadm https://h/kubeadm' >Manifest
  [ "$(common_list_images_in_manifest_file Manifest)" = "registry.k8s.io/kube-apiserver:v1.26.3 \
registry.k8s.io/kube-controller-manager:v1.26.3 registry.k8s.io/kube-scheduler:v1.26.3 \
registry.k8s.io/kube-proxy:v1.26.3 registry.k8s.io/pause:3.9 registry.k8s.io/etcd:3.5.6-0 \
registry.k8s.io/coredns/coredns:v1.9.3" ]
}

manifests() {
  mkdir -p packages/kubernetes/1.27.3 addons/{cert-manager,unused}/1.0 addons/gone
  echo 'image pause registry.k8s.io/pause:3.9' >packages/kubernetes/1.27.3/Manifest
  lines 'image c quay.io/c:1' 'image bcrypt docker.io/epicsoft/bcrypt:latest no_remote_load' 'image d d:2' \
    >addons/cert-manager/1.0/Manifest
  echo 'image u u:1' >addons/unused/1.0/Manifest
  KUBERNETES_VERSION=1.27.3 CERT_MANAGER_VERSION=1.0 GONE_VERSION=2 KURL_UTIL_IMAGE=replicated/kurl-util:v1
}

@test "case 2: what other nodes need not have is left out" {
  manifests
  run list_all_required_images
  [ "$output" = "$(lines replicated/kurl-util:v1 registry.k8s.io/pause:3.9 quay.io/c:1 d:2)" ]
}

@test "kubernetes_node_has_all_images compares names written out" {
  manifests
  kubectl() { lines docker.io/replicated/kurl-util:v1 registry.k8s.io/pause:3.9 quay.io/c:1 docker.io/library/d:2; }
  kubernetes_node_has_all_images node-1
  kubernetes_node_has_image node-1 d:2
  kubectl() { lines docker.io/replicated/kurl-util:v1 registry.k8s.io/pause:3.9; }
  run kubernetes_node_has_all_images node-1
  [ "$status" -eq 1 ]
  [[ "$output" == *'Node node-1 missing image(s) quay.io/c:1 d:2'* ]]
}
