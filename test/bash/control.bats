#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2034,SC2317
load setup

@test "bail says why and ends the shell with status 1" {
  run --separate-stderr bail 'no disk'
  [ "$status" -eq 1 ]
  # shellcheck disable=SC2154
  [ "$stderr" = $'\e[0;31mno disk\e[0m' ]
}

@test "bail inside a substitution ends only that" {
  run bash -c "source '$LIBRARY/logging.sh'; source '$LIBRARY/control.sh'; x=\$(bail no 2>/dev/null); echo on"
  [ "$output" = on ]
}

@test "commandExists knows programs and shell functions" {
  demo-addon_pre_init() { :; }
  commandExists demo-addon_pre_init
  commandExists cat
  run commandExists surely-not-there
  [ "$status" -ne 0 ]
}

@test "try_1m tries until it works, with standard error hidden" {
  echo 0 >tries
  flaky() {
    echo noise >&2
    echo "$(($(cat tries) + 1))" >tries
    [ "$(cat tries)" -ge 3 ]
  }
  run try_1m flaky
  [ "$status" -eq 0 ]
  [ "$output" = '' ]
  [ "$(cat tries)" -eq 3 ]
}

@test "try_1m gives up after 30 tries and shows one last run" {
  echo 0 >tries
  never() {
    echo "why $1" >&2
    echo "$(($(cat tries) + 1))" >tries
    return 1
  }
  run try_1m never not
  [ "$status" -eq 1 ]
  [ "${lines[0]}" = 'why not' ]
  [[ "${lines[1]}" == *'"never not"'* ]]
  [ "$(cat tries)" -eq 31 ]
}

@test "try_5m tries 150 times" {
  echo 0 >tries
  never() {
    echo "$(($(cat tries) + 1))" >tries
    return 1
  }
  run try_5m never
  [ "$status" -eq 1 ]
  [ "$(cat tries)" -eq 151 ]
}

@test "try_1m_stderr shows standard error" {
  works() { echo seen >&2; }
  run try_1m_stderr works
  [ "$output" = seen ]
}

@test "cmd_retry waits longer each time and hands back the last status" {
  sleep() { echo "$1" >>waits; }
  fails() { return 7; }
  run cmd_retry 4 fails
  [ "$status" -eq 7 ]
  [ "$(cat waits)" = "$(lines 1 2 4)" ]
}

@test "maybe hides failure and what it says" {
  run maybe bash -c 'echo out; echo err >&2; exit 3'
  [ "$status" -eq 0 ]
  [ "$output" = out ]
}
