# shellcheck shell=bash
# The machine of an operator, from which a cluster is a file: curlew over SSH, and kill -9 of it. Sourced by scenarios of the grid.

OPERATOR="$GRID/operator"

# usage: trust_operator NODE; its server accepts the key of the operator
trust_operator() {
  on "$1" 20 sh -c 'mkdir -p -m 700 /root/.ssh && cat /media/operator.pub >/root/.ssh/authorized_keys' &&
    grid_until 30 on "$1" 10 systemctl is-active --quiet ssh
}

# The operator's machine: a key, and an ssh that uses it.
operator_machine() {
  rm -rf "$OPERATOR"
  (umask 077 && mkdir -p "$OPERATOR/bin") &&
    ssh-keygen -q -t ed25519 -N '' -f "$OPERATOR/key" &&
    cp "$OPERATOR/key.pub" "$GRID/media/operator.pub" &&
    printf '#!/bin/sh\nexec /usr/bin/ssh -i "%s" -o IdentitiesOnly=yes "$@"\n' "$OPERATOR/key" >"$OPERATOR/bin/ssh" &&
    chmod 755 "$OPERATOR/bin/ssh"
}

# usage: operator WORD…; curlew in the network of the nodes, on a machine that is none of them
operator() {
  PATH="$OPERATOR/bin:$PATH" nsenter --net --target "$(cat "$GRID_RUN/engine")" \
    timeout --foreground --kill-after=10 1500 node "$ROOT/dist/cli/main.js" "$@"
}

# usage: cluster_file VERSION NODE=ROLE…; with what nodes in containers need, and the address GRID_BALANCER if there is one
cluster_file() {
  local node
  {
    cluster_settings "$1"
    for node in "${@:2}"; do
      printf '    - { name: %s, role: %s, address: %s, ssh: { user: root, hostKey: "%s" }, labels: { rack: %s } }\n' "${node%=*}" "${node#*=}" \
        "$(address_of "${node%=*}")" "$(host_key "${node%=*}")" "${node%=*}"
    done
  } >"$OPERATOR/grid.yaml"
}

# usage: cluster_settings VERSION; the file up to its machines
cluster_settings() {
  printf 'apiVersion: fleet.curlew.dev/v1alpha1\nkind: Cluster\nmetadata: { name: grid }\nspec:\n'
  printf '  kubernetes: { version: %s }\n  access: { kubeconfig: grid.conf }\n  installer:\n' "$1"
  sed -n '/^spec:$/,$ { /^spec:$/d; s/^/  /p }' test/grid/node-settings.yaml |
    sed "s/^    kubernetes:\$/&${GRID_BALANCER:+\\n      loadBalancerAddress: $GRID_BALANCER:6443}/"
  printf '  machines:\n'
}

# usage: settings_are KUBELET-YAML CLUSTER-YAML; of the file for the machines NODES, next to those of nodes in containers
settings_are() {
  cluster_file "v$GRID_NEWEST" "${NODES[@]}" &&
    sed -i "s|^        failCgroupV1: false\$|&${1:+\\n        $1}|; s|^    kubernetes:\$|&\\n      clusterConfiguration: '$2'|" "$OPERATOR/grid.yaml"
}

# usage: api_server_has NODE FLAG; the one that runs
api_server_has() {
  # shellcheck disable=SC2016
  on "$1" 20 sh -c 'tr "\0" "\n" <"/proc/$(pgrep -x kube-apiserver)/cmdline"' | grep -qxF -e "$2"
}

# usage: address_of NODE
address_of() {
  grid_docker 10 inspect --format '{{.NetworkSettings.Networks.grid.IPAddress}}' "$1"
}

# usage: host_key NODE
host_key() {
  on "$1" 10 ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub | cut -d ' ' -f 2
}

# usage: apply BUNDLE [OPTION…]
apply() {
  operator cluster apply "$OPERATOR/grid.yaml" --bundle "$GRID/media/$1.tar.gz" "${IGNORE[@]}" "${@:2}"
}

# usage: starts_bare NODE NUMBER; a machine that only accepts the key of the operator
starts_bare() {
  grid_start_node "$1" "$2" && trust_operator "$1"
}

# usage: is_planned BUNDLE TEXT…; the plan has these lines, and nothing is changed
is_planned() {
  local text status=0 wanted
  text="$(operator cluster plan "$OPERATOR/grid.yaml" --bundle "$GRID/media/$1.tar.gz")" || status=$?
  printf '%s\n' "$text"
  ((status == 2)) || return 1
  for wanted in "${@:2}"; do
    [[ "$text" == *"$wanted"* ]] || return 1
  done
}

# usage: killed_after SECONDS COMMAND…; kill -9 of the operator with all its processes
killed_after() {
  local process
  # In a group of its own.
  set -m
  "${@:2}" >"$GRID/logs/killed-operator" 2>&1 &
  process=$!
  set +m
  sleep "$1"
  kill -9 -- "-$process" && ! wait "$process"
}

# usage: once_free COMMAND…; the lock of an operator who was killed counts for a minute after its last sign: that status (BUSY) alone is repeated
once_free() {
  local status end=$((SECONDS + 120))
  while :; do
    status=0
    "$@" || status=$?
    printf 'status %s\n' "$status"
    ((status == 19 && SECONDS < end)) || return "$status"
    sleep 1
  done
}

# What the hosts have gone on with is followed, and never shown as a refusal.
apply_goes_on() {
  once_free apply "$1" --yes
}

nothing_is_left() {
  local before after began text
  grid_until 90 no_pod_is_ending || return 1
  before="$(processes one && processes two)" || return 1
  began="$(date +%s%N)"
  text="$(apply "$1" --yes)" || return 1
  printf '%s\n%s ms\n' "$text" $((($(date +%s%N) - began) / 1000000))
  after="$(processes one && processes two)" || return 1
  [[ "$text" == *'nothing was changed'* ]] && diff <(printf '%s\n' "$before") <(printf '%s\n' "$after")
}

# usage: machine VERB NODE [OPTION…]
machine() {
  operator machine "$1" "$OPERATOR/grid.yaml" "$2" "${@:3}" --yes
}
