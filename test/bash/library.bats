#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2034,SC2317
load setup

# Sources the library in a new shell, in the order of the command given, and prints what that changed.
changes() {
  # Exported by the library, which this shell has sourced itself.
  unset -v KUBEADM_CONF_FILE KUBECTL_PLUGINS_PATH PV_BASE_PATH
  bash -c '
    before="$(set +o; shopt; trap; pwd; umask; ls -A; alias)"
    variables="$(compgen -v | sort)"
    source_all() { while IFS= read -r file; do source "$file" || echo "status $?"; done < <(printf "%s\n" "$LIBRARY"/*.sh | '"$1"'); }
    source_all </dev/null
    [ "$before" = "$(set +o; shopt; trap; pwd; umask; ls -A; alias)" ] || echo state
    comm -13 <(echo "$variables") <(compgen -v | sort) | grep -vxE "file|variables|PIPESTATUS|_|FUNCNAME|COLUMNS|LINES"
  ' 2>&1
}

@test "sourcing the library in any order defines functions, colours and places, and has no other effect" {
  export LIBRARY
  for order in cat 'sort -r' 'sort -R' 'sort -R'; do
    run changes "$order"
    local names=(BLUE GREEN KUBEADM_CONF_DIR KUBEADM_CONF_FILE KUBECTL_PLUGINS_PATH LIGHT_BLUE NC PV_BASE_PATH RED YELLOW)
    [ "$output" = "$(lines "${names[@]}")" ]
  done
}

@test "each file of the library can be sourced alone, twice, under every option" {
  for file in "$LIBRARY"/*.sh; do
    run bash -euo pipefail -c 'source "$1"; source "$1"' bash "$file"
    [ "$status" -eq 0 ]
    [ "$output" = '' ]
  done
}

@test "no function is defined twice" {
  run bash -c 'grep -hoE "^[A-Za-z_0-9]+\(\)" "$1"/*.sh | sort | uniq -d' bash "$LIBRARY"
  [ "$output" = '' ]
}
