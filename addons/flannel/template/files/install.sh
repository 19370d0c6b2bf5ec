# shellcheck shell=bash
# The network between pods: flannel with VXLAN, as a DaemonSet.

# Sets what the install hook of kubernetes reads, which chooses the networks.
# shellcheck disable=SC2034
flannel_pre_init() {
  if [[ "${IPV6_ONLY-}" == 1 ]]; then bail "flannel: this package is for IPv4 only"; fi
  # Read by kubernetes, which chooses the networks.
  if [[ -n "${FLANNEL_POD_CIDR-}" ]]; then POD_CIDR="$FLANNEL_POD_CIDR"; fi
  POD_CIDR_RANGE="${FLANNEL_POD_CIDR_RANGE-}"
}

flannel() {
  flannel_network_manager
  flannel_render
  # With an empty one, flannel would look for the API server behind the network that it is to make.
  [[ -n "$FLANNEL_API_HOST" ]] || bail "flannel: cannot read the address of the API server in cluster-info of kube-public"
  kubectl apply -k "$DIR/kustomize/flannel"
  flannel_wait
}

# Fails, so that the add-on is installed again, if some of its pods do not run.
flannel_already_applied() {
  flannel_runs
}

# On every other node.
flannel_join() {
  flannel_network_manager
}

# NetworkManager would configure the interfaces of pods.
flannel_network_manager() {
  [[ -d /etc/NetworkManager/conf.d ]] || return 0
  printf '[keyfile]\nunmanaged-devices+=interface-name:cni0;interface-name:flannel*;interface-name:veth*\n' \
    >/etc/NetworkManager/conf.d/50-flannel.conf
  maybe systemctl reload NetworkManager
}

# Once, from a control plane. New pods get no address until another network add-on is installed.
flannel_pre_remove() {
  flannel_render
  kubectl delete -k "$DIR/kustomize/flannel" --ignore-not-found --timeout=120s ||
    logWarn "flannel: not deleted yet: kubectl get all --namespace kube-flannel"
}

# On every node: interfaces and files that its pods have made. They would break the network of the next cluster.
flannel_uninstall() {
  maybe ip link delete cni0
  maybe ip link delete flannel.1
  rm -rf /run/flannel /var/lib/cni/networks/cbr0 /var/lib/cni/flannel
  rm -f /etc/cni/net.d/10-flannel.conflist /opt/cni/bin/flannel /etc/NetworkManager/conf.d/50-flannel.conf
  logSuccess "flannel is removed from this node"
}

# Makes kustomize/flannel from scratch.
flannel_render() {
  local src="$DIR/addons/flannel/$FLANNEL_VERSION" dst="$DIR/kustomize/flannel"
  rm -rf "$dst"
  mkdir -p "$dst"
  cp "$src"/{access,daemonset,troubleshoot}.yaml "$dst/"
  flannel_variables "$src"
  render_yaml_file_2 "$src/tmpl-config.yaml" >"$dst/config.yaml"
  export FLANNEL_CONFIG_DIGEST
  FLANNEL_CONFIG_DIGEST="$(sha256sum <"$dst/config.yaml" | cut -c 1-16)"
  render_yaml_file_2 "$src/tmpl-daemonset.yaml" >"$dst/daemonset-settings.yaml"
  {
    printf 'resources:\n'
    printf -- '- %s.yaml\n' access daemonset config troubleshoot
    printf 'patches:\n- path: daemonset-settings.yaml\n'
  } >"$dst/kustomization.yaml"
}

# What the templates need: the address of the API server, as nodes of the cluster reach it, and flanneld's arguments.
flannel_variables() {
  local address HOST='' PORT=''
  address="$(kubectl --namespace kube-public get configmap cluster-info -o jsonpath='{.data.kubeconfig}' |
    sed -n 's,^ *server: https://,,p')"
  splitHostPort "$address"
  export FLANNEL_API_HOST="$HOST" FLANNEL_API_PORT="${PORT:-6443}" FLANNEL_ARGUMENTS='[]'
  if [[ -n "${FLANNEL_INTERFACE-}" ]]; then FLANNEL_ARGUMENTS="['--iface=$FLANNEL_INTERFACE']"; fi
}

flannel_wait() {
  logStep "Waiting for flannel"
  if ! spinner_until 300 flannel_runs; then
    kubectl --namespace kube-flannel get pods --output wide 1>&2 || true
    bail "flannel: not every pod runs after 5 minutes. If an image is missing on a node, run ./tasks.sh load-images there"
  fi
  logSuccess "flannel $FLANNEL_VERSION runs"
}

# Nodes that are not ready are not waited for.
flannel_runs() {
  local ready
  ready="$(kubectl --namespace kube-flannel get daemonset kube-flannel \
    -o jsonpath='{.status.observedGeneration}/{.metadata.generation} {.status.numberReady}' 2>/dev/null)" || return 1
  [[ "$ready" =~ ^([0-9]+)/([0-9]+)\ [1-9] && "${BASH_REMATCH[1]}" == "${BASH_REMATCH[2]}" ]] || return 1
  flannel_runs_here
}

# Only pods of this generation, on the node that runs the add-on's hooks.
flannel_runs_here() {
  kubectl --namespace kube-flannel get pods --selector=app=flannel --field-selector="spec.nodeName=$(get_local_node_name)" \
    -o jsonpath='{range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}' 2>/dev/null | grep -qx True
}
