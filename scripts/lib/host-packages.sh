# shellcheck shell=bash
# The operating system's packages that a package contains.

curlew_has_file() {
  local file
  for file in "$1"/*."$2"; do
    if [[ -f "$file" ]]; then return 0; fi
  done
  return 1
}

# Prints the folders in which this system looks for its packages, one per line: the first non-empty one, else the last.
# Status 1 for an unknown system.
curlew_os_names() {
  local major="${DIST_VERSION_MAJOR-}"
  case "${LSB_DIST-}" in
    ubuntu | debian) printf '%s\n' "${LSB_DIST}-${DIST_VERSION-}" ;;
    centos | rhel | rocky | almalinux | ol)
      if [[ "$LSB_DIST" == ol ]]; then printf '%s\n' "ol-$major"; fi
      # Version 10 uses the packages of 9.
      if [[ "$major" == 10 ]]; then major=9; fi
      printf '%s\n' "rhel-$major"
      ;;
    amzn)
      if [[ "$major" == 2023 ]]; then
        printf '%s\n' amazon-2023
      else
        printf '%s\n' rhel-7-force rhel-7
      fi
      ;;
    *) return 1 ;;
  esac
}

# usage: curlew_os_folder DIR SUFFIX
# Prints the folder with this system's packages (SUFFIX is empty or /archives); status 1 for an unknown system.
curlew_os_folder() {
  local names name folder=''
  names="$(curlew_os_names)" || return 1
  while IFS= read -r name; do
    folder="$1/$name$2"
    if curlew_has_file "$folder" rpm; then break; fi
  done <<<"$names"
  printf '%s\n' "$folder"
}

# usage: curlew_install_host_files DIR SUFFIX PACKAGE…
curlew_install_host_files() {
  local folder
  if [[ "${SKIP_SYSTEM_PACKAGE_INSTALL-}" == 1 ]]; then
    logStep "Skipping installation of host packages: ${*:3}"
    return 0
  fi
  if [[ -z "${LSB_DIST-}" ]]; then detectLsbDist; fi
  folder="$(curlew_os_folder "$1" "$2")" ||
    bail "Host package install is not supported on ${LSB_DIST-} ${DIST_VERSION-}"
  logStep "Installing host packages ${*:3}"
  case "$LSB_DIST" in
    ubuntu | debian) curlew_dpkg_install "$folder" "${@:3}" ;;
    *) curlew_rpm_install "$folder" "${@:3}" ;;
  esac
}

# Reports that a folder has no package for this system; that is not a failure.
curlew_no_packages() {
  log "Will not install host packages $*, no packages found for ${LSB_DIST-} ${DIST_VERSION-}."
}

# usage: install_host_packages DIR PACKAGE…
# Installs the packages in DIR/<os>/. A folder without package files is not an error.
install_host_packages() {
  local dir="$1"
  shift
  curlew_install_host_files "$dir" '' "$@"
}

# usage: install_host_archives DIR PACKAGE…
# The same for DIR/<os>/archives/.
install_host_archives() {
  local dir="$1"
  shift
  curlew_install_host_files "$dir" /archives "$@"
}

# For rpm systems only; does nothing elsewhere.
yum_install_host_archives() {
  if [[ -z "${LSB_DIST-}" ]]; then detectLsbDist; fi
  case "$LSB_DIST" in
    ubuntu | debian) curlew_no_packages "${@:2}" ;;
    *) install_host_archives "$@" ;;
  esac
}

# For deb systems only.
dpkg_install_host_archives() {
  if [[ -z "${LSB_DIST-}" ]]; then detectLsbDist; fi
  case "$LSB_DIST" in
    ubuntu | debian) install_host_archives "$@" ;;
    *) curlew_no_packages "${@:2}" ;;
  esac
}
