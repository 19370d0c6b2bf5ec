#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2030,SC2031,SC2034,SC2317
load setup

quiet_machine() {
  CURLEW_API_SERVER_MANIFEST=none
  unset KUBECONFIG DIR K8S_DISTRO API_SERVICE_ADDRESS
  PRIVATE_ADDRESS=10.0.0.7
}

@test "what is known of the node" {
  quiet_machine
  KUBERNETES_VERSION=1.27.3
  curlew_discover
  [ "$PRIVATE_ADDRESS $DIR $K8S_DISTRO" = '10.0.0.7 . kubeadm' ]
  [[ "$(uname -r)" =~ ^"$KERNEL_MAJOR.$KERNEL_MINOR"[^0-9] ]]
  [ "$KUBERNETES_TARGET_VERSION_MINOR" = 27 ]
  [ "$BIN_KURL $BIN_DOCKER_CONFIG" = './bin/kurl ./bin/docker-config' ]
  [ "$CURRENT_KUBERNETES_VERSION$KURL_UTIL_IMAGE${NO_PROXY_ADDRESSES-}" = '' ]
}

@test "the address of the API server: of the load balancer, of the node that is joined, or this one's" {
  quiet_machine
  address() { (unset LOAD_BALANCER_ADDRESS KUBERNETES_MASTER_ADDR MASTER API_SERVICE_ADDRESS
    local "$@"
    curlew_discover
    echo "$API_SERVICE_ADDRESS"); }
  [ "$(address MASTER=1)" = 10.0.0.7:6443 ]
  [ "$(address MASTER=1 PRIVATE_ADDRESS=fd00::7)" = '[fd00::7]:6443' ]
  [ "$(address MASTER=1 LOAD_BALANCER_ADDRESS=lb.example)" = lb.example:6443 ]
  [ "$(address MASTER=1 LOAD_BALANCER_ADDRESS=lb.example:8443)" = lb.example:8443 ]
  [ "$(address MASTER=1 LOAD_BALANCER_ADDRESS=lb.example EKCO_ENABLE_INTERNAL_LOAD_BALANCER=1)" = localhost:6444 ]
  [ "$(address MASTER=1 KUBERNETES_MASTER_ADDR=10.0.0.9)" = 10.0.0.7:6443 ]
  [ "$(address KUBERNETES_MASTER_ADDR=10.0.0.9)" = 10.0.0.9:6443 ]
  [ "$(address KUBERNETES_MASTER_ADDR=10.0.0.9:7443 LOAD_BALANCER_ADDRESS=lb.example)" = 10.0.0.9:7443 ]
  [ "$(address 'KUBERNETES_MASTER_ADDR=[fd00::9]:7443')" = '[fd00::9]:7443' ]
  [ "$(address API_SERVICE_ADDRESS=set:1)" = set:1 ]
  [ "$(address MASTER=1 PRIVATE_ADDRESS=)" = '' ]
}

@test "the kubelet's flags are where kubeadm puts them, unless another place is named" {
  quiet_machine
  curlew_discover
  [ "$KUBELET_FLAGS_FILE" = /var/lib/kubelet/kubeadm-flags.env ]
  KUBELET_FLAGS_FILE=other
  curlew_discover
  [ "$KUBELET_FLAGS_FILE" = other ]
}

@test "what is set stays" {
  quiet_machine
  PRIVATE_ADDRESS=10.9.9.9 BIN_KURL=/usr/bin/kurl K8S_DISTRO=other
  curlew_discover
  [ "$PRIVATE_ADDRESS $BIN_KURL $K8S_DISTRO" = '10.9.9.9 /usr/bin/kurl other' ]
}

@test "what there is already: Kubernetes, kURL's helper image, a proxy" {
  quiet_machine
  CURLEW_API_SERVER_MANIFEST=kube-apiserver.yaml
  printf 'spec:\n  containers:\n  - image: registry.k8s.io/kube-apiserver:v1.26.15\n' >kube-apiserver.yaml
  mkdir shared
  echo '[{"Config":"a.json","RepoTags":["replicated/kurl-util:v2024.1"],"Layers":[]}]' >manifest.json
  tar cf shared/kurl-util.tar manifest.json
  PROXY_ADDRESS=http://p:1 POD_CIDR=10.32.0.0/20 LOAD_BALANCER_ADDRESS=lb.example:6443
  curlew_discover
  [ "$CURRENT_KUBERNETES_VERSION" = 1.26.15 ]
  [ "$KUBERNETES_UPGRADE" = '' ]
  [ "$KURL_UTIL_IMAGE" = replicated/kurl-util:v2024.1 ]
  [ "$NO_PROXY_ADDRESSES" = .default,.local,.svc,10.0.0.7,10.32.0.0/20,127.0.0.1,kubernetes,lb.example,localhost ]
}

@test "a newer Kubernetes than the one that runs is an upgrade" {
  quiet_machine
  CURLEW_API_SERVER_MANIFEST=kube-apiserver.yaml
  printf 'spec:\n  containers:\n  - image: registry.k8s.io/kube-apiserver:v1.26.15\n' >kube-apiserver.yaml
  major=kept
  for pair in '1.26.15 ' '1.26.9 ' '1.26.16 1' '1.27.0 1' '2.0.0 1' '1.9.99 ' 'latest ' ' '; do
    unset KUBERNETES_UPGRADE CURRENT_KUBERNETES_VERSION
    KUBERNETES_VERSION="${pair% *}"
    curlew_discover
    [ "$KUBERNETES_UPGRADE" = "${pair#* }" ]
  done
  [ "$major" = kept ]
}

@test "a machine without a route or without ip is no failure" {
  quiet_machine
  ip() { return 2; }
  run curlew_discover
  [ "$status" -eq 0 ]
}

@test "where kubeadm keeps things" {
  K8S_DISTRO=kubeadm
  [ "$("${K8S_DISTRO}_get_server_ca") $("${K8S_DISTRO}_get_server_ca_key")" = \
    '/etc/kubernetes/pki/ca.crt /etc/kubernetes/pki/ca.key' ]
  [ "$(kubeadm_get_kubeconfig)" = /etc/kubernetes/admin.conf ]
  CONTAINERD_ADDRESS=/x.sock
  [ "$(kubeadm_get_containerd_sock)" = /x.sock ]
  for pair in '1.21.9 v1beta2' '1.27.3 v1beta3' '1.37.0 v1beta4'; do
    [ "$(KUBERNETES_VERSION="${pair% *}" kubeadm_conf_api_version)" = "${pair#* }" ]
  done
}

@test "containerd trusts the registry in the cluster" {
  CURLEW_CONTAINERD_CERTS=certs.d
  kubeadm_registry_containerd_configure 10.96.0.9
  grep -qx '  ca = "/etc/kubernetes/pki/ca.crt"' certs.d/10.96.0.9/hosts.toml
}

@test "programs of kURL's that this tool stands in for, where there are none" {
  quiet_machine
  curlew_discover
  [ ! -e bin ]
  mkdir bin
  echo own >bin/kurl
  export BIN_CURLEW="printf '<%s>' 'a b'"
  curlew_discover
  [ "$(cat bin/kurl)" = own ]
  [ "$(./bin/yamlutil -a -v 'x  $y "z')" = '<a b><kurl><yamlutil><-a><-v><x  $y "z>' ]
  [ "$(ls bin)" = "$(lines bashmerge bcrypt docker-config htpasswd installermerge kurl network pvmigrate subnet \
    vendorflights yamltobash yamlutil)" ]
  [ "$(./bin/subnet --debug)" = '<a b><kurl><subnet><--debug>' ]
  [ ! -e bin/.new ]
}

@test "on a disk that takes nothing there is no program rather than an empty one" {
  quiet_machine
  export BIN_CURLEW=true DIR=.
  (
    trap '' XFSZ
    ulimit -f 0
    curlew_stand_in 2>/dev/null
  )
  [ "$(ls bin)" = '' ]
  curlew_stand_in
  [ -s bin/yamlutil ]
}
