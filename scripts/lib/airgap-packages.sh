# shellcheck shell=bash
# Packages that operators provide themselves if there is no internet.

curlew_unpack() {
  printf 'Unpacking %s...\n' "$1"
  tar xf "$2" --no-same-owner || bail "Failed to unpack ${1//%/%%}"
}

# usage: curlew_is_unpacked NAME-VERSION
# Status 0 if the bundle contains that package, which the run has then unpacked.
curlew_is_unpacked() {
  local name="$1" folder
  while [[ "$name" == *-* ]]; do
    name="${name%-*}"
    for folder in "addons/$name/${1#"$name-"}" "packages/$name/${1#"$name-"}"; do
      if [[ -f "$folder/addon.json" ]]; then
        printf 'The package %s is already available locally.\n' "$1"
        return 0
      fi
    done
  done
  return 1
}

# usage: addon_fetch_airgap NAME VERSION
# Unpacks assets/NAME-VERSION.tar.gz, or a file of several packages that lists this one. Asks for the file if it is missing.
addon_fetch_airgap() {
  local package="$1-$2.tar.gz" path several
  if curlew_is_unpacked "$1-$2"; then return 0; fi
  path="$(package_filepath "$package")"
  if [[ ! -f "$path" ]]; then
    for several in assets/*"$1-$2"*.tar.gz; do
      if [[ -f "$several" ]]; then
        path="$several"
        break
      fi
    done
  fi
  if [[ -f "$path" ]]; then
    printf 'The package %s is already available locally.\n' "${path#assets/}"
  else
    printf 'The package %s %s is not available locally, and is required.\n' "$1" "$2"
    printf '\nYou can download it with the following command:\n'
    printf "\n${GREEN}    curl -LO %s${NC}\n\n" "$(get_dist_url)/$package"
    addon_fetch_airgap_prompt_for_package "$package"
  fi
  curlew_unpack "$package" "$path"
}

# usage: addon_fetch_multiple_airgap NAME-VERSION…
# Asks for one file with all missing packages. AIRGAP_MULTI_ADDON_PACKAGE_PATH is its path; the caller may remove it.
addon_fetch_multiple_airgap() {
  local addon path joined url
  local -a missing=()
  export AIRGAP_MULTI_ADDON_PACKAGE_PATH=
  for addon in "$@"; do
    if curlew_is_unpacked "$addon"; then continue; fi
    path="$(package_filepath "$addon.tar.gz")"
    if [[ -f "$path" ]]; then
      printf 'The package %s is already available locally.\n' "$addon"
      curlew_unpack "$addon.tar.gz" "$path"
    else
      missing+=("$addon")
    fi
  done
  if ((${#missing[@]} == 0)); then return 0; fi
  printf -v joined '%s,' "${missing[@]}"
  joined="${joined%,}.tar.gz"
  path="$(package_filepath "$joined")"
  AIRGAP_MULTI_ADDON_PACKAGE_PATH="$path"
  if [[ -f "$path" ]]; then
    printf 'The package %s is already available locally.\n' "$joined"
  else
    url="${KURL_URL-}/bundle${KURL_VERSION:+/version/$KURL_VERSION}/${INSTALLER_ID-}/packages/$joined"
    printf 'The following packages are not available locally, and are required:\n'
    printf '    %s.tar.gz\n' "${missing[@]}"
    printf '\nYou can download them with the following command:\n'
    printf "\n${GREEN}    curl -LO %s${NC}\n\n" "$url"
    addon_fetch_airgap_prompt_for_package "$joined"
  fi
  curlew_unpack "$joined" "$path"
}

# usage: addon_fetch_airgap_prompt_for_package FILE-NAME
# Copies the operator's file into assets/. Bails if there is no terminal, or if the answer is empty.
addon_fetch_airgap_prompt_for_package() {
  local path where
  path="$(package_filepath "$1")"
  where="${KURL_INSTALL_DIRECTORY-}/$path"
  if ! prompts_can_prompt; then
    bail "Please move this file to ${where//%/%%} before rerunning the installer."
  fi
  printf 'Please provide the path to the file on the server.\n'
  printf 'Absolute path to file: '
  prompt
  if [[ -z "$PROMPT_RESULT" ]]; then
    logFail "Package ${1//%/%%} not provided."
    logFail 'You can provide the path to this file the next time the installer is run,'
    bail "or move it to ${where//%/%%} to be detected automatically.\n"
  fi
  if [[ ! -f "$PROMPT_RESULT" ]]; then bail "The file ${PROMPT_RESULT//%/%%} does not exist."; fi
  log "Copying $PROMPT_RESULT to $path"
  mkdir -p "$(dirname "$path")"
  cp "$PROMPT_RESULT" "$path"
}
