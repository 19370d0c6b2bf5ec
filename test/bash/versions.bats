#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2034,SC2317
load setup

parts() {
  semverParse "$1"
  # shellcheck disable=SC2154
  echo "$major,$minor,$patch"
}

@test "semverParse takes a version apart, and repeats what is missing" {
  [ "$(parts 1.2.3-rc1)" = 1,2,3 ]
  [ "$(parts v1.2.3)" = v1,2,3 ]
  [ "$(parts 1.2)" = 1,2,1 ]
  [ "$(parts 1)" = 1,1,1 ]
  [ "$(parts '')" = ,, ]
  [ "$(parts 1.0.4-14.2.21)" = 1,0,4 ]
}

@test "case 17: versions of docker" {
  [ "$(parts 17.03.0-ce)" = 17,03,0 ]
  semverCompare 1.13.1 17.03.0-ce
  [ "$SEMVER_COMPARE_RESULT" -eq -1 ]
}

@test "case 17: semverCompare" {
  semverCompare 2.28.0 2.29.1
  [ "$SEMVER_COMPARE_RESULT" -eq -1 ]
  semverCompare 2.29.1 2.29.1
  [ "$SEMVER_COMPARE_RESULT" -eq 0 ]
  semverCompare 2.29.1 2.29.0
  [ "$SEMVER_COMPARE_RESULT" -eq 1 ]
}

@test "semverCompare takes what is empty for 0" {
  run --separate-stderr semverCompare '' 1.0.0
  [ -z "$stderr" ]
  semverCompare '' 1.0.0
  [ "$SEMVER_COMPARE_RESULT" -eq -1 ]
  semverCompare 1.0.0 ''
  [ "$SEMVER_COMPARE_RESULT" -eq 1 ]
  semverCompare '' ''
  [ "$SEMVER_COMPARE_RESULT" -eq 0 ]
}

@test "semverCompare ignores what follows the patch number" {
  semverCompare 1.0.4-14.2.21 1.0.4
  [ "$SEMVER_COMPARE_RESULT" -eq 0 ]
  semverCompare 1.2 1.2.0
  [ "$SEMVER_COMPARE_RESULT" -eq 1 ]
}

@test "semverCompare of something else than numbers is no failure" {
  run bash -ec "source '$LIBRARY/versions.sh'; semverCompare nightly 1.0.0 2>/dev/null; echo \$SEMVER_COMPARE_RESULT"
  [ "$status" -eq 0 ]
}

@test "case 15: only major and minor are compared" {
  [ "$(common_upgrade_compare_versions 1.0.1 1.0)" -eq 0 ]
  [ "$(common_upgrade_compare_versions 2.1 1.2)" -eq 1 ]
  [ "$(common_upgrade_compare_versions 1.2 1.10)" -eq -1 ]
}

@test "kebab_to_camel" {
  [ "$(kebab_to_camel cert-manager)" = certManager ]
  [ "$(kebab_to_camel metrics-server)" = metricsServer ]
  [ "$(kebab_to_camel certManager)" = certManager ]
}

@test "case 32: splitHostPort" {
  splitHostPort 1.1.1.1:9876
  [ "$HOST,$PORT" = 1.1.1.1,9876 ]
  splitHostPort 1.1.1.1
  [ "$HOST,$PORT" = 1.1.1.1, ]
  splitHostPort ''
  [ "$HOST,$PORT" = , ]
}

@test "case 17: parts of a version of docker" {
  parseDockerVersion 17.03.0-ce
  [ "$DOCKER_VERSION_MAJOR,$DOCKER_VERSION_MINOR,$DOCKER_VERSION_PATCH,$DOCKER_VERSION_RELEASE" = 17,03,0,ce ]
  parseDockerVersion ''
  [ "$DOCKER_VERSION_MAJOR" = '' ]
}

@test "case 17: compareDockerVersions" {
  compareDockerVersions 1.13.1 17.03.0-ce
  [ "$COMPARE_DOCKER_VERSIONS_RESULT" -eq -1 ]
  compareDockerVersions 19.03.9 19.03.09
  [ "$COMPARE_DOCKER_VERSIONS_RESULT" -eq 0 ]
  compareDockerVersions 19.03.15 19.03.8
  [ "$COMPARE_DOCKER_VERSIONS_RESULT" -eq 1 ]
  compareDockerVersionsIgnorePatch 19.03.15 19.03.8
  [ "$COMPARE_DOCKER_VERSIONS_RESULT" -eq 0 ]
}
