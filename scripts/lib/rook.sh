# shellcheck shell=bash
# Rook and its Ceph cluster.

export PV_BASE_PATH=/opt/replicated/rook

# usage: curlew_kurl WORD…
# Runs kURL's own program from its package kurl-bin-utils.
curlew_kurl() {
  local program="${BIN_KURL:-${DIR:-.}/bin/kurl}"
  if [[ ! -x "$program" ]]; then
    logFail "kurl ${*//%/%%}: not supported; put kURL's own program into bin of the install folder"
    return 1
  fi
  "$program" "$@"
}

# Prints the version of Ceph that the manager runs, without its build number.
current_ceph_version() {
  local version
  version="$(kubectl -n rook-ceph get deployment rook-ceph-mgr-a -o jsonpath='{.metadata.labels.ceph-version}' 2>/dev/null || true)"
  if [[ -n "$version" ]]; then printf '%s\n' "${version%%-*}"; fi
}

# usage: curlew_single_label LABEL IGNORED
# Status 1, with the values, if the deployments of the Ceph cluster have several values of a label.
curlew_single_label() {
  local -a values
  mapfile -t values < <(kubectl -n rook-ceph get deployment -l rook_cluster=rook-ceph \
    -o jsonpath="{range .items[*]}{.metadata.labels.$1}{\"\\n\"}{end}" | awk -v ignored="$2" '$1 != "" && $1 != ignored' | sort -u)
  if ((${#values[@]} < 2)); then return 0; fi
  logFail "Multiple $1s detected: ${values[*]//%/%%}"
  return 1
}

curlew_ceph_is_healthy() {
  log 'Awaiting up to 5 minutes to check Rook Ceph Pod(s) are Running'
  if ! spinner_until 300 check_for_running_pods rook-ceph; then
    logFail "Rook Ceph has unhealthy Pod(s):${UNHEALTHY_PODS-}"
    return 1
  fi
  log 'Awaiting up to 10 minutes to check that Rook Ceph is healthy'
  if ! curlew_kurl rook wait-for-health 600; then
    kubectl -n rook-ceph exec deploy/rook-ceph-tools -- ceph status || true
    logFail 'Rook Ceph is unhealthy'
    return 1
  fi
}

# Status 0 if pods run, Ceph is healthy, and no deployment has another version. Some releases of Rook write the
# version 0.0.0-0 of Ceph by mistake.
rook_is_healthy_to_upgrade() {
  curlew_ceph_is_healthy && curlew_single_label rook-version '' && curlew_single_label ceph-version 0.0.0-0
}

rook_is_healthy_to_migrate_from() {
  curlew_ceph_is_healthy
}

# EKCO also manages Rook: it is stopped during changes. Status 1 if its pods are not gone within 120 s.
rook_disable_ekco_operator() {
  if ! kubernetes_resource_exists kurl deployment ekc-operator; then return 0; fi
  log 'Scaling down EKCO deployment to 0 replicas'
  kubernetes_scale_down kurl deployment ekc-operator
  log 'Waiting for ekco pods to be removed'
  if ! spinner_until 120 ekco_pods_gone; then
    logFail 'Unable to scale down ekco operator'
    return 1
  fi
}

rook_enable_ekco_operator() {
  kubernetes_scale kurl deployment ekc-operator 1
}
