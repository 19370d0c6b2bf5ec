# shellcheck shell=bash
# Failing and retrying.

# Prints the reason and exits the current shell with status 1; inside `$(…)` only the subshell.
bail() {
  logFail "${1-}"
  curlew_control bail "${1-}" "${FUNCNAME[1]-}" "${BASH_SOURCE[1]-}" "${BASH_LINENO[0]-}"
  builtin exit 1
}

# True for programs, builtins and shell functions.
commandExists() {
  command -v "$@" >/dev/null 2>&1
}

# usage: curlew_try TRIES WORDS FUNCTION ARGUMENT…
# Tries every 2 s; if all tries fail, runs it once more with all output and bails.
curlew_try() {
  local tries="$1" span="$2" quiet="$3" try output
  shift 3
  for ((try = 0; try < tries; try++)); do
    if [[ "$quiet" == 1 ]]; then
      if "$@" 2>/dev/null; then return 0; fi
    elif "$@"; then
      return 0
    fi
    sleep 2
  done
  output="$("$@" 2>&1)" || true
  printf '%s\n' "$output"
  bail "Spent ${span} attempting to run \"${*//%/%%}\" without success"
}

try_1m() {
  curlew_try 30 1m 1 "$@"
}

try_1m_stderr() {
  curlew_try 30 1m 0 "$@"
}

try_5m() {
  curlew_try 150 5m 1 "$@"
}

# usage: cmd_retry TIMES COMMAND ARGUMENT…
# Waits 1, 2, 4 … seconds between the tries; the status is the last one's.
cmd_retry() {
  local times="$1" try status=0
  shift
  for ((try = 0; try < times; try++)); do
    status=0
    "$@" || status=$?
    if ((status == 0)); then return 0; fi
    if ((try + 1 < times)); then sleep "$((2 ** try))"; fi
  done
  return "$status"
}

# Runs a command and ignores its failure and its error output.
maybe() {
  "$@" 2>/dev/null || true
}
