# shellcheck shell=bash
# One minor version up on two nodes, under a workload that always answers, with kill -9 on the way. Sourced by scripts/grid.

RANDOM="$GRID_SEED"
# What a run prints before two of its steps, and seconds of kubeadm's upgrade after which another one is killed.
KILLS=('etcd is saved' 'no new pods, and evicting')
FIRST_KILL="${KILLS[RANDOM % 2]}" SECOND_KILL=$((RANDOM % 20))

# usage: images_of NODE
images_of() {
  on "$1" 20 crictl images --quiet | sort
}

# Nothing is loaded where less than 15 % of the disk would stay free.
images_need_room() {
  local text status=0 before
  before="$(images_of two)" && images_fill two || return 1
  text="$(on two 120 /root/bundle/tasks.sh load-images 2>&1)" || status=$?
  printf '%s\nstatus %s\n' "$text" "$status"
  images_have_room two &&
    [[ "$status" == 18 && "$text" == */var/lib/containerd*'must stay free'* && "$(images_of two)" == "$before" ]]
}

worker_waits() {
  local text
  if text="$(upgrade_on two 2>&1)"; then return 1; fi
  printf '%s\n' "$text"
  [[ "$text" == *"the cluster has $OLD: its first control plane goes to $NEW before other nodes do"* ]] && versions_are "$OLD" "$OLD"
}

upgrade_is_shown() {
  local text
  text="$(upgrade_on one --dry-run)" || return 1
  printf '%s\n' "$text"
  [[ "$text" == *'save etcd'*'drain it: '*"Kubernetes $OLD -> $NEW"*'uncordon it'* ]] && versions_are "$OLD" "$OLD"
}

# usage: killed_upgrade NODE TEXT
killed_upgrade() {
  local settings=/media/node-settings.yaml
  if [[ "$1" == two ]]; then settings=/root/join-settings.yaml; fi
  killed_at "$1" "$2" /root/bundle/upgrade.sh "${IGNORE[@]}" airgap "installer-spec-file=$settings"
}

killed_in_kubeadm() {
  # shellcheck disable=SC2016
  on one 600 bash -c '
    setsid /root/bundle/upgrade.sh "${@:2}" >/run/killed.log 2>&1 &
    until test -e /etc/kubernetes/curlew/upgrade; do kill -0 $! || exit 1; sleep 0.02; done
    sleep "$1"
    kill -9 -- -$! && ! wait $!' killed "$SECOND_KILL" "${IGNORE[@]}" airgap installer-spec-file=/media/node-settings.yaml
}

first_goes_up() {
  local text
  killed_upgrade one "$FIRST_KILL" && killed_in_kubeadm || return 1
  text="$(upgrade_on one)" || {
    printf '%s\n' "$text"
    return 1
  }
  printf '%s\n' "$text"
  [[ "$text" == *'next: ./upgrade.sh of the bundle on two'* ]] && versions_are "$NEW" "$OLD" && control_plane_works
}

snapshot_is_kept() {
  [[ "$(on one 20 sh -c 'stat -c %a /var/lib/curlew/etcd/*.tar | sort -u')" == 600 ]] &&
    on one 60 /root/bundle/tasks.sh etcd snapshot && on one 60 /root/bundle/tasks.sh etcd snapshot &&
    on one 60 /root/bundle/tasks.sh etcd snapshot &&
    # That of before the upgrade is not among the three that are kept.
    [[ "$(on one 20 sh -c 'ls /var/lib/curlew/etcd/*Z.tar | wc -l; ls /var/lib/curlew/etcd/*-before-*.tar | wc -l')" == $'3\n1' ]]
}

worker_goes_up() {
  killed_upgrade two 'no new pods, and evicting' && upgrade_on two && versions_are "$NEW" "$NEW"
}

OLD="v$GRID_BEFORE" NEW="v$GRID_NEWEST"
step 'node one boots' grid_start_node one 1
step 'unpack the bundle before it' unpack one "$GRID_BEFORE"
step 'install' install_on one
step 'node two boots' grid_start_node two 2
step 'unpack the bundle before it' unpack two "$GRID_BEFORE"
step 'a file for node two' join_file two
step 'join' join_on two
step 'a workload of two pods' served_pods
step 'a probe of it' start_probe
step 'unpack the bundle on one' unpack one
step 'unpack the bundle on two' unpack two
step 'images on two that find no room' images_need_room
# kubeadm gives all nodes the next CoreDNS and kube-proxy together with the first one.
step 'load its images on two' on two 120 /root/bundle/tasks.sh load-images
step 'a worker waits for its control plane' worker_waits
step 'an upgrade is shown' upgrade_is_shown
note "kill -9 at: $FIRST_KILL; $SECOND_KILL s of kubeadm"
step 'the first node goes up' first_goes_up
step 'etcd is saved' snapshot_is_kept
step 'the second node goes up' worker_goes_up
step 'the probe never failed' probe_never_failed
step 'pods talk across nodes' pods_talk
step 'second run restarts nothing' nothing_restarts
