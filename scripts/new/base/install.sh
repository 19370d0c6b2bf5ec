# shellcheck shell=bash
# Applies the kustomization of this folder and waits until its workloads run.

# [if pre_init]
# Runs before anything is changed, also if the add-on is already applied: bail if it cannot work.
sample-addon_pre_init() {
  # [each deployment]
  [[ "${SAMPLE_REPLICAS-}" =~ ^[0-9]{0,3}$ ]] || bail "sample-addon: sampleReplicas \"$SAMPLE_REPLICAS\" is not a number"
  # [end]
  return 0
}

# [end]
sample-addon() {
  sample-addon_render
  local dst="$DIR/kustomize/sample-addon"
  if [[ -f "$dst/crds.yaml" ]]; then
    # On the server: definitions are larger than the annotation that the client would write.
    kubectl apply --server-side --force-conflicts -f "$dst/crds.yaml"
    kubectl wait --for=condition=Established --timeout=60s -f "$dst/crds.yaml"
  fi
  # This deletes nothing. If an older version has an object that this one no longer has, add a line for it:
  # kubectl --namespace sample-namespace delete KIND NAME --ignore-not-found
  kubectl apply -k "$dst"
  # [if wait]
  sample-addon_wait
  # [end]
}

# [if already_applied]
# Fails, so that the add-on is installed again, if some of its objects are missing or do not run.
sample-addon_already_applied() {
  sample-addon_running
}

# [end]
# [if join]
# On every other node: its images are already loaded.
sample-addon_join() {
  logSuccess "sample-addon: images are on this node"
}

# [end]
# [if post_init]
sample-addon_post_init() {
  sample-addon_wait
}

# [end]
# [if outro]
sample-addon_outro() {
  printf 'pods: kubectl --namespace sample-namespace get pods\n'
}

# [end]
# [if pre_remove]
# Once, from a control plane: removes the add-on's objects from the cluster. With --keep-data, claims and namespaces stay.
sample-addon_pre_remove() {
  sample-addon_render
  local dst="$DIR/kustomize/sample-addon"
  local columns='KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name'
  local found kind namespace name
  if [[ -z "${CURLEW_KEEP_DATA-}" ]]; then
    if ! kubectl delete -k "$dst" --ignore-not-found --timeout=120s; then
      # A namespace stays as long as it has pods on a node that does not respond.
      found="$(kubectl get -k "$dst" --ignore-not-found -o name)"
      logWarn "sample-addon: not deleted yet: ${found//$'\n'/ }"
    fi
  else
    found="$(kubectl get -k "$dst" --ignore-not-found --no-headers -o "custom-columns=$columns")"
    while read -r kind namespace name; do
      case "$kind" in '' | Namespace | PersistentVolumeClaim) continue ;; esac
      if [[ "$namespace" == '<none>' ]]; then namespace=default; fi
      kubectl --namespace "$namespace" delete "$kind" "$name" --ignore-not-found --wait=false </dev/null
    done <<<"$found"
  fi
  if [[ -f "$dst/crds.yaml" ]]; then
    found="$(kubectl get -f "$dst/crds.yaml" --ignore-not-found -o name)"
    logWarn "Definitions, and all objects made with them, stay; to remove them: kubectl delete ${found//$'\n'/ }"
  fi
}

# [end]
# [if leave]
# This node leaves a cluster that keeps the add-on: prepare the end of its pods here.
sample-addon_leave() {
  logStep "sample-addon stays in the cluster that this node leaves"
}

# [end]
# [if uninstall]
# On every node: removes files that hooks put on this machine. They put only files there that curlew itself removes.
sample-addon_uninstall() {
  logSuccess "sample-addon leaves nothing on this node"
}

# [end]
# [if health]
# Each minute, by the agent of a fleet: fails if the add-on does not work.
sample-addon_health() {
  sample-addon_running || bail "sample-addon: not everything runs"
}

# [end]
# Makes kustomize/sample-addon from scratch, so entries of an earlier run are not duplicated.
sample-addon_render() {
  local src="$DIR/addons/sample-addon/__version__"
  local dst="$DIR/kustomize/sample-addon"
  rm -rf "$dst"
  mkdir -p "$dst"
  cp "$src"/*.yaml "$dst/"
  insert_resources "$dst/kustomization.yaml" troubleshoot.yaml
  # [if namespace]
  insert_resources "$dst/kustomization.yaml" namespace.yaml
  # [end]
  # [if plain]
  # The spec has no setting of this add-on yet. `curlew help addons` shows one, with a patch in tmpl-NAME.yaml and these lines:
  # render_yaml_file_2 "$src/tmpl-NAME.yaml" >"$dst/NAME.yaml"
  # printf 'patches:\n- path: NAME.yaml\n' >>"$dst/kustomization.yaml"
  # [end]
  # [if settings]
  local -a patches=()
  # [each deployment]
  if [[ -n "${SAMPLE_REPLICAS-}" ]]; then
    render_yaml_file_2 "$src/tmpl-sample-replicas.yaml" >"$dst/sample-replicas.yaml"
    patches+=(sample-replicas.yaml)
  fi
  # [end]
  # For a setting of another object, `curlew help addons` shows a patch in tmpl-NAME.yaml, and these lines:
  # render_yaml_file_2 "$src/tmpl-NAME.yaml" >"$dst/NAME.yaml"
  # patches+=(NAME.yaml)
  if ((${#patches[@]} > 0)); then
    printf 'patches:\n' >>"$dst/kustomization.yaml"
    printf -- '- path: %s\n' "${patches[@]}" >>"$dst/kustomization.yaml"
  fi
  # [end]
}

sample-addon_wait() {
  logStep "Waiting for sample-addon"
  if ! spinner_until 300 sample-addon_running; then
    kubectl --namespace sample-namespace get pods 1>&2 || true
    bail "sample-addon: not everything runs after 5 minutes"
  fi
  if sample-addon_nodeless; then
    logWarn "sample-addon is applied, but this cluster has no nodes to run it"
  else
    logSuccess "sample-addon runs"
  fi
}

# A cluster without nodes, such as an API server alone for a trial, never rolls anything out.
sample-addon_nodeless() {
  local nodes
  nodes="$(kubectl get nodes -o name 2>/dev/null)" && [[ -z "$nodes" ]]
}

# Whether everything that was applied exists and, if there are nodes, every workload is rolled out.
sample-addon_running() {
  local columns='KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name,HOW:.spec.updateStrategy.type'
  local found kind namespace name how
  found="$(kubectl get -k "$DIR/kustomize/sample-addon" --no-headers -o "custom-columns=$columns" 2>/dev/null)" || return 1
  if sample-addon_nodeless; then return 0; fi
  while read -r kind namespace name how; do
    # Pods that wait to be deleted do not count for a rollout.
    if [[ "$how" == OnDelete ]]; then continue; fi
    case "$kind" in
      Deployment | DaemonSet | StatefulSet)
        kubectl --namespace "$namespace" rollout status "$kind/$name" --timeout=1s >/dev/null 2>&1 </dev/null || return 1
        ;;
    esac
  done <<<"$found"
}
