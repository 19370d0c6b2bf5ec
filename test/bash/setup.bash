# shellcheck shell=bash
# What every bats file here begins with: the library, and a folder that may be written to.
bats_require_minimum_version 1.5.0

setup() {
  LIBRARY="${BATS_TEST_DIRNAME}/../../scripts/lib"
  local file trap
  # bats would look at each command of the library, which takes longer than most tests.
  trap=$(trap -p DEBUG)
  trap - DEBUG
  for file in "$LIBRARY"/*.sh; do
    # shellcheck source=/dev/null
    source "$file"
  done
  eval "$trap"
  cd "$BATS_TEST_TMPDIR" || exit 1
  # A second that passes at once.
  # shellcheck disable=SC2317
  sleep() { :; }
}

# usage: lines TEXT…
# The arguments as lines, the way `run` keeps output: without the last line end.
lines() {
  local IFS=$'\n'
  printf '%s' "$*"
}
