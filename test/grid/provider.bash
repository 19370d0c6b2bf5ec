# shellcheck shell=bash
# Machines that a provider creates and deletes: the program of docs/clusters-as-data.md as it is there, with the engine of the grid, and
# kill -9 of the operator. Sourced by scripts/grid.

# shellcheck source=test/grid/operator.bash
source test/grid/operator.bash
RANDOM="$GRID_SEED"
# In a creation, or after it; and in that of the repair.
FIRST_KILL=$((1 + RANDOM % 20)) SECOND_KILL=$((1 + RANDOM % 10))
VERSION="v$GRID_NEWEST"
export GRID XDG_CONFIG_HOME="$OPERATOR/config"

# usage: on NODE SECONDS COMMAND…; on the machine of the provider
on() {
  grid_docker "$2" exec "curlew.grid.${1#curlew.grid.}" "${@:3}"
}

# The program of the page, which the configuration names.
documented_provider() {
  local program="$OPERATOR/curlew-lab"
  awk '/^This one has containers as machines/ { found = 1 } inside && /^```$/ { exit } inside { print } found && /^```bash$/ { inside = 1 }' \
    docs/clusters-as-data.md >"$program"
  [[ "$(head -n 1 "$program")" == '#!/usr/bin/env bash' ]] && chmod 755 "$program" && mkdir -p "$XDG_CONFIG_HOME/curlew" &&
    printf '{ "providers": { "lab": "%s" } }\n' "$program" >"$XDG_CONFIG_HOME/curlew/config.json"
}

# A node with the operator's key, and without the host key that all containers of one image would have.
lab_image() {
  # shellcheck disable=SC2016
  grid_docker 60 run --interactive --name seed --network none --security-opt seccomp=unconfined --security-opt apparmor=unconfined grid/node:1 sh -c \
    'rm -f /etc/ssh/ssh_host_* && mkdir -p -m 700 /root/.ssh && cat >/root/.ssh/authorized_keys' <"$OPERATOR/key.pub" &&
    grid_docker 120 commit seed lab-node:12 && grid_docker 20 rm seed
}

lab_docker() {
  ln -s "$PWD/test/grid/lab-docker" "$OPERATOR/bin/docker"
}

provided_file() {
  local node
  {
    cluster_settings "$VERSION"
    for node in one=control-plane two=worker; do
      printf '    - { name: %s, role: %s, provider: { exec: lab, config: { image: lab-node:12, memory: 6g } }, labels: { rack: %s } }\n' \
        "${node%=*}" "${node#*=}" "${node%=*}"
    done
  } >"$OPERATOR/grid.yaml"
}

# usage: machines_are NAME…; all that the provider has
machines_are() {
  local found
  found="$(grid_docker 20 ps --all --format '{{.Names}}' | sort | xargs)"
  printf '%s\n' "$found"
  [[ "$found" == "${*/#/curlew.grid.}" ]]
}

creation_is_planned() {
  provided_file && is_planned bundle 'one create' "one init $VERSION" 'two create' "two join $VERSION" && machines_are
}

labels_are_set() {
  [[ "$(kubectl_on one get nodes -o jsonpath='{range .items[*]}{.metadata.name}={.metadata.labels.rack} {end}')" == 'one=one two=two ' ]]
}

machine_is_lost() {
  grid_docker 30 rm --force --volumes curlew.grid.two && grid_until 120 node_is_lost two
}

# A lost machine is not created by itself.
lost_machine_waits() {
  local text status=0
  text="$(apply bundle --yes 2>&1)" || status=$?
  printf '%s\n' "$text"
  ((status == 2 || status == 33)) && [[ "$text" == *'the provider lab does not have it'* ]] && machines_are one
}

repair() {
  machine repair two --bundle "$GRID/media/bundle.tar.gz" "${IGNORE[@]}"
}

repair_goes_on() {
  killed_after "$SECOND_KILL" repair && once_free repair && machines_are one two && versions_are "$VERSION" "$VERSION"
}

machine_goes() {
  machine remove two && machines_are one && ! grep -q 'name: two' "$OPERATOR/grid.yaml" &&
    [[ -z "$(kubectl_on one get node two --ignore-not-found --output=name)" ]]
}

# One of a provider is an entry in the file.
machine_comes() {
  provided_file && apply bundle --yes && machines_are one two && labels_are_set
}

cluster_is_deleted() {
  operator cluster delete "$OPERATOR/grid.yaml" --confirm grid && machines_are
}

step "the operator's machine" operator_machine
step 'the provider of the page' documented_provider
step 'an image with its key' lab_image
step 'the engine of the provider' lab_docker
step 'creations are planned' creation_is_planned
note "kill -9 of the operator after $FIRST_KILL s of the first apply, and after $SECOND_KILL s of the repair"
step 'apply, killed' killed_after "$FIRST_KILL" apply bundle --yes
step 'apply goes on' apply_goes_on bundle
step 'each machine is there once' machines_are one two
step 'both nodes have the version' versions_are "$VERSION" "$VERSION"
step 'labels are set' labels_are_set
step 'pods talk across nodes' pods_talk
step 'a second apply changes nothing' nothing_is_left bundle
step 'a machine is lost' machine_is_lost
step 'a lost machine waits' lost_machine_waits
step 'a repair goes on after kill -9' repair_goes_on
step 'a machine is removed' machine_goes
step 'a machine is added' machine_comes
step 'pods talk across nodes' pods_talk
step 'the cluster is deleted' cluster_is_deleted
