#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2030,SC2031,SC2034,SC2317
load setup

@test "a deployment or statefulset is updated when all its numbers are the same" {
  kubectl() { printf '%s,' "$numbers"; }
  for function in deployment_fully_updated statefulset_fully_updated; do
    numbers=3,3,3,3
    "$function" ns name
    for numbers in 3,2,3,3 3,3,2,3 3,3,3,2 3,,,3; do
      run ! "$function" ns name
    done
  done
}

@test "a missing deployment counts as updated" {
  kubectl() { return 1; }
  deployment_fully_updated ns name
}

@test "a daemonset has five numbers" {
  kubectl() { printf '%s,' "$numbers"; }
  numbers=2,2,2,2,2
  daemonset_fully_updated ns name
  for numbers in 2,1,2,2,2 2,2,1,2,2 2,2,2,1,2 2,2,2,2,1; do
    run ! daemonset_fully_updated ns name
  done
}

@test "check_for_running_pods names what is not healthy" {
  kubectl() { printf '%s\n' "${pods[@]}"; }
  pods=('a|Running||true true ' 'b|Succeeded||false ' 'c|Failed|Evicted|')
  check_for_running_pods ns
  pods+=('d|Running||true false ' 'e|Pending||' 'f|Failed|Error|false ')
  run ! check_for_running_pods ns
  check_for_running_pods ns || [ "$UNHEALTHY_PODS" = ' d e f' ]
  kubectl() { :; }
  check_for_running_pods ns
}

@test "pods are gone when the cluster says so" {
  kubectl() { echo "$*" >call; }
  pods_gone_by_selector ns app=a
  [ "$(cat call)" = '-n ns get pods --no-headers -l app=a' ]
  ekco_pods_gone
  prometheus_pods_gone
  kubectl() { echo 'a 1/1 Running'; }
  run ! pods_gone_by_selector ns app=a
  run ! ekco_pods_gone
  run ! prometheus_pods_gone
  kubectl() { return 1; }
  run ! pods_gone_by_selector ns app=a
}

@test "prometheus has two labels" {
  kubectl() { if [[ "$*" == *app.kubernetes.io/name=prometheus* ]]; then echo pod; fi; }
  run ! prometheus_pods_gone
}

@test "phases of a pod; its name comes before the namespace" {
  kubectl() {
    echo "$*" >call
    printf '%s' "$phase"
  }
  for phase in Running Failed Succeeded; do kubernetes_pod_started pod ns; done
  [[ "$(cat call)" == '-n ns get pod pod '* ]]
  for phase in Failed Succeeded; do kubernetes_pod_completed pod ns; done
  phase=Pending
  run ! kubernetes_pod_started pod ns
  phase=Running
  run ! kubernetes_pod_completed pod ns
  phase=Succeeded
  kubernetes_pod_succeeded pod ns
}

@test "spinnerPodRunning waits for a pod by the beginning of its name" {
  : >tries
  kubectl() {
    echo x >>tries
    if [ "$(wc -l <tries)" -lt 4 ]; then
      echo 'web-1 0/1 Pending'
    else
      lines 'xweb 1/1 Running' 'web-1 1/1 Running'
    fi
  }
  run spinnerPodRunning ns web
  [ "$status" -eq 0 ]
  [ "$(wc -l <tries)" -eq 4 ]
}
