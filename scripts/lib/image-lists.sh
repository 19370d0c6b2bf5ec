# shellcheck shell=bash
# Images in Manifests, and which of them a node has.

# usage: common_list_images_in_manifest_file FILE
# Prints the images in order, with explicit registry and tag, separated by spaces.
common_list_images_in_manifest_file() {
  local kind image images=''
  while read -r kind _ image _ || [[ -n "$kind" ]]; do
    if [[ "$kind" == image ]]; then images+=" $(canonical_image_name "$image")"; fi
  done <"$1"
  printf '%s\n' "${images# }"
}

# Prints the images of one Manifest, as written, except those that other nodes do not need.
curlew_remote_images() {
  local kind image rest
  while read -r kind _ image rest || [[ -n "$kind" ]]; do
    if [[ "$kind" == image && " $rest " != *' no_remote_load '* ]]; then printf '%s\n' "$image"; fi
  done <"$1"
}

# Prints the images that a remote node needs, one per line: those of Kubernetes, of Docker, and of the add-ons with a version.
list_all_required_images() {
  local file folder addon version
  if [[ -n "${KURL_UTIL_IMAGE-}" ]]; then printf '%s\n' "$KURL_UTIL_IMAGE"; fi
  for file in "packages/kubernetes/${KUBERNETES_VERSION-}/Manifest" "packages/docker/${DOCKER_VERSION-}/Manifest"; do
    if [[ "$file" != *//* && -f "$file" ]]; then curlew_remote_images "$file"; fi
  done
  for folder in addons/*/; do
    addon="${folder#addons/}"
    addon="${addon%/}"
    version="${addon^^}_VERSION"
    version="${version//-/_}"
    [[ "$version" =~ ^[A-Z_][A-Z0-9_]*$ ]] || continue
    file="addons/$addon/${!version-}/Manifest"
    if [[ "$file" != *//* && -f "$file" ]]; then curlew_remote_images "$file"; fi
  done
}

# usage: kubernetes_node_images NODE
# Prints the names of the images that the kubelet reports, one per line; it reports 50 at most.
kubernetes_node_images() {
  kubectl get node "$1" -o jsonpath='{range .status.images[*]}{range .names[*]}{@}{"\n"}{end}{end}'
}

# usage: curlew_has_image IMAGE NAME…
curlew_has_image() {
  local wanted name
  wanted="$(canonical_image_name "$1")"
  for name in "${@:2}"; do
    if [[ "$name" == "$wanted" || "$(canonical_image_name "$name")" == "$wanted" ]]; then return 0; fi
  done
  return 1
}

# usage: kubernetes_node_has_image NODE IMAGE
kubernetes_node_has_image() {
  local -a present
  mapfile -t present < <(kubernetes_node_images "$1")
  curlew_has_image "$2" "${present[@]}"
}

# usage: kubernetes_node_has_all_images NODE
# Status 1 with a warning that lists missing images.
kubernetes_node_has_all_images() {
  local image missing=''
  local -a present
  mapfile -t present < <(kubernetes_node_images "$1")
  while IFS= read -r image; do
    if ! curlew_has_image "$image" "${present[@]}"; then missing+=" $image"; fi
  done < <(list_all_required_images)
  if [[ -z "$missing" ]]; then return 0; fi
  logWarn "Node ${1//%/%%} missing image(s)${missing//%/%%}"
  return 1
}
