# shellcheck shell=bash
# The life of a cluster as data: from bare hosts to the next minor version over SSH, with kill -9 of the operator. Sourced by scripts/grid.

# shellcheck source=test/grid/operator.bash
source test/grid/operator.bash
RANDOM="$GRID_SEED"
# Seconds after which the operator of one attempt is killed, while hosts go on.
FIRST_KILL=$((5 + RANDOM % 20)) SECOND_KILL=$((5 + RANDOM % 30))
NODES=(one=control-plane two=worker)

hosts_are_bare() {
  cluster_file "$OLD" "${NODES[@]}" && is_planned "$GRID_BEFORE" "one init $OLD" "two join $OLD" && on one 20 test ! -e /etc/kubernetes/kubelet.conf
}

kubeconfig_works() {
  local node="$GRID/operator/grid.conf"
  [[ "$(stat -c %a "$node")" == 600 ]] &&
    nsenter --net --target "$(cat "$GRID_RUN/engine")" timeout 30 "$(grid_program kubectl)" --kubeconfig "$node" get nodes
}

labels_are_set() {
  [[ "$(kubectl_on one get nodes -o jsonpath='{range .items[*]}{.metadata.name}={.metadata.labels.rack} {end}')" == 'one=one two=two ' ]]
}

# A label that the file gets later is set in place.
label_is_added() {
  sed -i '/name: two,/s/rack: two/rack: two, disk: ssd/' "$OPERATOR/grid.yaml" && apply "$GRID_BEFORE" --yes &&
    [[ "$(kubectl_on one get node two -o jsonpath='{.metadata.labels.disk}')" == ssd ]]
}

# Nothing secret in the arguments or files of a host, and nothing in its folder for temporary files.
hosts_are_clean() {
  local node
  for node in one two; do
    # shellcheck disable=SC2016
    on "$node" 20 sh -c 'test ! -e /var/lib/curlew-remote/input && test "$(stat -c %a /var/lib/curlew-remote)" = 700 &&
      ! ls /var/lib/curlew-remote/join-* 2>/dev/null && ! ls -d /tmp/curlew* 2>/dev/null' || return 1
  done
}

upgrade_is_planned() {
  cluster_file "$NEW" "${NODES[@]}" && is_planned bundle "one upgrade $NEW" "two upgrade $NEW" && versions_are "$OLD" "$OLD"
}

first_machine_goes_up() {
  once_free machine upgrade one --bundle "$GRID/media/bundle.tar.gz" "${IGNORE[@]}" && versions_are "$NEW" "$OLD"
}

cluster_is_well() {
  local text
  text="$(operator cluster status "$OPERATOR/grid.yaml")" || {
    printf '%s\n' "$text"
    return 1
  }
  printf '%s\n' "$text"
  [[ "$text" =~ two\ +worker\ +$NEW\ +ready && "$text" == *'expires in 364 days'* ]]
}

pods_move_away() {
  machine drain two && is_drained && kubectl_on one uncordon two
}

is_drained() {
  [[ "$(kubectl_on one get node two -o jsonpath='{.spec.unschedulable}')" == true &&
    -z "$(kubectl_on one get pods --selector=app=moved --field-selector=spec.nodeName=two --output=name)" ]]
}

# A machine that is as it should be is left alone.
broken_machine_is_repaired() {
  local text
  text="$(machine repair two --bundle "$GRID/media/bundle.tar.gz" "${IGNORE[@]}")" && [[ "$text" == *'nothing is left to do'* ]] || return 1
  on two 30 systemctl disable --now kubelet && grid_until 120 node_is_lost two || return 1
  machine repair two --bundle "$GRID/media/bundle.tar.gz" "${IGNORE[@]}" && versions_are "$NEW" "$NEW"
}

machine_goes() {
  machine remove two && ! grep -q 'name: two' "$OPERATOR/grid.yaml" &&
    [[ -z "$(kubectl_on one get node two --ignore-not-found --output=name)" ]] && on two 20 test ! -e /etc/kubernetes
}

machine_comes() {
  machine add two --address "$(address_of two)" --user root --host-key "$(host_key two)" --label rack=two \
    --bundle "$GRID/media/bundle.tar.gz" "${IGNORE[@]}" &&
    grep -q 'name: two' "$OPERATOR/grid.yaml" && versions_are "$NEW" "$NEW" && labels_are_set
}

# The file of a running cluster needs only the host keys: then nothing is to do.
cluster_is_adopted() {
  local node file="$OPERATOR/adopted.yaml"
  operator cluster adopt --kubeconfig "$OPERATOR/grid.conf" -o "$file" --name grid || return 1
  for node in one two; do
    sed -i "/- name: $node\$/,/- name: two\$/ s|# ssh: .*|ssh: { user: root, hostKey: '$(host_key "$node")' }|" "$file"
  done
  operator cluster plan "$file"
}

# Without the name nothing is reset.
cluster_is_deleted() {
  local node status=0
  operator cluster delete "$OPERATOR/grid.yaml" || status=$?
  ((status == 2)) && control_plane_works || return 1
  operator cluster delete "$OPERATOR/grid.yaml" --confirm grid || return 1
  for node in one two; do
    on "$node" 20 sh -c 'test ! -e /etc/kubernetes && test ! -e /var/lib/etcd/member && test ! -e /var/lib/curlew-remote/bundle' || return 1
  done
}

OLD="v$GRID_BEFORE" NEW="v$GRID_NEWEST"
step "the operator's machine" operator_machine
step 'node one boots' starts_bare one 1
step 'node two boots' starts_bare two 2
step 'a plan of bare hosts' hosts_are_bare
note "kill -9 of the operator after $FIRST_KILL s, and after $SECOND_KILL s of the upgrade"
step 'apply, killed' killed_after "$FIRST_KILL" apply "$GRID_BEFORE" --yes
step 'apply goes on' apply_goes_on "$GRID_BEFORE"
step 'both nodes have the version' versions_are "$OLD" "$OLD"
step 'labels are set' labels_are_set
step 'the kubeconfig works' kubeconfig_works
step 'hosts are clean' hosts_are_clean
step 'pods talk across nodes' pods_talk
step 'a second apply changes nothing' nothing_is_left "$GRID_BEFORE"
step 'a label is added' label_is_added
step 'a workload of two pods' served_pods
step 'a probe of it' start_probe
step 'an upgrade is planned' upgrade_is_planned
step 'apply, killed' killed_after "$SECOND_KILL" apply bundle --yes
step 'one machine first' first_machine_goes_up
step 'apply goes on' apply_goes_on bundle
step 'both nodes have the next minor' versions_are "$NEW" "$NEW"
step 'the probe never failed' probe_never_failed
step 'pods talk across nodes' pods_talk
step 'a second apply changes nothing' nothing_is_left bundle
step 'the cluster is well' cluster_is_well
step 'pods of a machine move away' pods_move_away
step 'a broken machine is repaired' broken_machine_is_repaired
step 'a machine is removed' machine_goes
step 'a machine is added' machine_comes
step 'pods talk across nodes' pods_talk
step 'a file of it is written' cluster_is_adopted
step 'the cluster is deleted' cluster_is_deleted
