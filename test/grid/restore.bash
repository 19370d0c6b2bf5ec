# shellcheck shell=bash
# Control planes are lost: the only one with its machine, and then two of three, and the quorum of etcd with them. Sourced by scripts/grid.

GRID_BALANCER="$GRID_NETWORK.100"

# usage: joins_control_plane NODE
joins_control_plane() {
  join_file "$1" --control-plane && join_on "$1" && node_ready "$1"
}

# usage: refused TEXT COMMAND…; the command fails with this text
refused() {
  local text
  if text="$("${@:2}" 2>&1)"; then return 1; fi
  printf '%s\n' "$text"
  [[ "$text" == *"$1"* ]]
}

restore() {
  on one 400 /root/bundle/tasks.sh etcd restore "$@"
}

# usage: members_are NAMES; as the member of node one lists them
members_are() {
  local pki=/etc/kubernetes/pki/etcd found
  found="$(on one 20 curl --silent --fail --max-time 10 --cacert "$pki/ca.crt" --cert "$pki/healthcheck-client.crt" \
    --key "$pki/healthcheck-client.key" https://127.0.0.1:2379/v3/cluster/member/list --data '{}' |
    grep -o '"name":"[a-z]*"' | cut -d '"' -f 4 | sort | xargs)"
  printf 'members: %s\n' "$found"
  [[ "$found" == "$1" ]]
}

# usage: save_snapshot NAME; a ConfigMap before it, and another one afterwards; the file is kept outside of all nodes
save_snapshot() {
  kubectl_on one create configmap "before-$1" &&
    on one 60 /root/bundle/tasks.sh etcd snapshot "/root/$1.tar" &&
    [[ "$(on one 20 stat -c %a "/root/$1.tar")" == 600 ]] &&
    grid_docker 60 cp "one:/root/$1.tar" "$GRID/$1.tar" &&
    kubectl_on one create configmap "after-$1"
}

timer_is_started() {
  on one 60 /root/bundle/tasks.sh etcd snapshot --every 6h --keep 2 && timer_is_back
}

timer_is_back() {
  on one 20 systemctl is-active curlew-etcd-snapshot.timer && on one 20 grep -q -- --keep=2 /etc/systemd/system/curlew-etcd-snapshot.service
}

# usage: has_data_of NAME
has_data_of() {
  [[ "$(kubectl_on one get configmaps "before-$1" "after-$1" --ignore-not-found --output=name)" == "configmap/before-$1" ]]
}

quorum_is_respected() {
  members_are 'one three two' && refused 'its 3 members have a quorum' restore /root/quorum.tar --confirm one
}

# Node two keeps its disk and its data; node three is gone with both.
quorum_is_lost() {
  grid_docker 30 rm --force --volumes three && grid_docker 30 network disconnect grid two &&
    refused 'it has lost its quorum: of 3 members' restore /root/quorum.tar
}

lost_quorum_is_restored() {
  local text
  text="$(restore /root/quorum.tar --confirm one)" || return 1
  printf '%s\n' "$text"
  [[ "$text" == *'/tasks.sh node remove three --yes'* ]] && members_are one && grid_until 120 control_plane_works && has_data_of quorum
}

# usage: node_is_removed NODE
node_is_removed() {
  on one 400 /root/bundle/tasks.sh node remove "$1" --yes &&
    [[ -z "$(kubectl_on one get node "$1" --ignore-not-found --output=name)" ]]
}

# usage: node_is_reset NODE
node_is_reset() {
  on "$1" 400 /root/bundle/tasks.sh reset --yes && on "$1" 20 sh -c 'test ! -e /etc/kubernetes && test ! -e /var/lib/etcd/member' && unpack "$1"
}

# Away from the others, so that it never sees the cluster with the data of before.
lost_node_is_reset() {
  node_is_reset two && grid_docker 30 network connect --ip "$GRID_NETWORK.12" grid two
}

worker_joins() {
  join_file two && join_on two && node_ready two && pods_talk
}

# The pods of the worker, which nothing may end.
pods_of_two() {
  on two 20 crictl ps --quiet | sort
}

control_plane_is_destroyed() {
  pods_of_two >"$GRID/pods-of-two" && [[ -s "$GRID/pods-of-two" ]] && grid_docker 30 rm --force --volumes one
}

bare_machine_takes_over() {
  grid_docker 60 cp "$GRID/all.tar" one:/root/all.tar || return 1
  refused 'another control plane may run with its data' restore /root/all.tar || return 1
  restore /root/all.tar --confirm one && on one 20 test ! -e /etc/kubernetes/pki &&
    install_on one "load-balancer-address=$GRID_BALANCER:6443" &&
    on one 20 test ! -e /var/lib/curlew/restore
}

# With the same authority, keys and data, the worker goes on without a word of an operator.
cluster_is_back() {
  members_are one && grid_until 120 control_plane_works && has_data_of all && grid_until 120 node_ready two && pods_talk || return 1
  # What the worker ran, still runs: an API server without its pods would have ended them.
  [[ -z "$(comm -23 "$GRID/pods-of-two" <(pods_of_two))" ]]
}

# With its authority and its tokens: other machines join again, too.
snapshot_of_another_cluster_is_refused() {
  refused 'it is of another cluster' restore /root/foreign.tar --confirm one
}

# The same data, with an authority of its own.
foreign_snapshot() {
  on one 60 sh -c 'cd /run && rm -rf foreign && mkdir foreign && tar -xf /root/all.tar -C foreign &&
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=other -days 9 -keyout /dev/null \
      -out foreign/snapshot/kubernetes/pki/ca.crt 2>/dev/null &&
    tar -cf /root/foreign.tar --format=ustar -C foreign snapshot/snapshot.json snapshot/kubernetes snapshot/etcd.db'
}

step 'node one boots' grid_start_node one 1
step 'unpack the bundle' unpack one
step 'address of the balancer' balancer_is one
step 'install' install_on one "load-balancer-address=$GRID_BALANCER:6443"
step 'node two boots' grid_start_node two 2
step 'unpack the bundle' unpack two
step 'two joins as a worker' worker_joins
step 'snapshots by a timer' timer_is_started
step 'a snapshot' save_snapshot all
step 'the only control plane is destroyed' control_plane_is_destroyed
step 'a bare machine boots' grid_start_node one 1
step 'unpack the bundle' unpack one
step 'address of the balancer' balancer_is one
step 'the bare machine takes over' bare_machine_takes_over
step 'the cluster is back' cluster_is_back
step 'and so is the timer' timer_is_back
step 'a snapshot of another cluster' foreign_snapshot
step 'is refused' snapshot_of_another_cluster_is_refused
step 'two is removed' node_is_removed two
step 'two is reset' node_is_reset two
step 'two joins as a control plane' joins_control_plane two
step 'node three boots' grid_start_node three 3
step 'unpack the bundle' unpack three
step 'three joins as a control plane' joins_control_plane three
step 'a snapshot' save_snapshot quorum
step 'a quorum is respected' quorum_is_respected
step 'the quorum is lost' quorum_is_lost
step 'a lost quorum is restored' lost_quorum_is_restored
step 'lost node three is removed' node_is_removed three
step 'lost node two is removed' node_is_removed two
step 'lost node two is reset' lost_node_is_reset
step 'and joins again as a control plane' joins_control_plane two
