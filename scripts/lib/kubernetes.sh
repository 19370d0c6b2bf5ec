# shellcheck shell=bash
# Queries to the cluster. If the API server does not answer, the result is "does not exist", as add-ons expect.

# usage: kubernetes_resource_exists NAMESPACE KIND NAME
kubernetes_resource_exists() {
  kubectl -n "$1" get "$2" "$3" >/dev/null 2>&1
}

# usage: kubernetes_secret_value NAMESPACE NAME KEY
# Prints the decoded value, or nothing. KEY is a part of a jsonpath: its dots are written `\.`.
kubernetes_secret_value() {
  { kubectl -n "$1" get secret "$2" -o jsonpath="{ .data.$3 }" 2>/dev/null || true; } | base64 --decode
}

# True on a node of the control plane.
kubernetes_is_master() {
  [[ "${MASTER-}" == 1 || -f "${CURLEW_API_SERVER_MANIFEST:-/etc/kubernetes/manifests/kube-apiserver.yaml}" ]]
}

# usage: kubernetes_scale NAMESPACE KIND NAME REPLICAS
kubernetes_scale() {
  if ! kubernetes_resource_exists "$1" "$2" "$3"; then return 0; fi
  kubectl -n "$1" scale "$2" "$3" --replicas="$4"
}

# usage: kubernetes_scale_down NAMESPACE KIND NAME
# Scales to 0 if the object exists; does not wait.
kubernetes_scale_down() {
  kubernetes_scale "$1" "$2" "$3" 0
}

# usage: kubernetes_service_healthy NAMESPACE NAME
# True if the service has endpoints.
kubernetes_service_healthy() {
  local endpoints
  endpoints="$(kubectl -n "$1" get endpoints "$2" --no-headers)" || return 1
  [[ -n "$endpoints" && "$endpoints" != *'<none>'* ]]
}

# v1.27.3 -> 27
kubernetes_version_minor() {
  if [[ "${1-}" =~ ^v?[0-9]*\.([0-9]*)\.[0-9]*(.*)$ ]]; then
    printf '%s%s\n' "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
  else
    printf '%s\n' "${1-}"
  fi
}

# Sets KUBERNETES_TARGET_VERSION_MAJOR, _MINOR and _PATCH.
# shellcheck disable=SC2034
parse_kubernetes_target_version() {
  local major minor patch
  semverParse "${KUBERNETES_VERSION-}"
  KUBERNETES_TARGET_VERSION_MAJOR="$major"
  KUBERNETES_TARGET_VERSION_MINOR="$minor"
  KUBERNETES_TARGET_VERSION_PATCH="$patch"
}

# Prints the label of control plane nodes: the old one if any node has it.
kubernetes_get_control_plane_label() {
  local nodes
  nodes="$(kubectl get nodes --show-labels)"
  if [[ "$nodes" == *node-role.kubernetes.io/master* ]]; then
    echo node-role.kubernetes.io/master
  else
    echo node-role.kubernetes.io/control-plane
  fi
}

kubernetes_remote_nodes() {
  kubectl get nodes --ignore-not-found --no-headers --selector="kubernetes.io/hostname!=$(get_local_node_name)"
}

# True if the cluster answers and has other nodes.
kubernetes_has_remotes() {
  [[ -n "$(kubernetes_remote_nodes 2>/dev/null)" ]]
}

kubernetes_any_node_ready() {
  kubectl get nodes --no-headers 2>/dev/null | awk '$2 ~ /(^|,)Ready/ { found = 1 } END { exit !found }'
}

# True if the kubelet of this node uses Docker.
node_is_using_docker() {
  local socket
  socket="$(kubectl get node "$(get_local_node_name)" \
    -o jsonpath='{.metadata.annotations.kubeadm\.alpha\.kubernetes\.io/cri-socket}')"
  [[ "$socket" == *dockershim.sock* ]]
}

# usage: kubernetes_kustomize_config_migrate FOLDER
# Rewrites fields that kustomize no longer supports, for Kubernetes 1.27 and later.
kubernetes_kustomize_config_migrate() {
  if ((${KUBERNETES_TARGET_VERSION_MINOR:-0} < 27)); then return 0; fi
  (cd "$1" && kustomize edit fix)
}
