#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2034,SC2317
load setup

@test "spinner_until runs a command until it works" {
  : >tries
  ready() {
    echo x >>tries
    [ "$(wc -l <tries)" -ge 4 ]
  }
  run spinner_until 10 ready
  [ "$status" -eq 0 ]
  [ "$(wc -l <tries)" -eq 4 ]
}

@test "spinner_until answers 1 when the time is over" {
  : >tries
  never() {
    echo x >>tries
    return 1
  }
  run spinner_until 3 never
  [ "$status" -eq 1 ]
  [ "$(wc -l <tries)" -eq 4 ]
}

@test "spinner_until without a time, or with -1, goes on" {
  : >tries
  late() {
    echo x >>tries
    [ "$(wc -l <tries)" -ge 50 ]
  }
  run spinner_until '' late
  [ "$status" -eq 0 ]
  : >tries
  run spinner_until -1 late
  [ "$status" -eq 0 ]
}

@test "spinner_until flattens its arguments and shows the command's output" {
  show() { printf '<%s>' "$@"; }
  run spinner_until 1 show 'a b' c
  [ "$output" = '<a><b><c>' ]
}

@test "spinner_until may fail without ending a shell under errexit before it decides" {
  run bash -ec "source '$LIBRARY/spinner.sh'; sleep() { :; }; spinner_until 1 false || echo late"
  [ "$output" = late ]
}

@test "sleep_spinner sleeps as often as there are seconds" {
  sleep() { echo "$1" >>waits; }
  run sleep_spinner 3
  [ "$status" -eq 0 ]
  [ "$(cat waits)" = "$(lines 1 1 1)" ]
}
