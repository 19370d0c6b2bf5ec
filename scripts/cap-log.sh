#!/usr/bin/env bash
# Keeps the log of a hook from filling the disk while any process can write to it: the hook, and processes that it leaves
# running. Hooks write to the file itself, so they never block or get a closed pipe. While a process writes, the
# middle of the file becomes a hole, which loses nothing at its end; then the hole is removed.
#
# usage: cap-log.sh LOG MOST HEAD TAIL
#   LOG   its name; descriptor 3 is the log itself, so that it is also found after its name was removed
#   MOST  size in bytes above which only the first HEAD and the last TAIL bytes are kept, with a line between them
# Standard input ends when the hook has ended, or when the caller has exited. Then this checks the log once more and
# exits; if a process still writes to the log, it reports that on standard output and continues until none does.
set -u

# Seconds between two checks: short while the log grows.
PAUSES=(0.2 0.2 0.5 1 2)
# Processes that a hook leaves may run for months: so many checks, of two seconds each, pass between two searches for them.
LOOKS=30
NOTE=$'\n[curlew: %d bytes%s of this log are left out here]\n'

measure() {
  # Most logs are empty when the hook begins.
  if [[ ! -s "$FILE" ]]; then
    size=0
    return
  fi
  size="$(stat -Lc %s "$FILE")" || exit 1
}

# The log may have been cut in an earlier attempt of the hook: then its note says what is already omitted.
find_note() {
  local text
  if ((size <= head)); then return; fi
  text="$(tail -c "+$((head + 1))" "$FILE" | head -c 200 | tr '\0' '#')"
  if [[ ! "$text" =~ ^$'\n[curlew: '([0-9]{1,18})' bytes'(' or more')?$' of this log are left out here]\n'(#?) ]]; then return; fi
  # A hook can print such a line, too: with leading zeros, and with bytes that never existed.
  local said=$((10#${BASH_REMATCH[1]}))
  if [[ -z "${BASH_REMATCH[3]}" ]]; then
    # The hole was removed: offsets are not usable.
    before=$((said - ${#BASH_REMATCH[0]}))
  elif ((head + said <= size)); then
    from=$((head + said))
  else
    return
  fi
  more="${BASH_REMATCH[2]}"
}

# The first byte after the omitted part is at `from`.
make_note() {
  # shellcheck disable=SC2059
  printf -v note "$NOTE" "$((before + from - head))" "$more"
}

look() {
  local last="$size"
  measure
  if ((size != last)); then
    pause=0
  elif ((pause < ${#PAUSES[@]} - 1)); then
    pause=$((pause + 1))
  fi
  if (((from > 0 ? head + size - from : size) <= most)); then return; fi
  from=$((size - tail))
  make_note
  if fallocate --punch-hole --offset "$head" --length "$((from - head))" "$FILE" 2>/dev/null; then
    printf '%s' "$note" | dd of="$FILE" bs=4096 seek="$head" oflag=seek_bytes conv=notrunc status=none
  else
    # This file system does not support holes: data written meanwhile is lost.
    more=' or more'
    close_up
  fi
}

# Removes the part between the head and `from`. Another process of this script may do so at the same time.
close_up() {
  local rest="$log.rest"
  if ! (set -o noclobber && : >"$rest") 2>/dev/null; then return; fi
  measure
  if ((size > from)) && tail -c "+$((from + 1))" "$FILE" >"$rest"; then
    make_note
    truncate -s "$head" "$FILE"
    {
      printf '%s' "$note"
      cat "$rest"
    } >>"$FILE"
    before=$((before + from - head - ${#note}))
    from=0
  fi
  rm -f "$rest"
} 2>/dev/null

# True if a process writes to the log. Checking all descriptors of a node would take longer than most hooks.
is_held() {
  local fd
  for fd in /proc/[0-9]*/fd/[12]; do
    if [[ "$fd" -ef "$FILE" ]]; then return 0; fi
  done
  return 1
}

main() {
  local log="$1" most="$2" head="$3" tail="$4"
  local size=0 pause=0 from=0 before=0 more='' note=''
  # The caller may have exited.
  trap '' PIPE HUP
  umask 077
  FILE="/proc/$$/fd/3"
  measure
  find_note
  while :; do
    read -r -t "${PAUSES[pause]}" _
    if (($? <= 128)); then break; fi
    look
  done
  look
  if is_held; then
    printf 'held\n'
    exec <&- >&-
    while is_held; do
      for ((looks = 0; looks < LOOKS; looks += 1)); do
        sleep "${PAUSES[pause]}"
        look
      done
    done
  fi
  if ((from > 0)); then close_up; fi
}

main "$@"
