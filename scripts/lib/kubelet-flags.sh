# shellcheck shell=bash
# The flags of the kubelet on this node. KUBELET_FLAGS_FILE names another file than that of kubeadm.

curlew_kubelet_flags_file() {
  printf '%s\n' "${KUBELET_FLAGS_FILE:-/var/lib/kubelet/kubeadm-flags.env}"
}

# usage: curlew_kubelet_flag NAME
# Prints its value, or nothing.
curlew_kubelet_flag() {
  local file text pattern="--$1=([^\" ]*)"
  file="$(curlew_kubelet_flags_file)"
  [[ -r "$file" ]] || return 0
  text="$(cat "$file")"
  if [[ "$text" =~ $pattern ]]; then printf '%s\n' "${BASH_REMATCH[1]}"; fi
}

kubernetes_get_kubelet_hostname_override() {
  curlew_kubelet_flag hostname-override
}

# Prints the node name of this machine: its host name in lower case, or the name set by the operator or by the kubelet's
# flags.
get_local_node_name() {
  local name="${KURL_HOSTNAME_OVERRIDE-}" flag
  flag="$(kubernetes_get_kubelet_hostname_override)"
  name="${flag:-${name:-${HOSTNAME:-$(uname -n)}}}"
  printf '%s\n' "${name,,}"
}

# Prints the sandbox image in the configuration of containerd.
kubernetes_containerd_pause_image() {
  local file="${CURLEW_CONTAINERD_CONFIG:-/etc/containerd/config.toml}" line
  [[ -n "${CONTAINERD_VERSION-}" && -r "$file" ]] || return 0
  while IFS= read -r line || [[ -n "$line" ]]; do
    if [[ "$line" =~ ^[[:space:]]*sandbox(_image)?[[:space:]]*=[[:space:]]*[\"\']([^\"\']+)[\"\'] ]]; then
      printf '%s\n' "${BASH_REMATCH[2]}"
      return 0
    fi
  done <"$file"
}

# The kubelet must not remove the sandbox image of containerd: its flag follows containerd's configuration,
# if that sets an image.
kubernetes_configure_pause_image_upgrade() {
  local file wanted old text
  wanted="$(kubernetes_containerd_pause_image)"
  old="$(curlew_kubelet_flag pod-infra-container-image)"
  if [[ -z "$wanted" || -z "$old" || "$old" == "$wanted" ]]; then return 0; fi
  file="$(curlew_kubelet_flags_file)"
  text="$(cat "$file")"
  printf '%s\n' "${text/"--pod-infra-container-image=$old"/"--pod-infra-container-image=$wanted"}" >"$file"
  systemctl daemon-reload
  systemctl restart kubelet
}
