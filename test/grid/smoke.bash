# shellcheck shell=bash
# A cluster from a bundle, tried by use. Sourced by scripts/grid: every step is one line with its seconds.

# No check fails. Warnings, which have status 3, depend on the machine.
checks_pass() {
  local status=0
  on one 60 /root/bundle/tasks.sh preflight "${IGNORE[@]}" || status=$?
  ((status == 0 || status == 3))
}

setting_changes() {
  local before after
  before="$(on one 20 crictl ps --quiet | sort)"
  install_on one kubernetes-max-pods-per-node=60 || return 1
  after="$(on one 20 crictl ps --quiet | sort)"
  grid_until 30 pods_allowed one 60 || return 1
  # Only the kubelet restarts: containers go on.
  [[ "$before" == "$after" ]]
}

# usage: pods_allowed NODE NUMBER
pods_allowed() {
  [[ "$(kubectl_on one get node "$1" -o jsonpath='{.status.allocatable.pods}')" == "$2" ]]
}

cluster_is_shown() {
  local text wanted
  text="$(on one 60 /root/bundle/tasks.sh status)" || return 1
  printf '%s\n' "$text"
  for wanted in 'control plane  ready' 'the kubelet removes images from' 'expires in 364 days'; do
    [[ "$text" == *"$wanted"* ]] || return 1
  done
  [[ "$text" =~ two\ .*worker\ +ready && "$text" != *Problem* ]]
}

# A node that was reset is clean enough to join again.
reset_and_join() {
  on one 300 /root/bundle/tasks.sh node remove two --yes &&
    on two 300 /root/bundle/tasks.sh reset --yes &&
    on two 20 sh -c 'test ! -e /etc/kubernetes && test ! -e /usr/local/bin/kubelet && ! ip link show cni0' &&
    unpack two &&
    join_file two && join_on two &&
    pods_talk
}

step 'node one boots' grid_start_node one 1
step 'unpack the bundle' unpack one
step 'its checks' checks_pass
step 'install' install_on one
step 'control plane works' control_plane_works
step 'services work' services_work one
step 'second run restarts nothing' nothing_restarts
step 'node two boots' grid_start_node two 2
step 'unpack the bundle' unpack two
step 'a file for node two' join_file two
step 'join' join_on two
step 'both nodes are ready' node_ready two
step 'pods talk across nodes' pods_talk
step 'its state is shown' cluster_is_shown
# Another spec may have none of them.
if grep -q '^  traefik:' "$GRID/installer.yaml"; then
  # shellcheck source=test/grid/useful.bash
  source test/grid/useful.bash
fi
step 'images are pinned, one' images_pinned one
step 'images are pinned, two' images_pinned two
step 'a changed setting' setting_changes
step 'reset, and join again' reset_and_join
