#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2034,SC2317
load setup

@test "kubernetes_resource_exists is silent, and false when the cluster does not answer" {
  kubectl() {
    echo "$*" >call
    echo noise
    echo noise >&2
  }
  run kubernetes_resource_exists kurl configmap a
  [ "$status" -eq 0 ]
  [ "$output" = '' ]
  [ "$(cat call)" = '-n kurl get configmap a' ]
  kubectl() { return 1; }
  run kubernetes_resource_exists kurl configmap a
  [ "$status" -eq 1 ]
}

@test "kubernetes_secret_value is decoded, and empty on failure" {
  set -o pipefail
  kubectl() {
    echo "$*" >call
    printf 'c2VjcmV0'
  }
  [ "$(kubernetes_secret_value kurl s 'tls\.crt')" = secret ]
  [ "$(cat call)" = '-n kurl get secret s -o jsonpath={ .data.tls\.crt }' ]
  kubectl() { return 1; }
  run kubernetes_secret_value kurl s key
  [ "$status" -eq 0 ]
  [ "$output" = '' ]
}

@test "kubernetes_is_master by variable or by the API server's manifest" {
  CURLEW_API_SERVER_MANIFEST=kube-apiserver.yaml
  run ! kubernetes_is_master
  MASTER=1 kubernetes_is_master
  touch kube-apiserver.yaml
  kubernetes_is_master
}

@test "kubernetes_scale_down scales what exists, and only that" {
  kubectl() { echo "$*" >>calls; }
  kubernetes_scale_down kurl deployment ekc-operator
  [ "$(tail -n 1 calls)" = '-n kurl scale deployment ekc-operator --replicas=0' ]
  kubectl() { [ "$3" != get ]; }
  rm calls
  kubernetes_scale_down kurl deployment ekc-operator
  [ ! -e calls ]
}

@test "kubernetes_service_healthy wants endpoints" {
  kubectl() { echo 'minio   10.0.0.1:9000   1d'; }
  kubernetes_service_healthy minio minio
  kubectl() { echo 'minio   <none>   1d'; }
  run ! kubernetes_service_healthy minio minio
  kubectl() { return 1; }
  run ! kubernetes_service_healthy minio minio
}

@test "kubernetes_version_minor" {
  [ "$(kubernetes_version_minor v1.27.3)" = 27 ]
  [ "$(kubernetes_version_minor 1.20.0)" = 20 ]
}

@test "parse_kubernetes_target_version" {
  KUBERNETES_VERSION=1.27.3 parse_kubernetes_target_version
  [ "$KUBERNETES_TARGET_VERSION_MAJOR.$KUBERNETES_TARGET_VERSION_MINOR.$KUBERNETES_TARGET_VERSION_PATCH" = 1.27.3 ]
}

@test "kubernetes_get_control_plane_label" {
  kubectl() { echo 'a Ready control-plane,master 1d v1.23.1 node-role.kubernetes.io/master='; }
  [ "$(kubernetes_get_control_plane_label)" = node-role.kubernetes.io/master ]
  kubectl() { echo 'a Ready control-plane 1d v1.27.1 node-role.kubernetes.io/control-plane='; }
  [ "$(kubernetes_get_control_plane_label)" = node-role.kubernetes.io/control-plane ]
}

@test "a node is ready unless it says otherwise" {
  kubectl() { lines 'a NotReady' 'b Ready,SchedulingDisabled'; }
  kubernetes_any_node_ready
  kubectl() { echo 'a NotReady'; }
  run ! kubernetes_any_node_ready
  kubectl() { return 1; }
  run ! kubernetes_any_node_ready
}

@test "node_is_using_docker by the annotation of this node" {
  kubectl() { echo /var/run/dockershim.sock; }
  node_is_using_docker
  kubectl() { echo unix:///run/containerd/containerd.sock; }
  run ! node_is_using_docker
}

@test "kubernetes_kustomize_config_migrate from 1.27 on" {
  mkdir k
  kustomize() { echo "$PWD $*" >../call; }
  KUBERNETES_TARGET_VERSION_MINOR=26 kubernetes_kustomize_config_migrate k
  [ ! -e call ]
  KUBERNETES_TARGET_VERSION_MINOR=27 kubernetes_kustomize_config_migrate k
  [ "$(cat call)" = "$PWD/k edit fix" ]
}

@test "remotes are what the cluster has besides this node" {
  kubectl() { echo 'other Ready'; }
  kubernetes_has_remotes
  kubectl() { :; }
  run ! kubernetes_has_remotes
  kubectl() { return 1; }
  run ! kubernetes_has_remotes
}
