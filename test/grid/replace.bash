# shellcheck shell=bash
# Three control planes as a file, over SSH: a setting of all of them changes, one is lost for good, and a new machine takes its place, with
# kill -9 of the operator and etcd polled throughout. Sourced by scripts/grid.

# shellcheck source=test/grid/operator.bash
source test/grid/operator.bash
RANDOM="$GRID_SEED"
FIRST_KILL=$((10 + RANDOM % 90)) SECOND_KILL=$((3 + RANDOM % 40))
NODES=(one=control-plane two=control-plane three=control-plane)
GRID_BALANCER="$GRID_NETWORK.100"
VERSION="v$GRID_NEWEST"
# Seconds without an answer of etcd: an election, on a machine that has three of them and little else.
MAX_GAP=20

hosts_are_bare() {
  cluster_file "$VERSION" "${NODES[@]}" &&
    is_planned bundle "one init $VERSION" "two join $VERSION" "three join $VERSION"
}

three_control_planes() {
  local nodes
  nodes="$(kubectl_on three get nodes -o jsonpath='{range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status} {end}')"
  printf '%s\n' "$nodes"
  [[ "$nodes" == 'one=True three=True two=True ' ]] && members_are 'one three two'
}

# usage: etcd_on NODE PATH [WORD…]; of the API of its member
etcd_on() {
  local pki=/etc/kubernetes/pki/etcd
  on "$1" 20 curl --silent --fail --max-time 10 --cacert "$pki/ca.crt" --cert "$pki/healthcheck-client.crt" --key "$pki/healthcheck-client.key" \
    "https://127.0.0.1:2379/$2" "${@:3}"
}

# usage: members_are NAMES; all of them vote
members_are() {
  local members
  members="$(etcd_on three v3/cluster/member/list --data '{}')" || return 1
  printf '%s\n' "$members"
  [[ "$(grep -o '"name":"[a-z]*"' <<<"$members" | cut -d '"' -f 4 | sort | xargs)" == "$1" && "$members" != *isLearner* ]]
}

# On the two that stay, until the file /run/probe is gone. An answer needs a leader, and so a quorum.
start_polls() {
  local node pki=/etc/kubernetes/pki/etcd
  for node in two three; do
    on "$node" 20 touch /run/probe && grid_docker 20 exec --detach "$node" sh -c "while test -e /run/probe; do
      printf '%s %s\n' \"\$(date +%s)\" \"\$(curl --silent --max-time 2 --cacert $pki/ca.crt --cert $pki/healthcheck-client.crt \
        --key $pki/healthcheck-client.key https://127.0.0.1:2379/health)\"; sleep 0.5; done >/var/log/etcd-polls" || return 1
  done
}

etcd_always_answered() {
  local gap
  on two 20 rm /run/probe && on three 20 rm /run/probe || return 1
  gap="$(sort -n "$GRID"/logs/{two,three}/etcd-polls | awk '/"health":"true"/ { if (last && $1 - last > gap) gap = $1 - last; last = $1; count += 1 }
    END { if (count < 100) exit 1; print gap + 0 }')" || return 1
  printf 'longest time without an answer of either: %s s\n' "$gap"
  ((gap <= MAX_GAP))
}

# One after the other: none is asked to restart while another does.
FLAG='apiServer: { extraArgs: [{ name: profiling, value: "false" }] }'
setting_changes_on_each() {
  local node why='configure (the file has another kubernetes.clusterConfiguration.apiServer)'
  settings_are '' "$FLAG" && is_planned bundle "one $why" "two $why, after" "three $why, after" && apply bundle --yes || return 1
  for node in one two three; do api_server_has "$node" --profiling=false || return 1; done
}

# Its disks are gone with it; another machine gets the address.
node_is_lost_for_good() {
  grid_docker 30 rm --force --volumes one && balancer_is two && grid_until 120 lost_at_others && grid_until 60 kubeconfig_works
}

lost_at_others() {
  [[ "$(kubectl_on three get node one -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}')" == Unknown ]]
}

kubeconfig_works() {
  nsenter --net --target "$(cat "$GRID_RUN/engine")" timeout 30 "$(grid_program kubectl)" --kubeconfig "$OPERATOR/grid.conf" get nodes
}

# usage: refused TEXT COMMAND…; status 2 or 33
refused() {
  local text status=0
  text="$("${@:2}" 2>&1)" || status=$?
  printf '%s\n' "$text"
  ((status == 2 || status == 33)) && [[ "$text" == *"$1"* ]]
}

repair() {
  machine repair one --bundle "$GRID/media/bundle.tar.gz" "${IGNORE[@]}"
}

silent_machine_is_named() {
  refused 'install it again with this name and address' repair
}

# A new machine has a new key, for which a person vouches.
new_key_is_refused() {
  refused 'host key' repair && settings_are '' "$FLAG"
}

# It has the setting as the others.
repair_goes_on() {
  killed_after "$SECOND_KILL" repair && once_free repair && api_server_has one --profiling=false
}

cluster_is_deleted() {
  local node
  operator cluster delete "$OPERATOR/grid.yaml" --confirm grid || return 1
  for node in one two three; do
    on "$node" 20 sh -c 'test ! -e /etc/kubernetes && test ! -e /var/lib/etcd/member && test ! -e /var/lib/curlew-remote/bundle' || return 1
  done
}

step "the operator's machine" operator_machine
step 'node one boots' starts_bare one 1
step 'node two boots' starts_bare two 2
step 'node three boots' starts_bare three 3
step 'address of the balancer' balancer_is one
step 'a plan of bare hosts' hosts_are_bare
note "kill -9 of the operator after $FIRST_KILL s of the first apply, and after $SECOND_KILL s of the repair"
step 'apply, killed' killed_after "$FIRST_KILL" apply bundle --yes
step 'apply goes on' apply_goes_on bundle
step 'three control planes' three_control_planes
step 'etcd is polled' start_polls
step 'a setting changes on each' setting_changes_on_each
step 'one of them is lost' node_is_lost_for_good
step 'a silent machine is named' silent_machine_is_named
step 'a new machine boots' starts_bare one 1
step 'its key is refused' new_key_is_refused
step 'a repair goes on after kill -9' repair_goes_on
step 'three control planes' three_control_planes
step 'etcd always answered' etcd_always_answered
step 'a second apply changes nothing' nothing_is_left bundle
step 'the cluster is deleted' cluster_is_deleted
