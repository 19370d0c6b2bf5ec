# shellcheck shell=bash
# Faults of hosts, over SSH: swap and a full disk before the first step, another host key, a worker that does not answer during an upgrade, and
# disks that are full in the middle of it. Each holds no more than it must, is named, and is gone with what the message says. Sourced by scripts/grid.

# shellcheck source=test/grid/operator.bash
source test/grid/operator.bash
NODES=(one=control-plane two=worker three=worker)

# usage: says STATUS TEXT… -- COMMAND…; the command ends with this status, and what it prints has all of these texts
says() {
  local text status=0 wanted="$1" words=()
  shift
  while [[ "$1" != -- ]]; do
    words+=("$1")
    shift
  done
  text="$("${@:2}" 2>&1)" || status=$?
  printf '%s\nstatus %s\n' "$text" "$status"
  ((status == wanted)) || return 1
  for wanted in "${words[@]}"; do
    [[ "$text" == *"$wanted"* ]] || {
      printf 'it does not say: %s\n' "$wanted"
      return 1
    }
  done
}

plan() {
  operator cluster plan "$OPERATOR/grid.yaml" --bundle "$GRID/media/$1.tar.gz"
}

# usage: kubelets_are NODE=VERSION…; in the order of names, and all of them take pods
kubelets_are() {
  local found
  found="$(kubectl_on one get nodes -o jsonpath='{range .items[*]}{.metadata.name}={.status.nodeInfo.kubeletVersion}{.spec.unschedulable} {end}')"
  printf '%s\n' "$found"
  [[ "$found" == "$* " ]]
}

# usage: is_full NODE FOLDER; a disk of its own, without room
is_full() {
  # shellcheck disable=SC2016
  on "$1" 20 sh -c 'mkdir -p "$1" && mount -t tmpfs -o size=4k,mode=700 full "$1" && { ! head -c 8192 /dev/zero >"$1/filled"; } 2>/dev/null' full "$2"
}

# usage: is_freed NODE FOLDER
is_freed() {
  on "$1" 20 umount "$2"
}

# What a node needs is wrong on all three, in different ways.
hosts_are_unfit() {
  local node
  for node in one two; do
    on "$node" 20 sh -c 'printf "Filename Type Size Used Priority\n/swapfile file 1048576 0 -2\n" >/run/swaps && mount --bind /run/swaps /proc/swaps' || return 1
  done
  on three 20 mount -t tmpfs -o size=64m small /var/lib
}

all_hosts_are_named() {
  local named=('refused: one: its swap is on: swapoff -a' 'refused: two: its swap is on: swapoff -a' 'refused: three: it has 64 MiB free in /var/lib')
  cluster_file "$OLD" "${NODES[@]}" && says 2 "${named[@]}" '0 steps to do' -- plan "$GRID_BEFORE" &&
    says 33 "${named[@]}" -- apply "$GRID_BEFORE" --yes || return 1
  local node
  for node in one two three; do
    on "$node" 20 sh -c 'test ! -e /var/lib/curlew-remote/bundle && test ! -e /etc/kubernetes && ! command -v kubelet' || return 1
  done
}

hosts_become_fit() {
  on one 20 umount /proc/swaps && on two 20 umount /proc/swaps && on three 20 umount /var/lib &&
    is_planned "$GRID_BEFORE" "one init $OLD" "two join $OLD" "three join $OLD"
}

# As after a new installation, or with another machine in its place.
key_changes() {
  on two 20 sh -c 'rm /etc/ssh/ssh_host_*; ssh-keygen -q -t ed25519 -N "" -f /etc/ssh/ssh_host_ed25519_key && systemctl restart ssh'
}

# The file is changed for all, and only the others get it.
key_holds_one_machine() {
  local text
  sed -i 's/labels: { rack: \([a-z]*\) }/labels: { rack: \1, disk: ssd }/' "$OPERATOR/grid.yaml"
  says 33 'refused: two: ' 'another host key than SHA256:' 'ssh-keyscan -t ed25519' 'change hostKey' 'done: three label' -- apply "$GRID_BEFORE" --yes &&
    labels_are 'one=ssd three=ssd two= '
}

labels_are() {
  [[ "$(kubectl_on one get nodes -o jsonpath='{range .items[*]}{.metadata.name}={.metadata.labels.disk} {end}')" == "$1" ]]
}

# The command of the message, and the console of the host, say the same.
new_key_is_accepted() {
  local found
  found="$(nsenter --net --target "$(cat "$GRID_RUN/engine")" ssh-keyscan -t ed25519 "$(address_of two)" 2>/dev/null | ssh-keygen -lf - | cut -d ' ' -f 2)"
  [[ "$found" == "$(host_key two)" ]] || return 1
  sed -i "/name: two,/s|SHA256:[A-Za-z0-9+/]*|$found|" "$OPERATOR/grid.yaml" &&
    apply "$GRID_BEFORE" --yes && labels_are 'one=ssd three=ssd two=ssd '
}

two_goes_away() {
  on two 20 ip link set eth0 down && grid_until 120 node_is_lost two
}

# The plan and the checks of the hosts agree that it holds only itself.
upgrade_goes_past_it() {
  cluster_file "$NEW" "${NODES[@]}" &&
    is_planned bundle "one upgrade $NEW" "three upgrade $NEW" 'waits: two: it does not answer'
}

# usage: fails_for_disk NODE FOLDER TEXT…; an apply, as long as the disk has no room; the cluster goes on without it
fails_for_disk() {
  local text status=0 wanted
  text="$(apply bundle --yes 2>&1)" || status=$?
  printf '%s\nstatus %s\n' "$text" "$status"
  ((status != 0 && status != 2)) && [[ "$text" != *'is as its file says'* && "$(kubectl_on one get --raw /readyz)" == ok ]] || return 1
  for wanted in "$2" "${@:3}"; do
    [[ "$(grep "^failed: $1 " <<<"$text")" == *"$wanted"* ]] || {
      printf 'the failure does not say: %s\n' "$wanted"
      return 1
    }
  done
}

# Nor is there a node for the pod with which kubeadm tests the control plane, which goes up nevertheless.
control_plane_goes_past_it() {
  kubectl_on one taint node three test=yes:NoSchedule && fails_for_disk three /var/lib/containerd &&
    kubectl_on one taint node three test- && kubelets_are "one=$NEW" "three=$OLD" "two=$OLD" &&
    images_have_room three
}

# usage: has_no_room NODE FOLDER TEXT
has_no_room() {
  is_full "$1" "$2" || return 1
  fails_for_disk "$@" || {
    is_freed "$1" "$2"
    return 1
  }
  is_freed "$1" "$2"
}

worker_has_no_room() {
  has_no_room three /etc/kubernetes/tmp 'no space left' && kubelets_are "one=$NEW" "three=${OLD}true" "two=$OLD"
}

rest_goes_up() {
  says 2 'done: three upgrade' 'waits: two: it does not answer' '1 waiting' -- apply bundle --yes && kubelets_are "one=$NEW" "three=$NEW" "two=$OLD"
}

two_comes_back() {
  # shellcheck disable=SC2016
  on two 20 sh -c 'ip link set eth0 up && ip route replace default via "$1"' up "$GRID_NETWORK.1" && grid_until 60 node_ready two &&
    apply bundle --yes && kubelets_are "one=$NEW" "three=$NEW" "two=$NEW"
}

OLD="v$GRID_BEFORE" NEW="v$GRID_NEWEST"
step "the operator's machine" operator_machine
step 'node one boots' starts_bare one 1
step 'node two boots' starts_bare two 2
step 'node three boots' starts_bare three 3
step 'swap is on, and a disk is full' hosts_are_unfit
step 'all hosts are named, and none is touched' all_hosts_are_named
step 'without that, a plan' hosts_become_fit
step 'apply' apply "$GRID_BEFORE" --yes
step 'a worker gets another host key' key_changes
step 'it holds only that worker' key_holds_one_machine
step 'the way out of the message' new_key_is_accepted
step 'a second apply changes nothing' nothing_is_left "$GRID_BEFORE"
step 'a worker does not answer' two_goes_away
step 'an upgrade is planned past it' upgrade_goes_past_it
step 'a worker has no room for images' images_fill three
step 'nor has the control plane for a snapshot of etcd' has_no_room one /var/lib/curlew/etcd '0 B are free'
step 'nor kubeadm of the control plane' has_no_room one /etc/kubernetes/tmp 'no space left'
step 'with room, it is upgraded past the worker' control_plane_goes_past_it
step 'no room in kubeadm of a worker' worker_has_no_room
step 'the others go up' rest_goes_up
step 'the worker answers again, and goes up' two_comes_back
step 'pods talk across nodes' pods_talk
step 'a second apply changes nothing' nothing_is_left bundle
