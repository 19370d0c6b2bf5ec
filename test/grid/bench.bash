# shellcheck shell=bash
# Install, join and upgrade by curlew, and next to it by a plain script of kubeadm's documented steps, on the same two nodes with the
# same programs and images; and a cluster as a file, next to the same commands of curlew by hand on each node. Sourced by scripts/grid;
# its times are lines in the folder of logs: what, by whom, milliseconds.

# shellcheck source=test/grid/operator.bash
source test/grid/operator.bash
OLD="v$GRID_BEFORE" NEW="v$GRID_NEWEST"

# usage: measured WHAT BY COMMAND…
measured() {
  local began
  began="$(date +%s%N)"
  "${@:3}" || return 1
  printf '%s %s %d\n' "$1" "$2" $((($(date +%s%N) - began) / 1000000)) >>"$GRID/logs/times"
}

# usage: plain NODE WORD…
plain() {
  on "$1" 900 bash /root/plain.bash "${@:2}"
}

plain_is_there() {
  local node
  for node in one two; do grid_docker 20 cp "$PWD/test/grid/plain.bash" "$node:/root/plain.bash" || return 1; done
}

# usage: kept NAME; on both nodes
kept() {
  plain one keep "$1" && plain two keep "$1"
}

nodes_are_bare() {
  on one 300 /root/bundle/tasks.sh node remove two --yes && on two 300 /root/bundle/tasks.sh reset --yes &&
    on one 400 /root/bundle/tasks.sh reset --yes && plain one empty && plain two empty
}

# usage: send NODE; the bundle before it, over SSH
send() {
  nsenter --net --target "$(cat "$GRID_RUN/engine")" "$OPERATOR/bin/ssh" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
    "root@$(address_of "$1")" 'mkdir /root/bundle && tar -xzf - -C /root/bundle' <"$GRID/media/$GRID_BEFORE.tar.gz"
}

by_hand() {
  send one && send two && measured install curlew install_on one && join_file two && measured join curlew join_on two
}

cluster_from_file() {
  cluster_file "$OLD" one=control-plane two=worker && measured ssh curlew apply "$GRID_BEFORE" --yes && versions_are "$OLD" "$OLD"
}

plain_token() {
  on one 30 kubeadm token create --print-join-command >"$GRID/token"
}

plain_join() {
  local words
  read -ra words <"$GRID/token"
  plain two join old "${words[@]}"
}

# usage: plain_upgrade NODE first|node
plain_upgrade() {
  plain one drain "$1" && plain "$1" upgrade new "$NEW" "$2" && plain one uncordon "$1"
}

step "the operator's machine" operator_machine
step 'node one boots' starts_bare one 1
step 'node two boots' starts_bare two 2
step 'the plain script' plain_is_there
step 'a cluster by hand' measured ssh plain by_hand
step 'nodes are bare again' nodes_are_bare
step 'a cluster from a file' cluster_from_file
step 'its programs and images are kept' kept old
step 'unpack the bundle' unpack one
step 'unpack the bundle' unpack two
step 'upgrade of one' measured upgrade-first curlew upgrade_on one
step 'upgrade of two' measured upgrade-next curlew upgrade_on two
step 'both nodes have the next minor' versions_are "$NEW" "$NEW"
step 'its programs and images are kept' kept new
step 'nodes are bare again' nodes_are_bare
step 'plain install' measured install plain plain one install old
step 'a token for node two' plain_token
step 'plain join' measured join plain plain_join
step 'pods talk across nodes' pods_talk
step 'plain upgrade of one' measured upgrade-first plain plain_upgrade one first
step 'plain upgrade of two' measured upgrade-next plain plain_upgrade two node
step 'both nodes have the next minor' versions_are "$NEW" "$NEW"
column -t "$GRID/logs/times"
