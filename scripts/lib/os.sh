# shellcheck shell=bash
# Detects the operating system.

# Sets LSB_DIST, DIST_VERSION, DIST_VERSION_MAJOR and DIST_VERSION_MINOR from os-release(5).
detectLsbDist() {
  local file="${CURLEW_OS_RELEASE:-/etc/os-release}" key value
  LSB_DIST=
  DIST_VERSION=
  [[ -r "$file" ]] || return 0
  while IFS='=' read -r key value || [[ -n "$key" ]]; do
    value="${value%[\"\']}"
    value="${value#[\"\']}"
    case "$key" in
      ID) LSB_DIST="${value,,}" ;;
      VERSION_ID) DIST_VERSION="$value" ;;
    esac
  done <"$file"
  DIST_VERSION_MAJOR="${DIST_VERSION%%.*}"
  DIST_VERSION_MINOR=
  # Read by add-ons.
  # shellcheck disable=SC2034
  if [[ "$DIST_VERSION" == *.* ]]; then
    DIST_VERSION_MINOR="${DIST_VERSION#*.}"
    DIST_VERSION_MINOR="${DIST_VERSION_MINOR%%.*}"
  fi
}

is_ubuntu_2404() {
  [[ "${LSB_DIST-}" == ubuntu && "${DIST_VERSION-}" == 24.04 ]]
}

is_ubuntu_2604() {
  [[ "${LSB_DIST-}" == ubuntu && "${DIST_VERSION-}" == 26.04 ]]
}

is_amazon_2023() {
  [[ "${LSB_DIST-}" == amzn && "${DIST_VERSION_MAJOR-}" == 2023 ]]
}

is_rhel_9_variant() {
  [[ "${DIST_VERSION_MAJOR-}" == 9 || "${DIST_VERSION_MAJOR-}" == 10 ]] || return 1
  [[ "${LSB_DIST-}" =~ ^(centos|rhel|ol|rocky|almalinux)$ ]]
}

# Status 1 if packages contain lists of names (Deps) instead of the operating system's packages.
host_packages_shipped() {
  ! is_ubuntu_2404 && ! is_ubuntu_2604 && ! is_amazon_2023 && ! is_rhel_9_variant
}

# True if the system's own containerd is used: no packages are shipped, and the system is not of the el9 family.
use_os_containerd() {
  ! host_packages_shipped && ! is_rhel_9_variant
}
