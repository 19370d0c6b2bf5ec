# shellcheck shell=bash
# Waits with a progress indicator on terminals.

curlew_spin() {
  [[ -t 1 ]] || return 0
  # shellcheck disable=SC1003
  local signs='|/-\'
  printf ' [%s]  \b\b\b\b\b\b' "${signs:$1 % 4:1}"
}

# usage: spinner_until SECONDS COMMAND ARGUMENT…
# Runs the command every second until it succeeds; status 1 after the time limit; no limit or -1 means forever.
# The arguments are joined into one string and split again, as add-ons rely on.
spinner_until() {
  local limit="${1:--1}" elapsed=0
  local words="${*:2}"
  # shellcheck disable=SC2086
  until $words; do
    elapsed=$((elapsed + 1))
    if ((limit >= 0 && elapsed > limit)); then return 1; fi
    curlew_spin "$elapsed"
    sleep 1
  done
}

sleep_spinner() {
  local left
  for ((left = ${1:-0}; left > 0; left--)); do
    curlew_spin "$left"
    sleep 1
  done
}
