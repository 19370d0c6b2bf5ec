# shellcheck shell=bash
# Volumes that are folders on the disk of a node: the storage class local-path.

local-path() {
  local-path_render
  kubectl apply -k "$DIR/kustomize/local-path"
  logStep "Waiting for local-path"
  if ! spinner_until 300 local-path_runs; then
    kubectl --namespace local-path-storage get pods --output wide 1>&2 || true
    bail "local-path: its provisioner does not run after 5 minutes: kubectl --namespace local-path-storage describe pods"
  fi
  logSuccess "local-path $LOCAL_PATH_VERSION runs, with volumes in $LOCAL_PATH_FOLDER of each node"
}

# Fails, so that the add-on is installed again, if its provisioner does not run.
local-path_already_applied() {
  local-path_runs
}

# Once, from a control plane. Data stays: claims keep their volumes, and the folders of volumes are not deleted.
local-path_pre_remove() {
  local volumes
  local-path_render
  kubectl delete -k "$DIR/kustomize/local-path" --ignore-not-found --timeout=120s ||
    logWarn "local-path: not deleted yet: kubectl get all --namespace local-path-storage"
  volumes="$(kubectl get persistentvolumes -o jsonpath='{range .items[?(@.spec.storageClassName=="local-path")]}{.metadata.name}{" "}{end}' \
    2>/dev/null || true)"
  if [[ -n "$volumes" ]]; then logWarn "local-path: these volumes and their data in $LOCAL_PATH_FOLDER stay: $volumes"; fi
}

# On every node: its hooks have put nothing there, and folders of volumes stay.
local-path_uninstall() {
  logSuccess "local-path is removed from this node"
}

# Each minute, by the agent of a fleet.
local-path_health() {
  local-path_runs || bail "local-path: its provisioner does not run"
}

# Makes kustomize/local-path from scratch.
local-path_render() {
  local src="$DIR/addons/local-path/$LOCAL_PATH_VERSION" dst="$DIR/kustomize/local-path"
  export LOCAL_PATH_FOLDER="${LOCAL_PATH_PATH:-/var/lib/local-path}" LOCAL_PATH_DEFAULT=true LOCAL_PATH_DIGEST
  if [[ "${LOCAL_PATH_IS_DEFAULT_STORAGE_CLASS-1}" != 1 ]]; then LOCAL_PATH_DEFAULT=false; fi
  rm -rf "$dst"
  mkdir -p "$dst"
  cp "$src"/{access,deployment,troubleshoot}.yaml "$dst/"
  render_yaml_file_2 "$src/tmpl-settings.yaml" >"$dst/settings.yaml"
  LOCAL_PATH_DIGEST="$(sha256sum <"$dst/settings.yaml" | cut -c 1-16)"
  render_yaml_file_2 "$src/tmpl-deployment.yaml" >"$dst/deployment-settings.yaml"
  printf 'resources: [access.yaml, deployment.yaml, settings.yaml, troubleshoot.yaml]\npatches: [{ path: deployment-settings.yaml }]\n' \
    >"$dst/kustomization.yaml"
}

# A cluster without nodes, such as one for a trial, never runs it.
local-path_runs() {
  local nodes
  nodes="$(kubectl get nodes -o name 2>/dev/null)" || return 1
  [[ -n "$nodes" ]] || return 0
  kubectl --namespace local-path-storage rollout status deployment/local-path-provisioner --timeout=1s >/dev/null 2>&1
}
