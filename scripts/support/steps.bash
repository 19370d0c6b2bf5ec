# shellcheck shell=bash
# Steps of a longer script: one line each, their output in a log, the end of it shown if one fails.
# Sourced; defines steps_begin, step, note, die, run_child.

# usage: steps_begin LOG-FILE
steps_begin() {
  STEPS_LOG="$1"
  mkdir -p "$(dirname "$STEPS_LOG")"
  : >"$STEPS_LOG"
}

note() {
  printf '%s\n' "$*"
}

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# usage: step TITLE COMMAND [ARGUMENT…]; returns the command's status
step() {
  local title="$1" status=0 start=$SECONDS from
  shift
  printf '%-44s ' "$title"
  from=$(($(wc -l <"$STEPS_LOG") + 1))
  printf '== %s: %s\n' "$title" "$*" >>"$STEPS_LOG"
  if [[ -t 1 ]]; then
    steps_clock &
    STEPS_CLOCK=$!
  fi
  run_child "$@" >>"$STEPS_LOG" 2>&1 </dev/null || status=$?
  steps_clock_stop
  if ((status == 0)); then
    printf 'ok %5d s\n' $((SECONDS - start))
    return 0
  fi
  printf 'FAILED, status %d\n' "$status"
  tail -n "+$((from + 1))" "$STEPS_LOG" | tail -n 40 | sed 's/^/  | /'
  printf '  the whole output: %s\n' "$STEPS_LOG"
  return "$status"
}

STEPS_CHILD=
STEPS_CLOCK=

# Shows on a terminal for how long a step has run, and goes back: its result is at least as wide.
steps_clock() {
  local start=$SECONDS
  while sleep 1; do printf '.. %5d s\e[10D' $((SECONDS - start)); done
}

steps_clock_stop() {
  if [[ -z "$STEPS_CLOCK" ]]; then return 0; fi
  kill "$STEPS_CLOCK" 2>/dev/null || true
  wait "$STEPS_CLOCK" 2>/dev/null || true
  STEPS_CLOCK=
}

# Runs a command so that a signal to this script reaches it immediately, and always waits for its end.
run_child() {
  local status=0
  "$@" &
  STEPS_CHILD=$!
  wait "$STEPS_CHILD" || status=$?
  STEPS_CHILD=
  return "$status"
}

steps_stopped() {
  trap '' INT TERM HUP
  steps_clock_stop
  if [[ -n "$STEPS_CHILD" ]]; then
    kill -TERM "$STEPS_CHILD" 2>/dev/null || true
    wait "$STEPS_CHILD" 2>/dev/null || true
  fi
  exit 130
}
trap steps_stopped INT TERM HUP
