# shellcheck shell=bash
# Steps of Rook upgrades: a single step does not reach every version.

# usage: rook_upgrade_step_versions STEPS FROM TO
# Includes the minor version of FROM: its newest patch comes first.
rook_upgrade_step_versions() {
  local minor="${2#*.}"
  curlew_upgrade_steps "$1" "${minor%%.*}" "$2" "$3"
}

# usage: rook_upgrade_should_upgrade_rook CURRENT WANTED
# Status 0 if steps are needed: from before 1.4 to 1.4.9 or later, or over two or more minor versions.
rook_upgrade_should_upgrade_rook() {
  local major minor patch current_minor
  semverParse "$1"
  current_minor="$minor"
  semverParse "$2"
  if ((current_minor < 4)); then
    ((minor > 4 || (minor == 4 && patch >= 9)))
  else
    ((minor > current_minor + 1))
  fi
}

# usage: rook_upgrade_required_archive_size CURRENT WANTED
# Prints the total size of the packages of all steps in MB.
rook_upgrade_required_archive_size() {
  # By minor version, from 1.4 on; the package for 1.0 to 1.4 counts as part of it.
  local -A sizes=([4]=4700 [5]=1400 [6]=1400 [7]=1500 [8]=1700 [9]=1800 [10]=1800)
  local major minor patch first sum=0 step
  semverParse "$1"
  first="$minor"
  if [[ "$major" != 1 ]]; then bail 'Rook major versions must be 1'; fi
  semverParse "$2"
  if [[ "$major" != 1 ]]; then bail 'Rook major versions must be 1'; fi
  for ((step = first < 4 ? 4 : first + 1; step <= minor; step++)); do
    sum=$((sum + ${sizes[$step]:-2000}))
  done
  printf '%s\n' "$sum"
}

# usage: rook_upgrade_list_rook_ceph_images_in_manifest_file FILE
# Prints the images of rook/ceph in order, with explicit registry and tag, separated by spaces.
rook_upgrade_list_rook_ceph_images_in_manifest_file() {
  local image ceph=''
  for image in $(common_list_images_in_manifest_file "$1"); do
    if [[ "$image" == */rook/ceph[:@]* ]]; then ceph+=" $image"; fi
  done
  printf '%s\n' "${ceph# }"
}
