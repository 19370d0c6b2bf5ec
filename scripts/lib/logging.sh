# shellcheck shell=bash
# Messages of hooks: to standard error, as add-ons expect, and as records on the control descriptor.

GREEN='\033[0;32m'
BLUE='\033[0;94m'
LIGHT_BLUE='\033[0;34m'
YELLOW='\033[0;33m'
RED='\033[0;31m'
NC='\033[0m'

# usage: curlew_control KIND FIELD…
# Writes one record per line; tabs separate fields; backslash, tab and newline inside a field are escaped. Never fails a hook.
curlew_control() {
  [[ -n "${CURLEW_CONTROL-}" ]] || builtin return 0
  builtin local CURLEW_LINE="$1" CURLEW_FIELD
  builtin shift
  for CURLEW_FIELD in "$@"; do
    CURLEW_FIELD="${CURLEW_FIELD:0:4000}"
    CURLEW_FIELD="${CURLEW_FIELD//\\/\\\\}"
    CURLEW_FIELD="${CURLEW_FIELD//$'\t'/\\t}"
    CURLEW_LINE+=$'\t'"${CURLEW_FIELD//$'\n'/\\n}"
  done
  { builtin printf '%s\n' "$CURLEW_LINE" >&"$CURLEW_CONTROL"; } 2>/dev/null || builtin true
}

# The text of the step functions is part of a printf format, as add-ons expect: `%` is doubled, `\n` expands.
curlew_say() {
  local kind="$1" before="$2" text="$3" shown
  # shellcheck disable=SC2059
  printf "${before}${text}${NC}\n" 1>&2 || true
  # shellcheck disable=SC2059
  printf -v shown "$text" 2>/dev/null || shown="$text"
  curlew_control log "$kind" "$shown"
}

log() {
  printf '%s\n' "${1-}" 1>&2
  curlew_control log info "${1-}"
}

logStep() {
  curlew_say step "${BLUE}⚙  " "${1-}"
}

logSubstep() {
  curlew_say substep "\t${LIGHT_BLUE}- " "${1-}"
}

logSuccess() {
  curlew_say success "${GREEN}✔ " "${1-}"
}

logWarn() {
  curlew_say warning "${YELLOW}" "${1-}"
}

logFail() {
  curlew_say failure "${RED}" "${1-}"
}
