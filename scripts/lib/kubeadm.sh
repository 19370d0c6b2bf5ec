# shellcheck shell=bash
# Paths of kubeadm. Add-ons call these functions as "${K8S_DISTRO}_…".

KUBEADM_CONF_DIR=/opt/replicated
export KUBEADM_CONF_FILE="$KUBEADM_CONF_DIR/kubeadm.conf"
export KUBECTL_PLUGINS_PATH=/usr/local/bin

kubeadm_get_kubeconfig() {
  echo /etc/kubernetes/admin.conf
}

kubeadm_get_containerd_sock() {
  echo "${CONTAINERD_ADDRESS:-/run/containerd/containerd.sock}"
}

kubeadm_get_server_ca() {
  echo /etc/kubernetes/pki/ca.crt
}

kubeadm_get_server_ca_key() {
  echo /etc/kubernetes/pki/ca.key
}

kubeadm_get_client_kube_apiserver_crt() {
  echo /etc/kubernetes/pki/apiserver-kubelet-client.crt
}

kubeadm_get_client_kube_apiserver_key() {
  echo /etc/kubernetes/pki/apiserver-kubelet-client.key
}

# True if the API server of this node reports that it is healthy.
kubeadm_api_is_healthy() {
  curl --globoff --noproxy '*' --fail --silent --insecure --max-time 10 \
    "https://$(curlew_url_host "${PRIVATE_ADDRESS:-127.0.0.1}"):6443/healthz" >/dev/null
}

# Prints the version of kubeadm's configuration for the Kubernetes that will be installed.
kubeadm_conf_api_version() {
  local minor
  minor="$(kubernetes_version_minor "${KUBERNETES_VERSION-}")"
  if ((${minor:-0} >= 37)); then
    echo v1beta4
  elif ((${minor:-0} >= 22)); then
    echo v1beta3
  else
    echo v1beta2
  fi
}

kubeadm_cluster_configuration() {
  kubectl get configmap -n kube-system kubeadm-config -o jsonpath='{ .data.ClusterConfiguration }' "$@"
}

# usage: kubeadm_registry_containerd_configure ADDRESS
# containerd trusts the registry in the cluster by the cluster's own certificate.
kubeadm_registry_containerd_configure() {
  local folder="${CURLEW_CONTAINERD_CERTS:-/etc/containerd/certs.d}/$1"
  mkdir -p "$folder"
  printf 'server = "https://%s"\n\n[host."https://%s"]\n  ca = "%s"\n' "$1" "$1" "$(kubeadm_get_server_ca)" >"$folder/hosts.toml"
}
