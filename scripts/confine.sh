#!/usr/bin/env bash
# Runs a command in a sandbox: it sees most of this machine, writes below a folder, and reaches nothing else.
#
# usage: confine.sh [--network] [--hide PATH]… [--show PATH]… ROOT INSTALL SEEN COMMAND ARGUMENT…
#        confine.sh --check     fails with a reason if programs or the kernel do not support it
#   --network  with the network of this machine instead of the sandbox's own loopback
#   --hide     a file or folder that is empty for the command; changes go to ROOT/mounts
#   --show     a file or folder below a hidden one that it may read
#   ROOT       folder for the writes (overlay-view.sh)
#   INSTALL    the real install folder; below its runs/ the command can only write to runs/*/hook
#   SEEN       its path for the command
# Paths are absolute, without symbolic links. Descriptor 3 is passed on. If standard input is a pipe or a socket, its
# end ends everything: the kernel closes it when the caller has died for any reason.
#
# Files that earlier commands wrote must never run before privileges are dropped: one may be another `mount`. So every
# program that is started here is the machine's, and the shell that becomes the command drops its privileges before
# the machine's root is replaced by the view; after that it only gets the message to continue.
set -euo pipefail
SELF="${BASH_SOURCE[0]}"
if [[ "$SELF" != /* ]]; then SELF="$PWD/$SELF"; fi

# chown dac_override fowner fsetid kill setgid setuid net_bind_service sys_chroot setfcap
CAPABILITIES=+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+net_bind_service,+sys_chroot,+setfcap
CAPABILITIES_MASK=00000000800404fb
die() {
  printf 'sandbox: %s\n' "$*" >&2
  exit 1
}

# Bash reads a script as it runs it: what each stage needs is above its call, and it reads no more than that.

# The shell that becomes the command, with the privileges of the command.
# usage: dropped OUT SEEN COMMAND…
dropped() {
  local out="$1" seen="$2" name value fd word=
  shift 2
  while read -r name value; do
    case "$name" in
      NoNewPrivs:) [[ "$value" == 1 ]] || die 'privileges can be gained' ;;
      CapEff: | CapPrm: | CapBnd:) [[ "$value" == "$CAPABILITIES_MASK" ]] || die "$name $value" ;;
      CapInh: | CapAmb:) [[ "$value" == 0000000000000000 ]] || die "$name $value" ;;
    esac
  done </proc/self/status
  # It could be written only before the privileges were dropped.
  read -r value </proc/sys/user/max_user_namespaces || true
  [[ "$value" == 0 ]] || die 'cannot disable user namespaces in the sandbox'
  cd /
  echo dropped
  read -r -u 9 word || true
  [[ "$word" == go ]] || exit 1
  exec >&"$out"
  while read -r _ _ _ _ name _; do
    case "$name" in /dev/.old*) die 'the root of this machine is still visible' ;; esac
  done </proc/self/mountinfo
  cd "$seen"
  unset OLDPWD
  for fd in /proc/self/fd/*; do
    fd="${fd##*/}"
    if ((fd > 3)); then eval "exec $fd>&-"; fi
  done
  exec "$@"
}
if [[ "${1-}" == --dropped ]]; then dropped "${@:2}"; fi

STAGE=outside NETWORK='' HIDDEN=() SHOWN=() WORDS=("$@")
while (($# > 0)); do
  case "$1" in
    --check | --inside) STAGE="${1#--}" ;;
    --network) NETWORK=host ;;
    --hide) HIDDEN+=("$2") && shift ;;
    --show) SHOWN+=("$2") && shift ;;
    *) break ;;
  esac
  shift
done

# Outside: starts the rest in new namespaces, and ends it when standard input ends. Processes inside can neither
# see nor signal this process.
outside() {
  local life watch='' inside told status
  local -a apart=(--mount --propagation private --pid --fork --kill-child --ipc --uts --cgroup)
  if ((EUID != 0)); then apart=(--user --map-root-user "${apart[@]}"); fi
  if [[ -z "$NETWORK" ]]; then apart+=(--net); fi
  exec {life}<&0 </dev/null
  trap 'told=1' TERM INT HUP
  unshare "${apart[@]}" bash "$SELF" --inside "$@" <&"$life" {life}<&- &
  inside=$!
  if [[ -p "/proc/self/fd/$life" || -S "/proc/self/fd/$life" ]]; then
    {
      trap '' TERM INT HUP
      while read -r -u "$life" _; do :; done
      kill -KILL "$inside"
    } &
    watch=$!
  fi
  exec {life}<&-
  while :; do
    told='' status=0
    wait "$inside" || status=$?
    if [[ -z "$told" ]]; then break; fi
  done
  if [[ -n "$watch" ]]; then
    kill -KILL "$watch" 2>/dev/null || true
    wait "$watch" 2>/dev/null || true
  fi
  exit "$status"
}
if [[ "$STAGE" == outside ]]; then outside "${WORDS[@]}"; fi

# usage: place SOURCE TARGET OPTIONS; mounts a file or folder of this machine in the view
place() {
  overlay_reach "$2"
  if [[ -d "$1" ]]; then
    [[ -d "view$2" ]] || mkdir -p "view$2"
  elif [[ ! -e "view$2" ]]; then
    mkdir -p "view${2%/*}"
    : >"view$2"
  fi
  mount_later "$1" "view$2" none "bind,nosuid,nodev$3"
}

# usage: show PATH; its file or folder on this machine, to be read
show() {
  local line point
  local -a lines below=()
  if ! overlay_is_root; then
    mapfile -t lines </proc/self/mountinfo
    for line in "${lines[@]}"; do
      line="${line#* * * * }"
      printf -v point '%b' "${line%% *}"
      if [[ "$point" == "$1"/* ]]; then below+=("$point"); fi
    done
  fi
  if ((${#below[@]} == 0)); then
    place "$1" "$1" ,ro
    return
  fi
  # A user namespace binds a folder only together with what is mounted below it; all of that becomes read-only (mounts_made).
  overlay_reach "$1"
  mkdir -p "view$1"
  mount_now
  mount --rbind "$1" "view$1"
  for point in "$1" "${below[@]}"; do MOUNTS_WANTED["view$point"]=bind,nosuid,nodev,ro; done
}

# usage: hide PATH…
hide() {
  local path own mode at
  local -a paths=() own_paths=() folders=() modes=() same
  local -A with_mode=()
  for path; do
    overlay_name own "$path"
    own="../mounts/$own"
    if [[ ! -e "$path" || -e "$own" ]]; then continue; fi
    paths+=("$path") own_paths+=("$own")
    if [[ -d "$path" ]]; then folders+=("$own"); else : >"$own"; fi
  done
  if ((${#paths[@]} > 0)); then
    if ((${#folders[@]} > 0)); then mkdir -p "${folders[@]}"; fi
    mapfile -t modes < <(stat -L -c %a "${paths[@]}")
    ((${#modes[@]} == ${#paths[@]})) || die 'what is to be hidden has vanished meanwhile'
  fi
  for at in "${!modes[@]}"; do with_mode["${modes[at]}"]+=" $at"; done
  for mode in "${!with_mode[@]}"; do
    same=()
    for at in ${with_mode["$mode"]}; do same+=("${own_paths[at]}"); done
    chmod "$mode" "${same[@]}"
  done
  for path; do
    overlay_name own "$path"
    if [[ -e "$path" ]]; then place "../mounts/$own" "$path" ''; fi
  done
}

# The devices of the machine are copied, since mknod makes only one at a time, together with what else belongs there, which
# the first command makes in dev/. A `cp` that reads devices can do no more than fill this file system; from a terminal that
# can be opened it would wait for input.
fill_dev() {
  local name number
  local -a devices=(/dev/{null,zero,full,random,urandom,stdin,stdout,stderr})
  if ! { : </dev/tty; } 2>/dev/null; then devices+=(/dev/tty); fi
  if [[ ! -L dev/ptmx || ! -L dev/fd ]]; then ln -s -f -n -t dev pts/ptmx /proc/self/fd; fi
  (umask 0 && exec cp -R dev/. "${devices[@]}" view/dev 2>/dev/null) || true
  [[ -L view/dev/ptmx && -L view/dev/fd ]] || die 'cannot fill /dev'
  while read -r name number; do
    if [[ -c "view/dev/$name" && ! -L "view/dev/$name" ]]; then continue; fi
    if [[ -e "view/dev/$name" || -L "view/dev/$name" ]]; then rm "view/dev/$name"; fi
    # shellcheck disable=SC2086
    if mknod -m 666 "view/dev/$name" c $number 2>/dev/null; then continue; fi
    : >"view/dev/$name"
    mount_later "/dev/$name" "view/dev/$name" none bind
  done <<<$'null 1 3\nzero 1 5\nfull 1 7\nrandom 1 8\nurandom 1 9\ntty 5 0'
  mount_later tmpfs view/dev/shm tmpfs mode=1777,nosuid,nodev,noexec,size=64m
  mount_later devpts view/dev/pts devpts newinstance,ptmxmode=0666,mode=0620,nosuid,noexec
  number=0
  for name in stdin stdout stderr; do
    if [[ ! -L "view/dev/$name" ]]; then ln -s -f "fd/$number" "view/dev/$name"; fi
    number=$((number + 1))
  done
}

# /proc and /sys are read-only, and files that reveal the memory, keys or timing of the machine are
# unreadable: those that runc masks, and some more. The machine's own cgroup is visible only if it has only cgroups of version 2.
fill_kernel() {
  local path
  if [[ ! -d view/sys/kernel ]]; then
    # A user who keeps the network of the machine may not.
    mount_later tmpfs view/sys tmpfs ro,size=4k
  elif [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
    mount_later cgroup2 view/sys/fs/cgroup cgroup2 ro,nosuid,nodev,noexec
  fi
  for path in view/proc/{kcore,keys,key-users,kmsg,kpagecgroup,kpagecount,kpageflags,latency_stats,timer_list} \
    view/proc/{timer_stats,sched_debug,interrupts,sysrq-trigger,iomem,ioports,vmallocinfo,slabinfo,kallsyms} \
    view/proc/{acpi,asound,scsi,bus,fs,irq,driver} view/sys/{firmware,kernel/debug,devices/virtual/powercap}; do
    if [[ -d "$path" ]]; then
      mount_later tmpfs "$path" tmpfs ro,size=4k
    elif [[ -e "$path" ]]; then
      mount_later view/dev/null "$path" none bind
    fi
  done
}

# Inside, as process 1 of its namespaces: makes the view, starts the shell that becomes the command, and replaces
# its root.
inside() {
  local root="$1" install="$2" seen="$3" view tell said child ids first count word helper unhook dev out shown own
  shift 3
  # From now on the death of the process outside is noticed; it may have died before.
  if [[ -p /dev/fd/0 || -S /dev/fd/0 ]] && read -r -t 0; then die 'the caller has exited'; fi
  exec </dev/null
  umask 022
  # shellcheck source=scripts/overlay-view.sh
  source "${SELF%/*}/overlay-view.sh"
  overlay_view "$root"
  view="$root/.overlay/view"
  mount_later tmpfs view/dev tmpfs mode=755,nosuid,noexec,size=1m
  # For its ids, which are written out of the reach of the command.
  mount_later proc proc-rw proc nosuid,nodev,noexec
  mount_later proc view/proc proc ro,nosuid,nodev,noexec
  # For the loopback of the sandbox; a read-only mount before this one would make it read-only, too.
  if [[ -z "$NETWORK" ]]; then mount_later sysfs sys-rw sysfs nosuid,nodev,noexec may-fail; fi
  mount_later sysfs view/sys sysfs ro,nosuid,nodev,noexec may-fail
  mount_now
  fill_dev
  fill_kernel
  hide ${HIDDEN[@]+"${HIDDEN[@]}"}
  for shown in ${SHOWN[@]+"${SHOWN[@]}"}; do show "$shown"; done
  place "$install" "$seen" ''
  # Records of runs decide later actions, also outside: a hook may write only what it passes on. All of these are there, so
  # no mount has to be made first to look.
  if [[ -d "$install/runs" && ! -L "$install/runs" ]]; then
    mount_later "$install/runs" "view$seen/runs" none bind,nosuid,nodev,ro
    for own in "$install"/runs/*/hook; do
      if [[ ! -d "$own" || -L "$own" || -L "${own%/*}" ]]; then continue; fi
      mount_later "$own" "view$seen/${own#"$install"/}" none bind,nosuid,nodev
    done
  fi
  if [[ -f "$install/records.json" && ! -L "$install/records.json" ]]; then
    mount_later "$install/records.json" "view$seen/records.json" none bind,nosuid,nodev,ro
  fi
  # For the program that takes the root of the machine away (below).
  mount_later / old none rbind
  mount_now
  mounts_made
  if [[ -z "$NETWORK" ]]; then { echo 1 >sys-rw/class/net/lo/flags; } 2>/dev/null || ip link set lo up; fi

  exec {out}>&1 {tell}<> <(:)
  # `sh` is often a shell that starts faster. It is run twice: in a user namespace whose ids are not there yet, it has no
  # privileges, and gets those of root there from the kernel when it is run again.
  exec {said}< <(
    # shellcheck disable=SC2016
    exec unshare --user sh -c 'echo started; read -r word <&9 && [ "$word" = mapped ] && exec sh -c "$0" "$@"' \
      'echo 0 2>/dev/null >/proc/sys/user/max_user_namespaces; exec setpriv "$0" "$@"' \
      --no-new-privs --inh-caps=-all --bounding-set="-all,$CAPABILITIES" bash "$SELF" --dropped "$out" "$seen" "$@" 9<&"$tell"
  )
  child=$!
  next started
  ids=
  while read -r first _ count; do ids+="$first $first $count"$'\n'; done </proc/self/uid_map
  printf '%s' "$ids" >"proc-rw/$child/uid_map"
  ids=
  while read -r first _ count; do ids+="$first $first $count"$'\n'; done </proc/self/gid_map
  printf '%s' "$ids" >"proc-rw/$child/gid_map"
  printf 'mapped\n' >&"$tell"
  next dropped

  # The machine's root must vanish from the view, and the program that removes it must be the machine's: it waits in a
  # separate root, which pivot_root leaves alone. It must start before: otherwise its root would be replaced, too.
  exec {said}<&-
  exec {dev}<view/dev {unhook}<> <(:)
  exec {said}< <(
    exec chroot old /bin/sh -c 'echo apart; read -r _ <&9 && exec umount -l --no-canonicalize /proc/self/fd/8/.old' \
      8<&"$dev" 9<&"$unhook"
  )
  helper=$!
  next apart
  cd /
  pivot_root "$view" "$view/dev/.old"
  printf 'go\n' >&"$unhook"
  wait "$helper" || die 'cannot remove the root of this machine from the view'
  exec {dev}<&- {unhook}>&-
  printf 'go\n' >&"$tell"
  exec {tell}<&- {said}<&- {out}<&-
  word=0
  wait "$child" || word=$?
  exit "$word"
}

# usage: next WORD; waits until the shell that becomes the command sends it
next() {
  local word=
  read -r -u "$said" word || true
  [[ "$word" == "$1" ]] || exit 1
}
if [[ "$STAGE" == inside ]]; then inside "$@"; fi

PROGRAMS=(unshare setpriv pivot_root mount umount chroot ip stat find xargs)
# usage: user_namespaces_refused WHY; names the setting that refuses them, and what to do
user_namespaces_refused() {
  local setting name refusing value wanted
  for setting in user.max_user_namespaces=0:10000 kernel.unprivileged_userns_clone=0:1 \
    kernel.apparmor_restrict_unprivileged_userns=1:0; do
    name="${setting%%=*}" refusing="${setting#*=}"
    wanted="${refusing#*:}" refusing="${refusing%:*}" value=''
    if [[ -r "/proc/sys/${name//.//}" ]]; then read -r value <"/proc/sys/${name//.//}"; fi
    if [[ "$value" == "$refusing" ]]; then
      die "cannot create a user namespace, since the setting $name is $value: as root, run sysctl -w $name=$wanted; in a container, on its host"
    fi
  done
  die "cannot create a user namespace ($1): a container or a security module such as AppArmor or SELinux may refuse it: run it outside of them"
}

check() {
  local program why point name value root=''
  local -a apart=(--mount --propagation private)
  for program in "${PROGRAMS[@]}"; do
    command -v "$program" >/dev/null || die "missing program: $program (packages util-linux, iproute2, findutils)"
  done
  [[ "$(unshare --help)" == *--kill-child* ]] || die 'unshare is too old: util-linux 2.32 or newer is needed'
  [[ -r /proc/self/mountinfo ]] || die '/proc is not mounted'
  while read -r _ _ _ _ point _; do
    if [[ "$point" == / ]]; then root=1; fi
  done </proc/self/mountinfo
  # The kernel gives no user namespace in a chroot, so this comes first.
  [[ -n "$root" ]] ||
    die 'the root folder is no mount point, as in a chroot: run it outside of the chroot, or in a container or virtual machine'
  # Programs in the sandbox's user namespace begin without privileges, and get them from the kernel when they are run.
  while read -r name value; do
    if [[ "$name" == NoNewPrivs: && "$value" != 0 ]]; then
      die 'this process has no_new_privs, so no program gets the privileges to set up a sandbox: run it outside of a service with NoNewPrivileges=yes, and of a container with allowPrivilegeEscalation: false or no-new-privileges'
    fi
  done </proc/self/status
  why="$(unshare --user --map-root-user true 2>&1)" || user_namespaces_refused "$why"
  if ((EUID != 0)); then apart=(--user --map-root-user "${apart[@]}"); fi
  why="$(unshare "${apart[@]}" true 2>&1)" ||
    die "cannot create a mount namespace ($why): in a container, it must be a privileged one"
}
check
