# shellcheck shell=bash
# Ingress: Traefik on each node, at the node's own ports.

traefik_pre_init() {
  if [[ "${TRAEFIK_HTTP_PORT:-80}" == "${TRAEFIK_HTTPS_PORT:-443}" ]]; then bail "traefik: httpPort and httpsPort are the same"; fi
}

traefik() {
  traefik_render
  kubectl apply -k "$DIR/kustomize/traefik"
  logStep "Waiting for traefik"
  if ! spinner_until 300 traefik_runs; then
    kubectl --namespace traefik get pods --output wide 1>&2 || true
    bail "traefik: not every pod runs after 5 minutes. If an image is missing on a node, run ./tasks.sh load-images there"
  fi
  logSuccess "traefik $TRAEFIK_VERSION serves Ingresses at the ports $TRAEFIK_HTTP_PORT and $TRAEFIK_HTTPS_PORT of each node"
}

# Fails, so that the add-on is installed again, if some of its pods do not run.
traefik_already_applied() {
  traefik_runs
}

# Once, from a control plane. Ingresses stay, and nothing serves them.
traefik_pre_remove() {
  traefik_render
  kubectl delete -k "$DIR/kustomize/traefik" --ignore-not-found --timeout=120s ||
    logWarn "traefik: not deleted yet: kubectl get all --namespace traefik"
}

# On every node: its hooks have put nothing there.
traefik_uninstall() {
  logSuccess "traefik is removed from this node"
}

# Each minute, by the agent of a fleet.
traefik_health() {
  traefik_runs || bail "traefik: not every pod runs"
}

# Makes kustomize/traefik from scratch.
traefik_render() {
  local src="$DIR/addons/traefik/$TRAEFIK_VERSION" dst="$DIR/kustomize/traefik"
  export TRAEFIK_HTTP_PORT="${TRAEFIK_HTTP_PORT:-80}" TRAEFIK_HTTPS_PORT="${TRAEFIK_HTTPS_PORT:-443}" TRAEFIK_DEFAULT=true
  if [[ "${TRAEFIK_IS_DEFAULT_INGRESS_CLASS-1}" != 1 ]]; then TRAEFIK_DEFAULT=false; fi
  rm -rf "$dst"
  mkdir -p "$dst"
  cp "$src"/{access,daemonset,troubleshoot}.yaml "$dst/"
  render_yaml_file_2 "$src/tmpl-class.yaml" >"$dst/class.yaml"
  render_yaml_file_2 "$src/tmpl-daemonset.yaml" >"$dst/daemonset-settings.yaml"
  printf 'resources: [access.yaml, daemonset.yaml, class.yaml, troubleshoot.yaml]\npatches: [{ path: daemonset-settings.yaml }]\n' \
    >"$dst/kustomization.yaml"
}

# A cluster without nodes, such as one for a trial, never runs it. Nodes that are not ready are not waited for.
traefik_runs() {
  local nodes ready
  nodes="$(kubectl get nodes -o name 2>/dev/null)" || return 1
  [[ -n "$nodes" ]] || return 0
  ready="$(kubectl --namespace traefik get daemonset traefik \
    -o jsonpath='{.status.observedGeneration}/{.metadata.generation} {.status.updatedNumberScheduled}/{.status.numberReady}' 2>/dev/null)" || return 1
  [[ "$ready" =~ ^([0-9]+)/([0-9]+)\ ([1-9][0-9]*)/([1-9][0-9]*)$ && "${BASH_REMATCH[1]}" == "${BASH_REMATCH[2]}" ]] || return 1
  traefik_runs_here
}

# On the node that runs the add-on's hooks.
traefik_runs_here() {
  kubectl --namespace traefik get pods --selector=app=traefik --field-selector="spec.nodeName=$(get_local_node_name)" \
    -o jsonpath='{range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}' 2>/dev/null | grep -qx True
}
