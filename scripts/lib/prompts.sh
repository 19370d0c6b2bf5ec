# shellcheck shell=bash
# Questions. A hook has no terminal: curlew asks on its own terminal (the question goes over the control
# descriptor, the answer comes in a file), or the hook has a terminal after all. Otherwise the defaults are the answers, with
# a warning.

curlew_can_ask() {
  [[ -n "${CURLEW_ANSWER-}" && -n "${CURLEW_CONTROL-}" && -e "/proc/${CURLEW_ASKER-}" ]]
}

prompts_can_prompt() {
  curlew_can_ask || { : </dev/tty; } 2>/dev/null
}

# usage: curlew_ask yes|no|text|secret
# Prints one line, which may be empty. Status 1 if curlew has exited.
curlew_ask() {
  local id file state answer=''
  if ! curlew_can_ask; then
    if [[ "$1" == secret ]]; then IFS= read -rs answer; else IFS= read -r answer; fi </dev/tty || true
    printf '%s' "$answer"
    return 0
  fi
  id="$BASHPID-$RANDOM$RANDOM" file="$CURLEW_ANSWER-$id"
  curlew_control question "$1" "$id"
  while [[ ! -e "$file" ]]; do
    if ! curlew_can_ask; then return 1; fi
    command sleep 0.2
  done
  { read -r state && IFS= read -r answer; } <"$file" || true
  rm -f "$file"
  printf '%s' "$answer"
  [[ "$state" == answer ]]
}

# usage: curlew_confirm yes|no DEFAULT HOW
# Sets the caller's `answer`. A default answer is printed after the question, as kURL does.
# shellcheck disable=SC2034
curlew_confirm() {
  if [[ "${ASSUME_YES-}" == 1 ]]; then
    answer=Y
    echo Y
  elif [[ -n "${TEST_PROMPT_RESULT+set}" ]]; then
    answer="$TEST_PROMPT_RESULT"
  elif ! prompts_can_prompt || ! answer="$(curlew_ask "$1")"; then
    answer="$2"
    echo "$2"
    logWarn "Automatically $3 prompt, shell is not interactive"
  fi
}

# Yes unless the answer is n.
confirmY() {
  local answer
  printf '(Y/n) '
  curlew_confirm yes Y accepting
  [[ "$answer" != [nN] ]]
}

# No unless the answer is y.
confirmN() {
  local answer
  printf '(y/N) '
  curlew_confirm no N declining
  [[ "$answer" == [yY] ]]
}

# usage: curlew_prompt text|secret
# shellcheck disable=SC2034
curlew_prompt() {
  PROMPT_RESULT=
  if [[ -n "${TEST_PROMPT_RESULT+set}" ]]; then
    PROMPT_RESULT="$TEST_PROMPT_RESULT"
  elif ! prompts_can_prompt || ! PROMPT_RESULT="$(curlew_ask "$1")"; then
    bail 'Cannot prompt, shell is not interactive: a question was asked, but there is no terminal to answer it'
  fi
  set -e
}

# Reads one line into PROMPT_RESULT. Turns errexit on, as callers expect.
prompt() {
  curlew_prompt text
}

# The same without showing the input.
prompt_secret() {
  curlew_prompt secret
}
