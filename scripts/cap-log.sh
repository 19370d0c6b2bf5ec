#!/usr/bin/env bash
# Keeps the log of a hook from filling the disk for as long as anything can write to it: the hook, and what it leaves
# behind. Hooks write to the file itself, so they are never held up and meet no closed pipe. While somebody writes, the
# middle of the file becomes a hole, which loses nothing at its end; once nobody does, the file is closed up.
#
# usage: cap-log.sh LOG MOST HEAD TAIL
#   LOG   its name; descriptor 3 is the log itself, so that it is also found when its name is gone
#   MOST  bytes from which on only the first HEAD and the last TAIL bytes are kept, with a line between them
# Standard input ends when the hook has ended, or when whoever started it is gone. Then the log is looked at once more, and
# this ends; where something still writes to the log, it says so on standard output and goes on until nothing does.
set -u

# Between two looks, in seconds: soon again while the log grows.
PAUSES=(0.2 0.2 0.5 1 2)
# What is left behind may live for months: so many looks, of two seconds each, pass between two searches for it.
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

# The log may have been cut for an earlier try of the hook: then its note tells what is left out already.
find_note() {
  local text
  if ((size <= head)); then return; fi
  text="$(tail -c "+$((head + 1))" "$FILE" | head -c 200 | tr '\0' '#')"
  if [[ ! "$text" =~ ^$'\n[curlew: '([0-9]{1,18})' bytes'(' or more')?$' of this log are left out here]\n'(#?) ]]; then return; fi
  # A hook can print such a line, too: with leading zeros, and of bytes that never were.
  local said=$((10#${BASH_REMATCH[1]}))
  if [[ -z "${BASH_REMATCH[3]}" ]]; then
    # Closed up: offsets do not tell.
    before=$((said - ${#BASH_REMATCH[0]}))
  elif ((head + said <= size)); then
    from=$((head + said))
  else
    return
  fi
  more="${BASH_REMATCH[2]}"
}

# The first byte behind what is left out is at `from`.
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
    # This file system knows no holes: what is written meanwhile is lost.
    more=' or more'
    close_up
  fi
}

# Leaves out what lies between the head and `from` for good. Another one of this kind may do so at the same time.
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

# True when a process prints to the log. To look at all descriptors of a node would take longer than most hooks.
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
  # Whoever started this may be gone.
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
