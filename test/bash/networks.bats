#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2030,SC2031,SC2034,SC2317
load setup

# The program that finds free networks, with the ranges that are full in `full`.
subnet_program() {
  cat >subnet <<'SH'
#!/bin/sh
echo "$*" >>calls
grep -qxF -- "$2" full && exit 1
echo "${2%/*}/$4"
SH
  chmod +x subnet
  : >full
  BIN_SUBNET="$PWD/subnet" PRIVATE_ADDRESS=10.1.2.3
  ip() { echo '10.1.0.0/16 dev eth0'; }
  kubeadm_cluster_configuration() { printf '%s' "${cluster-}"; }
}

@test "a pod network is found in 10.32.0.0/16, else in 10.0.0.0/8" {
  subnet_program
  discover_pod_subnet
  [ "$POD_CIDR" = 10.32.0.0/20 ]
  [ "$(cat calls)" = '--subnet-alloc-range 10.32.0.0/16 --cidr-range 20' ]
  echo 10.32.0.0/16 >full
  POD_CIDR='' POD_CIDR_RANGE=22
  discover_pod_subnet
  [ "$POD_CIDR" = 10.0.0.0/22 ]
  echo 10.0.0.0/8 >>full
  POD_CIDR=''
  run discover_pod_subnet
  [ "$status" -eq 1 ]
  [[ "$output" == *'Failed to find an available /22 subnet'* ]]
}

@test "an existing pod network stays" {
  subnet_program
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
  subnet_program
  POD_CIDR=10.50.0.0/24 POD_CIDR_RANGE=20
  run discover_pod_subnet
  [ "$status" -eq 1 ]
  [[ "$output" == *'Pod cidr must be at least /20'* ]]
  POD_CIDR_RANGE=''
  echo 10.50.0.0/24 >full
  confirmY() { return 1; }
  run discover_pod_subnet
  [ "$status" -eq 1 ]
  confirmY() { return 0; }
  discover_pod_subnet
  [ "$POD_CIDR" = 10.50.0.0/24 ]
}

@test "the address of a machine without a route of its own is left out" {
  subnet_program
  ip() { echo default; }
  discover_pod_subnet
  [ "$(cat calls)" = '--subnet-alloc-range 10.32.0.0/16 --cidr-range 20 --exclude-subnet=10.1.2.3/16' ]
}

@test "a service network lies beside the pods'" {
  subnet_program
  POD_CIDR=10.32.0.0/20
  discover_service_subnet
  [ "$SERVICE_CIDR" = 10.96.0.0/22 ]
  [ "$(cat calls)" = '--subnet-alloc-range 10.96.0.0/16 --cidr-range 22 --exclude-subnet=10.32.0.0/20' ]
  cluster=$'networking:\n  serviceSubnet: 10.99.0.0/22' SERVICE_CIDR=''
  discover_service_subnet
  [ "$SERVICE_CIDR" = 10.99.0.0/22 ]
  SERVICE_CIDR=10.98.0.0/22
  run discover_service_subnet
  [ "$status" -eq 1 ]
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
  [[ "$output" == *'not supported, add package common'* ]]
}
