# shellcheck shell=bash
# Sourced: a view of the whole machine whose writes land below a folder.

# usage: overlay_view ROOT
# Mounts at ROOT/.overlay/view what / shows, with the file systems below it, in a mount namespace that the caller has
# made for itself. Writes land in ROOT/host, those to other file systems of the machine in ROOT/mounts/<name>
# (overlay_name). /proc, /sys and /dev are left for the caller to fill; what no overlay can be laid over is hidden.
overlay_view() {
  local root="$1" point rest kind name number=0
  mkdir -p "$root/host" "$root/mounts" "$root/.overlay/work" "$root/.overlay/view"
  cd "$root/.overlay" || return
  if overlay_is_root; then
    overlay_cover / ../host work view || return
  else
    overlay_top || return
  fi
  # Other file systems do not show through an overlay of the root.
  while read -r _ _ _ _ point rest; do
    printf -v point '%b' "$point"
    kind="${rest##* - }"
    kind="${kind%% *}"
    case "$point" in
      / | /proc | /proc/* | /sys | /sys/* | /dev | /dev/* | "$root" | "$root"/*) continue ;;
      /var/lib/docker/* | /var/lib/containerd/* | /run/containerd/* | /run/docker/* | /run/netns/*) continue ;;
    esac
    case "$kind" in
      nsfs | autofs | proc | sysfs | cgroup | cgroup2 | debugfs | tracefs | securityfs | bpf) continue ;;
    esac
    if [[ "$point" != /*/* ]] && ! overlay_is_root; then continue; fi
    overlay_no_link "$point" || return
    number=$((number + 1))
    if [[ -d "$point" && -d "view$point" ]]; then
      name="$(overlay_name "$point")"
      mkdir -p "../mounts/$name" "work-$number" "lower-$number"
      # By a plain name, since options of mount take commas and colons for their own.
      if ! mount --bind "$point" "lower-$number" 2>/dev/null; then continue; fi
      overlay_cover "lower-$number" "../mounts/$name" "work-$number" "view$point" 2>/dev/null || true
      umount -l "lower-$number"
    elif [[ -f "$point" && -f "view$point" ]]; then
      # It may have been unmounted meanwhile, as engines do with those of their containers.
      mount --bind -o ro,nosuid,nodev "$point" "view$point" 2>/dev/null || true
    fi
  done </proc/self/mountinfo
}

# True where nothing was given up to a user namespace: there overlays of other users' files can be changed.
overlay_is_root() {
  [[ "$(</proc/self/uid_map)" =~ ^\ *0\ +0\ +4294967295$ ]]
}

# In a user namespace no overlay can be laid over a folder with mounts below it, so over / neither: each of the folders
# in / has one of its own.
overlay_top() {
  local path
  mount --bind -o nosuid,nodev ../host view || return
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

# usage: overlay_cover LOWER UPPER WORK TARGET, all of them relative to the current folder but for /
overlay_cover() {
  local options="lowerdir=$1,upperdir=$2,workdir=$3,nosuid,nodev"
  if overlay_is_root; then
    mount -t overlay overlay -o "$options" "$4"
    return
  fi
  # What belongs to other users cannot be changed: folders are made in the upper layer beforehand, so that files can be
  # put into them.
  (cd "$1" && find . -xdev -maxdepth 3 -type d -readable -executable -print0 2>/dev/null) |
    (cd "$2" && xargs -0 mkdir -p) || true
  # Kernels of Ubuntu before 5.11 let users mount overlays, but do not know this option.
  mount -t overlay overlay -o "$options,userxattr" "$4" 2>/dev/null || mount -t overlay overlay -o "$options" "$4"
}

# The absolute path as the name of one file.
overlay_name() {
  local name="${1#/}" from
  for from in '%:%25' '/:%2F' ',:%2C' '::%3A' '\:%5C'; do
    name="${name//"${from%:*}"/"${from##*:}"}"
  done
  printf '%s' "$name"
}

# Refuses a path of the view that goes through a symbolic link, which would lead a mount out of it: paths of the
# machine are given without links, so whoever wrote into the view has put it there.
overlay_no_link() {
  local path=view part
  local -a parts
  IFS=/ read -r -d '' -a parts < <(printf '%s\0' "${1#/}")
  for part in "${parts[@]}"; do
    path+="/$part"
    if [[ -L "$path" ]]; then
      printf 'a hook has put a symbolic link into the way: %s; begin with another folder\n' "${path#view}" >&2
      return 1
    fi
  done
}
