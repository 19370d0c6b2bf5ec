# shellcheck shell=bash
# Kills at seconds of chance in the first install, of the run on a host, of the operator, of both, and of the power. The same command again
# continues each time, and nothing says that it is done before it is. Sourced by scripts/grid.

# shellcheck source=test/grid/operator.bash
source test/grid/operator.bash
RANDOM="$GRID_SEED"
# Power cuts leave the disks of a machine.
export GRID_KEEPS_DISKS=yes
NODES=(one=control-plane two=worker)
VERSION="v$GRID_NEWEST"
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
  apply bundle --yes >"$log" 2>&1 &
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

step "the operator's machine" operator_machine
step 'node one boots' starts_bare one 1
step 'node two boots' starts_bare two 2
step 'a file' cluster_file "$VERSION" "${NODES[@]}"
kills one init 30
