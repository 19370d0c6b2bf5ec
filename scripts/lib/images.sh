# shellcheck shell=bash
# Image names.

# Prints the reference with explicit registry and tag. A dot in its name marks a registry, and any colon
# begins a tag.
canonical_image_name() {
  local image="$1" first="${1%%/*}"
  if [[ "$image" != */* ]]; then
    image="docker.io/library/$image"
  elif [[ "$first" != *.* ]]; then
    image="docker.io/$image"
  fi
  if [[ "$image" != *:* ]]; then image="$image:latest"; fi
  printf '%s\n' "$image"
}
