#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2034,SC2317
load setup

@test "case 3: canonical_image_name" {
  for name in image:1.0 library/image:1.0 docker.io/library/image:1.0; do
    [ "$(canonical_image_name "$name")" = docker.io/library/image:1.0 ]
  done
  [ "$(canonical_image_name org/image:1.0)" = docker.io/org/image:1.0 ]
  [ "$(canonical_image_name quay.io/org/image)" = quay.io/org/image:latest ]
  [ "$(canonical_image_name image)" = docker.io/library/image:latest ]
}
