#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2034,SC2317
load setup

no_colours() {
  sed -r 's/\x1B\[[0-9;]*m//g'
}

place() {
  KURL_INSTALL_DIRECTORY=/var/lib/kurl KURL_URL=https://kurl.sh KURL_VERSION=v0.0.0-0 INSTALLER_ID=1234
}

MISSING='The following packages are not available locally, and are required:
    rook-1.tar.gz
    rook-2.tar.gz
    rook-3.tar.gz

You can download them with the following command:

    curl -LO https://kurl.sh/bundle/version/v0.0.0-0/1234/packages/rook-1,rook-2,rook-3.tar.gz
'

@test "case 18: missing packages are named, with the command and the place" {
  place
  prompts_can_prompt() { return 1; }
  run addon_fetch_multiple_airgap rook-1 rook-2 rook-3
  [ "$status" -eq 1 ]
  [ "$(no_colours <<<"$output")" = "$MISSING
Please move this file to /var/lib/kurl/assets/rook-1,rook-2,rook-3.tar.gz before rerunning the installer." ]
}

@test "case 18: no path given" {
  place
  prompts_can_prompt() { return 0; }
  prompt() { PROMPT_RESULT=; }
  run addon_fetch_multiple_airgap rook-1 rook-2 rook-3
  [ "$status" -eq 1 ]
  [[ "$(no_colours <<<"$output")" == "$MISSING"*'Package rook-1,rook-2,rook-3.tar.gz not provided.'* ]]
}

@test "a path given is copied and unpacked" {
  place
  prompts_can_prompt() { return 0; }
  mkdir -p addons/rook/1
  tar czf elsewhere.tar.gz addons
  rm -r addons
  prompt() { PROMPT_RESULT="$PWD/elsewhere.tar.gz"; }
  addon_fetch_airgap rook 1
  [ -d addons/rook/1 ]
  [ -f assets/rook-1.tar.gz ]
  rm -r addons
  prompt() { return 1; }
  addon_fetch_airgap rook 1
  [ -d addons/rook/1 ]
  prompt() { PROMPT_RESULT=/none; }
  run addon_fetch_airgap rook 2
  [ "$status" -eq 1 ]
  [[ "$output" == *'/none does not exist'* ]]
}

@test "a file of several packages is found by what it names" {
  mkdir -p addons/rook/1 assets
  tar czf assets/rook-1,rook-2.tar.gz addons
  rm -r addons
  addon_fetch_airgap rook 2
  [ -d addons/rook/1 ]
}

@test "packages that are here are unpacked, and only the rest is asked for" {
  place
  prompts_can_prompt() { return 1; }
  mkdir -p addons/rook/1 assets
  tar czf assets/rook-1.tar.gz addons
  rm -r addons
  run addon_fetch_multiple_airgap rook-1 rook-2
  [ "$status" -eq 1 ]
  [ -d addons/rook/1 ]
  [[ "$output" == *'packages/rook-2.tar.gz'* ]]
  echo damaged >assets/rook-3.tar.gz
  run addon_fetch_multiple_airgap rook-3
  [ "$status" -eq 1 ]
  [[ "$output" == *'Failed to unpack rook-3.tar.gz'* ]]
}

@test "a package that the run has unpacked is not asked for" {
  place
  prompts_can_prompt() { return 1; }
  mkdir -p addons/rook/1.0.4-14.2.21 packages/kubernetes/1.28.15
  touch addons/rook/1.0.4-14.2.21/addon.json packages/kubernetes/1.28.15/addon.json
  run addon_fetch_multiple_airgap rook-1.0.4-14.2.21 kubernetes-1.28.15
  [ "$status" -eq 0 ]
  [ "$output" = 'The package rook-1.0.4-14.2.21 is already available locally.
The package kubernetes-1.28.15 is already available locally.' ]
  run addon_fetch_airgap kubernetes 1.28.15
  [ "$status" -eq 0 ]
  run addon_fetch_airgap kubernetes 1.28.1
  [ "$status" -eq 1 ]
}
