# shellcheck shell=bash
# What hooks can do with other add-ons. A run calls hooks itself; these functions are for add-ons that install another add-on.

addon_exists() {
  [[ -d "$DIR/addons/$1/$2" ]]
}

# usage: addon_source NAME VERSION
addon_source() {
  # shellcheck source=/dev/null
  source "$DIR/addons/$1/$2/install.sh"
}

# usage: addon_fetch NAME VERSION [URL]
# The packages of the run are present. Others are downloaded if the internet is reachable.
addon_fetch() {
  local name="$1" version="${2-}" url="${3-}" package="$1-${2-}.tar.gz"
  if [[ -z "$version" ]]; then return 0; fi
  if ! addon_exists "$name" "$version" && [[ "${AIRGAP-}" != 1 && -n "$url${DIST_URL-}" ]]; then
    package_download "$package" "$url"
    tar xf "$(package_filepath "$package")" --no-same-owner
  fi
  if ! addon_exists "$name" "$version"; then
    bail "Add-on ${name//%/%%} ${version//%/%%} is not in this bundle: add it to the installer spec"
  fi
  addon_source "$name" "$version"
}

# usage: addon_load NAME VERSION
addon_load() {
  if [[ -z "${2-}" ]]; then return 0; fi
  load_images "$DIR/addons/$1/$2/images"
}

# usage: curlew_addon_hook NAME HOOK
# Calls the hook if it is defined.
curlew_addon_hook() {
  if declare -F "$1_$2" >/dev/null; then "$1_$2"; fi
}

addon_pre_init() {
  curlew_addon_hook "$1" pre_init
}

addon_post_init() {
  curlew_addon_hook "$1" post_init
}

# usage: addon_join NAME VERSION
addon_join() {
  addon_load "$1" "${2-}"
  if declare -F "$1_join" >/dev/null; then
    logStep "Addon ${1//%/%%} ${2//%/%%}"
    "$1_join"
  fi
}

# usage: addon_install NAME VERSION
# With an empty folder kustomize/NAME and a fresh install.sh.
addon_install() {
  local name="$1" version="${2-}"
  if [[ -z "$version" ]]; then return 0; fi
  logStep "Addon ${name//%/%%} ${version//%/%%}"
  report_addon_start "$name" "$version"
  rm -rf "$DIR/kustomize/${name:?}"
  mkdir -p "$DIR/kustomize/$name"
  export REPORTING_CONTEXT_INFO="addon $name $version"
  addon_source "$name" "$version"
  # A program has the same name.
  if [[ "$name" == containerd ]]; then containerd_install; else "$name"; fi
  export REPORTING_CONTEXT_INFO=
  addon_set_has_been_applied "$name"
  if [[ "$name" == containerd ]] || declare -F "${name}_join" >/dev/null; then
    # Read by add-ons.
    # shellcheck disable=SC2034
    ADDONS_HAVE_HOST_COMPONENTS=1
  fi
  report_addon_success "$name" "$version"
}

# usage: addon_preflight NAME VERSION
# Prints the path of the add-on's preflight spec, if it has one.
addon_preflight() {
  local file="$DIR/addons/$1/${2-}/host-preflight.yaml"
  if [[ -n "${2-}" && -f "$file" ]]; then printf '%s\n' "$file"; fi
}

# Calls the outro of every add-on in the install folder.
addon_outro() {
  local folder
  for folder in addons/*/; do
    if [[ -d "$folder" ]]; then curlew_addon_hook "$(basename "$folder")" outro; fi
  done
}

addon_cleanup() {
  rm -rf "${DIR:?}/addons"
}

# usage: get_addon_config NAME
# Prints the add-on's entry in the merged spec (MERGED_YAML_SPEC) as JSON.
get_addon_config() {
  "${BIN_YAMLUTIL:-$DIR/bin/yamlutil}" -j -fp "${MERGED_YAML_SPEC:?}" -jf "spec.$(kebab_to_camel "$1")"
}

# usage: addon_set_has_been_applied NAME
# Writes to kURL's ConfigMap, or to a file if there is no cluster. Runs keep their own records, so without the merged
# spec there is nothing to do.
addon_set_has_been_applied() {
  local config
  if [[ -z "${MERGED_YAML_SPEC-}" ]]; then return 0; fi
  config="$(get_addon_config "$1" | base64 -w 0)"
  if [[ "$1" == containerd ]]; then
    printf '%s\n' "$config" >"$DIR/containerd-last-applied"
  else
    kubectl patch configmaps -n kurl kurl-current-config --type merge -p "{\"data\":{\"addons-$1\":\"$config\"}}"
  fi
}
