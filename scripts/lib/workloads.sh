# shellcheck shell=bash
# The state of pods and their controllers.

# usage: curlew_all_equal NAMESPACE KIND NAME FIELD…
# True if all these status fields are equal, also if the object or all of the fields are missing.
curlew_all_equal() {
  local namespace="$1" kind="$2" name="$3" path='' field index text
  local -a values
  shift 3
  for field in "$@"; do path+="{.status.$field},"; done
  text="$(kubectl -n "$namespace" get "$kind" "$name" -o jsonpath="$path" || true)"
  IFS=, read -r -a values <<<"$text"
  for ((index = 1; index < $#; index++)); do
    if [[ "${values[index]-}" != "${values[0]-}" ]]; then return 1; fi
  done
}

# usage: deployment_fully_updated NAMESPACE NAME
deployment_fully_updated() {
  curlew_all_equal "$1" deployment "$2" replicas availableReplicas readyReplicas updatedReplicas
}

# usage: statefulset_fully_updated NAMESPACE NAME
statefulset_fully_updated() {
  curlew_all_equal "$1" statefulset "$2" replicas availableReplicas readyReplicas updatedReplicas
}

# usage: daemonset_fully_updated NAMESPACE NAME
daemonset_fully_updated() {
  curlew_all_equal "$1" daemonset "$2" \
    desiredNumberScheduled numberAvailable currentNumberScheduled numberReady updatedNumberScheduled
}

# usage: check_for_running_pods NAMESPACE
# Status 1, and their names in UNHEALTHY_PODS, if pods neither succeeded nor run with all containers ready. Evicted pods
# do not count; no pods is fine.
check_for_running_pods() {
  local name phase reason ready unhealthy=''
  while IFS='|' read -r name phase reason ready; do
    if [[ -z "$name" || "$phase" == Succeeded || ("$phase" == Failed && "$reason" == Evicted) ]]; then continue; fi
    if [[ "$phase" != Running || " $ready" == *' false'* || -z "$ready" ]]; then unhealthy+=" $name"; fi
  done < <(kubectl get pods -n "$1" -o jsonpath='{range .items[*]}{.metadata.name}|{.status.phase}|{.status.reason}|{range .status.containerStatuses[*]}{.ready} {end}{"\n"}{end}')
  if [[ -z "$unhealthy" ]]; then return 0; fi
  export UNHEALTHY_PODS="$unhealthy"
  return 1
}

# usage: pods_gone_by_selector NAMESPACE SELECTOR
# Also false if unknown.
pods_gone_by_selector() {
  local pods
  pods="$(kubectl -n "$1" get pods --no-headers -l "$2" 2>/dev/null)" && [[ -z "$pods" ]]
}

# usage: curlew_pod_phase NAME NAMESPACE
curlew_pod_phase() {
  kubectl -n "$2" get pod "$1" -o jsonpath='{ .status.phase }'
}

# usage: kubernetes_pod_started NAME NAMESPACE
kubernetes_pod_started() {
  [[ "$(curlew_pod_phase "$1" "$2")" =~ ^(Running|Failed|Succeeded)$ ]]
}

# usage: kubernetes_pod_completed NAME NAMESPACE
kubernetes_pod_completed() {
  [[ "$(curlew_pod_phase "$1" "$2")" =~ ^(Failed|Succeeded)$ ]]
}

# usage: kubernetes_pod_succeeded NAME NAMESPACE
kubernetes_pod_succeeded() {
  [[ "$(curlew_pod_phase "$1" "$2")" == Succeeded ]]
}

curlew_pod_is_running() {
  kubectl -n "$1" get pods --no-headers 2>/dev/null |
    awk -v prefix="$2" 'index($1, prefix) == 1 && $3 == "Running" { found = 1 } END { exit !found }'
}

# usage: spinnerPodRunning NAMESPACE PREFIX
# Waits without a limit for a running pod with this name prefix.
spinnerPodRunning() {
  spinner_until -1 curlew_pod_is_running "$1" "$2"
}

ekco_pods_gone() {
  pods_gone_by_selector kurl app=ekc-operator
}

# Newer versions have other labels.
prometheus_pods_gone() {
  local pods
  pods="$(kubectl -n monitoring get pods --no-headers -l app=prometheus 2>/dev/null || true)"
  [[ -z "$pods" ]] || return 1
  pods="$(kubectl -n monitoring get pods --no-headers -l app.kubernetes.io/name=prometheus 2>/dev/null || true)"
  [[ -z "$pods" ]]
}
