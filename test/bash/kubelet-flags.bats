#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2034,SC2317
load setup

@test "case 31: only the kubelet's sandbox image is replaced" {
  KUBELET_FLAGS_FILE=flags
  systemctl() { echo "$*" >>calls; }
  kubernetes_containerd_pause_image() { echo registry.k8s.io/pause:3.6; }
  for rest in ' --node-labels=kurl.sh/cluster=true,"' '"'; do
    before='KUBELET_KUBEADM_ARGS="--container-runtime=remote --node-ip=10.128.0.79 --pod-infra-container-image='
    echo "${before}k8s.gcr.io/pause:3.5$rest" >flags
    kubernetes_configure_pause_image_upgrade
    [ "$(cat flags)" = "${before}registry.k8s.io/pause:3.6$rest" ]
  done
  [ "$(tail -n 2 calls)" = "$(lines daemon-reload 'restart kubelet')" ]
  rm calls
  kubernetes_configure_pause_image_upgrade
  [ ! -e calls ]
  echo 'KUBELET_KUBEADM_ARGS=""' >flags
  kubernetes_configure_pause_image_upgrade
  [ ! -e calls ]
}

@test "containerd's sandbox image, of version 1 and 2" {
  CURLEW_CONTAINERD_CONFIG=config.toml CONTAINERD_VERSION=1
  [ "$(kubernetes_containerd_pause_image)" = '' ]
  printf '[plugins."io.containerd.grpc.v1.cri"]\n    sandbox_image = "registry.k8s.io/pause:3.6"\n' >config.toml
  [ "$(kubernetes_containerd_pause_image)" = registry.k8s.io/pause:3.6 ]
  printf "    sandbox = 'registry.k8s.io/pause:3.10'\n" >config.toml
  [ "$(kubernetes_containerd_pause_image)" = registry.k8s.io/pause:3.10 ]
}

@test "get_local_node_name is the host name in lower case, or what replaces it" {
  KUBELET_FLAGS_FILE=flags HOSTNAME=Node-A
  [ "$(get_local_node_name)" = node-a ]
  KURL_HOSTNAME_OVERRIDE=other
  [ "$(get_local_node_name)" = other ]
  echo 'KUBELET_KUBEADM_ARGS="--hostname-override=from-flags --v=2"' >flags
  [ "$(get_local_node_name)" = from-flags ]
}
