#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2030,SC2031,SC2034,SC2317
load setup

# A machine with one network, and those in the file `routes`.
machine() {
  touch routes
  PRIVATE_ADDRESS=10.1.2.3
  ip() {
    if [[ "$*" == *src* ]]; then
      echo "${own-10.1.0.0/16 dev eth0}"
    else
      lines 'default via 10.1.0.1 dev eth0' '10.1.0.0/16 dev eth0' 'blackhole 10.2.0.0/16' '192.168.7.9 dev wg0'
      echo
      cat routes
    fi
  }
  kubeadm_cluster_configuration() { printf '%s' "${cluster-}"; }
}

@test "the first network of a size that nothing has" {
  machine
  [ "$(curlew_find_subnet 10.32.0.0/16 20 '')" = 10.32.0.0/20 ]
  [ "$(curlew_find_subnet 10.0.0.0/8 20 '')" = 10.0.0.0/20 ]
  [ "$(curlew_find_subnet 10.0.0.0/8 20 10.0.0.0/16)" = 10.3.0.0/20 ]
  [ "$(curlew_find_subnet 192.168.7.0/24 28 '')" = 192.168.7.16/28 ]
  [ "$(curlew_find_subnet 10.32.0.0/16 20 10.32.0.0/20,10.32.17.5)" = 10.32.32.0/20 ]
  [ "$(curlew_find_subnet 0.0.0.0/0 2 10.0.0.0/8)" = 64.0.0.0/2 ]
  [ "$(curlew_find_subnet 255.255.255.255/32 32 '')" = 255.255.255.255/32 ]
}

@test "no network is free, or the question makes no sense" {
  machine
  for question in '10.1.0.0/16 20' '10.32.0.0/24 20' '10.32.0.0/33 20' '10.32.0.0/16 33' '10.32.0.0/16 x' 'none 20'; do
    # shellcheck disable=SC2086
    run curlew_find_subnet $question ''
    [ "$status" -eq 1 ]
    [ "$output" = '' ]
  done
}

@test "a pod network is found in 10.32.0.0/16, else in 10.0.0.0/8" {
  machine
  discover_pod_subnet
  [ "$POD_CIDR" = 10.32.0.0/20 ]
  echo '10.32.0.0/16 dev cni0' >routes
  POD_CIDR='' POD_CIDR_RANGE=22
  discover_pod_subnet
  [ "$POD_CIDR" = 10.0.0.0/22 ]
  echo '10.0.0.0/8 dev eth1' >>routes
  POD_CIDR=''
  run discover_pod_subnet
  [ "$status" -eq 1 ]
  [[ "$output" == *'Failed to find an available /22 subnet'* ]]
}

@test "an existing pod network stays" {
  machine
  EXISTING_POD_CIDR=10.40.0.0/20
  discover_pod_subnet
  [ "$POD_CIDR" = 10.40.0.0/20 ]
  discover_pod_subnet
  POD_CIDR=10.50.0.0/20
  run discover_pod_subnet
  [ "$status" -eq 1 ]
  [[ "$output" == *'cannot be changed to 10.50.0.0/20 because existing cidr is 10.40.0.0/20'* ]]
}

@test "a pod network that is too small, or taken, is told" {
  machine
  POD_CIDR=10.50.0.0/24 POD_CIDR_RANGE=20
  run discover_pod_subnet
  [ "$status" -eq 1 ]
  [[ "$output" == *'Pod cidr must be at least /20'* ]]
  POD_CIDR_RANGE=''
  discover_pod_subnet
  [ "$POD_CIDR" = 10.50.0.0/24 ]
  echo '10.50.0.0/24 dev eth1' >routes
  confirmY() { return 1; }
  run discover_pod_subnet
  [ "$status" -eq 1 ]
  [[ "$output" == *'overlaps with existing route'* ]]
  confirmY() { return 0; }
  discover_pod_subnet
  [ "$POD_CIDR" = 10.50.0.0/24 ]
}

@test "the address of a machine without a route of its own is left out" {
  machine
  PRIVATE_ADDRESS=10.32.9.9 own=default
  discover_pod_subnet
  [ "$POD_CIDR" = 10.0.0.0/20 ]
}

@test "a service network lies beside the pods'" {
  machine
  POD_CIDR=10.96.0.0/20
  discover_service_subnet
  [ "$SERVICE_CIDR" = 10.96.16.0/22 ]
  cluster=$'networking:\n  serviceSubnet: 10.99.0.0/22' SERVICE_CIDR=''
  discover_service_subnet
  [ "$SERVICE_CIDR" = 10.99.0.0/22 ]
  SERVICE_CIDR=10.98.0.0/22
  run discover_service_subnet
  [ "$status" -eq 1 ]
}

# A control plane on this node, as kubeadm starts it.
control_plane() {
  CURLEW_API_SERVER_MANIFEST=static/kube-apiserver.yaml
  mkdir -p static
  printf '    - --service-cluster-ip-range=10.96.0.0/12\n    - --tls-cert-file=x\n' >static/kube-apiserver.yaml
  printf '    - --allocate-node-cidrs=true\n    - --cluster-cidr=10.40.0.0/20\n    - --x=y\n' \
    >static/kube-controller-manager.yaml
  POD_CIDR='' SERVICE_CIDR='' EXISTING_POD_CIDR=''
  kubectl() { echo "$*" >>calls; }
}

@test "the networks of a cluster are those that its control plane was started with" {
  control_plane
  KUBECONFIG=admin.conf NO_PROXY_ADDRESSES=localhost
  curlew_cluster_networks
  [ "$POD_CIDR $EXISTING_POD_CIDR $SERVICE_CIDR" = '10.40.0.0/20 10.40.0.0/20 10.96.0.0/12' ]
  [ "$NO_PROXY_ADDRESSES" = localhost,10.40.0.0/20,10.96.0.0/12 ]
  [ ! -e calls ]
  curlew_cluster_networks
  [ "$NO_PROXY_ADDRESSES" = localhost,10.40.0.0/20,10.96.0.0/12 ]
  machine
  echo '10.40.0.0/24 dev cni0' >routes
  confirmY() { echo asked >>calls; }
  discover_pod_subnet
  [ "$POD_CIDR" = 10.40.0.0/20 ]
  [ ! -e calls ]
}

@test "what is set, or found by the network add-on, is not looked up" {
  control_plane
  POD_CIDR=10.50.0.0/20 SERVICE_CIDR=10.97.0.0/16
  curlew_cluster_networks
  [ "$POD_CIDR $SERVICE_CIDR $EXISTING_POD_CIDR" = '10.50.0.0/20 10.97.0.0/16 ' ]
  POD_CIDR='' EXISTING_POD_CIDR=10.32.0.0/12
  curlew_cluster_networks
  [ "$POD_CIDR" = 10.32.0.0/12 ]
}

@test "a machine without a control plane asks the cluster for kubeadm's configuration" {
  control_plane
  rm -r static
  curlew_cluster_networks
  [ "$POD_CIDR$SERVICE_CIDR" = '' ]
  kubectl() {
    echo "$*" >>calls
    lines 'networking:' '  dnsDomain: cluster.local' '  podSubnet: 10.41.0.0/16,fd00::/56' '  serviceSubnet: 10.98.0.0/16'
  }
  KUBECONFIG=admin.conf
  curlew_cluster_networks
  [ "$POD_CIDR $SERVICE_CIDR" = '10.41.0.0/16,fd00::/56 10.98.0.0/16' ]
  [[ "$(cat calls)" == *kubeadm-config*--request-timeout=5s ]]
  curlew_cluster_networks
  [ "$(wc -l <calls)" -eq 1 ]
  kubectl() { echo "$*" >>calls; return 1; }
  POD_CIDR='' SERVICE_CIDR='' EXISTING_POD_CIDR='' CLUSTER_NETWORKS_ASKED=''
  curlew_cluster_networks
  [ "$POD_CIDR$SERVICE_CIDR" = '' ]
  curlew_cluster_networks
  [ "$(wc -l <calls)" -eq 2 ]
}

@test "IPv6 has fixed networks" {
  IPV6_ONLY=1
  discover_pod_subnet
  discover_service_subnet
  [ "$POD_CIDR $SERVICE_CIDR" = 'fd00:c00b:1::/112 fd00:c00b:2::/112' ]
}

# A cluster whose client pod has the phases in the file `phases`, one at each question.
network_cluster() {
  KUBERNETES_VERSION=1 KURL_UTIL_IMAGE=replicated/kurl-util:v1
  kubectl() {
    echo "$*" >>calls
    case "$*" in
      'get nodes'*) echo 'a Ready' ;;
      'apply -f -') cat >applied ;;
      *phase*)
        head -n 1 phases
        if [ "$(wc -l <phases)" -gt 1 ]; then sed -i 1d phases; fi
        ;;
      *logs*) echo 'no answer' ;;
    esac
  }
}

@test "check_network lets two pods talk and removes them" {
  network_cluster
  printf '%s\n' Pending Running Running Succeeded >phases
  run check_network
  [ "$status" -eq 0 ]
  grep -q 'image: "replicated/kurl-util:v1"' applied
  [[ "$(tail -n 1 calls)" == *'delete service kurlnet'* ]]
}

@test "check_network shows the log when it takes long, and goes on" {
  network_cluster
  printf 'Running\n%.0s' {1..70} >phases
  echo Succeeded >>phases
  run check_network
  [ "$status" -eq 0 ]
  [[ "$output" == *'problem with cluster networking'*'no answer'* ]]
}

@test "check_network bails when the pod fails, does not start, or no node is ready" {
  network_cluster
  echo Failed >phases
  run check_network
  [ "$status" -eq 1 ]
  [[ "$output" == *'failed to validate'* ]]
  echo Pending >phases
  run check_network
  [ "$status" -eq 1 ]
  [[ "$output" == *'failed to start'* ]]
  kubectl() { echo 'a NotReady'; }
  run check_network
  [ "$status" -eq 1 ]
  [[ "$output" == *'failed to report Ready'* ]]
}

@test "check_network without kURL's helper image says what lacks" {
  run check_network
  [ "$status" -eq 1 ]
  [[ "$output" == *'KURL_UTIL_IMAGE is empty, and pods of that image check cluster networking: publish packages/curlew-utils of curlew with the add-ons'* ]]
}
