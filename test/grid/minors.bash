# shellcheck shell=bash
# A node goes from the oldest minor version in packages/kubernetes to the newest, one after the other. Sourced by scripts/grid.

# To the newest, with nothing changed
upgrade_is_refused() {
  local text before next="${GRID_VERSIONS[1]%.*}"
  before="$(processes one)"
  if text="$(upgrade_on one 2>&1)"; then return 1; fi
  printf '%s\n' "$text"
  [[ "$text" == *"v$GRID_NEWEST skips a minor version: v${GRID_VERSIONS[0]} goes to $next first"* && "$(processes one)" == "$before" ]] &&
    version_is "${GRID_VERSIONS[0]}"
}

# usage: version_is VERSION; of the kubelet and of the API server, and the node takes pods
version_is() {
  local found
  found="$(kubectl_on one get node one -o jsonpath='{.status.nodeInfo.kubeletVersion} {.spec.unschedulable}')"
  printf '%s\n' "$found"
  [[ "$found" == "v$1 " && "$(kubectl_on one get --raw /version)" == *"\"gitVersion\": \"v$1\""* ]]
}

# usage: etcd_is_of VERSION; the image that its package names
etcd_is_of() {
  local image
  image="$(sed -n 's/^image etcd //p' "packages/kubernetes/$1/Manifest")"
  [[ "$(kubectl_on one --namespace kube-system get pod etcd-one -o jsonpath='{.spec.containers[0].image}')" == "$image" ]]
}

# usage: goes_to VERSION
goes_to() {
  upgrade_on one && version_is "$1" && etcd_is_of "$1" && control_plane_works && services_work one &&
    [[ "$(kubectl_on one get configmap kept -o jsonpath='{.data.since}')" == "${GRID_VERSIONS[0]}" ]]
}

step 'node one boots' grid_start_node one 1
step "unpack the bundle of ${GRID_VERSIONS[0]}" unpack one "${GRID_VERSIONS[0]}"
step 'install' install_on one
step 'an object is made' kubectl_on one create configmap kept "--from-literal=since=${GRID_VERSIONS[0]}"
step "unpack the bundle of $GRID_NEWEST" unpack one
step 'an upgrade that skips a minor version is refused' upgrade_is_refused
for version in "${GRID_VERSIONS[@]:1}"; do
  name="$version"
  if [[ "$version" == "$GRID_NEWEST" ]]; then name=bundle; fi
  step "unpack the bundle of $version" unpack one "$name"
  step "the node goes to $version" goes_to "$version"
done
step 'second run restarts nothing' nothing_restarts
