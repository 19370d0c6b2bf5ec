# shellcheck shell=bash
# Nodes of the grid: containers that run systemd, in an engine of their own. The engine has namespaces of its own for processes, mounts and
# the network: no node reaches anything but its fellows, and everything ends with the first process of the engine.
# Sourced by scripts/grid; needs GRID (the work folder).

GRID_RUN=/run/curlew-grid
GRID_CGROUP=curlew-grid
GRID_NETWORK=10.77.0
# What the folder of images has on each node: known, so that the kubelet's threshold is the same on every machine.
GRID_IMAGES_SIZE=4g
# Settings of the whole machine that systemd, the engine or the kubelet may change in spite of the entry point.
GRID_SETTINGS=(
  fs/file-max fs/nr_open fs/inotify/max_user_instances fs/inotify/max_user_watches fs/protected_regular fs/protected_fifos
  fs/protected_symlinks fs/protected_hardlinks kernel/panic kernel/panic_on_oops kernel/pid_max kernel/sysrq kernel/core_pattern
  kernel/keys/root_maxkeys kernel/keys/root_maxbytes vm/overcommit_memory vm/max_map_count vm/swappiness
)
# All but SYS_RESOURCE, which root of a virtual machine may not have.
GRID_CAPABILITIES=(
  CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST
  NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_TIME
  SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ
)

# usage: grid_docker SECONDS WORD…; every call of the engine has a limit
grid_docker() {
  timeout --kill-after=10 "$1" docker --host "unix://$GRID_RUN/docker.sock" "${@:2}"
}

grid_keep_settings() {
  local name
  # After a killed run the saved values are the true ones.
  [[ -e "$GRID/settings" ]] && return 0
  for name in "${GRID_SETTINGS[@]}"; do
    if [[ -r "/proc/sys/$name" ]]; then printf '%s %s\n' "$name" "$(cat "/proc/sys/$name")"; fi
  done >"$GRID/settings"
}

grid_restore_settings() {
  local name value
  [[ -e "$GRID/settings" ]] || return 0
  while read -r name value; do
    if [[ "$(cat "/proc/sys/$name")" != "$value" ]]; then
      printf '%s was changed, and is restored to %s\n' "$name" "$value"
      echo "$value" >"/proc/sys/$name"
    fi
  done <"$GRID/settings"
  rm -f "$GRID/settings"
}

grid_start_engine() {
  local try
  mkdir -p "$GRID_RUN" "$GRID/docker"
  grid_keep_settings
  # Per user on the whole machine; two nodes exhaust the 128 of a default.
  if (($(cat /proc/sys/fs/inotify/max_user_instances) < 1024)); then echo 1024 >/proc/sys/fs/inotify/max_user_instances; fi
  # shellcheck disable=SC2016
  setsid unshare --mount --net --pid --fork --kill-child --mount-proc bash -c 'ip link set lo up && exec dockerd "$@"' dockerd \
    --data-root "$GRID/docker" --exec-root "$GRID_RUN/exec" --pidfile "$GRID_RUN/docker.pid" --bridge none \
    --host "unix://$GRID_RUN/docker.sock" --cgroup-parent "/$GRID_CGROUP" --storage-driver overlay2 \
    >"$GRID/logs/dockerd.log" 2>&1 </dev/null 9>&- &
  echo $! >"$GRID_RUN/engine"
  for try in {1..60}; do
    if grid_docker 5 version >/dev/null 2>&1; then break; fi
    kill -0 "$(cat "$GRID_RUN/engine")" 2>/dev/null || die "dockerd did not start: see $GRID/logs/dockerd.log"
    sleep 0.5
  done
  ((try < 60)) || die "dockerd does not answer: see $GRID/logs/dockerd.log"
  grid_docker 120 import "$TOOLS/grid/node.tar" grid/node:1 &&
    grid_docker 20 network create --subnet "$GRID_NETWORK.0/24" grid
}

# usage: grid_node_options NAME; the options of its container become GRID_OPTIONS
grid_node_options() {
  local log="$GRID/logs/$1" disks="$GRID_RUN/disks/$1"
  local volumes=(--tmpfs "/var/lib/containerd:exec,suid,dev,size=$GRID_IMAGES_SIZE" --tmpfs /var/lib/etcd:size=512m)
  mkdir -p "$log/journal" || return 1
  # For scenarios with power cuts: what is a disk of a machine stays.
  if [[ -n "${GRID_KEEPS_DISKS-}" ]]; then
    # shellcheck disable=SC2016
    nsenter --mount --target "$(cat "$GRID_RUN/engine")" sh -c 'mkdir -p "$1/images" "$1/etcd" &&
      mount -t tmpfs -o "size=$2" images "$1/images" && mount -t tmpfs -o size=512m etcd "$1/etcd"' disks "$disks" "$GRID_IMAGES_SIZE" || return 1
    volumes=(--volume "$disks/images:/var/lib/containerd" --volume "$disks/etcd:/var/lib/etcd")
  fi
  GRID_OPTIONS=(
    --hostname "$1" "${GRID_CAPABILITIES[@]/#/--cap-add=}"
    --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined
    --device-cgroup-rule 'a *:* rwm' --device /dev/kmsg --cgroupns private --network grid
    --tmpfs '/run:exec,size=256m' --tmpfs '/tmp:exec,size=512m' "${volumes[@]}" --volume /var/lib/kubelet --volume "$log:/var/log" --volume "$GRID/media:/media:ro"
    --volume "$PWD/test/grid/node-entrypoint:/usr/local/sbin/node-entrypoint:ro" --entrypoint /usr/local/sbin/node-entrypoint
  )
}

# usage: grid_start_node NAME NUMBER
grid_start_node() {
  grid_node_options "$1" || return 1
  grid_docker 60 run --detach --name "$1" --ip "$GRID_NETWORK.$((10 + $2))" "${GRID_OPTIONS[@]}" grid/node:1 >/dev/null || return 1
  grid_until 60 grid_booted "$1" || die "$1 did not boot: see $GRID/logs/$1"
}

grid_booted() {
  [[ "$(grid_docker 10 exec "$1" systemctl is-system-running 2>/dev/null)" =~ ^(running|degraded)$ ]]
}

# usage: grid_until SECONDS COMMAND…
grid_until() {
  local end=$((SECONDS + $1))
  until "${@:2}"; do
    ((SECONDS < end)) || return 1
    sleep 0.5
  done
}

# usage: on NODE SECONDS COMMAND…
on() {
  grid_docker "$2" exec "$1" "${@:3}"
}

# usage: kubectl_on NODE WORD…
kubectl_on() {
  on "$1" 60 kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout=30s "${@:2}"
}

# What a failure is explained by: the journals are in the folder of logs already.
grid_collect() {
  local node
  for node in $(grid_docker 10 ps --format '{{.Names}}' 2>/dev/null); do
    mkdir -p "$GRID/logs/$node"
    {
      kubectl_on "$node" get nodes,pods --all-namespaces --output wide
      kubectl_on "$node" get events --all-namespaces --sort-by .lastTimestamp
      on "$node" 20 crictl ps --all
      on "$node" 20 df -h
    } >"$GRID/logs/$node/state" 2>&1 || true
    grid_docker 60 cp "$node:/var/lib/curlew/runs" "$GRID/logs/$node/" >/dev/null 2>&1 || true
    # Requests contain tokens.
    find "$GRID/logs/$node/runs" -name request.json -delete 2>/dev/null || true
  done
}

# Ends the engine with everything that runs in it, and removes what it has left; also after a run that was killed.
grid_stop_engine() {
  local process folder try
  process="$(cat "$GRID_RUN/engine" 2>/dev/null || true)"
  if [[ -n "$process" && "$(tr '\0' ' ' <"/proc/$process/cmdline" 2>/dev/null)" == *unshare*dockerd* ]]; then
    kill -KILL "$process" 2>/dev/null || true
    wait "$process" 2>/dev/null || true
  fi
  # The processes of a node that is paused end only once it is not.
  find "/sys/fs/cgroup/freezer/$GRID_CGROUP" -name freezer.state -exec sh -c 'echo THAWED >"$1"' thaw {} \; 2>/dev/null || true
  find "/sys/fs/cgroup/$GRID_CGROUP" -name cgroup.freeze -exec sh -c 'echo 0 >"$1"' thaw {} \; 2>/dev/null || true
  for try in {1..100}; do
    # Cgroups disappear when their last process has ended.
    for folder in /sys/fs/cgroup/*/"$GRID_CGROUP" "/sys/fs/cgroup/$GRID_CGROUP"; do
      if [[ -d "$folder" ]]; then find "$folder" -depth -type d -exec rmdir {} + 2>/dev/null || true; fi
    done
    if ! compgen -G "/sys/fs/cgroup/*/$GRID_CGROUP" >/dev/null && [[ ! -d "/sys/fs/cgroup/$GRID_CGROUP" ]]; then break; fi
    sleep 0.1
  done
  ((try < 100)) || printf 'cgroups %s are still there\n' "$GRID_CGROUP"
  rm -rf "$GRID_RUN" "$GRID/docker"
  grid_restore_settings
}
