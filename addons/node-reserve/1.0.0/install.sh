# shellcheck shell=bash
# Holds CPU and memory of a node back: a static pod whose only program waits, with requests of the size wanted.

NODE_RESERVE_SRC="$DIR/addons/node-reserve/1.0.0"
NODE_RESERVE_DST="$DIR/kustomize/node-reserve"

node-reserve_pre_init() {
  node-reserve_settings
  [[ "$NODE_RESERVE_CPU" =~ ^[0-9]+m?$ ]] || bail "node-reserve: cpu \"$NODE_RESERVE_CPU\" is no amount of CPU"
  [[ "$NODE_RESERVE_MEMORY" =~ ^[0-9]+(Mi|Gi)$ ]] || bail "node-reserve: memory \"$NODE_RESERVE_MEMORY\" is no size"
}

node-reserve() {
  node-reserve_settings
  render_yaml_file_2 "$NODE_RESERVE_SRC/pod.yaml" >"$NODE_RESERVE_DST/pod.yaml"
  # The kubelet reads every file in this folder, so the file must appear there complete.
  install -D -m 0600 "$NODE_RESERVE_DST/pod.yaml" "$NODE_RESERVE_MANIFEST_DIRECTORY/.node-reserve.yaml"
  mv "$NODE_RESERVE_MANIFEST_DIRECTORY/.node-reserve.yaml" "$NODE_RESERVE_FILE"
}

# Fails, so that the add-on is installed again, when the kubelet's copy is gone or was changed.
node-reserve_already_applied() {
  node-reserve_settings
  render_yaml_file_2 "$NODE_RESERVE_SRC/pod.yaml" | cmp - "$NODE_RESERVE_FILE"
}

node-reserve_join() {
  mkdir -p "$NODE_RESERVE_DST"
  node-reserve
}

node-reserve_post_init() {
  node-reserve_settings
  if command -v kubelet >/dev/null; then
    logSuccess "The kubelet starts the pod from $NODE_RESERVE_FILE"
  else
    logWarn "There is no kubelet on this machine: $NODE_RESERVE_FILE waits for one"
  fi
}

node-reserve_outro() {
  node-reserve_settings
  printf 'holds back %s CPU and %s memory\n' "$NODE_RESERVE_CPU" "$NODE_RESERVE_MEMORY"
  printf 'remove %s to release them\n' "$NODE_RESERVE_FILE"
}

node-reserve_uninstall() {
  node-reserve_settings
  rm -f "$NODE_RESERVE_FILE"
}

# What the installer spec leaves out.
node-reserve_settings() {
  : "${NODE_RESERVE_CPU:=100m}"
  : "${NODE_RESERVE_MEMORY:=128Mi}"
  : "${NODE_RESERVE_MANIFEST_DIRECTORY:=/etc/kubernetes/manifests}"
  NODE_RESERVE_FILE="$NODE_RESERVE_MANIFEST_DIRECTORY/node-reserve.yaml"
}
