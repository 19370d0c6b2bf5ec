# shellcheck shell=bash
# What hooks know about the node and the run besides the settings. Variables that are already set stay unchanged.

curlew_default() {
  if [[ -z "${!1-}" ]]; then printf -v "$1" '%s' "$2"; fi
}

# usage: curlew_running_kubernetes MANIFEST
# Prints the version of the API server that runs on this node.
curlew_running_kubernetes() {
  local text
  text="$(<"$1")"
  if [[ "$text" =~ image:[^$'\n']*:v([0-9]+\.[0-9]+\.[0-9]+) ]]; then printf '%s\n' "${BASH_REMATCH[1]}"; fi
}

# KUBERNETES_UPGRADE is 1 if a newer Kubernetes than the running one will be installed.
# shellcheck disable=SC2034
curlew_kubernetes_upgrade() {
  local major minor patch SEMVER_COMPARE_RESULT=0
  : "${KUBERNETES_UPGRADE=}"
  if [[ "$CURRENT_KUBERNETES_VERSION" != *.*.* || "${KUBERNETES_VERSION-}" != [0-9]*.*.* ]]; then return 0; fi
  semverCompare "$CURRENT_KUBERNETES_VERSION" "$KUBERNETES_VERSION"
  if ((SEMVER_COMPARE_RESULT < 0)); then KUBERNETES_UPGRADE=1; fi
}

# usage: curlew_util_image ARCHIVE
# Prints the name of the helper image that kURL's own package `common` has left here. If the package curlew-utils is
# included, KURL_UTIL_IMAGE is set before.
curlew_util_image() {
  local text
  text="$(tar -xOf "$1" manifest.json 2>/dev/null | head -c 65536)"
  if [[ "$text" =~ \"RepoTags\":\[\"([A-Za-z0-9./:@_-]+)\" ]]; then printf '%s\n' "${BASH_REMATCH[1]}"; fi
}

# Sets API_SERVICE_ADDRESS to the address of the API server: that of the load balancer, else of the node
# that this node joins, else of this node; empty if unknown.
curlew_api_address() {
  local HOST='' PORT='' default=6443 address="${PRIVATE_ADDRESS-}"
  API_SERVICE_ADDRESS=
  if [[ "${MASTER-}" != 1 && -n "${KUBERNETES_MASTER_ADDR-}" ]]; then
    address="$KUBERNETES_MASTER_ADDR"
  elif [[ "${EKCO_ENABLE_INTERNAL_LOAD_BALANCER-}" == 1 ]]; then
    address=localhost default=6444
  elif [[ -n "${LOAD_BALANCER_ADDRESS-}" ]]; then
    address="$LOAD_BALANCER_ADDRESS"
  fi
  if [[ -z "$address" ]]; then return 0; fi
  if [[ "$address" =~ ^\[([^]]*)\](:([0-9]+))?$ ]]; then
    HOST="${BASH_REMATCH[1]}" PORT="${BASH_REMATCH[3]}"
  elif isValidIpv6 "$address"; then
    HOST="$address"
  else
    splitHostPort "$address"
  fi
  if isValidIpv6 "$HOST"; then HOST="[$HOST]"; fi
  API_SERVICE_ADDRESS="$HOST:${PORT:-$default}"
}

curlew_no_proxy() {
  local host="${LOAD_BALANCER_ADDRESS-}"
  unique_no_proxy_addresses "localhost,127.0.0.1,.svc,.local,.default,kubernetes,${ADDITIONAL_NO_PROXY_ADDRESSES-},\
${PRIVATE_ADDRESS-},${host%%:*},${SERVICE_CIDR-},${POD_CIDR-}"
}

# Puts curlew's replacements of kURL's programs below bin/, or programs that say what to install, unless kURL's own
# package has installed them.
curlew_stand_in() {
  local tool
  local -a made=()
  [[ -n "${BIN_CURLEW-}" ]] || return 0
  for tool in bashmerge bcrypt docker-config htpasswd installermerge kurl network pvmigrate subnet vendorflights \
    yamltobash yamlutil; do
    if [[ ! -e "$DIR/bin/$tool" ]]; then made+=("$tool"); fi
  done
  if ((${#made[@]} == 0)); then return 0; fi
  # Writes to a temporary folder and renames, so that each program is complete: on a full disk there is none.
  rm -rf "$DIR/bin/.new"
  mkdir -p "$DIR/bin/.new" || return 0
  for tool in "${made[@]}"; do
    # shellcheck disable=SC2016
    printf '#!/bin/sh\n%s\neval "exec $BIN_CURLEW kurl %s \\"\\$@\\""\n' \
      '# Works in hooks, which have BIN_CURLEW in their environment.' "$tool" >"$DIR/bin/.new/$tool" || return 0
  done
  chmod 755 "${made[@]/#/$DIR/bin/.new/}"
  mv -f "${made[@]/#/$DIR/bin/.new/}" "$DIR/bin/"
  rmdir "$DIR/bin/.new"
}

# Sets everything that kURL's own scripts find out before the first hook and that is cheap to find out. It
# runs before every hook, so it starts a process only if there is no other way.
# Read by add-ons.
# shellcheck disable=SC2034
curlew_discover() {
  local release program file="${CURLEW_API_SERVER_MANIFEST:-/etc/kubernetes/manifests/kube-apiserver.yaml}"
  read -r release </proc/sys/kernel/osrelease
  curlew_default KERNEL_MAJOR "${release%%.*}"
  release="${release#*.}"
  curlew_default KERNEL_MINOR "${release%%[!0-9]*}"
  curlew_default DIR .
  curlew_default K8S_DISTRO kubeadm
  if [[ -r /etc/kubernetes/admin.conf && -z "${KUBECONFIG-}" ]]; then export KUBECONFIG=/etc/kubernetes/admin.conf; fi
  : "${PRIVATE_ADDRESS=}"
  curlew_default KUBELET_FLAGS_FILE /var/lib/kubelet/kubeadm-flags.env
  if [[ -z "${API_SERVICE_ADDRESS-}" ]]; then curlew_api_address; fi
  if [[ -n "${KUBERNETES_VERSION-}" ]]; then parse_kubernetes_target_version; fi
  : "${CURRENT_KUBERNETES_VERSION=}" "${KURL_UTIL_IMAGE=}"
  if [[ -r "$file" ]]; then curlew_default CURRENT_KUBERNETES_VERSION "$(curlew_running_kubernetes "$file")"; fi
  curlew_kubernetes_upgrade
  if [[ -z "${KURL_UTIL_IMAGE-}" && -f shared/kurl-util.tar ]]; then
    KURL_UTIL_IMAGE="$(curlew_util_image shared/kurl-util.tar)"
  fi
  for program in kurl yamlutil subnet docker-config installermerge yamltobash bashmerge htpasswd pvmigrate vendorflights; do
    release="BIN_${program^^}"
    curlew_default "${release//-/_}" "$DIR/bin/$program"
  done
  curlew_stand_in
  if [[ -n "${PROXY_ADDRESS-}" ]]; then curlew_default NO_PROXY_ADDRESSES "$(curlew_no_proxy)"; fi
}
