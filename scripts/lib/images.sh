# shellcheck shell=bash
# Names of images.

# Prints the reference with registry and tag written out. A registry is known by the dot in its name, and any colon
# counts as the begin of a tag.
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
