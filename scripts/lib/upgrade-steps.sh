# shellcheck shell=bash
# Steps of an upgrade, by minor version.

common_upgrade_version_to_major_minor() {
  local minor="${1#*.}"
  if [[ "$1" == *.* ]]; then printf '%s.%s\n' "${1%%.*}" "${minor%%.*}"; else printf '%s\n' "$1"; fi
}

common_upgrade_major_minor_to_major() {
  printf '%s\n' "${1%%.*}"
}

common_upgrade_major_minor_to_minor() {
  local minor="${1#*.}"
  printf '%s\n' "${minor%%.*}"
}

# 1.9.4 -> 1.8; minor 0 has none before it.
common_upgrade_major_minor_less_one() {
  local minor="${1#*.}"
  minor="${minor%%.*}"
  printf '%s.%s\n' "${1%%.*}" "$((minor > 0 ? minor - 1 : 0))"
}

# usage: curlew_upgrade_steps STEPS FIRST FROM TO
# STEPS is a space-separated list, indexed by minor version. Prints one step for each minor version from FIRST to TO's; if TO has
# a patch, TO replaces the step of its minor version.
curlew_upgrade_steps() {
  local -a steps
  local first="$2" from="$3" to="$4" wanted last minor
  IFS=' ' read -ra steps <<<"$1"
  wanted="$(common_upgrade_version_to_major_minor "$to")"
  if [[ "${from%%.*}" != "${to%%.*}" ]]; then
    bail "Upgrade across major versions from $from to $wanted is not supported."
  fi
  last="${wanted#*.}"
  if ((last >= ${#steps[@]})); then bail "Upgrade from $from to $wanted is not supported."; fi
  for ((minor = first; minor <= last; minor++)); do
    if ((minor == last)) && [[ "$to" != "$wanted" ]]; then
      printf '%s\n' "$to"
    else
      printf '%s\n' "${steps[minor]}"
    fi
  done
}

# usage: common_upgrade_step_versions STEPS FROM TO
# Excludes the minor version of FROM.
common_upgrade_step_versions() {
  local minor="${2#*.}"
  curlew_upgrade_steps "$1" "$((${minor%%.*} + 1))" "$2" "$3"
}

# usage: common_upgrade_is_version_included FROM TO VERSION
# FROM itself is excluded, TO included.
common_upgrade_is_version_included() {
  [[ "$(common_upgrade_compare_versions "$3" "$1")" == 1 && "$(common_upgrade_compare_versions "$3" "$2")" != 1 ]]
}

# Prints the greater of two versions, the second if major and minor are the same.
common_upgrade_max_version() {
  if [[ "$(common_upgrade_compare_versions "$1" "$2")" == 1 ]]; then printf '%s\n' "$1"; else printf '%s\n' "$2"; fi
}

# usage: common_upgrade_print_list_of_minor_upgrades FROM TO
common_upgrade_print_list_of_minor_upgrades() {
  local first="${1#*.}" last="${2#*.}" major="${1%%.*}" minor before text='This involves upgrading from '
  first="${first%%.*}" last="${last%%.*}"
  for ((minor = first; minor < last; minor++)); do
    before=', '
    if ((minor == first)); then
      before=''
    elif ((minor + 1 == last)); then
      before=', and '
    fi
    text+="$before$major.$minor to $major.$((minor + 1))"
  done
  printf '%s.\n' "$text"
}

# usage: common_upgrade_merge_images_list LIST…
# Prints the images of all lists, separated by spaces, each once and in order.
common_upgrade_merge_images_list() {
  local -a images
  IFS=$' \t\n' read -r -d '' -a images <<<"$*" || true
  if ((${#images[@]} == 0)); then
    echo
    return 0
  fi
  mapfile -t images < <(printf '%s\n' "${images[@]}" | sort -u)
  printf '%s\n' "${images[*]}"
}
