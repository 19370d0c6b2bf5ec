#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2034,SC2317
load setup

# A session of its own has no terminal, wherever the tests run.
without_terminal() {
  setsid -w bash -ec "for file in '$LIBRARY'/*.sh; do source \"\$file\"; done; $1"
}

@test "without a terminal nothing can be asked" {
  run without_terminal 'prompts_can_prompt || echo no'
  [ "$output" = no ]
}

@test "confirmY without a terminal is yes, with a warning" {
  run --separate-stderr without_terminal 'confirmY && echo yes'
  [ "$output" = '(Y/n) yes' ]
  # shellcheck disable=SC2154
  [[ "$stderr" == *'no terminal'* ]]
}

@test "confirmN without a terminal is no, with a warning" {
  run --separate-stderr without_terminal 'confirmN || echo no'
  [ "$output" = '(y/N) no' ]
  [[ "$stderr" == *'no terminal'* ]]
}

@test "ASSUME_YES answers both" {
  run --separate-stderr without_terminal 'ASSUME_YES=1; confirmY && confirmN && echo yes'
  [ "$output" = '(Y/n) (y/N) yes' ]
  [ "$stderr" = '' ]
}

@test "prompt bails without a terminal" {
  run without_terminal 'prompt; echo on'
  [ "$status" -eq 1 ]
  [[ "$output" == *'no terminal'* ]]
}

@test "prompt takes TEST_PROMPT_RESULT and turns errexit on" {
  # shellcheck disable=SC2016
  run without_terminal 'set +e; TEST_PROMPT_RESULT=abc; prompt; echo "$PROMPT_RESULT"; false; echo on'
  [ "$output" = abc ]
  [ "$status" -eq 1 ]
}
