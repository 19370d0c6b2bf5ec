#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2034,SC2317
load setup

@test "log writes its first argument to standard error as it is" {
  run --separate-stderr log '100% \n "sure"' second
  [ "$status" -eq 0 ]
  [ "$output" = '' ]
  # shellcheck disable=SC2154
  [ "$stderr" = '100% \n "sure"' ]
}

@test "the text of logStep is part of a printf format" {
  run --separate-stderr logStep '50%% of\ttwo'
  [ "$status" -eq 0 ]
  [ "$stderr" = $'\e[0;94m⚙  50% of\ttwo\e[0m' ]
}

@test "logSubstep is indented and light blue" {
  run --separate-stderr logSubstep one
  [[ "$stderr" == *$'\e[0;34m- one\e[0m' ]]
}

@test "logSuccess, logWarn and logFail have their colours and status 0" {
  run --separate-stderr logSuccess good
  [ "$status" -eq 0 ]
  [ "$stderr" = $'\e[0;32m✔ good\e[0m' ]
  run --separate-stderr logWarn careful
  [ "$status" -eq 0 ]
  [ "$stderr" = $'\e[0;33mcareful\e[0m' ]
  run --separate-stderr logFail broken
  [ "$status" -eq 0 ]
  [ "$stderr" = $'\e[0;31mbroken\e[0m' ]
}

@test "a wrong format does not end a hook" {
  run bash -ec "source '$LIBRARY/logging.sh'; logWarn 'only 5% z left'; echo on"
  [ "$status" -eq 0 ]
  [[ "$output" == *on ]]
}

@test "a record keeps tabs, newlines and backslashes inside its field" {
  exec {CURLEW_CONTROL}>control
  curlew_control log info $'a\tb\nc\\d'
  [ "$(cat control)" = $'log\tinfo\ta\\tb\\nc\\\\d' ]
}

@test "a closed control descriptor does not end a hook" {
  run bash -ec "source '$LIBRARY/logging.sh'; CURLEW_CONTROL=77; log one; echo on"
  [ "$status" -eq 0 ]
  [ "${lines[-1]}" = on ]
}
