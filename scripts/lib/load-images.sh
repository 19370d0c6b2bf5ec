# shellcheck shell=bash
# Loads images into the container runtime of this node: docker if DOCKER_VERSION is set, else containerd.

curlew_ctr() {
  ctr -a "$(kubeadm_get_containerd_sock)" -n k8s.io "$@"
}

# Standard input is an uncompressed archive.
curlew_import() {
  if [[ -n "${DOCKER_VERSION-}" ]]; then docker load; else curlew_ctr images import -; fi
}

# usage: curlew_load_image FILE
# Loads an archive of images, compressed or not.
curlew_load_image() {
  local start
  start="$(head -c 2 "$1" | od -An -tx1)"
  if [[ "$start" == ' 1f 8b' ]]; then gzip -dc "$1" | curlew_import; else curlew_import <"$1"; fi
}

# usage: load_images FOLDER
# Loads every archive below the folder, or the folder itself if it is an image layout. Status 123 if one of them failed, after all
# were tried; a missing folder is a message, not a failure. Then creates the aliases of retag_gcr_images.
load_images() {
  local file failed=''
  if [[ -f "$1/oci-layout" ]]; then
    tar -C "$1" -cf - . | curlew_import || failed=1
  else
    while IFS= read -r -d '' file; do
      curlew_load_image "$file" || failed=1
    done < <(find "$1" -type f -print0)
  fi
  if [[ -n "$failed" ]]; then return 123; fi
  retag_gcr_images
}

curlew_list_images() {
  if [[ -n "${DOCKER_VERSION-}" ]]; then
    docker images --format '{{.Repository}}:{{.Tag}}'
  else
    curlew_ctr images list --quiet
  fi
}

curlew_tag_image() {
  if [[ -n "${DOCKER_VERSION-}" ]]; then docker tag "$1" "$2"; else curlew_ctr images tag "$1" "$2"; fi
}

# Images of k8s.gcr.io also get the name registry.k8s.io, and the other way round; coredns also without the folder.
# Existing names are kept, and errors are ignored.
retag_gcr_images() {
  local image alias
  local -A present=() aliases=()
  while IFS= read -r image; do
    if [[ -n "$image" ]]; then present[$image]=1; fi
  done < <(curlew_list_images 2>/dev/null)
  for image in "${!present[@]}"; do
    case "$image" in
      *k8s.gcr.io*) aliases[${image//k8s.gcr.io/registry.k8s.io}]="$image" ;;
      *registry.k8s.io*) aliases[${image//registry.k8s.io/k8s.gcr.io}]="$image" ;;
      *) continue ;;
    esac
    if [[ "$image" == *coredns*:* ]]; then aliases[registry.k8s.io/coredns:${image##*:}]="$image"; fi
  done
  for alias in "${!aliases[@]}"; do
    if [[ -z "${present[$alias]-}" ]]; then curlew_tag_image "${aliases[$alias]}" "$alias" >/dev/null 2>&1 || true; fi
  done
}

# usage: kubernetes_load_images VERSION
# Loads them once per version.
kubernetes_load_images() {
  local memory="KUBERNETES_IMAGES_LOADED_${1//[^A-Za-z0-9]/_}" conformance
  if [[ "${!memory-}" == 1 ]]; then return 0; fi
  load_images "$DIR/packages/kubernetes/$1/images"
  conformance="$DIR/packages/kubernetes-conformance/$1/images"
  if [[ -n "${SONOBUOY_VERSION-}" && -d "$conformance" ]]; then load_images "$conformance"; fi
  declare -g "$memory=1"
}
