# shellcheck shell=bash
# Sourced: a view of the whole machine whose writes land below a folder.
#
# Starting a program takes longer than any mount. So mounts are written down (mount_later), and made together before the
# path of a later one leads through one of them (overlay_reach). What is there in the end is looked at (mounts_made), since
# `mount --all` continues after a failure, and passes over lines that it does not understand.

# Lines of an fstab, and whether one of them may fail.
MOUNTS='' MOUNTS_MAY_FAIL=''
# By target: what is in MOUNTS; the options of all; what may be missing.
declare -A MOUNTS_WAITING=() MOUNTS_WANTED=() MOUNTS_OPTIONAL=()

# usage: mount_later SOURCE TARGET TYPE OPTIONS [may-fail]; TARGET is relative to ROOT/.overlay
mount_later() {
  local fields=("${@:1:4}")
  if [[ "$1$2$3$4" == *[$'\\ \t\n']* ]]; then
    fields=("${fields[@]//\\/\\134}")
    fields=("${fields[@]// /\\040}")
    fields=("${fields[@]//$'\t'/\\011}")
    fields=("${fields[@]//$'\n'/\\012}")
  fi
  MOUNTS+="${fields[*]} 0 0"$'\n'
  MOUNTS_WAITING["$2"]=1 MOUNTS_WANTED["$2"]="$4"
  if [[ -n "${5-}" ]]; then MOUNTS_MAY_FAIL=1 MOUNTS_OPTIONAL["$2"]=1; fi
}

# Makes the mounts that were written down, in their order.
mount_now() {
  local said
  if [[ -z "$MOUNTS" ]]; then return 0; fi
  printf '%s' "$MOUNTS" >fstab
  if ! said="$(exec mount --all --fstab fstab 2>&1)" && { [[ -z "$MOUNTS_MAY_FAIL" ]] || ! mounts_made; }; then
    printf '%s\n' "$said" >&2
    return 1
  fi
  MOUNTS='' MOUNTS_MAY_FAIL='' MOUNTS_WAITING=()
}

# Fails unless everything is mounted but for what may be missing, and each with its options.
mounts_made() {
  local target
  local -a wrong
  mounts_look
  for target in ${wrong[@]+"${wrong[@]}"}; do
    # util-linux 2.32 leaves out nosuid and nodev of a bind.
    if [[ "${MOUNTS_WANTED["$target"]}" == bind,* ]]; then
      mount -o "remount,${MOUNTS_WANTED["$target"]}" "$target" 2>/dev/null || true
    fi
  done
  if ((${#wrong[@]} > 0)); then mounts_look; fi
  if ((${#wrong[@]} == 0)); then return 0; fi
  printf 'not mounted with its options: %s\n' "${wrong[@]}" >&2
  return 1
}

# Sets `wrong` to the targets that are not as they have to be.
mounts_look() {
  local line point target option
  local -a lines fields
  local -A found=()
  mapfile -t lines </proc/self/mountinfo
  # Words are split faster than patterns are matched.
  set -f
  for line in "${lines[@]}"; do
    # shellcheck disable=SC2206
    fields=($line)
    point="${fields[4]}"
    if [[ "$point" == *\\* ]]; then printf -v point '%b' "$point"; fi
    if [[ "$point" == "$PWD"/* ]]; then found["${point#"$PWD/"}"]=",${fields[5]},"; fi
  done
  set +f
  wrong=()
  for target in "${!MOUNTS_WANTED[@]}"; do
    line="${found["$target"]-}"
    if [[ -z "$line" ]]; then
      [[ -n "${MOUNTS_OPTIONAL["$target"]-}" ]] || wrong+=("$target")
      continue
    fi
    for option in ro nosuid nodev noexec; do
      if [[ ",${MOUNTS_WANTED["$target"]}," == *",$option,"* && "$line" != *",$option,"* ]]; then
        wrong+=("$target")
        break
      fi
    done
  done
}

# usage: overlay_view ROOT
# Mounts at ROOT/.overlay/view what / shows, with the file systems below it, in a mount namespace that the caller has
# made for itself. Writes land in ROOT/host, those to other file systems of the machine in ROOT/mounts/<name>
# (overlay_name). /proc, /sys and /dev are left for the caller to fill; what no overlay can be laid over is hidden.
# Some mounts are still waiting then (mount_now).
overlay_view() {
  local root="$1" line point kind name number=0
  local -a lines fields folders=("$root"/{host,mounts} "$root"/.overlay/{work,view,old,proc-rw,sys-rw,dev/{shm,pts,.old}})
  for name in "${folders[@]}"; do
    if [[ ! -d "$name" ]]; then
      mkdir -p "${folders[@]}"
      break
    fi
  done
  cd "$root/.overlay" || return
  if overlay_is_root; then
    overlay_cover / ../host work view || return
    mount_now || return
  else
    overlay_top || return
  fi
  # Other file systems do not show through an overlay of the root.
  mapfile -t lines </proc/self/mountinfo
  for line in "${lines[@]}"; do
    set -f
    # shellcheck disable=SC2206
    fields=($line)
    set +f
    printf -v point '%b' "${fields[4]}"
    # Any number of fields ends with a dash.
    fields=("${fields[@]:6}")
    while [[ "${fields[0]}" != - ]]; do fields=("${fields[@]:1}"); done
    kind="${fields[1]}"
    case "$point" in
      / | /proc | /proc/* | /sys | /sys/* | /dev | /dev/* | "$root" | "$root"/*) continue ;;
      /var/lib/docker/* | /var/lib/containerd/* | /run/containerd/* | /run/docker/* | /run/netns/*) continue ;;
    esac
    case "$kind" in
      nsfs | autofs | proc | sysfs | cgroup | cgroup2 | debugfs | tracefs | securityfs | bpf) continue ;;
    esac
    if [[ "$point" != /*/* ]] && ! overlay_is_root; then continue; fi
    overlay_reach "$point" || return
    number=$((number + 1))
    if [[ -d "$point" && -d "view$point" ]]; then
      overlay_name name "$point"
      if [[ ! -d "../mounts/$name" || ! -d "work-$number" || ! -d "lower-$number" ]]; then
        mkdir -p "../mounts/$name" "work-$number" "lower-$number"
      fi
      # By a plain name, since options of mount take commas and colons for their own.
      mount_later "$point" "lower-$number" none bind may-fail
      overlay_cover "lower-$number" "../mounts/$name" "work-$number" "view$point" may-fail || true
    elif [[ -f "$point" && -f "view$point" ]]; then
      # It may have been unmounted meanwhile, as engines do with those of their containers.
      mount_later "$point" "view$point" none bind,ro,nosuid,nodev may-fail
    fi
  done
}

# True unless capabilities were dropped in a user namespace: there overlays of other users' files can be changed.
overlay_is_root() {
  local first outside count
  read -r first outside count </proc/self/uid_map
  [[ "$first $outside $count" == '0 0 4294967295' ]]
}

# In a user namespace an overlay cannot cover a folder with mounts below it, so not / either: each folder
# in / has its own overlay.
overlay_top() {
  local path
  mount_later ../host view none bind,nosuid,nodev
  mount_now || return
  for path in /*; do
    if [[ -L "$path" ]]; then
      [[ -L "view$path" ]] || cp -P "$path" "view$path"
    elif [[ -d "$path" ]]; then
      mkdir -p "view$path" "work-top$path"
      case "$path" in /proc | /sys | /dev) continue ;; esac
      overlay_cover "$path" "../host$path" "work-top$path" "view$path" 2>/dev/null || true
    fi
  done
}

# usage: overlay_cover LOWER UPPER WORK TARGET [may-fail], all of them relative to the current folder but for /
overlay_cover() {
  local options="lowerdir=$1,upperdir=$2,workdir=$3,nosuid,nodev"
  if overlay_is_root; then
    mount_later overlay "$4" overlay "$options" "${5-}"
    return
  fi
  mount_now || return
  # What belongs to other users cannot be changed: folders are made in the upper layer beforehand, so that files can be
  # put into them.
  (cd "$1" && find . -xdev -maxdepth 3 -type d -readable -executable -print0 2>/dev/null) |
    (cd "$2" && xargs -0 mkdir -p) || true
  # Ubuntu kernels before 5.11 let users mount overlays, but do not have this option.
  mount -t overlay overlay -o "$options,userxattr" "$4" 2>/dev/null || mount -t overlay overlay -o "$options" "$4"
}

# usage: overlay_name VARIABLE PATH; sets it to the absolute path as the name of one file
overlay_name() {
  local whole="${2#/}" from
  for from in '%:%25' '/:%2F' ',:%2C' '::%3A' '\:%5C'; do
    whole="${whole//"${from%:*}"/"${from##*:}"}"
  done
  printf -v "$1" '%s' "$whole"
}

# usage: overlay_reach PATH
# Makes the mounts that a path of the view leads through, and refuses one that goes through a symbolic link, which would
# lead a mount out of the view: paths of the machine are given without links, so whoever wrote into the view has put it
# there.
overlay_reach() {
  local path=view rest="${1#/}/"
  while [[ -n "$rest" ]]; do
    path+="/${rest%%/*}"
    rest="${rest#*/}"
    if [[ -n "${MOUNTS_WAITING["$path"]-}" ]]; then mount_now || return; fi
    if [[ -L "$path" ]]; then
      printf 'a hook has put a symbolic link into the way: %s; begin with another folder\n' "${path#view}" >&2
      return 1
    fi
  done
}
