# shellcheck shell=bash
# The operating system's packages that a package brings along.

curlew_has_file() {
  local file
  for file in "$1"/*."$2"; do
    if [[ -f "$file" ]]; then return 0; fi
  done
  return 1
}

# usage: curlew_os_folder DIR SUFFIX
# Prints the folder with this system's packages (SUFFIX is empty or /archives); status 1 for a system that is not known.
curlew_os_folder() {
  local dir="$1" suffix="$2" major="${DIST_VERSION_MAJOR-}"
  case "${LSB_DIST-}" in
    ubuntu | debian) printf '%s\n' "$dir/${LSB_DIST}-${DIST_VERSION-}$suffix" ;;
    centos | rhel | rocky | almalinux | ol)
      if [[ "$LSB_DIST" == ol ]] && curlew_has_file "$dir/ol-$major$suffix" rpm; then
        printf '%s\n' "$dir/ol-$major$suffix"
        return 0
      fi
      # The packages of 9 serve 10 too.
      if [[ "$major" == 10 ]]; then major=9; fi
      printf '%s\n' "$dir/rhel-$major$suffix"
      ;;
    amzn)
      if [[ "$major" == 2023 ]]; then
        printf '%s\n' "$dir/amazon-2023$suffix"
      elif curlew_has_file "$dir/rhel-7-force$suffix" rpm; then
        printf '%s\n' "$dir/rhel-7-force$suffix"
      else
        printf '%s\n' "$dir/rhel-7$suffix"
      fi
      ;;
    *) return 1 ;;
  esac
}

curlew_install_host_files() {
  local dir="$1" suffix="$2" folder
  shift 2
  if [[ "${SKIP_SYSTEM_PACKAGE_INSTALL-}" == 1 ]]; then
    logStep "Skipping installation of host packages: ${*//%/%%}"
    return 0
  fi
  if [[ -z "${LSB_DIST-}" ]]; then detectLsbDist; fi
  folder="$(curlew_os_folder "$dir" "$suffix")" ||
    bail "Host package install is not supported on ${LSB_DIST-} ${DIST_VERSION-}"
  case "$LSB_DIST" in
    ubuntu | debian) curlew_dpkg_install "$folder" "$@" ;;
    *) curlew_rpm_install "$folder" "$@" ;;
  esac
}

# usage: install_host_packages DIR PACKAGE…
# Installs what lies in DIR/<os>/. A folder without package files is no error.
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

dpkg_install_host_archives() {
  local dir="$1"
  shift
  if [[ -z "${LSB_DIST-}" ]]; then detectLsbDist; fi
  curlew_dpkg_install "$dir/${LSB_DIST-}-${DIST_VERSION-}/archives" "$@"
}

curlew_dpkg_install() {
  local folder="$1" try
  shift
  logStep "Installing host packages ${*//%/%%}"
  if ! curlew_has_file "$folder" deb; then
    log "No host packages for ${LSB_DIST-} ${DIST_VERSION-}: nothing to install"
    return 0
  fi
  for try in 1 2 3; do
    if DEBIAN_FRONTEND=noninteractive dpkg --install --force-depends-version --force-confold --auto-deconfigure \
      "$folder"/*.deb; then
      curlew_apt_repair
      logSuccess "Host packages ${*//%/%%} installed"
      return 0
    fi
    if ((try < 3)); then sleep 1; fi
  done
  logFail "Host packages ${*//%/%%} could not be installed from ${folder//%/%%}"
  return 1
}

curlew_apt_repair() {
  command -v apt-get >/dev/null 2>&1 || return 0
  if apt-get check >/dev/null 2>&1; then return 0; fi
  logWarn 'apt-get check found broken dependencies; trying to repair them'
  DEBIAN_FRONTEND=noninteractive apt-get install --fix-broken --yes --no-remove ||
    logWarn 'The dependencies are still broken: run apt-get install --fix-broken when a repository can be reached'
}

curlew_rpm_install() {
  local folder="$1"
  shift
  if ! curlew_has_file "$folder" rpm; then
    log "No host packages for ${LSB_DIST-} ${DIST_VERSION-}: nothing to install"
    return 0
  fi
  bail "Installing rpm packages (${*//%/%%}) is not supported: install them from ${folder//%/%%} and set skipSystemPackageInstall"
}
