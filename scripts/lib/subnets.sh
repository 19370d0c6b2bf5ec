# shellcheck shell=bash
# The networks of pods and services.

# usage: curlew_bounds NETWORK
# Sets first and last for the caller: the addresses of an IPv4 network (also a single address) as numbers. Status 1 for
# anything else.
curlew_bounds() {
  local size=32
  [[ "$1" =~ ^([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})(/([0-9]{1,2}))?$ ]] || return 1
  size="$((10#${BASH_REMATCH[6]:-32}))"
  if ((size > 32)); then return 1; fi
  first=$(((10#${BASH_REMATCH[1]} << 24) | (10#${BASH_REMATCH[2]} << 16) | (10#${BASH_REMATCH[3]} << 8) | 10#${BASH_REMATCH[4]}))
  first=$((first & (0xffffffff << (32 - size))))
  last=$((first | (0xffffffff >> size)))
}

# Prints the networks that this machine has routes to, one per line.
curlew_routes() {
  ip -4 route show 2>/dev/null | awk '$1 ~ /^[0-9]/ { print $1; next } $1 != "default" && $2 ~ /^[0-9]/ { print $2 }'
}

# usage: curlew_find_subnet RANGE SIZE EXCLUDED
# Prints the first network of that size within a range that overlaps neither a route of this machine nor an excluded network
# (separated by commas); status 1 if there is none.
curlew_find_subnet() {
  local size="$2" step first last end at network clear
  local -a taken_first=() taken_last=() networks
  mapfile -t networks < <(
    curlew_routes
    tr , '\n' <<<"$3"
  )
  for network in "${networks[@]}"; do
    curlew_bounds "$network" || continue
    taken_first+=("$first")
    taken_last+=("$last")
  done
  [[ "$size" =~ ^[0-9]+$ ]] && ((size >= 1 && size <= 32)) && curlew_bounds "$1" || return 1
  step="$((1 << (32 - size)))"
  end="$last"
  at="$first"
  while ((at + step - 1 <= end)); do
    clear="$at"
    for network in "${!taken_first[@]}"; do
      # Past the conflicting network, at the next possible start of a network of this size.
      if ((taken_first[network] <= at + step - 1 && taken_last[network] >= at)); then
        clear="$(((taken_last[network] / step + 1) * step))"
        break
      fi
    done
    if ((clear == at)); then
      printf '%d.%d.%d.%d/%d\n' $((at >> 24)) $(((at >> 16) & 255)) $(((at >> 8) & 255)) $((at & 255)) "$size"
      return 0
    fi
    at="$clear"
  done
  return 1
}

# Prints the network of this machine's address if there is no route for it.
curlew_own_subnet() {
  local routes
  [[ -n "${PRIVATE_ADDRESS-}" ]] || return 0
  routes="$(ip route show src "$PRIVATE_ADDRESS" 2>/dev/null | awk '{ print $1 }')"
  if [[ "$routes" != */* ]]; then printf '%s\n' "$PRIVATE_ADDRESS/16"; fi
}

# usage: curlew_choose_subnet WORD NOW EXISTING LEAST SIZE FIRST EXCLUDED HINT
# Sets CURLEW_SUBNET. Bails if an existing network would change, or if there is no free one.
curlew_choose_subnet() {
  local word="$1" now="$2" existing="$3" least="$4" size="$5" first="$6" excluded="$7" hint="$8" range
  CURLEW_SUBNET="$now"
  if [[ -n "$now" ]]; then
    if [[ -n "$least" ]] && ((${now##*/} > least)); then bail "$word cidr must be at least /$least"; fi
    if [[ "$now" == "$existing" ]]; then return 0; fi
    if [[ -n "$existing" ]]; then
      bail "$word cidr cannot be changed to $now because existing cidr is $existing"
    fi
    if curlew_find_subnet "$now" "${now##*/}" "$excluded" >/dev/null; then return 0; fi
    printf "${RED}%s cidr %s overlaps with existing route. Continue? ${NC}" "$word" "$now"
    if ! confirmY; then bail "$word cidr $now overlaps with existing route"; fi
    return 0
  fi
  if [[ -n "$existing" ]]; then
    echo "Using existing ${word,,} network $existing"
    CURLEW_SUBNET="$existing"
    return 0
  fi
  for range in "$first" 10.0.0.0/8; do
    if CURLEW_SUBNET="$(curlew_find_subnet "$range" "${least:-$size}" "$excluded")"; then
      echo "Found ${word,,} network: $CURLEW_SUBNET"
      return 0
    fi
  done
  bail "Failed to find an available /${least:-$size} subnet for the ${word,,} network within either $first or 10.0.0.0/8. $hint"
}

# usage: curlew_pod_flag FILE NAME
# Sets CURLEW_FLAG to the value of a flag in the manifest of a static pod, where kubeadm writes `- --NAME=VALUE`, else to empty.
curlew_pod_flag() {
  builtin local text=
  CURLEW_FLAG=
  if [[ -r "$1" ]]; then IFS= builtin read -r -d '' text <"$1" || builtin true; fi
  if [[ "$text" =~ [[:space:]]--"$2"=([0-9a-fA-F.:/,]+) ]]; then CURLEW_FLAG="${BASH_REMATCH[1]}"; fi
}

# Sets POD_CIDR and SERVICE_CIDR, if they are empty, to the networks of the cluster, as kURL's own scripts do between the
# pre_init hooks and all others: the network add-on's (EXISTING_POD_CIDR), those that the control plane on this node
# was started with, or else those in kubeadm's configuration in the cluster. Without a cluster both stay empty: the add-on that
# creates a cluster chooses its networks, with discover_pod_subnet and discover_service_subnet.
# Runs before most hooks: add-ons may have redefined functions that it calls. Without a file it queries the cluster once per run.
curlew_cluster_networks() {
  builtin local server="${CURLEW_API_SERVER_MANIFEST:-/etc/kubernetes/manifests/kube-apiserver.yaml}" known
  builtin local pods="${POD_CIDR:-${EXISTING_POD_CIDR-}}" services="${SERVICE_CIDR-}"
  if [[ -e "$server" ]]; then
    curlew_pod_flag "${server%/*}/kube-controller-manager.yaml" cluster-cidr
    pods="${pods:-$CURLEW_FLAG}"
    curlew_pod_flag "$server" service-cluster-ip-range
    services="${services:-$CURLEW_FLAG}"
  elif [[ -n "${KUBECONFIG-}" && -z "${CLUSTER_NETWORKS_ASKED-}" && (-z "$pods" || -z "$services") ]]; then
    # Without the prefix of curlew it is passed to later hooks.
    CLUSTER_NETWORKS_ASKED=1
    known="$(kubeadm_cluster_configuration --request-timeout=5s 2>/dev/null)" || known=
    if [[ -z "$pods" && "$known" =~ podSubnet:\ *([0-9a-fA-F.:/,]+) ]]; then pods="${BASH_REMATCH[1]}"; fi
    if [[ -z "$services" && "$known" =~ serviceSubnet:\ *([0-9a-fA-F.:/,]+) ]]; then services="${BASH_REMATCH[1]}"; fi
  fi
  # Existing networks cannot conflict with a choice.
  if [[ -z "${POD_CIDR-}" ]]; then
    EXISTING_POD_CIDR="$pods"
    if [[ -n "$pods" && -n "${NO_PROXY_ADDRESSES-}" ]]; then NO_PROXY_ADDRESSES+=",$pods"; fi
  fi
  if [[ -z "${SERVICE_CIDR-}" && -n "$services" && -n "${NO_PROXY_ADDRESSES-}" ]]; then NO_PROXY_ADDRESSES+=",$services"; fi
  POD_CIDR="$pods" SERVICE_CIDR="$services"
}

# Sets POD_CIDR: the current value, the network of the cluster (EXISTING_POD_CIDR), or a free network.
discover_pod_subnet() {
  if [[ "${IPV6_ONLY-}" == 1 ]]; then
    POD_CIDR="${POD_CIDR:-fd00:c00b:1::/112}"
    return 0
  fi
  curlew_choose_subnet Pod "${POD_CIDR-}" "${EXISTING_POD_CIDR-}" "${POD_CIDR_RANGE-}" 20 10.32.0.0/16 \
    "$(curlew_own_subnet)" 'Set podCIDR of the network add-on to a network that is not in use.'
  POD_CIDR="$CURLEW_SUBNET"
}

# Sets SERVICE_CIDR; POD_CIDR must be set.
discover_service_subnet() {
  local own
  if [[ "${IPV6_ONLY-}" == 1 ]]; then
    SERVICE_CIDR="${SERVICE_CIDR:-fd00:c00b:2::/112}"
    return 0
  fi
  EXISTING_SERVICE_CIDR="$(maybe kubeadm_cluster_configuration | awk '$1 == "serviceSubnet:" { print $2 }')"
  own="$(curlew_own_subnet)"
  curlew_choose_subnet Service "${SERVICE_CIDR-}" "$EXISTING_SERVICE_CIDR" "${SERVICE_CIDR_RANGE-}" 22 10.96.0.0/16 \
    "${POD_CIDR-}${own:+,$own}" 'Set serviceCIDR of kubernetes to a network that is not in use.'
  SERVICE_CIDR="$CURLEW_SUBNET"
}
