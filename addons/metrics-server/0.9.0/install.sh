# shellcheck shell=bash
# CPU and memory of nodes and pods, for kubectl top and the horizontal autoscaler.

metrics-server() {
  metrics-server_render
  kubectl apply -k "$DIR/kustomize/metrics-server"
  logStep "Waiting for metrics-server"
  if ! spinner_until 300 metrics-server_answers; then
    kubectl --namespace kube-system get pods --selector=k8s-app=metrics-server --output wide 1>&2 || true
    bail "metrics-server: no metrics after 5 minutes: kubectl describe apiservice v1beta1.metrics.k8s.io"
  fi
  logSuccess "metrics-server $METRICS_SERVER_VERSION answers"
}

# Fails, so that the add-on is installed again, if it does not answer.
metrics-server_already_applied() {
  metrics-server_answers
}

# Once, from a control plane.
metrics-server_pre_remove() {
  metrics-server_render
  kubectl delete -k "$DIR/kustomize/metrics-server" --ignore-not-found --timeout=120s ||
    logWarn "metrics-server: not deleted yet: kubectl --namespace kube-system get all --selector=k8s-app=metrics-server"
}

# On every node: its hooks have put nothing there.
metrics-server_uninstall() {
  logSuccess "metrics-server is removed from this node"
}

# Each minute, by the agent of a fleet.
metrics-server_health() {
  metrics-server_answers || bail "metrics-server does not answer"
}

# Makes kustomize/metrics-server from scratch.
metrics-server_render() {
  local src="$DIR/addons/metrics-server/$METRICS_SERVER_VERSION" dst="$DIR/kustomize/metrics-server"
  rm -rf "$dst"
  mkdir -p "$dst"
  cp "$src"/{access,deployment,troubleshoot}.yaml "$dst/"
  printf 'resources: [access.yaml, deployment.yaml, troubleshoot.yaml]\n' >"$dst/kustomization.yaml"
  if [[ "${METRICS_SERVER_VERIFY_KUBELETS-}" != 1 ]]; then
    cp "$src/any-kubelet.yaml" "$dst/"
    printf 'patches: [{ path: any-kubelet.yaml, target: { kind: Deployment } }]\n' >>"$dst/kustomization.yaml"
  fi
}

# Through the API server, as its users ask. A cluster without nodes, such as one for a trial, has no metrics.
metrics-server_answers() {
  local nodes
  nodes="$(kubectl get nodes -o name 2>/dev/null)" || return 1
  [[ -n "$nodes" ]] || return 0
  kubectl --namespace kube-system rollout status deployment/metrics-server --timeout=1s >/dev/null 2>&1 &&
    kubectl get --raw /apis/metrics.k8s.io/v1beta1/nodes 2>/dev/null | grep -q '"usage"'
}
