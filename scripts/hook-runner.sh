#!/usr/bin/env bash
# Runs one lifecycle hook in a new shell, as if it shared one shell with all hooks before it.
#
# usage: hook-runner.sh LIBRARY SETTINGS CARRIED RESULT FUNCTION OWN COUNT WORD… SCRIPT…
#   LIBRARY   folder of the functions that hooks may call
#   SETTINGS  file of assignments, sourced
#   CARRIED   file with the variables that earlier hooks changed; need not exist
#   RESULT    file for the variables changed so far, written when the hook has succeeded; if FUNCTION is empty, no
#             hook runs and the names of all functions are written there. Its last line marks it as complete
#   OWN       install.sh to source again just before the call; may be empty
#   WORD      arguments of FUNCTION, as many as COUNT
#   SCRIPT    install.sh of every add-on of the run, in order
# Descriptor 3 takes records of events (curlew_control in lib/logging.sh).
#
# Everything runs at top level: inside a function, `declare` in the files would create local variables. After the
# first file only builtins are called by name: the files may define functions of any name.

CURLEW_LIBRARY="$1" CURLEW_SETTINGS="$2" CURLEW_CARRIED="$3" CURLEW_RESULT="$4" CURLEW_FUNCTION="$5" CURLEW_OWN="$6"
CURLEW_WORDS=("${@:8:$7}") CURLEW_SCRIPTS=("${@:8+$7}")
set --
# Keeps descriptor 3 free for hooks.
# shellcheck disable=SC2034
exec {CURLEW_CONTROL}>&3 3>&-
# Values of variables must be private.
umask 077
: >|"$CURLEW_RESULT"
: >|"$CURLEW_RESULT.part"
umask 022

# usage: curlew_options [SHELLOPTS BASHOPTS]
# Turns on exactly these options, by default those of a hook whose install.sh sets none, and sets the traps.
curlew_options() {
  builtin local IFS=: name set="${1-$CURLEW_SET}" shopt="${2-$CURLEW_SHOPT}"
  if [[ "$SHELLOPTS,$BASHOPTS" != "$set,$shopt" ]]; then
    for name in $SHELLOPTS; do if [[ ":$set:" != *":$name:"* ]]; then builtin set +o "$name"; fi; done
    for name in $BASHOPTS; do if [[ ":$shopt:" != *":$name:"* ]]; then builtin shopt -u "$name"; fi; done
    for name in $shopt; do builtin shopt -s "$name"; done
    for name in $set; do builtin set -o "$name"; done
  fi
  builtin set -eE
  builtin trap 'curlew_on_error "$?" "${FUNCNAME[0]-}" "${BASH_SOURCE[0]-}" "$LINENO" "$BASH_COMMAND"' ERR
  builtin trap 'curlew_on_term "$BASH_COMMAND"' TERM
}
set -eE
CURLEW_SET="$SHELLOPTS" CURLEW_SHOPT="$BASHOPTS" CURLEW_OWN_SET='' CURLEW_OWN_SHOPT=''

# Keeps the options of an install.sh that has just been sourced for the hook, if the file is the first that defines it.
curlew_keep_options() {
  if [[ -z "$CURLEW_OWN_SET" ]] && builtin declare -F "$CURLEW_FUNCTION" &>/dev/null; then
    CURLEW_OWN_SET="$SHELLOPTS" CURLEW_OWN_SHOPT="$BASHOPTS"
  fi
}

# Prints name, line and file of a function.
curlew_defined() {
  builtin shopt -s extdebug
  builtin declare -F "$1"
}

# usage: curlew_on_error STATUS FUNCTION FILE LINE COMMAND
# The last field of a record is `start` if the line is the first of the function.
curlew_on_error() {
  if [[ -n "${CURLEW_CALLING-}" && "$2" == '' && "$3" == "${BASH_SOURCE[0]}" ]]; then
    # The hook itself has returned a status. Its RETURN trap knows the line; if the hook set another one, the place of
    # its definition is known.
    builtin local name line file command="return $1" is=start
    builtin read -r name line file < <(curlew_defined "$CURLEW_FUNCTION")
    if [[ -n "${CURLEW_RETURNED-}" ]]; then line="${CURLEW_RETURNED%% *}" command="${CURLEW_RETURNED#* }" is=''; fi
    builtin set -- "$1" "$name" "$file" "$line" "$command" "$is"
  fi
  curlew_control error "$BASH_SUBSHELL" "$@"
}

# Reports what was running when the hook was terminated. Its line is unknown, but not the start of its function.
curlew_on_term() {
  builtin local name line file
  builtin read -r name line file < <(curlew_defined "${FUNCNAME[1]-}") || name=
  curlew_control error "$BASH_SUBSHELL" 143 "$name" "${file:-${BASH_SOURCE[1]-}}" "${line:-0}" "$1" start
  builtin exit 143
}

# Exits the shell as the builtin does, and reports where: a hook that exits has failed.
exit() {
  builtin local CURLEW_STATUS=$?
  if (($# > 0)); then CURLEW_STATUS="$1"; fi
  if ((BASH_SUBSHELL == 0)); then
    curlew_control error 0 "$CURLEW_STATUS" "${FUNCNAME[1]}" "${BASH_SOURCE[1]}" "${BASH_LINENO[0]}" "exit $CURLEW_STATUS"
  fi
  builtin exit "$CURLEW_STATUS"
}

# usage: curlew_snapshot ARRAY
# Fills the array: name -> the command that recreates the variable; empty for one without a value. Those of this
# runner are omitted. All go through one file that is written once: a process or a truncated file for
# each would take longer than most hooks; so would a check of each name and text, since few differ. Each time the last
# word must be complete: a variable lost on a full disk would be unset in all later hooks.
declare -A CURLEW_NOW CURLEW_BEFORE
curlew_snapshot() {
  {
    builtin compgen -v -X 'CURLEW_*'
    builtin printf 'CURLEW_END\n'
  } >|"$CURLEW_RESULT.part"
  builtin mapfile -t CURLEW_NAMES <"$CURLEW_RESULT.part"
  curlew_whole "${CURLEW_NAMES[@]: -1}"
  builtin unset -v 'CURLEW_NAMES[-1]'
  {
    for CURLEW_NAME in "${CURLEW_NAMES[@]}"; do
      builtin declare -p "$CURLEW_NAME"
      builtin printf '\0'
    done
    builtin printf 'CURLEW_END\0'
  } >|"$CURLEW_RESULT.part" 2>/dev/null
  builtin mapfile -d '' -t CURLEW_TEXTS <"$CURLEW_RESULT.part"
  curlew_whole "${CURLEW_TEXTS[${#CURLEW_NAMES[@]}]-}"
  for CURLEW_NAME in "${!CURLEW_NAMES[@]}"; do
    builtin printf -v "$1[${CURLEW_NAMES[CURLEW_NAME]}]" '%s' "${CURLEW_TEXTS[CURLEW_NAME]}"
  done
}

# True for variables that the shell itself maintains.
curlew_of_shell() {
  case "$1" in
    BASH* | FUNCNAME | PIPESTATUS | _ | RANDOM | SRANDOM | SECONDS | EPOCHSECONDS | EPOCHREALTIME) builtin return 0 ;;
    PWD | OLDPWD | SHLVL | LINENO | DIRSTACK | GROUPS | HISTCMD | COMP_WORDBREAKS | COLUMNS | LINES) builtin return 0 ;;
  esac
  builtin return 1
}

curlew_whole() {
  if [[ "${1-}" == CURLEW_END ]]; then builtin return; fi
  builtin echo 'cannot save the variables of this hook' >&2
  builtin exit 1
}

for CURLEW_FILE in "$CURLEW_LIBRARY"/*.sh; do
  # shellcheck source=/dev/null
  builtin source "$CURLEW_FILE"
done
curlew_options
detectLsbDist
curlew_control stage settings "$CURLEW_SETTINGS"
# shellcheck source=/dev/null
builtin source "$CURLEW_SETTINGS"
curlew_discover || true
for CURLEW_FILE in "${CURLEW_SCRIPTS[@]}"; do
  curlew_control stage source "$CURLEW_FILE"
  # shellcheck source=/dev/null
  builtin source "$CURLEW_FILE"
  curlew_keep_options
  curlew_options
done

if [[ -z "$CURLEW_FUNCTION" ]]; then
  CURLEW_TEXT="$(builtin compgen -A function)"
  builtin printf '%s\n: whole\n' "$CURLEW_TEXT" >|"$CURLEW_RESULT"
  builtin exit
fi

builtin set +eE
curlew_snapshot CURLEW_BEFORE
curlew_options
if [[ -e "$CURLEW_CARRIED" ]]; then
  curlew_control stage carried "$CURLEW_CARRIED"
  # `builtin declare` takes no lists: a function of that name is set aside.
  CURLEW_NAME=declare CURLEW_TEXT=
  if builtin declare -F "$CURLEW_NAME" >/dev/null; then
    CURLEW_TEXT="$(builtin declare -f "$CURLEW_NAME")"
    builtin unset -f "$CURLEW_NAME"
  fi
  # shellcheck source=/dev/null
  builtin source "$CURLEW_CARRIED"
  builtin eval "$CURLEW_TEXT"
fi
if [[ "$CURLEW_FUNCTION" != *_pre_init ]]; then curlew_cluster_networks || builtin true; fi
if [[ -n "$CURLEW_OWN" ]]; then
  curlew_control stage source "$CURLEW_OWN"
  # shellcheck source=/dev/null
  builtin source "$CURLEW_OWN"
  CURLEW_OWN_SET=''
  curlew_keep_options
  curlew_options
fi

if ! builtin declare -F "$CURLEW_FUNCTION" >/dev/null; then
  curlew_control absent "$CURLEW_FUNCTION"
  builtin exit 1
fi
curlew_control stage call "$CURLEW_FUNCTION"
CURLEW_CALLING=1
curlew_options "$CURLEW_OWN_SET" "$CURLEW_OWN_SHOPT"
# Only a traced function runs this trap.
builtin declare -ft "$CURLEW_FUNCTION"
builtin trap 'CURLEW_RETURNED="$LINENO $BASH_COMMAND"' RETURN
# An error in an expansion, such as $((08)), ends this group with all that it calls, but not the shell.
CURLEW_COMPLETED=''
{
  "$CURLEW_FUNCTION" ${CURLEW_WORDS[@]+"${CURLEW_WORDS[@]}"}
  CURLEW_COMPLETED=1
}

curlew_options
if [[ -z "$CURLEW_COMPLETED" ]]; then
  # No trap has run: the last record may be of a failure that the hook has handled.
  curlew_control broken
  builtin exit 1
fi
builtin trap - ERR RETURN
builtin set +eE
curlew_snapshot CURLEW_NOW
CURLEW_ALL=
for CURLEW_NAME in "${!CURLEW_BEFORE[@]}"; do
  if [[ -z "${CURLEW_BEFORE[$CURLEW_NAME]}" || -n "${CURLEW_NOW[$CURLEW_NAME]-}" ]]; then builtin continue; fi
  if ! curlew_of_shell "$CURLEW_NAME"; then CURLEW_ALL+="builtin unset -v $CURLEW_NAME"$'\n'; fi
done
for CURLEW_NAME in "${!CURLEW_NOW[@]}"; do
  CURLEW_TEXT="${CURLEW_NOW[$CURLEW_NAME]}"
  if [[ -z "$CURLEW_TEXT" || "$CURLEW_TEXT" == "${CURLEW_BEFORE[$CURLEW_NAME]-}" ]]; then builtin continue; fi
  if curlew_of_shell "$CURLEW_NAME"; then builtin continue; fi
  CURLEW_FLAGS="${CURLEW_TEXT#declare }"
  CURLEW_FLAGS="${CURLEW_FLAGS%% *}"
  if [[ "$CURLEW_FLAGS" == *r* ]]; then builtin continue; fi
  CURLEW_UNSET=-v
  if [[ "$CURLEW_FLAGS" == *n* ]]; then CURLEW_UNSET=-n; fi
  CURLEW_ALL+="builtin unset $CURLEW_UNSET $CURLEW_NAME"$'\n'"$CURLEW_TEXT"
done
# In one write: of several, some could fail silently on a full disk.
builtin printf '%s: whole\n' "$CURLEW_ALL" >|"$CURLEW_RESULT"
