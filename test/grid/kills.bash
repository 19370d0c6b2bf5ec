# shellcheck shell=bash
# Kills at seconds of chance, of the run on a host, of the operator, of both, and of the power, in init, in a join, in an upgrade and in a restore
# of etcd. The same command again continues each time, and nothing says that it is done before it is. Sourced by scripts/grid.

# shellcheck source=test/grid/operator.bash
source test/grid/operator.bash
RANDOM="$GRID_SEED"
# Power cuts leave the disks of a machine.
export GRID_KEEPS_DISKS=yes
NODES=(one=control-plane two=worker)
# The bundle that the file is applied with.
BUNDLE="$GRID_BEFORE"
# Chance is asked here alone: steps are processes of their own, and would not advance it.
AT='' KINDS=()

# usage: chance MOST; AT becomes a time in seconds, as sleep takes it
chance() {
  local tenths=$((RANDOM % (10 * $1)))
  AT="$((tenths / 10)).$((tenths % 10))"
}

# usage: mix KIND…; in an order of chance in KINDS
mix() {
  local kind
  KINDS=()
  for kind in "$@"; do
    if ((RANDOM % 2)); then KINDS=("$kind" "${KINDS[@]}"); else KINDS+=("$kind"); fi
  done
}

# usage: runs NODE NAME; curlew runs something with such a name for an operator
runs() {
  # shellcheck disable=SC2016
  on "$1" 10 sh -c 'cd /var/lib/curlew-remote 2>/dev/null && [ -e run.lock ] && ! flock -s -n run.lock true &&
    case "$(cat name)" in "$1"*) ;; *) exit 1 ;; esac' runs "$2" 2>/dev/null
}

# usage: kill_tree NODE FILE; kill -9 of the process that the file names, with all that it has started
kill_tree() {
  # shellcheck disable=SC2016
  on "$1" 20 bash -c 'tree() { for child in $(pgrep -P "$1"); do tree "$child"; done; echo "$1"; }
    kill -9 $(tree "$(cat "$1")") 2>/dev/null; true' kill "$2"
}

# usage: cut_power NODE
cut_power() {
  grid_docker 30 kill "$1" >/dev/null && grid_docker 60 start "$1" >/dev/null && grid_until 60 grid_booted "$1"
}

# usage: killed KIND SECONDS NODE PHASE; an apply, so long after it has begun this step of the machine
killed() {
  local kind="$1" process status=0 log="$GRID/logs/killed-operator" text
  # The minute of a lock whose operator is gone is waited for in `machines`.
  on one 10 rm -f /var/lib/curlew-remote/lock
  set -m
  apply "$BUNDLE" --yes >"$log" 2>&1 &
  process=$!
  set +m
  until runs "$3" "$4 $3"; do
    kill -0 "$process" 2>/dev/null || break
    sleep 0.2
  done
  sleep "$2"
  runs "$3" "$4 $3" || echo 'too late for this step'
  case "$kind" in
    host) kill_tree "$3" /var/lib/curlew-remote/pid ;;
    operator) kill -9 -- "-$process" ;;
    both) kill -9 -- "-$process" && kill_tree "$3" /var/lib/curlew-remote/pid ;;
    power) cut_power "$3" || return 1 ;;
  esac
  wait "$process" || status=$?
  text="$(cat "$log")"
  printf '%s\nstatus %s\n' "$text" "$status"
  # A step that was quicker has really ended.
  if ((status == 0)) || [[ "$text" == *"done: $3 $4"* ]]; then
    ((status != 0)) || [[ "$text" == *'is as its file says'* ]] || return 1
    grid_until 60 node_ready "$3"
    return
  fi
  [[ "$text" != *'is as its file says'* ]] || return 1
  if [[ "$kind" == operator || "$kind" == both ]]; then
    ((status == 137))
    return
  fi
  [[ "$text" == *"failed: $3 $4: it failed with status 70: it was cut, as by a restart of the host: run the same command again"* ]]
}

# usage: kills NODE PHASE SECONDS; each kind once, so that each continues what the one before it has left
kills() {
  local kind
  mix host operator both power
  for kind in "${KINDS[@]}"; do
    chance "$3"
    step "$2 of $1, after $AT s: $kind" killed "$kind" "$AT" "$1" "$2" || return 1
  done
}

apply_ends() {
  on one 10 rm -f /var/lib/curlew-remote/lock && apply "$BUNDLE" --yes
}

both_are_ready() {
  grid_until 60 control_plane_works && grid_until 60 node_ready two &&
    [[ "$(kubectl_on one get nodes -o jsonpath='{range .items[*]}{.metadata.name}={.metadata.labels.rack} {end}')" == 'one=one two=two ' ]]
}

RESTORED=(/var/lib/curlew-remote/bundle/tasks.sh etcd restore /root/kept.tar --confirm one)

snapshot_is_saved() {
  kubectl_on one create configmap before && on one 60 /var/lib/curlew-remote/bundle/tasks.sh etcd snapshot /root/kept.tar &&
    kubectl_on one delete configmap before && kubectl_on one create configmap after
}

# usage: restore_killed KIND SECONDS
restore_killed() {
  local text status=0
  # shellcheck disable=SC2016
  on one 20 sh -c 'rm -f /root/restore.log /root/restore.pid /root/restore.status
    setsid sh -c "echo \$\$ >/root/restore.pid; \"\$@\" >/root/restore.log 2>&1; echo \$? >/root/restore.status" restore "$@" >/dev/null 2>&1 &
    until test -s /root/restore.pid; do sleep 0.02; done' restore "${RESTORED[@]}" || return 1
  sleep "$2"
  case "$1" in
    host) kill_tree one /root/restore.pid ;;
    power) cut_power one || return 1 ;;
  esac
  text="$(on one 10 cat /root/restore.log)" status="$(on one 10 sh -c 'cat /root/restore.status 2>/dev/null')" || true
  printf '%s\nstatus %s\n' "$text" "$status"
  [[ "$text" != *'goroutine'* ]] || return 1
  [[ "$status" == 0 || "$text" != *'etcd has the data of'* ]] || [[ "$text" == *'but the API server does not answer'* ]]
}

restore_kills() {
  local kind
  mix host power host
  for kind in "${KINDS[@]}"; do
    chance 20
    step "restore of etcd, after $AT s: $kind" restore_killed "$kind" "$AT" || return 1
  done
}

restore_ends() {
  on one 400 "${RESTORED[@]}" && grid_until 120 control_plane_works &&
    [[ "$(kubectl_on one get configmaps before after --ignore-not-found --output=name)" == configmap/before ]] &&
    on one 10 test ! -e /var/lib/etcd/restored && [[ -z "$(on one 10 ls -A /etc/kubernetes/curlew/manifests)" ]]
}

cluster_is_well() {
  local text
  text="$(operator cluster status "$OPERATOR/grid.yaml")" || {
    printf '%s\n' "$text"
    return 1
  }
}

step "the operator's machine" operator_machine
step 'node one boots' starts_bare one 1
step 'node two boots' starts_bare two 2
step 'a file' cluster_file "v$GRID_BEFORE" "${NODES[@]}"
kills one init 30
kills two join 20
step 'the same command ends' apply_ends
step 'both nodes are ready' both_are_ready
step 'pods talk across nodes' pods_talk
step 'the file has the next minor version' cluster_file "v$GRID_NEWEST" "${NODES[@]}"
BUNDLE=bundle
kills one upgrade 60
kills two upgrade 30
step 'the same command ends' apply_ends
step 'both nodes are ready' both_are_ready
step 'both nodes have the version' versions_are "v$GRID_NEWEST" "v$GRID_NEWEST"
step 'pods talk across nodes' pods_talk
step 'a second apply changes nothing' nothing_is_left bundle
step 'a snapshot' snapshot_is_saved
restore_kills
step 'the same command ends' restore_ends
step 'both nodes are ready' both_are_ready
step 'pods talk across nodes' pods_talk
step 'the cluster is well' grid_until 60 cluster_is_well
