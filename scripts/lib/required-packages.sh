# shellcheck shell=bash
# Packages that the operator installs from the system's own repositories.

# usage: curlew_is_installed PACKAGE
curlew_is_installed() {
  case "${LSB_DIST-}" in
    ubuntu | debian) [[ -n "$(curlew_deb_version "$1")" ]] ;;
    *) rpm -q --whatprovides "$1" >/dev/null 2>&1 ;;
  esac
}

# Prints the beginning of the install command of this system.
curlew_install_command() {
  case "${LSB_DIST-}" in
    ubuntu | debian) echo 'apt-get install -y' ;;
    *) if command -v dnf >/dev/null 2>&1; then echo 'dnf install -y'; else echo 'yum install -y'; fi ;;
  esac
}

# usage: ensure_host_package RPM-NAME DEB-NAME
# Installs it from the system's own repositories, if it is missing. An empty name and "skip" mean none for that kind of system.
ensure_host_package() {
  local package command
  if [[ -z "${LSB_DIST-}" ]]; then detectLsbDist; fi
  case "${LSB_DIST-}" in
    ubuntu | debian) package="${2-}" ;;
    centos | rhel | ol | rocky | almalinux | amzn) package="${1-}" ;;
    *) bail "Host package checks are not supported on ${LSB_DIST-} ${DIST_VERSION-}" ;;
  esac
  if [[ -z "$package" || "$package" == skip ]] || curlew_is_installed "$package"; then return 0; fi
  logStep "Installing host package $package"
  command="$(curlew_install_command)"
  # shellcheck disable=SC2086
  if ! DEBIAN_FRONTEND=noninteractive $command "$package"; then
    logFail "Failed to install host package $package. Please install it and try again:"
    bail "    $command $package"
  fi
  logSuccess "Host package $package installed"
}

# Prints `file<tab>who needs it` for each Deps file of this system: of kubernetes, the add-ons with a version, and tools.
curlew_deps_files() {
  local folder name version os file
  os="$(curlew_os_folder . '')" || return 0
  os="${os#./}"
  for folder in addons/*/ packages/*/; do
    name="$(basename "$folder")"
    version="${name^^}_VERSION"
    version="${version//-/_}"
    [[ "$version" =~ ^[A-Z_][A-Z0-9_]*$ && -n "${!version-}" ]] || continue
    file="$folder${!version}/$os/Deps"
    if [[ -f "$file" ]]; then printf '%s\t%s %s\n' "$file" "$name" "${!version}"; fi
  done
  for folder in packages/host/*/; do
    file="$folder$os/Deps"
    if [[ -f "$file" ]]; then printf '%s\t%s\n' "$file" "$(basename "$folder")"; fi
  done
}

# True if a repository of this machine has the package, according to its local indexes.
curlew_is_available() {
  case "${LSB_DIST-}" in
    ubuntu | debian) apt-cache show "$1" >/dev/null 2>&1 ;;
    *) curlew_dnf --cacheonly --quiet list available "$1" >/dev/null 2>&1 ;;
  esac
}

# usage: curlew_missing_packages "FOLDER PACKAGE"…
# Of the packages in this system's folder, prints those that are not installed, as given, and after a tab whether a
# repository has them; before them the beginning of the install command.
curlew_missing_packages() {
  local os key offered
  if [[ -z "${LSB_DIST-}" ]]; then detectLsbDist; fi
  if host_packages_shipped; then return 0; fi
  os="$(curlew_os_folder . '')" || return 0
  curlew_install_command
  for key in "$@"; do
    if [[ "${key%% *}" != "${os#./}" ]] || curlew_is_installed "${key#* }"; then continue; fi
    offered=no
    if curlew_is_available "${key#* }"; then offered=yes; fi
    printf '%s\t%s\n' "$key" "$offered"
  done
}

# Checks the host packages that all add-ons of the run need, and bails with all missing ones and the command that
# installs them.
preflights_require_host_packages() {
  local file who package number wrong='' unknown=''
  local -a missing=()
  local -A needed=()
  if [[ -z "${LSB_DIST-}" ]]; then detectLsbDist; fi
  if host_packages_shipped; then return 0; fi
  logStep 'Checking required host packages'
  while IFS=$'\t' read -r -u 7 file who; do
    number=0
    while read -r package || [[ -n "$package" ]]; do
      number=$((number + 1))
      if [[ -z "$package" ]]; then continue; fi
      if [[ ! "$package" =~ ^[A-Za-z0-9/][A-Za-z0-9+._/:@()-]*$ ]]; then
        logFail "$file:$number: this is not a package name"
        wrong=1
      elif [[ -n "${needed[$package]-}" ]]; then
        needed[$package]+=", $who"
      elif ! curlew_is_installed "$package"; then
        needed[$package]="$who"
        missing+=("$package")
      fi
    done <"$file"
  done 7< <(curlew_deps_files)
  if ((${#missing[@]} == 0)) && [[ -z "$wrong" ]]; then
    logSuccess 'Required host packages are installed'
    return 0
  fi
  for package in "${missing[@]}"; do
    unknown=
    if ! curlew_is_available "$package"; then unknown=' (no repository of this machine offers it)'; fi
    logFail "Host package $package is required by ${needed[$package]}$unknown"
  done
  if ((${#missing[@]} == 0)); then bail 'Lists of required host packages are damaged: build the add-ons again.'; fi
  bail "Install them, then try again:\n\n    $(curlew_install_command) ${missing[*]}\n"
}
