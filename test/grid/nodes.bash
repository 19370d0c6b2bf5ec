# shellcheck shell=bash
# Nodes come and go: a second control plane joins and is removed, is reset and joins again as a worker, and dies. Sourced by scripts/grid.

# It stays with node one.
GRID_BALANCER="$GRID_NETWORK.100"

# usage: refused TEXT NODE [WORD…]; the join fails with this text, and the machine is not changed by kubeadm
refused() {
  local text
  if text="$(join_on "${@:2}" 2>&1)"; then return 1; fi
  [[ "$text" == *"$1"* ]] || {
    printf '%s\n' "$text"
    return 1
  }
  on "$2" 20 test ! -e /etc/kubernetes/kubelet.conf
}

bad_joins() {
  join_file two --control-plane || return 1
  refused 'it has expired, or another machine has used it' two kubeadm-token=aaaaaa.0123456789abcdef &&
    refused 'A connection to the Kubernetes API' two "kubernetes-master-address=$GRID_NETWORK.99:6443" &&
    refused 'may not give itself the label' two labels=node-role.kubernetes.io/worker=true
}

join_control_plane() {
  join_on two && node_ready two &&
    [[ "$(kubectl_on two get --raw /readyz)" == ok ]] &&
    [[ "$(kubectl_on one get nodes --selector=node-role.kubernetes.io/control-plane --output=name)" == *node/two* ]]
}

# The token of join_file has deleted itself, and with it its right to do so.
token_is_spent() {
  grid_until 60 no_own_token
}

no_own_token() {
  local left
  left="$(kubectl_on one --namespace kube-system get roles,rolebindings --output=name)" || return 1
  [[ "$left" != */bootstrap-token-* ]]
}

# The cluster still has it: only a removal sees whether etcd keeps its quorum. Nothing of it is changed.
reset_is_refused() {
  local text status=0
  text="$(on two 120 /root/bundle/tasks.sh reset --yes 2>&1)" || status=$?
  printf '%s\nstatus %s\n' "$text" "$status"
  [[ "$status" == 20 && "$text" == *'this control plane is still part of the cluster'* ]] && on two 20 systemctl is-active kubelet &&
    [[ "$(kubectl_on two get --raw /readyz)" == ok ]] && node_ready two
}

# A workload that a drain moves, with a pod on each node.
spread_pods() {
  grid_docker 20 cp "$PWD/test/grid/moved.yaml" one:/root/moved.yaml &&
    kubectl_on one apply -f /root/moved.yaml &&
    kubectl_on one rollout restart deployment/moved &&
    kubectl_on one rollout status deployment/moved --timeout=50s &&
    grid_until 30 pod_moved_to two
}

# usage: pod_moved_to NODE
pod_moved_to() {
  [[ -n "$(kubectl_on one get pods --selector=app=moved --field-selector="spec.nodeName=$1" --output=name)" ]]
}

# usage: budget NUMBER; pods of the workload that must stay
budget() {
  kubectl_on one delete poddisruptionbudget moved --ignore-not-found &&
    kubectl_on one create poddisruptionbudget moved --selector=app=moved "--min-available=$1"
}

# usage: remove_node [OPTION…]
remove_node() {
  on one 400 /root/bundle/tasks.sh node remove two "$@"
}

# A preview changes nothing and says so by its status.
removal_is_shown() {
  local text status=0
  text="$(remove_node)" || status=$?
  printf '%s\n' "$text"
  [[ "$status" == 2 && "$text" == *remove-member* && -z "$(kubectl_on one get node two -o jsonpath='{.spec.unschedulable}')" ]]
}

budget_is_respected() {
  local text
  spread_pods && budget 2 || return 1
  if text="$(remove_node --drain-timeout 10s --yes 2>&1)"; then
    printf '%s\n' "$text"
    return 1
  fi
  printf '%s\n' "$text"
  [[ "$text" == *'cannot drain two in 10 s'*'disruption budget'* ]] && node_ready two
}

removed_node_is_unknown() {
  local text status=0
  text="$(remove_node --yes 2>&1)" || status=$?
  printf '%s\n' "$text"
  [[ "$status" == 14 && "$text" == *'cannot remove two: the cluster has no such node'* ]]
}

removal_goes_on() {
  killed_at one 'evicting its pods' /root/bundle/tasks.sh node remove two --yes || return 1
  [[ "$(kubectl_on one get node two -o jsonpath='{.spec.unschedulable}')" == true ]] || return 1
  budget 1 || return 1
  killed_at one 'removing its member of etcd' /root/bundle/tasks.sh node remove two --yes || return 1
  remove_node --yes &&
    [[ -z "$(kubectl_on one get node two --ignore-not-found --output=name)" ]] &&
    removed_node_is_unknown
}

reset_node() {
  on two 400 /root/bundle/tasks.sh reset --yes &&
    on two 20 sh -c 'test ! -e /etc/kubernetes && test ! -e /var/lib/etcd/member && ! ip link show cni0' &&
    control_plane_works && unpack two
}

# With the file of join_file, whose token is not used up. The kubelet has its own certificate, and its node may be ready already.
killed_join() {
  # shellcheck disable=SC2016
  on two 300 bash -c '
    setsid /root/bundle/join.sh "$@" >/run/killed.log 2>&1 &
    until test -e /etc/kubernetes/kubelet.conf; do kill -0 $! || { cat /run/killed.log && exit 1; }; sleep 0.02; done
    kill -9 -- -$! && ! wait $!' killed "${IGNORE[@]}" airgap installer-spec-file=/root/merged.yaml "${WORKER[@]}"
}

# A join that has begun is undone, whatever of it is recorded as applied.
cut_join_is_reset() {
  join_file two && killed_join && on two 400 /root/bundle/tasks.sh reset --yes &&
    on two 20 sh -c 'test ! -e /etc/kubernetes && test ! -e /usr/local/bin/kubelet' &&
    kubectl_on one delete node two --ignore-not-found && unpack two
}

join_goes_on() {
  killed_join || return 1
  join_on two "${WORKER[@]}" &&
    [[ "$(kubectl_on one get node two -o jsonpath='{.metadata.labels.disk} {.spec.taints[?(@.key=="gpu")].effect}')" == 'ssd NoSchedule' ]] &&
    node_ready two && token_is_spent
}
WORKER=(labels=disk=ssd --set kubernetes.nodeTaints=gpu=yes:NoSchedule)

# No budget holds the pods of a node that does not answer, and they are not waited for.
dead_node_is_removed() {
  spread_pods && budget 2 || return 1
  grid_docker 30 pause two || return 1
  grid_until 120 node_is_lost two && remove_node --drain-timeout 5s --yes &&
    [[ -z "$(kubectl_on one get node two --ignore-not-found --output=name)" ]]
}

step 'node one boots' grid_start_node one 1
step 'unpack the bundle' unpack one
step 'address of the balancer' balancer_is one
step 'install' install_on one "load-balancer-address=$GRID_BALANCER:6443"
step 'node two boots' grid_start_node two 2
step 'unpack the bundle' unpack two
step 'joins that are refused' bad_joins
step 'join a control plane' join_control_plane
step 'its token is spent' token_is_spent
step 'pods talk across nodes' pods_talk
step 'a reset is refused' reset_is_refused
step 'a removal is shown' removal_is_shown
step 'a budget is respected' budget_is_respected
step 'a removal goes on after kill -9' removal_goes_on
step 'reset' reset_node
step 'a join that was killed is reset' cut_join_is_reset
step 'a join goes on after kill -9' join_goes_on
step 'a dead node is removed' dead_node_is_removed
