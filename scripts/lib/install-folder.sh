# shellcheck shell=bash
# The folder that hooks work in, and the contents of kURL's own packages there.

pushd_install_directory() {
  local folder="${KURL_INSTALL_DIRECTORY:?}" above
  above="$(dirname "$folder")"
  if [[ ! -d "$above" ]]; then bail "The folder ${above//%/%%} for the installation does not exist or is no folder."; fi
  if ! mkdir -p "$folder" || [[ ! -w "$folder" ]]; then
    bail "The folder ${folder//%/%%} cannot be written to. Change its permissions, or choose another one."
  fi
  KURL_INSTALL_DIRECTORY="$(realpath "$folder")"
  pushd "$KURL_INSTALL_DIRECTORY" >/dev/null || bail "The folder ${folder//%/%%} cannot be entered."
}

popd_install_directory() {
  popd >/dev/null || return
}

# Moves each entry of ./kurl to the install folder, replacing the entry of that name.
move_airgap_assets() {
  local from="$PWD/kurl" entry name
  if [[ "$(readlink -f "${KURL_INSTALL_DIRECTORY:?}")" == "$from" || ! -d "$from" ]]; then return 0; fi
  pushd_install_directory
  popd_install_directory
  for entry in "$from"/*; do
    if [[ ! -e "$entry" ]]; then continue; fi
    name="${entry##*/}"
    rm -rf "${KURL_INSTALL_DIRECTORY:?}/${name:?}"
    mv "$entry" "$KURL_INSTALL_DIRECTORY/"
  done
}

# Fetches kURL's package `common` if packages come from the internet.
get_common() {
  if [[ "${AIRGAP-}" == 1 || -z "${DIST_URL-}" ]]; then return 0; fi
  package_download common.tar.gz
  tar xf "$(package_filepath common.tar.gz)" --no-same-owner
}

# Loads the image of kURL's helper programs if the package `common` contained it.
get_shared() {
  if [[ -f shared/kurl-util.tar ]]; then curlew_load_image shared/kurl-util.tar; fi
}
