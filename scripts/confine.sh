#!/usr/bin/env bash
# Runs a command that sees the whole machine but writes only below a folder. To be started in a mount namespace of its
# own (unshare -m --propagation private): every mount made here ends with its last process.
#
# usage: confine.sh ROOT INSTALL SEEN COMMAND ARGUMENT…
#   ROOT     folder that takes the writes: ROOT/host those to the root file system, ROOT/mounts/… those to others
#   INSTALL  the install folder as it is
#   SEEN     where the command finds it
set -eu
root="$1" install="$2" seen="$3"
shift 3
view="$root/.overlay/view"
umask 022
mkdir -p "$root/host" "$root/mounts" "$root/.overlay/work" "$view"

# usage: cover SOURCE UPPER WORK TARGET
# The folders are given relative to the current one, so that no character of their names can pass for an option.
cover() {
  mount -t overlay overlay -o "lowerdir=$1,upperdir=$2,workdir=$3" "$4"
}

cd "$root/.overlay"
cover / ../host work view

# Other file systems do not show through an overlay of the root.
number=0
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
  number=$((number + 1))
  name="${point#/}"
  name="${name//%/%25}"
  name="${name//\//%2F}"
  if [[ -d "$point" ]]; then
    mkdir -p "$root/mounts/$name" "work-$number"
    # The path of the lower layer is taken as an option's value: one with special characters is only shown.
    if [[ "$point" != *[,:\\]* && "$name" != *[,:\\]* ]] &&
      cover "$point" "../mounts/$name" "work-$number" "view$point" 2>/dev/null; then
      continue
    fi
  elif [[ ! -e "$point" || ! -e "view$point" ]]; then
    continue
  fi
  if ! said="$(mount --bind "$point" "view$point" 2>&1 && mount -o remount,bind,ro "view$point" 2>&1)"; then
    # Somebody else has taken it away meanwhile, as engines do with those of their containers.
    if ! mountpoint -q "$point"; then continue; fi
    printf '%s\n' "$said" >&2
    exit 32
  fi
done </proc/self/mountinfo

for folder in proc sys dev; do
  mkdir -p "view/$folder"
  mount --rbind "/$folder" "view/$folder"
done
mkdir -p "view$seen"
mount --bind "$install" "view$seen"
# shellcheck disable=SC2016
exec chroot "$view" /bin/bash --noprofile --norc -c 'cd "$0" && exec "$@"' "$seen" "$@"
