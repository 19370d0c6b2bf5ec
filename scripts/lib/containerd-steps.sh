# shellcheck shell=bash
# Possible upgrades of containerd and their steps. CONTAINERD_STEP_VERSIONS is an array with the
# greatest patch of each minor version.

# usage: containerd_patch_for_minor_version MAJOR MINOR
# Prints the patch version, or nothing.
containerd_patch_for_minor_version() {
  local version major minor patch
  for version in "${CONTAINERD_STEP_VERSIONS[@]}"; do
    semverParse "$version"
    if [[ "$major.$minor" == "$1.$2" ]]; then
      printf '%s\n' "$patch"
      return 0
    fi
  done
}

# usage: containerd_migration_steps FROM TO
# Prints the versions to install in order, separated by spaces; the last is TO.
containerd_migration_steps() {
  local major minor patch from_major from_minor to_major to_minor step steps=''
  semverParse "$1"
  from_major="$major" from_minor="$minor"
  semverParse "$2"
  to_major="$major" to_minor="$minor"
  if [[ "$from_major" == "$to_major" ]]; then
    for ((step = from_minor + 1; step < to_minor; step++)); do
      patch="$(containerd_patch_for_minor_version "$to_major" "$step")"
      if [[ -z "$patch" ]]; then bail "No patch of containerd $to_major.$step is known"; fi
      steps+="$to_major.$step.$patch "
    done
  fi
  printf '%s\n' "$steps$2"
}

containerd_upgrade_between_majors() {
  [[ "${1%%.*}" != "${2%%.*}" ]]
}

# usage: containerd_upgrade_is_possible FROM TO
# Bails if it is not: to an older version, over more than two minor versions, or to another major version except from 1.7
# to 2 with a Kubernetes that speaks CRI v1.
containerd_upgrade_is_possible() {
  local major minor patch from_minor
  semverParse "$1"
  from_minor="$minor"
  if containerd_upgrade_between_majors "$1" "$2"; then
    if [[ "$1" != 1.7.* || "$2" != 2.* ]]; then
      bail "Upgrade from containerd v$1 to v$2 is not supported. Upgrade to containerd 1.7.x first."
    fi
    if [[ -n "${CURRENT_KUBERNETES_VERSION-}" ]] &&
      (($(kubernetes_version_minor "$CURRENT_KUBERNETES_VERSION") < 26)); then
      bail "containerd 2.x speaks CRI v1, but Kubernetes $CURRENT_KUBERNETES_VERSION speaks CRI v1alpha2. \
Upgrade Kubernetes to 1.26 or later first."
    fi
    return 0
  fi
  semverCompare "$1" "$2"
  if [[ "$SEMVER_COMPARE_RESULT" == 1 ]]; then
    bail "Downgrading containerd (from v$1 to v$2) is not supported."
  fi
  semverParse "$2"
  if ((minor > from_minor + 2)); then
    logFail "Cannot upgrade containerd from v$1 to v$2: no more than two minor versions at once."
    bail 'Please consider upgrading to an older containerd version first.'
  fi
}

# usage: containerd_evaluate_upgrade FROM TO
# Adds the steps to CONTAINERD_INSTALL_VERSIONS.
containerd_evaluate_upgrade() {
  local version
  if use_os_containerd; then return 0; fi
  containerd_upgrade_is_possible "$1" "$2"
  for version in $(containerd_migration_steps "$1" "$2"); do
    CONTAINERD_INSTALL_VERSIONS+=("$version")
  done
}
