# shellcheck shell=bash
# Machines of a file that are broken, in each of the ways that status finds, and repaired over SSH. Sourced by scripts/grid.

# shellcheck source=test/grid/operator.bash
source test/grid/operator.bash
NODES=(one=control-plane two=worker)

# usage: breaks NODE TEXT WORD…; status names it at once, whatever its Node says yet
breaks() {
  on "$1" 60 sh -c "${*:3}" && status_names "$1" "$2"
}

# usage: breaks_for_all NODE TEXT WORD…; its Node is not ready either
breaks_for_all() {
  breaks "$@" && grid_until 120 node_is_broken "$1"
}

# usage: node_is_broken NODE
node_is_broken() {
  [[ "$(kubectl_on one get node "$1" -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}')" =~ ^(Unknown|False)$ ]]
}

# usage: status_names NODE TEXT
status_names() {
  local text status=0
  text="$(operator cluster status "$OPERATOR/grid.yaml")" || status=$?
  printf '%s\n' "$text"
  ((status == 2)) && [[ "$text" == *"$1"*"$2"* ]]
}

# The only control plane: its API server goes with it.
loses_etcd() {
  on one 20 rm /etc/kubernetes/manifests/etcd.yaml && grid_until 60 on one 20 sh -c '! crictl ps | grep -q " etcd "'
}

# A support bundle of the machine itself, and one over SSH: both name what is broken, and have no secret of the machine. Troubleshoot's own
# program reads them.
support_bundles_say() {
  local canary='c4n4ry-9f8e7d' key file text status
  key="$(on one 10 sed -n 's/^ *client-key-data: \(.\{60\}\).*/\1/p' /etc/kubernetes/admin.conf)"
  on one 20 sh -c "echo DB_PASSWORD=$canary >>/etc/environment; echo 'login with $canary' | systemd-cat --priority=warning" || return 1
  rm -f "$GRID"/support-*.tar.gz
  status=0
  on one 400 sh -c 'rm -f /root/support.tar.gz; /var/lib/curlew-remote/bundle/tasks.sh support-bundle -o /root/support.tar.gz' || status=$?
  ((status == 2)) && grid_docker 60 cp one:/root/support.tar.gz "$GRID/support-one.tar.gz" || return 1
  status=0
  operator support-bundle "$OPERATOR/grid.yaml" -o "$GRID/support-all.tar.gz" || status=$?
  ((status == 2)) || return 1
  for file in "$GRID"/support-{one,all}.tar.gz; do
    text="$(tar -tzf "$file")" || return 1
    [[ "$text" == *curlew/health.json* && "$text" == *run-host/kubelet-journal.txt* && "$text" == *pod-logs/kube-system_kube-apiserver-one* ]] || return 1
    text="$(curlew inspect "$file")" || return 1
    printf '%s\n' "$text"
    [[ "$text" == *'etcd has no manifest'* ]] || return 1
    if tar -xzOf "$file" | grep -aqF -e "$canary" -e "$key"; then return 1; fi
  done
  analyzed "$GRID/support-one.tar.gz"
}

# usage: analyzed FILE; Troubleshoot's own program finds there what is broken, where it is built
analyzed() {
  local text analyze="$PWD/.curlew/tools/bin/analyze"
  [[ -x "$analyze" ]] || {
    echo 'not read by analyze, which is not built: scripts/tools preflight'
    return
  }
  cat >"$GRID/analyzers.yaml" <<'SPEC'
apiVersion: troubleshoot.sh/v1beta2
kind: SupportBundle
metadata: { name: grid }
spec:
  analyzers:
    - textAnalyze:
        checkName: etcd
        fileName: curlew/health.json
        regex: etcd has no manifest
        outcomes:
          - fail: { when: 'true', message: the machine runs no etcd }
          - pass: { when: 'false', message: the machine runs etcd }
SPEC
  text="$("$analyze" --analyzers "$GRID/analyzers.yaml" "$1")" || return 1
  printf '%s\n' "$text"
  [[ "$text" == *'Fail: etcd'*'the machine runs no etcd'* ]]
}

# Without its program: the operator's repair resets it then.
repair_names_what_does_not_start() {
  local text status=0
  text="$(on two 400 /var/lib/curlew-remote/bundle/tasks.sh node repair 2>&1)" || status=$?
  printf '%s\nstatus %s\n' "$text" "$status"
  [[ "$status" == 20 && "$text" == *'kubernetes: containerd does not start: see journalctl -u containerd'* && "$text" != *'two is ready'* ]]
}

# usage: is_repaired NODE; pods of the machine talk to those of the others again
is_repaired() {
  machine repair "$1" --bundle "$GRID/media/bundle.tar.gz" "${IGNORE[@]}" && grid_until 60 node_ready "$1" && pods_talk
}

VERSION="v$GRID_NEWEST"
step "the operator's machine" operator_machine
step 'node one boots' starts_bare one 1
step 'node two boots' starts_bare two 2
step 'a file' cluster_file "$VERSION" "${NODES[@]}"
step 'apply' apply bundle --yes
step 'pods talk across nodes' pods_talk
step 'containerd is stopped' breaks_for_all two 'containerd does not run' systemctl stop containerd
step 'it is repaired' is_repaired two
step 'the kubelet is off' breaks_for_all two 'the kubelet does not run' systemctl disable --now kubelet
step 'it is repaired' is_repaired two
# The same on the machine itself.
step 'the kubelet is stopped' breaks two 'the kubelet does not run' systemctl stop kubelet
step 'it repairs itself' on two 400 /var/lib/curlew-remote/bundle/tasks.sh node repair
step 'the network is gone' breaks two 'no network add-on has written' 'rm /etc/cni/net.d/*; systemctl restart containerd'
step 'it is repaired' is_repaired two
step 'etcd has no manifest' loses_etcd
step 'status names it' status_names one 'etcd has no manifest'
step 'support bundles name it' support_bundles_say
step 'it is repaired' is_repaired one
step 'the API server has no manifest' breaks one 'kube-apiserver has no manifest' 'rm /etc/kubernetes/manifests/kube-apiserver.yaml'
step 'it is repaired' is_repaired one
step 'containerd cannot start' breaks two 'containerd does not run' 'rm /usr/local/bin/containerd; systemctl kill --signal=KILL containerd'
step 'it cannot repair itself' repair_names_what_does_not_start
step 'it is reset, and joins again' is_repaired two
