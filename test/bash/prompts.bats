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
  [ "$output" = "$(lines '(Y/n) Y' yes)" ]
  # shellcheck disable=SC2154
  [[ "$stderr" == *'Automatically accepting prompt, shell is not interactive'* ]]
}

@test "confirmN without a terminal is no, with a warning" {
  run --separate-stderr without_terminal 'confirmN || echo no'
  [ "$output" = "$(lines '(y/N) N' no)" ]
  [[ "$stderr" == *'Automatically declining prompt, shell is not interactive'* ]]
}

@test "ASSUME_YES answers both" {
  run --separate-stderr without_terminal 'ASSUME_YES=1; confirmY && confirmN && echo yes'
  [ "$output" = "$(lines '(Y/n) Y' '(y/N) Y' yes)" ]
  [ "$stderr" = '' ]
}

@test "prompt bails without a terminal" {
  run without_terminal 'prompt; echo on'
  [ "$status" -eq 1 ]
  [[ "$output" == *'Cannot prompt, shell is not interactive'* ]]
}

@test "TEST_PROMPT_RESULT answers every question, an empty one with its default" {
  run without_terminal 'TEST_PROMPT_RESULT=; prompt; echo "<$PROMPT_RESULT>"; confirmY && echo yes; confirmN || echo no'
  [ "$output" = "$(lines '<>' '(Y/n) yes' '(y/N) no')" ]
  run without_terminal 'TEST_PROMPT_RESULT=n; confirmY || echo no; TEST_PROMPT_RESULT=y; confirmN && echo yes'
  [ "$output" = "$(lines '(Y/n) no' '(y/N) yes')" ]
}

@test "prompt takes TEST_PROMPT_RESULT and turns errexit on" {
  # shellcheck disable=SC2016
  run without_terminal 'set +e; TEST_PROMPT_RESULT=abc; prompt; echo "$PROMPT_RESULT"; false; echo on'
  [ "$output" = abc ]
  [ "$status" -eq 1 ]
}

# Answers the next question: STATE, and the TEXT that was typed.
answering() {
  CURLEW_ANSWER="$PWD/answer" CURLEW_ASKER=$$
  exec {CURLEW_CONTROL}>control
  (
    until [ -s control ]; do command sleep 0.05; done
    IFS=$'\t' read -r _ kind id <control
    echo "$kind" >kind
    printf '%s\n' "$@" >answer.new
    mv answer.new "answer-$id"
  ) &
}

@test "whoever runs the hook is asked over the control descriptor" {
  answering answer n
  run ! confirmY
  [ "$output" = '(Y/n) ' ]
  [ "$(cat kind)" = yes ]
  answering answer y
  run confirmN
  [ "$status" -eq 0 ]
  [ "$(cat kind)" = no ]
  answering answer ' two  words\n'
  prompt
  [ "$PROMPT_RESULT" = ' two  words\n' ]
  answering answer hidden
  prompt_secret
  [ "$PROMPT_RESULT" = hidden ]
  [ "$(cat kind)" = secret ]
  [ -z "$(compgen -G 'answer-*')" ]
}

@test "nobody there any more: the defaults, and that is said" {
  answering nobody
  run --separate-stderr confirmY
  [ "$status" -eq 0 ]
  [[ "$stderr" == *'shell is not interactive'* ]]
  CURLEW_ASKER=none
  run confirmN
  [ "$status" -eq 1 ]
}
