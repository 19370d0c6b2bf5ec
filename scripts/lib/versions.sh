# shellcheck shell=bash
# Version functions with the behavior that add-ons depend on.

# Sets major, minor and patch. Missing parts repeat the first part: "1.2" gives 1, 2, 1.
semverParse() {
  local version="${1-}"
  major="${version%%.*}"
  minor="${version#*.}"
  minor="${minor%%.*}"
  patch="${version#*.*.}"
  patch="${patch%%[-.+]*}"
}

# Sets SEMVER_COMPARE_RESULT to -1, 0 or 1; ignores everything after the patch number; an empty part is 0.
# The status is always 0.
semverCompare() {
  local left right index
  semverParse "${1-}"
  left=("${major:-0}" "${minor:-0}" "${patch:-0}")
  semverParse "${2-}"
  right=("${major:-0}" "${minor:-0}" "${patch:-0}")
  SEMVER_COMPARE_RESULT=0
  for index in 0 1 2; do
    if [ "${left[index]}" -lt "${right[index]}" ]; then
      SEMVER_COMPARE_RESULT=-1
      return 0
    elif [ "${left[index]}" -gt "${right[index]}" ]; then
      # Read by the caller.
      # shellcheck disable=SC2034
      SEMVER_COMPARE_RESULT=1
      return 0
    fi
  done
}

# Prints -1, 0 or 1; only major and minor count, so 1.0.1 equals 1.0.
common_upgrade_compare_versions() {
  local major minor patch first_major first_minor
  semverParse "$1"
  first_major="$major"
  first_minor="$minor"
  semverParse "$2"
  if [ "$first_major" -lt "$major" ]; then
    echo -1
  elif [ "$first_major" -gt "$major" ]; then
    echo 1
  elif [ "$first_minor" -lt "$minor" ]; then
    echo -1
  elif [ "$first_minor" -gt "$minor" ]; then
    echo 1
  else
    echo 0
  fi
}

# cert-manager -> certManager
kebab_to_camel() {
  printf '%s\n' "${1-}" | sed 's/-\(.\)/\U\1/g'
}

# usage: splitHostPort HOST:PORT
# Sets HOST and PORT for the caller; PORT is empty if there is none.
# shellcheck disable=SC2034
splitHostPort() {
  HOST="${1%%:*}"
  PORT=
  if [[ "${1-}" == *:* ]]; then PORT="${1##*:}"; fi
}

# Sets DOCKER_VERSION_MAJOR, _MINOR, _PATCH and _RELEASE: 17.03.0-ce gives 17, 03, 0, ce.
parseDockerVersion() {
  local rest
  DOCKER_VERSION_MAJOR='' DOCKER_VERSION_MINOR='' DOCKER_VERSION_PATCH='' DOCKER_VERSION_RELEASE=''
  [[ -n "${1-}" ]] || return 0
  IFS=. read -r DOCKER_VERSION_MAJOR DOCKER_VERSION_MINOR rest <<<"$1"
  rest="${rest%%.*}"
  # Read by add-ons.
  # shellcheck disable=SC2034
  IFS=- read -r DOCKER_VERSION_PATCH DOCKER_VERSION_RELEASE <<<"$rest"
}

# usage: curlew_compare_docker WITH-PATCH A B
# Sets COMPARE_DOCKER_VERSIONS_RESULT to -1, 0 or 1. Leading zeros do not make a number octal.
curlew_compare_docker() {
  local index left right
  local -a first second
  parseDockerVersion "$2"
  first=("$DOCKER_VERSION_MAJOR" "$DOCKER_VERSION_MINOR" "$DOCKER_VERSION_PATCH")
  parseDockerVersion "$3"
  second=("$DOCKER_VERSION_MAJOR" "$DOCKER_VERSION_MINOR" "$DOCKER_VERSION_PATCH")
  COMPARE_DOCKER_VERSIONS_RESULT=0
  for ((index = 0; index < 2 + $1; index++)); do
    left="$((10#${first[index]:-0}))" right="$((10#${second[index]:-0}))"
    if ((left != right)); then
      # Read by the caller.
      # shellcheck disable=SC2034
      COMPARE_DOCKER_VERSIONS_RESULT="$((left < right ? -1 : 1))"
      return 0
    fi
  done
}

compareDockerVersions() {
  curlew_compare_docker 1 "$1" "$2"
}

compareDockerVersionsIgnorePatch() {
  curlew_compare_docker 0 "$1" "$2"
}
