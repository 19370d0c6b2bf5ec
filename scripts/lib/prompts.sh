# shellcheck shell=bash
# Questions. A hook has no terminal of its own: without one the answers are the defaults, and that is said.

prompts_can_prompt() {
  { : </dev/tty; } 2>/dev/null
}

curlew_answer() {
  local answer
  IFS= read -r answer </dev/tty || true
  printf '%s' "$answer"
}

# Yes unless the answer is n.
confirmY() {
  printf '(Y/n) '
  if [[ "${ASSUME_YES-}" == 1 ]]; then return 0; fi
  if ! prompts_can_prompt; then
    logWarn 'Automatically accepting prompt, no terminal is attached'
    return 0
  fi
  case "$(curlew_answer)" in
    n | N) return 1 ;;
  esac
}

# No unless the answer is y.
confirmN() {
  printf '(y/N) '
  if [[ "${ASSUME_YES-}" == 1 ]]; then return 0; fi
  if ! prompts_can_prompt; then
    logWarn 'Automatically declining prompt, no terminal is attached'
    return 1
  fi
  case "$(curlew_answer)" in
    y | Y) return 0 ;;
  esac
  return 1
}

# Reads one line into PROMPT_RESULT. Turns errexit on, as callers of it expect.
# shellcheck disable=SC2034
prompt() {
  PROMPT_RESULT=
  if [[ -n "${TEST_PROMPT_RESULT-}" ]]; then
    PROMPT_RESULT="$TEST_PROMPT_RESULT"
  elif prompts_can_prompt; then
    IFS= read -r PROMPT_RESULT </dev/tty || true
  else
    bail 'A question was asked, but there is no terminal to answer it'
  fi
  set -e
}
