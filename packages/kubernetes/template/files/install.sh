# shellcheck shell=bash
# Kubernetes by kubeadm: a control plane on the first node, other nodes by join. A run changes only what differs, and
# restarts the kubelet only if files have changed since it started.

KUBERNETES_STATE=/etc/kubernetes/curlew
KUBERNETES_MANIFESTS=/etc/kubernetes/manifests

kubernetes_pre_init() {
  kubernetes_require_host
  kubernetes_bypass_proxy
  if command -v ctr >/dev/null; then kubernetes_protect_images; fi
  if [[ "${HA_CLUSTER-}" == 1 && -z "${LOAD_BALANCER_ADDRESS-}${EKCO_ENABLE_INTERNAL_LOAD_BALANCER-}" ]]; then
    bail "kubernetes: more than one control plane needs an address of all of them: set kubernetes.loadBalancerAddress"
  fi
}

kubernetes() {
  export KUBECONFIG=/etc/kubernetes/admin.conf
  kubernetes_host kubeadm kubectl
  discover_pod_subnet
  discover_service_subnet
  kubernetes_bypass_proxy
  kubernetes_resume
  kubernetes_configure init
  if ! kubernetes_has_control_plane; then
    kubernetes_init
  elif [[ "$CURRENT_KUBERNETES_VERSION" == "$KUBERNETES_VERSION" && ! -e "$KUBERNETES_STATE/upgrade" ]]; then
    kubernetes_reconfigure
  else
    kubernetes_upgrade_first
  fi
  kubernetes_protect_images
  try_5m kubernetes_api_answers
  kubernetes_drop_snapshot
  kubernetes_keep_files
  kubernetes_schedule_renewal
}

# Fails, so that the package is installed again, if the control plane or the kubelet does not run.
kubernetes_already_applied() {
  kubernetes_protect_images
  kubernetes_start_pods
  kubernetes_restore_files
  kubernetes_schedule_renewal
  kubernetes_api_listens && systemctl is-active --quiet kubelet && ! kubernetes_restart_is_due && kubernetes_drop_snapshot &&
    kubernetes_keep_files
}

# On every other node.
kubernetes_join() {
  kubernetes_require_host
  kubernetes_bypass_proxy
  kubernetes_resume
  if kubernetes_is_of_another_cluster; then
    # What an unfinished join has left is removed below.
    [[ -e "$KUBERNETES_STATE/attempt" ]] ||
      bail "kubernetes: this machine is a node of another cluster than that of kubeadmTokenCAHash. Remove it there with \
./tasks.sh node remove, and run ./tasks.sh reset first"
  elif kubernetes_has_joined; then
    kubernetes_update_node
    logSuccess "This machine is already a node of the cluster"
    return 0
  fi
  [[ -n "${KUBERNETES_MASTER_ADDR-}" ]] ||
    bail "kubernetes: masterAddress is not set: join with a file that ./tasks.sh join-token has written on a control plane"
  [[ -n "${KUBEADM_TOKEN-}" && -n "${KUBEADM_TOKEN_CA_HASH-}" ]] ||
    bail "kubernetes: kubeadmToken or kubeadmTokenCAHash is not set: both are in the file of ./tasks.sh join-token"
  if [[ "${MASTER-}" == 1 && -z "${CERT_KEY-}" ]]; then
    bail "kubernetes: certKey is not set: it is in the file of ./tasks.sh join-token --control-plane"
  fi
  logStep "Joining the cluster at $KUBERNETES_MASTER_ADDR"
  kubernetes_host kubeadm kubectl kubelet
  kubernetes_require_token
  kubernetes_configure join
  kubernetes_begin
  kubeadm join --config "$KUBERNETES_STATE/new.yaml"
  rm -f "$KUBERNETES_STATE/restart"
  kubernetes_end_join
  kubernetes_protect_images
  kubernetes_wait_until_ready /etc/kubernetes/kubelet.conf
}

# On every other node, when a newer bundle is installed.
kubernetes_upgrade() {
  kubernetes_bypass_proxy
  kubernetes_resume
  if [[ -f /etc/kubernetes/kubelet.conf ]]; then
    # The API server of an only control plane is away while that is upgraded.
    spinner_until 60 kubernetes_knows_node ||
      bail "kubernetes: the API server does not answer, or has no node $(get_local_node_name): look on a control plane with kubectl get nodes"
  fi
  kubernetes_has_joined || bail "kubernetes: this machine is not a node of a cluster: run join.sh"
  kubernetes_update_node
}

kubernetes_post_init() {
  kubernetes_wait_until_ready /etc/kubernetes/admin.conf
  kubernetes_upload_certificates
}

kubernetes_outro() {
  printf 'kubectl: export KUBECONFIG=/etc/kubernetes/admin.conf\n'
  printf 'To add a node: ./tasks.sh join-token\n'
  kubernetes_name_lost
}

# This node leaves a cluster that has other control planes.
kubernetes_leave() {
  local node command planes
  # Of a cluster that is deleted as a whole, etcd needs no quorum.
  [[ -z "${KUBERNETES_DELETE_CLUSTER-}" ]] || return 0
  node="$(get_local_node_name)" command="./tasks.sh node remove $(get_local_node_name) --yes"
  if [[ ! -f /etc/kubernetes/admin.conf ]]; then
    logWarn "If the cluster still has this node, remove it on a control plane: $command"
    return 0
  fi
  # After curlew node remove this machine's API server may have no etcd. Then kubeadm reset has nothing to remove there.
  if ! planes="$(kubectl --kubeconfig=/etc/kubernetes/admin.conf --request-timeout=20s get nodes \
    --selector=node-role.kubernetes.io/control-plane --output=name)"; then
    logWarn "The API server does not answer. If the cluster still has this node, remove it on another control plane: $command"
    return 0
  fi
  # Only that command sees whether etcd keeps its quorum. Without the Node, kubeadm reset would leave the member behind.
  if [[ $'\n'"$planes"$'\n' == *$'\n'"node/$node"$'\n'* && "$planes" != "node/$node" ]]; then
    bail "kubernetes: this control plane is still part of the cluster, and so is its member of etcd: on another control plane, run \
$command first"
  fi
}

kubernetes_uninstall() {
  kubernetes_reset || kubernetes_kill_pods
  # The removal of flannel comes before: its pod, as long as it ran, has made them again.
  maybe ip link delete cni0
  maybe ip link delete flannel.1
  systemctl disable --now kubelet >/dev/null 2>&1 || true
  kubernetes_remove_timer curlew-etcd-snapshot
  kubernetes_remove_timer curlew-certificates
  # A restore of etcd that was cut has left it mounted, and nothing in it can be deleted.
  if [[ -d "$KUBERNETES_STATE/image" ]]; then kubernetes_unmount "$KUBERNETES_STATE"/image{/*,}; fi
  rm -rf /etc/kubernetes
  kubernetes_remove_plugins
  # Either may be the mount point of a disk of its own, which stays.
  kubernetes_empty /var/lib/etcd || bail "kubernetes: /var/lib/etcd is not empty: unmount what findmnt shows below it, or end the \
process that writes to it, then run the same command again"
  kubernetes_empty /var/lib/kubelet || true
  rm -f /etc/systemd/system/kubelet.service /etc/sysctl.d/99-kubernetes.conf /etc/modules-load.d/kubernetes.conf
  rm -f /usr/local/bin/{kubeadm,kubelet,kubectl,crictl} /etc/crictl.yaml
  systemctl daemon-reload
  logSuccess "Kubernetes is removed from this node; rules of iptables stay until the next boot"
}

# kubeadm reset, after which no pod is left: it would be the same one when the machine joins again, complete for the kubelet, and its first
# containers, which write the files of the network, would not run. Fails if some are left, or containerd does not answer.
kubernetes_reset() {
  local file=/etc/cni/net.d/00-reset.conflist
  # They survive containerd, and only it removes them.
  if ! kubernetes_pods >/dev/null && timeout 90 systemctl restart containerd 2>/dev/null; then
    spinner_until 30 kubernetes_pods >/dev/null || logWarn "containerd does not answer: see journalctl -u containerd"
  fi
  if command -v kubeadm >/dev/null; then
    timeout 300 kubeadm reset --force --cri-socket "unix://$(kubeadm_get_containerd_sock)" || logWarn "kubeadm reset did not finish"
  fi
  if kubernetes_has_no_pods; then return 0; fi
  # Without a network, as its add-on was removed first, containerd removes no pod. Interfaces go with the namespaces of pods.
  mkdir -p "${file%/*}"
  printf '{"cniVersion": "1.0.0", "name": "reset", "plugins": [{"type": "loopback"}]}\n' >"$file"
  # It reads that a moment later.
  spinner_until 30 kubernetes_remove_pods || true
  rm -f "$file"
  kubernetes_has_no_pods
}

kubernetes_remove_pods() {
  maybe timeout 120 kubeadm reset phase cleanup-node --cri-socket "unix://$(kubeadm_get_containerd_sock)" >/dev/null
  kubernetes_has_no_pods
}

kubernetes_has_no_pods() {
  local pods
  pods="$(kubernetes_pods)" && [[ -z "$pods" ]]
}

# Prints the sandboxes of all pods of this machine. Fails if containerd does not answer.
kubernetes_pods() {
  timeout 10 ctr -a "$(kubeadm_get_containerd_sock)" -n k8s.io containers list --quiet 'labels."io.cri-containerd.kind"==sandbox' 2>/dev/null
}

# Without containerd: ends their processes, and unmounts what they had. Without those, the kubelet makes new ones.
kubernetes_kill_pods() {
  local run=/run/containerd word mounts
  logWarn "containerd does not remove the pods of this machine: what is left of them is ended"
  # They are processes of its service, and stay when that ends.
  maybe systemctl kill --signal=KILL containerd
  while IFS= read -r word; do maybe kill -KILL "$word"; done < <(maybe find /sys/fs/cgroup{,/*}/kubepods* -name cgroup.procs -exec cat {} +)
  # At once: the list changes with each that goes.
  mapfile -t mounts < <(awk '{ print $2 }' /proc/self/mounts)
  for word in "${mounts[@]}"; do
    case "$word" in
      "$run"/*/k8s.io/* | "$run"/io.containerd.grpc.v1.cri/* | /run/netns/cni-*) maybe umount --lazy "$word" ;;
    esac
  done
  rm -rf "$run"/io.containerd.runtime.v2.task/k8s.io "$run"/io.containerd.grpc.v1.cri /run/netns/cni-* ||
    logWarn "Not all of the pods' mounts in $run are gone: restart the machine before it joins again"
  # A kubelet asks containerd for each that is left, for seconds, and its Node is registered minutes later.
  spinner_until 10 kubernetes_remove_cgroups || true
}

# A process that was killed leaves its cgroup a moment later.
kubernetes_remove_cgroups() {
  maybe find /sys/fs/cgroup{,/*}/kubepods* -depth -type d -exec rmdir {} +
  [[ -z "$(maybe find /sys/fs/cgroup{,/*}/kubepods* -maxdepth 0)" ]]
}

# CNI plugins and configurations of other programs stay.
kubernetes_remove_plugins() {
  local name
  while IFS= read -r name; do
    if [[ "$name" != */ ]]; then rm -f "/opt/cni/bin/$name"; fi
  done < <(maybe tar -tzf "$DIR/packages/kubernetes/$KUBERNETES_VERSION/assets/cni-plugins.tgz")
  maybe rmdir /opt/cni/bin
  maybe rmdir /etc/cni/net.d
}

# usage: kubernetes_empty FOLDER; fails if something stays, and says why. What holds a mount does: a volume may be a folder of the same
# disk, which find would enter and empty.
kubernetes_empty() {
  local folder entry point stays=''
  [[ -d "$1" ]] || return 0
  folder="$(realpath "$1")"
  while IFS= read -r -d '' entry; do
    point="$(kubernetes_mount_in "$entry")" || return 1
    if [[ -n "$point" ]]; then
      logWarn "${entry//%/%%} stays, because ${point//%/%%} is mounted. Unmount all that findmnt shows there, and only then remove it"
      stays=1
    elif ! find "$entry" -xdev -delete 2>/dev/null; then
      logWarn "${entry//%/%%} stays, because not all of it can be deleted: another process may write to it"
      stays=1
    fi
  done < <(find "$folder" -mindepth 1 -maxdepth 1 -print0)
  [[ -z "$stays" ]]
}

# usage: kubernetes_mount_in PATH; prints the first mount point at or below it, if there is one
kubernetes_mount_in() {
  local point
  while read -r _ point _; do
    # A blank in it is \040, which %b takes as \0040.
    printf -v point %b "${point//\\/\\0}"
    if [[ "$point" == "$1" || "$point" == "$1"/* ]]; then
      printf '%s\n' "$point"
      return 0
    fi
  done </proc/self/mounts
}

# Checks that kubeadm would make only after files have changed.
kubernetes_require_host() {
  local minor
  minor="$(kubernetes_version_minor "$KUBERNETES_VERSION")"
  kubernetes_require_kernel
  ((minor >= 31)) || bail "kubernetes: this package needs Kubernetes 1.31 or newer, and kubernetes.version is $KUBERNETES_VERSION"
  [[ -n "${PRIVATE_ADDRESS-}" ]] ||
    bail "kubernetes: this machine has no default route, so its address is unknown: set kurl.privateAddress"
  kubernetes_require_labels
}

# The kubelet does not start with a label of Kubernetes' own that it may not set itself.
kubernetes_require_labels() {
  local label key prefix
  for label in ${NODE_LABELS//,/ }; do
    key="${label%%=*}" prefix="${label%%/*}"
    case "$key" in
      failure-domain.beta.kubernetes.io/zone | failure-domain.beta.kubernetes.io/region) continue ;;
      beta.kubernetes.io/instance-type | beta.kubernetes.io/os | beta.kubernetes.io/arch) continue ;;
      kubelet.kubernetes.io/* | *.kubelet.kubernetes.io/* | node.kubernetes.io/* | *.node.kubernetes.io/*) continue ;;
      topology.kubernetes.io/region | topology.kubernetes.io/zone | kubernetes.io/hostname | kubernetes.io/arch | kubernetes.io/os) continue ;;
    esac
    if [[ "$prefix" =~ (^|\.)(kubernetes|k8s)\.io$ ]]; then
      bail "kubernetes: a node may not give itself the label $key: add it afterwards, with kubectl label node"
    fi
  done
}

# kubeadm would look for the signature of a token that the cluster does not have until its time is over.
kubernetes_require_token() {
  local id="${KUBEADM_TOKEN%%.*}"
  if spinner_until 5 kubernetes_is_signed "$id"; then return 0; fi
  kubernetes_is_signed "" ||
    bail "kubernetes: the API server at $KUBERNETES_MASTER_ADDR does not answer: check the address, the load balancer and firewalls"
  bail "kubernetes: the cluster does not have the token $id: it has expired, or another machine has used it. Make another one \
on a control plane: ./tasks.sh join-token"
}

# usage: kubernetes_is_signed ID; whether what the cluster publishes for joining nodes is signed by this token, or without ID whether
# it is there. kubeadm verifies it.
kubernetes_is_signed() {
  local found
  # Discovery is not open to everyone, but this path is. Without a name kubectl would ask for one; the server ignores it.
  found="$(kubectl --kubeconfig=/dev/null --username=anonymous --password=none --server="https://$KUBERNETES_MASTER_ADDR" \
    --insecure-skip-tls-verify --request-timeout=5s get --raw /api/v1/namespaces/kube-public/configmaps/cluster-info </dev/null 2>/dev/null)" &&
    [[ "$found" == *"\"${1:+jws-}kubeconfig${1:+-$1}\""* ]]
}

# With a proxy in the environment, kubectl and kubeadm would look for the API server behind it; kubeadm gives both variables to the
# control plane, which reaches services by their addresses. Outside of a run, only admin.conf has the address of the API server.
kubernetes_bypass_proxy() {
  local server="${KUBERNETES_MASTER_ADDR-}" own
  [[ -n "${http_proxy-}${https_proxy-}${HTTP_PROXY-}${HTTPS_PROXY-}" ]] || return 0
  own="$(kubernetes_api_address)"
  NO_PROXY="$(unique_no_proxy_addresses "${NO_PROXY-},${no_proxy-},$(curlew_no_proxy),${server%:*},${own%:*}")"
  export NO_PROXY no_proxy="$NO_PROXY"
}

# What the container runtime and kube-proxy need of the kernel, as a module or built in.
kubernetes_require_kernel() {
  maybe modprobe overlay
  maybe modprobe br_netfilter
  grep -qw overlay /proc/filesystems || bail "kubernetes: the kernel has no overlayfs: load or build in the module overlay"
  [[ -e /proc/sys/net/bridge/bridge-nf-call-iptables ]] ||
    bail "kubernetes: iptables does not see traffic of bridges: load or build in the module br_netfilter"
}

# usage: kubernetes_host PROGRAM…; kernel settings, programs and the kubelet's unit. Starts nothing.
kubernetes_host() {
  local src="$DIR/packages/kubernetes/$KUBERNETES_VERSION" name
  kubernetes_kernel "$src"
  for name in "$@"; do kubernetes_put "$src/assets/$name" "/usr/local/bin/$name" 0755; done
  kubernetes_put "$src/kubelet.service" /etc/systemd/system/kubelet.service 0644
  mkdir -p /opt/cni/bin /etc/cni/net.d
  tar -xzf "$src/assets/cni-plugins.tgz" -C /opt/cni/bin --no-same-owner
  tar -xzf "$src/assets/crictl.tar.gz" -C /usr/local/bin --no-same-owner crictl
  printf 'runtime-endpoint: unix://%s\n' "$(kubeadm_get_containerd_sock)" >/etc/crictl.yaml
  if kubernetes_restart_is_due; then systemctl daemon-reload; fi
  systemctl enable kubelet >/dev/null 2>&1
}

# usage: kubernetes_kernel FOLDER
kubernetes_kernel() {
  printf 'overlay\nbr_netfilter\n' >/etc/modules-load.d/kubernetes.conf
  cp "$1/sysctl.conf" /etc/sysctl.d/99-kubernetes.conf
  maybe sysctl --quiet --load=/etc/sysctl.d/99-kubernetes.conf
}

# usage: kubernetes_put FILE TARGET MODE; replaces the target in one step, also while it runs, if it differs
kubernetes_put() {
  if cmp -s "$1" "$2"; then return 0; fi
  kubernetes_must_restart
  install -D -m "$3" "$1" "$2.new"
  mv -f "$2.new" "$2"
}

# A file says so, because a run may be cut before the restart, and the next one finds nothing to change.
kubernetes_must_restart() {
  (umask 077 && mkdir -p "$KUBERNETES_STATE" && touch "$KUBERNETES_STATE/restart")
}

# Also where the kubelet runs a program that was replaced: not every earlier version of this package has written that file.
kubernetes_restart_is_due() {
  [[ -e "$KUBERNETES_STATE/restart" || "$(maybe readlink "/proc/$(curlew_main_pid kubelet)/exe")" == *' (deleted)' ]]
}

# usage: kubernetes_configure init|join; writes kubeadm's configuration to new.yaml in the state folder. It consists of the template, of
# patches for settings, of the patches that add-ons have put into kustomize/kubeadm, and of the operator's YAML.
kubernetes_configure() {
  local src="$DIR/packages/kubernetes/$KUBERNETES_VERSION" dst="$DIR/kustomize/kubeadm/$1" file
  rm -rf "$dst"
  mkdir -p "${dst%/*}"
  # Tokens and keys are in it.
  mkdir -m 0700 "$dst"
  render_yaml_file_2 "$src/kubeadm/$1.yaml" >"$dst/$1.yaml"
  "kubernetes_${1}_settings" "$dst"
  printf 'resources:\n- %s\npatches:\n' "$1.yaml" >"$dst/kustomization.yaml"
  for file in "$dst"/setting-*.yaml; do kubernetes_add_patch "$file" "$dst"; done
  for file in "$DIR/kustomize/kubeadm/$1-patches"/*.y*ml; do
    if [[ -f "$file" ]]; then kubernetes_add_foreign "$file" "$dst"; fi
  done
  for file in "$dst"/operator-*.yaml; do
    if [[ -f "$file" ]]; then kubernetes_add_patch "$file" "$dst"; fi
  done
  kubernetes_keep_args "$dst"
  (umask 077 && mkdir -p "$KUBERNETES_STATE" && kubernetes_merged "$dst" >"$KUBERNETES_STATE/new.yaml") ||
    bail "kubernetes: cannot merge kubeadm's configuration: see $dst"
}

# usage: kubernetes_keep_args FOLDER; arguments of the settings that a list of an add-on or of the operator has replaced, and does not have
kubernetes_keep_args() {
  local file kept merged list name value
  merged="$(kubernetes_merged "$1")" || return 0
  for file in "$1"/setting-*.yaml; do
    kept="$1/kept-${file##*/setting-}"
    while read -r list name value; do
      if grep -q "^ *- name: ${name}\$" <<<"$merged"; then continue; fi
      if [[ ! -e "$kept" ]]; then kubernetes_add_patch "$file" "$1" "$kept"; fi
      printf -- '- op: add\n  path: %s/-\n  value: { name: %s, value: %s }\n' "$list" "$name" "$value" >>"$kept"
    done < <(awk '/^[a-zA-Z]+:$/ { list = "/" $1 } /^  [a-zA-Z]+Args:$/ { list = list "/" $1; gsub(":", "", list) }
      /^  - name: / { name = $3 } /^    value: / && list ~ /Args$/ { print list, name, substr($0, 12) }' "$file")
  done
}

# usage: kubernetes_merged FOLDER; kustomize needs names, and kubeadm warns of them
kubernetes_merged() {
  local text
  text="$(kubectl kustomize "$1")" || return 1
  sed '/^metadata:$/,/^  name: /d' <<<"$text"
}

# Both files contain the token. What curlew etcd restore has kept are data and keys of a cluster, for an install on a machine without Kubernetes.
kubernetes_end_join() {
  kubernetes_spend_token
  rm -rf "$KUBERNETES_STATE/new.yaml" "$DIR/kustomize/kubeadm/join"
  if [[ -d "$DIR/restore" ]]; then
    rm -rf "$DIR/restore"
    logWarn "This machine has joined a cluster: the snapshot that curlew etcd restore has kept in $DIR/restore is removed"
  fi
  # They may be the only ones: a person moves them.
  if [[ ! -f "$KUBERNETES_MANIFESTS/kube-apiserver.yaml" ]] && compgen -G "$DIR/etcd/*.tar" >/dev/null; then
    logWarn "This machine is a worker, and the snapshots of etcd in $DIR/etcd have the keys of a cluster: move them to another machine"
  fi
  kubernetes_complete
  kubernetes_keep_files
  kubernetes_schedule_renewal
}

# A token is for one machine: that of join-token may delete itself, and others stay until they expire.
kubernetes_spend_token() {
  local file="$KUBERNETES_STATE/token.conf"
  [[ -n "${KUBEADM_TOKEN-}" ]] || return 0
  (umask 077 && kubernetes_token_config >"$file")
  kubectl --kubeconfig="$file" --request-timeout=20s --namespace kube-system delete secret "bootstrap-token-${KUBEADM_TOKEN%%.*}" \
    --wait=false >/dev/null 2>&1 || true
  rm -f "$file"
}

# Not as an argument, which every user of the machine could read.
kubernetes_token_config() {
  printf 'apiVersion: v1\nkind: Config\ncurrent-context: join\ncontexts:\n- name: join\n  context: {cluster: join, user: join}\n'
  printf 'clusters:\n- name: join\n  cluster:\n    server: %s\n    certificate-authority: /etc/kubernetes/pki/ca.crt\n' \
    "$(kubernetes_quoted "https://$KUBERNETES_MASTER_ADDR")"
  printf 'users:\n- name: join\n  user:\n    token: %s\n' "$(kubernetes_quoted "$KUBEADM_TOKEN")"
}

# usage: kubernetes_add_patch FILE FOLDER [OTHER]; the file is in the folder. Its kind selects what it changes, or what the other file does,
# whatever its names are.
kubernetes_add_patch() {
  local kind
  kind="$(awk '$1 == "kind:" { sub(",", "", $2); print $2; exit }' "$1")"
  printf -- '- path: %s\n  target:\n    kind: %s\n' "$(basename "${3-"$1"}")" "$kind" >>"$2/kustomization.yaml"
}

# usage: kubernetes_add_foreign FILE FOLDER; a patch of an add-on, which may be for an earlier version of the configuration
kubernetes_add_foreign() {
  local copy="$2/addon-${1##*/}"
  render_yaml_file_2 "$1" >"$copy"
  if grep -q '^apiVersion: *kubeadm.k8s.io/v1beta[123]' "$copy" && grep -q '[eE]xtraArgs:' "$copy"; then
    bail "kubernetes: the patch ${1##*/} has extraArgs of kubeadm.k8s.io/v1beta3. In v1beta4 they are a list of name and value: \
the add-on needs a newer version"
  fi
  kubernetes_add_patch "$copy" "$2"
}

# usage: kubernetes_patch FILE KIND; standard input is its content below kind and name
kubernetes_patch() {
  {
    printf 'kind: %s\nmetadata:\n  name: patch\n' "$2"
    cat
  } >"$1"
}

# usage: kubernetes_operator FOLDER KIND TEXT; a map in block or in flow style, also as a whole document with its own kind
kubernetes_operator() {
  local text
  text="$(awk '!begun && /^[[:space:]]*(#.*|---.*)?$/ { next } /^(apiVersion|kind):/ { next } { begun = 1; print }' <<<"$3")"
  if [[ "$text" =~ ^[[:space:]]*\{ ]]; then
    printf '{\nkind: %s,\nmetadata: { name: patch },\n%s\n' "$2" "${text#*\{}" >"$1/operator-$2.yaml"
  elif [[ -n "$text" ]]; then
    kubernetes_patch "$1/operator-$2.yaml" "$2" <<<"$text"
  fi
}

# usage: kubernetes_init_settings FOLDER
kubernetes_init_settings() {
  kubernetes_cluster_settings | kubernetes_patch "$1/setting-cluster.yaml" ClusterConfiguration
  kubernetes_kubelet_settings | kubernetes_patch "$1/setting-kubelet.yaml" KubeletConfiguration
  kubernetes_node_settings | kubernetes_patch "$1/setting-node.yaml" InitConfiguration
  if [[ -n "${BOOTSTRAP_TOKEN-}" ]]; then
    printf 'bootstrapTokens:\n- token: %s\n  ttl: %s\n' "$(kubernetes_quoted "$BOOTSTRAP_TOKEN")" "${BOOTSTRAP_TOKEN_TTL:-24h0m0s}" |
      kubernetes_patch "$1/setting-token.yaml" InitConfiguration
  fi
  kubernetes_operator "$1" InitConfiguration "${KUBERNETES_INIT_CONFIGURATION-}"
  kubernetes_operator "$1" ClusterConfiguration "${KUBERNETES_CLUSTER_CONFIGURATION-}"
  kubernetes_operator "$1" KubeletConfiguration "${KUBERNETES_KUBELET_CONFIGURATION-}"
  kubernetes_operator "$1" KubeProxyConfiguration "${KUBERNETES_KUBE_PROXY_CONFIGURATION-}"
}

# usage: kubernetes_join_settings FOLDER
kubernetes_join_settings() {
  kubernetes_node_settings | kubernetes_patch "$1/setting-node.yaml" JoinConfiguration
  if [[ "${MASTER-}" == 1 ]]; then
    printf "controlPlane:\n  certificateKey: %s\n  localAPIEndpoint:\n    advertiseAddress: '%s'\n" \
      "$(kubernetes_quoted "${CERT_KEY-}")" "$PRIVATE_ADDRESS" |
      kubernetes_patch "$1/setting-control-plane.yaml" JoinConfiguration
  fi
  kubernetes_operator "$1" JoinConfiguration "${KUBERNETES_JOIN_CONFIGURATION-}"
}

kubernetes_cluster_settings() {
  local ports=80-60000
  if [[ "${USE_STANDARD_PORT_RANGE-}" == 1 ]]; then ports=30000-32767; fi
  if [[ -n "${LOAD_BALANCER_ADDRESS-}" ]]; then
    printf 'controlPlaneEndpoint: %s\n' "$(kubernetes_quoted "$API_SERVICE_ADDRESS")"
  fi
  printf 'apiServer:\n  extraArgs:\n  - name: service-node-port-range\n    value: %s\n' "$ports"
  if [[ -n "${PUBLIC_ADDRESS-}" ]]; then printf "  certSANs:\n  - '%s'\n" "$PUBLIC_ADDRESS"; fi
}

kubernetes_kubelet_settings() {
  kubernetes_field maxPods "${KUBERNETES_MAX_PODS_PER_NODE-}"
  kubernetes_field containerLogMaxFiles "${CONTAINER_LOG_MAX_FILES-}"
  kubernetes_field containerLogMaxSize "${CONTAINER_LOG_MAX_SIZE-}"
  kubernetes_field systemReserved "${SYSTEM_RESERVED-}"
  kubernetes_field evictionHard "${EVICTION_THRESHOLD-}"
  if [[ "${KUBE_RESERVED-}" == 1 ]]; then kubernetes_reserved "$(nproc)" "$(awk '$1 == "MemTotal:" { print int($2 / 1024) }' /proc/meminfo)"; fi
  # containerd 1 does not protect images that are labeled as pinned: the kubelet must not remove any.
  if [[ "$(containerd --version 2>/dev/null)" =~ \ v?1\. ]]; then printf 'imageGCHighThresholdPercent: 100\n'; fi
}

# usage: kubernetes_field NAME VALUE
kubernetes_field() {
  if [[ -n "$2" ]]; then printf '%s: %s\n' "$1" "$2"; fi
}

# usage: kubernetes_reserved CORES MEBIBYTES; what Kubernetes itself needs: a share of processors and memory that shrinks with the
# size of the machine
kubernetes_reserved() {
  awk -v cores="$1" -v memory="$2" '
    function part(amount, from, to) { return amount > from ? (amount < to ? amount : to) - from : 0 }
    BEGIN {
      cpu = part(cores, 0, 1) * 60 + part(cores, 1, 2) * 10 + part(cores, 2, 4) * 5 + part(cores, 4, 1e6) * 2.5
      mib = part(memory, 0, 4096) * 0.25 + part(memory, 4096, 8192) * 0.2 + part(memory, 8192, 16384) * 0.1
      mib += part(memory, 16384, 131072) * 0.06 + part(memory, 131072, 1e9) * 0.02
      printf "kubeReserved:\n  cpu: %dm\n  memory: %dMi\n  ephemeral-storage: 1Gi\n", cpu, mib
    }'
}

# The kubelet would take the address of the default route. The flag labels=a=b,c=d gives labels.
kubernetes_node_settings() {
  printf "nodeRegistration:\n  kubeletExtraArgs:\n  - name: node-ip\n    value: '%s'\n" "$PRIVATE_ADDRESS"
  if [[ -n "${NODE_LABELS-}" ]]; then printf '  - name: node-labels\n    value: %s\n' "$(kubernetes_quoted "$NODE_LABELS")"; fi
  if [[ -n "${KUBERNETES_NODE_TAINTS-}" ]]; then
    printf '  - name: register-with-taints\n    value: %s\n' "$(kubernetes_quoted "$KUBERNETES_NODE_TAINTS")"
  fi
}

# usage: kubernetes_quoted TEXT; a string of YAML
kubernetes_quoted() {
  printf "'%s'" "${1//\'/\'\'}"
}

# True on a node whose control plane is complete.
kubernetes_has_control_plane() {
  [[ -f /etc/kubernetes/manifests/kube-apiserver.yaml ]] || return 1
  if [[ ! -e "$KUBERNETES_STATE/attempt" ]]; then return 0; fi
  # It may be complete and starting: after a power cut, for example.
  systemctl start kubelet && spinner_until 30 kubernetes_api_listens && kubernetes_is_finished || return 1
  kubernetes_complete
}

# True if the last steps of kubeadm init, or of kubeadm join for a control plane, are done.
kubernetes_is_finished() {
  local query=(kubectl --kubeconfig=/etc/kubernetes/admin.conf --request-timeout=20s)
  "${query[@]}" --namespace kube-system get daemonset kube-proxy >/dev/null 2>&1 &&
    [[ "$("${query[@]}" get node "$(get_local_node_name)" -o jsonpath='{.metadata.labels}')" == *node-role.kubernetes.io/control-plane* ]]
}

# On the disk at once: an attempt that comes back after a power cut would let a later run reset a cluster that is in use.
kubernetes_complete() {
  if [[ -e "$KUBERNETES_STATE/attempt" ]]; then
    rm "$KUBERNETES_STATE/attempt" && sync "$KUBERNETES_STATE"
  fi
}

# Before kubeadm changes a machine that is not a node: removes what an attempt of ours has left, and refuses to touch another cluster.
kubernetes_begin() {
  if [[ -e /var/lib/etcd/member && -n "$(maybe find "$KUBERNETES_STATE/attempt" -mmin +1440)" ]]; then
    bail "kubernetes: kubeadm did not finish on this machine, but that was more than a day ago, and /var/lib/etcd may contain a cluster \
in use. If nothing there is needed any more, run ./tasks.sh reset or kubeadm reset first"
  elif [[ -e "$KUBERNETES_STATE/attempt" ]]; then
    logWarn "The attempt before this one did not finish: kubeadm reset"
    kubernetes_undo_attempt
  elif [[ -e /etc/kubernetes/kubelet.conf || -e /etc/kubernetes/admin.conf ]]; then
    bail "kubernetes: this machine has files of another cluster in /etc/kubernetes. If nothing there is needed any more, run \
./tasks.sh reset or kubeadm reset first"
  fi
  # A disk of its own has this folder, and kubeadm wants none.
  maybe rmdir /var/lib/etcd/lost+found
  touch "$KUBERNETES_STATE/attempt"
}

# The kubelet of a control plane whose join was cut may have registered its node, and kubeadm join refuses a name that is ready.
kubernetes_undo_attempt() {
  local admin="$KUBERNETES_STATE/admin.conf"
  if [[ -f /etc/kubernetes/admin.conf ]]; then (umask 077 && cp /etc/kubernetes/admin.conf "$admin"); fi
  kubernetes_reset || bail "kubernetes: containerd does not remove the pods of the unfinished attempt: restart the machine, then run the \
same command again"
  if [[ -f "$admin" && "${MASTER-}" == 1 ]]; then kubernetes_delete_own_node "$admin" || logWarn "The node of the unfinished attempt is not deleted"; fi
  rm -f "$admin"
}

# usage: kubernetes_delete_own_node KUBECONFIG; the join may have failed because another machine has the name of this one. Its address
# does not tell them apart: DHCP may give this machine another one, or one that the other had.
kubernetes_delete_own_node() {
  local node found name='' machine='' system='' own query=(kubectl --kubeconfig="$1" --request-timeout=20s)
  node="$(get_local_node_name)"
  found="$("${query[@]}" get node "$node" --ignore-not-found \
    -o jsonpath='{.metadata.name},{.status.nodeInfo.machineID},{.status.nodeInfo.systemUUID}')" || return 1
  IFS=, read -r name machine system <<<"$found"
  # Clones of a machine may share the ID of its system, but not that of the hardware, which not every machine has.
  own="$(maybe cat /sys/class/dmi/id/product_uuid)"
  own="${own:-"$system"}"
  if [[ -z "$name" ]]; then
    return 0
  elif [[ -n "$machine" && "$machine" == "$(maybe cat /etc/machine-id)" && "${system,,}" == "${own,,}" ]]; then
    "${query[@]}" delete node "$node" --ignore-not-found
  else
    logWarn "The node $node stays: it may be another machine, with the machine ID ${machine:-unknown}. If that one is in use, give this \
machine another name first: hostnamectl set-hostname. If not, delete it on a control plane: kubectl delete node $node"
  fi
}

kubernetes_init() {
  local ignored="${KUBERNETES_INIT_IGNORE_PREFLIGHT_ERRORS-}" snapshot="$DIR/restore"
  logStep "Creating the control plane of Kubernetes $KUBERNETES_VERSION"
  kubernetes_host kubelet
  kubernetes_begin
  if [[ -d "$snapshot" ]]; then
    kubernetes_place_snapshot "$snapshot"
    ignored+="${ignored:+,}DirAvailable--var-lib-etcd"
  fi
  kubeadm init --config "$KUBERNETES_STATE/new.yaml" --skip-token-print ${ignored:+--ignore-preflight-errors="$ignored"} || {
    kubernetes_explain
    bail "kubeadm init failed"
  }
  rm -f "$KUBERNETES_STATE/restart"
  mv "$KUBERNETES_STATE/new.yaml" "$KUBERNETES_STATE/init.yaml"
  kubernetes_complete
  logSuccess "The control plane runs"
}

# What kubeadm does not show: a missing image, or a component that ends at once.
kubernetes_explain() {
  crictl --timeout 10s ps --all 2>/dev/null || true
  journalctl --unit=kubelet --no-pager --lines=20 2>/dev/null || true
  printf 'If an image is missing, load all images of the bundle again: ./tasks.sh load-images\n'
}

# The same version again, with other settings. Where a component does not run with them, the cluster has its former ones again.
kubernetes_reconfigure() {
  local new="$KUBERNETES_STATE/new.yaml" kept="$KUBERNETES_STATE/init.yaml" restarts='' written
  kubernetes_host kubelet
  if cmp -s "$new" "$kept"; then
    rm -f "$new"
    if kubernetes_restart_is_due; then restarts=1; fi
    written="$(kubernetes_start_of self)"
    kubernetes_restart_kubelet
    if [[ -n "$restarts" ]]; then kubernetes_wait_until_settled "$written"; fi
    return 0
  fi
  logStep "Applying the configuration of Kubernetes"
  try_5m kubernetes_api_answers
  if grep -qsxF "kubernetesVersion: v$KUBERNETES_VERSION" "$kept"; then KUBERNETES_FORMER="$kept"; fi
  kubeadm init phase upload-config all --config "$new"
  kubernetes_apply_components
  written="$(kubernetes_start_of self)"
  kubernetes_apply_proxy "$new"
  kubernetes_fetch_kubelet_configuration
  kubernetes_wait_until_settled "$written"
  mv "$new" "$kept"
  logSuccess "Other nodes take this configuration at their next upgrade.sh"
}

# The flags of this machine's control plane, and the names of its API server, become those of the cluster's configuration. The kubelet restarts
# only those components whose flags have changed.
kubernetes_apply_components() {
  local former="$KUBERNETES_STATE/former" config="$KUBERNETES_STATE/local.yaml" written name
  kubernetes_local_configuration >"$config"
  kubernetes_apply_names "$config"
  rm -rf "$former" "$former.new"
  (umask 077 && cp -pr "$KUBERNETES_MANIFESTS" "$former.new")
  mv "$former.new" "$former"
  written="$(kubernetes_start_of self)"
  kubeadm init phase control-plane all --config "$config"
  for name in kube-apiserver kube-controller-manager kube-scheduler; do
    if cmp -s "$former/$name.yaml" "$KUBERNETES_MANIFESTS/$name.yaml"; then continue; fi
    spinner_until 120 kubernetes_is_new "$name" "$written" || kubernetes_refuse_components "$name"
  done
  rm -rf "$former" "$config"
}

# Prints the configuration of the cluster, with what kubeadm must know of this machine.
kubernetes_local_configuration() {
  local text version server="$KUBERNETES_MANIFESTS/kube-apiserver.yaml"
  text="$(kubectl --kubeconfig=/etc/kubernetes/admin.conf --request-timeout=20s --namespace kube-system get configmap kubeadm-config \
    -o jsonpath='{.data.ClusterConfiguration}')"
  version="$(awk '$1 == "apiVersion:" { print $2; exit }' <<<"$text")"
  printf '%s\n---\napiVersion: %s\nkind: InitConfiguration\n' "$text" "$version"
  printf "localAPIEndpoint:\n  advertiseAddress: '%s'\n  bindPort: %s\n" "$(kubernetes_flag "$server" advertise-address)" "$(kubernetes_flag "$server" secure-port)"
  printf 'nodeRegistration:\n  name: %s\n  criSocket: unix://%s\n' "$(get_local_node_name)" "$(kubeadm_get_containerd_sock)"
}

# usage: kubernetes_apply_names CONFIG; another certificate of the API server, which reads it by itself, if its own does not have all names
kubernetes_apply_names() {
  local pki=/etc/kubernetes/pki made="$KUBERNETES_STATE/certificate"
  [[ -f "$pki/ca.key" ]] && command -v openssl >/dev/null || return 0
  rm -rf "$made"
  (umask 077 && mkdir "$made" && cp "$pki"/ca.{crt,key} "$made/")
  sed "s,^certificatesDir: .*,certificatesDir: $made," "$1" >"$made/config"
  kubeadm init phase certs apiserver --config "$made/config"
  if [[ -n "$(comm -13 <(kubernetes_names "$pki/apiserver.crt") <(kubernetes_names "$made/apiserver.crt"))" ]]; then
    mv "$made"/apiserver.{key,crt} "$pki/"
    logSuccess "The certificate of the API server has the names of its configuration"
  fi
  rm -rf "$made"
}

# usage: kubernetes_names CERTIFICATE; sorted
kubernetes_names() {
  openssl x509 -in "$1" -noout -ext subjectAltName | sed '1d; s/ //g; s/,/\n/g' | sort
}

# usage: kubernetes_is_new COMPONENT TICKS; its static pod has started since then, and answers
kubernetes_is_new() {
  local processes process
  processes="$(kubernetes_processes "$1")" || return 1
  for process in $processes; do
    # The former process may be about to end.
    if (($(kubernetes_start_of "$process") > $2)); then kubernetes_answers "$1" livenessProbe && return 0; fi
  done
  return 1
}

# usage: kubernetes_refuse_components COMPONENT; that does not run with the new settings
kubernetes_refuse_components() {
  local file='' said=''
  # Of its newest container, as containerd writes it: time, stream and a mark before each line.
  read -r file < <(maybe ls -t /var/log/pods/kube-system_"$1"-*/"$1"/*.log) || true
  if [[ -n "$file" ]]; then said="$(kubernetes_reason "$(tail -n 20 "$file" | cut -d ' ' -f 4-)")"; fi
  kubernetes_return_manifests
  spinner_until 120 kubernetes_api_listens || true
  kubernetes_refuse "$1" "${said:-"see journalctl -u kubelet"}"
}

# Static pods as they were before settings with which one of them does not run, or before a run that was cut when it tried some.
kubernetes_return_manifests() {
  local former="$KUBERNETES_STATE/former" file
  [[ -d "$former" ]] || return 0
  for file in "$former"/*.yaml; do
    if cmp -s "$file" "$KUBERNETES_MANIFESTS/${file##*/}"; then continue; fi
    # The kubelet reads each file that it finds, but for hidden ones.
    cp -p "$file" "$KUBERNETES_MANIFESTS/.former"
    mv "$KUBERNETES_MANIFESTS/.former" "$KUBERNETES_MANIFESTS/${file##*/}"
  done
  rm -rf "$former"
}

# usage: kubernetes_refuse COMPONENT WHY; on the first node, the cluster has its former configuration again, too
kubernetes_refuse() {
  if [[ -n "${KUBERNETES_FORMER-}" ]]; then kubeadm init phase upload-config all --config "$KUBERNETES_FORMER" >/dev/null || true; fi
  bail "kubernetes: $1 does not run with the new settings, and has its former ones again: $2. Correct the settings, then run the same command again"
}

# usage: kubernetes_apply_proxy CONFIG; pods of kube-proxy read their configuration only when they start
kubernetes_apply_proxy() {
  local query=(kubectl --kubeconfig=/etc/kubernetes/admin.conf --request-timeout=20s --namespace kube-system) before due="$KUBERNETES_STATE/proxy"
  before="$(maybe "${query[@]}" get configmap kube-proxy -o jsonpath='{.data}')"
  if [[ -e "$due" ]]; then before=''; fi
  touch "$due"
  kubeadm init phase addon kube-proxy --config "$1"
  if [[ "$("${query[@]}" get configmap kube-proxy -o jsonpath='{.data}')" != "$before" ]]; then
    "${query[@]}" rollout restart daemonset/kube-proxy
    "${query[@]}" rollout status daemonset/kube-proxy --timeout=120s --request-timeout=0 ||
      logWarn "Not all pods of kube-proxy run with the new settings yet: kubectl --namespace kube-system get pods --selector=k8s-app=kube-proxy"
  fi
  rm "$due"
}

# The kubelet's configuration in the cluster becomes that of this node.
kubernetes_fetch_kubelet_configuration() {
  local file=/var/lib/kubelet/config.yaml before due='' status=0 since said
  before="$(cat "$file")" since="$(date -u +%FT%TZ)"
  if [[ -e "$KUBERNETES_STATE/restart" ]]; then due=1; fi
  # Before kubeadm writes the file: after a cut, the next run finds nothing to change in it.
  kubernetes_must_restart
  kubeadm upgrade node phase kubelet-config || status=$?
  if [[ -z "$due" && "$(cat "$file")" == "$before" ]]; then rm "$KUBERNETES_STATE/restart"; fi
  if ((status != 0)); then return "$status"; fi
  kubernetes_restart_kubelet
  if [[ "$(cat "$file")" == "$before" ]] || kubernetes_kubelet_stays; then return 0; fi
  said="$(maybe journalctl --unit=kubelet --since="$since" --lines=200 --output=cat --no-pager | sed -n 's/.* err="\(.*\)"$/\1/p' | tail -n 1)"
  printf '%s\n' "$before" >"$file"
  kubernetes_must_restart
  kubernetes_restart_kubelet
  kubernetes_refuse 'the kubelet' "$(kubernetes_reason "${said:-see journalctl -u kubelet}")"
}

# Ends before long with settings that it does not accept, and is started again each time.
kubernetes_kubelet_stays() {
  local process='' former same=0 tries
  for ((tries = 0; tries < 60 && same < 8; tries++)); do
    former="$process" process="$(curlew_main_pid kubelet)"
    if [[ "$process" != 0 && "$process" == "$former" ]]; then same=$((same + 1)); else same=0; fi
    sleep 1
  done
  ((same == 8))
}

# If it must restart or does not run.
kubernetes_restart_kubelet() {
  if kubernetes_restart_is_due; then
    restart_systemd_and_wait kubelet
    rm -f "$KUBERNETES_STATE/restart"
  elif ! systemctl is-active --quiet kubelet; then
    systemctl start kubelet
  fi
}

# curlew has drained the node, and uncordons it when it is ready.
kubernetes_upgrade_first() {
  local from to
  from="$(kubernetes_version_minor "$CURRENT_KUBERNETES_VERSION")" to="$(kubernetes_version_minor "$KUBERNETES_VERSION")"
  ((to == from || to == from + 1)) ||
    bail "kubernetes: cannot go from $CURRENT_KUBERNETES_VERSION to $KUBERNETES_VERSION: one minor version at a time, and not down"
  logStep "Upgrading the control plane from $CURRENT_KUBERNETES_VERSION to $KUBERNETES_VERSION"
  # Cut in the middle of kubeadm, the API server may have the new version already, and etcd or add-ons the old one; and the kubelet may be
  # about to replace one of them.
  if [[ -e "$KUBERNETES_STATE/upgrade" ]]; then kubernetes_wait_until_settled; fi
  touch "$KUBERNETES_STATE/upgrade"
  # kubeadm's test of the cluster's health has 15 seconds, which a busy machine can exceed.
  cmd_retry 3 kubernetes_apply_upgrade
  rm "$KUBERNETES_STATE/upgrade"
  # With the settings of this run, and the kubelet last.
  kubernetes_reconfigure
  logSuccess "The control plane is $KUBERNETES_VERSION"
}

kubernetes_apply_upgrade() {
  local KUBERNETES_UPGRADE_IGNORE_PREFLIGHT_ERRORS="${KUBERNETES_UPGRADE_IGNORE_PREFLIGHT_ERRORS-}"
  try_5m kubernetes_api_answers || return
  if kubernetes_has_no_room; then
    logWarn "No other node is ready for pods: kubeadm waits a minute for its test CreateJob, and continues without it"
    KUBERNETES_UPGRADE_IGNORE_PREFLIGHT_ERRORS+="${KUBERNETES_UPGRADE_IGNORE_PREFLIGHT_ERRORS:+,}CreateJob"
  fi
  kubernetes_upgrade_by_kubeadm apply "v$KUBERNETES_VERSION" --yes
}

# True where the pod of kubeadm's test finds no node: this one is cordoned, and others are not, but are not ready or have another taint. kubeadm
# leaves the test out only where all nodes are cordoned.
kubernetes_has_no_room() {
  local nodes
  nodes="$(kubectl --kubeconfig=/etc/kubernetes/admin.conf --request-timeout=20s get nodes -o \
    jsonpath='{range .items[*]}{.metadata.name}:{.spec.unschedulable}{range .spec.taints[?(@.effect!="PreferNoSchedule")]} {.key}{end}{"\n"}{end}')" || return 1
  awk -F: '$2 !~ /^true/ { open = 1 } $2 == "" || $2 == " node-role.kubernetes.io/control-plane" { room = 1 } END { exit !open || room }' <<<"$nodes"
}

# usage: kubernetes_upgrade_by_kubeadm WORD…; without the checks that the operator ignores
kubernetes_upgrade_by_kubeadm() {
  kubeadm upgrade "$@" \
    ${KUBERNETES_UPGRADE_IGNORE_PREFLIGHT_ERRORS:+--ignore-preflight-errors="$KUBERNETES_UPGRADE_IGNORE_PREFLIGHT_ERRORS"}
}

# True if kubeadmTokenCAHash is not the digest of the key that signs the certificates of this machine's cluster.
kubernetes_is_of_another_cluster() {
  local digest authority=/etc/kubernetes/pki/ca.crt
  [[ -f "$authority" && -n "${KUBEADM_TOKEN_CA_HASH-}" ]] && command -v openssl >/dev/null || return 1
  digest="$(openssl x509 -in "$authority" -noout -pubkey | openssl pkey -pubin -outform DER | openssl dgst -sha256 -r)"
  [[ "sha256:${digest%% *}" != "$KUBEADM_TOKEN_CA_HASH" ]]
}

# True on a worker that the cluster knows, and on a control plane that is complete.
kubernetes_has_joined() {
  [[ -f /etc/kubernetes/kubelet.conf ]] && command -v kubectl >/dev/null || return 1
  if [[ "${MASTER-}" == 1 ]]; then kubernetes_has_control_plane || return 1; fi
  # The kubelet of a join that was cut may be about to register its node, which kubeadm join would then refuse.
  if [[ -e "$KUBERNETES_STATE/attempt" ]]; then
    maybe systemctl start kubelet
    spinner_until 15 kubernetes_knows_node || return 1
  fi
  kubernetes_knows_node || return 1
  kubernetes_end_join
}

kubernetes_knows_node() {
  kubectl --kubeconfig=/etc/kubernetes/kubelet.conf --request-timeout=5s get node "$(get_local_node_name)" >/dev/null 2>&1
}

kubernetes_upgrade_node() {
  try_5m kubernetes_knows_node && kubernetes_upgrade_by_kubeadm node
}

kubernetes_update_node() {
  kubernetes_host kubeadm kubectl
  if [[ "$(kubelet --version 2>/dev/null)" == "Kubernetes v$KUBERNETES_VERSION" ]]; then
    if [[ -f "$KUBERNETES_MANIFESTS/kube-apiserver.yaml" ]]; then kubernetes_apply_components; fi
    kubernetes_fetch_kubelet_configuration
  else
    cmd_retry 3 kubernetes_upgrade_node
    kubernetes_host kubelet
    kubernetes_restart_kubelet
  fi
  kubernetes_keep_files
  kubernetes_schedule_renewal
  kubernetes_protect_images
  kubernetes_wait_until_ready /etc/kubernetes/kubelet.conf
}

# The address of admin.conf: that of this machine, or of a balancer.
kubernetes_api_address() {
  maybe sed -n 's,^ *server: https://,,p' /etc/kubernetes/admin.conf
}

kubernetes_api_answers() {
  kubectl --kubeconfig=/etc/kubernetes/admin.conf --request-timeout=10s get --raw /readyz >/dev/null
}

# The same for waits: what it says each time is only kept.
kubernetes_api_listens() {
  KUBERNETES_API_SAID="$(kubernetes_api_answers 2>&1)"
}

# usage: kubernetes_wait_until_settled [TICKS]; a time since which no file of a static pod has changed
# A kubelet of another version, or with other flags of a component, replaces static pods only some seconds after its start: add-ons
# that come next would find no API server. It replaces none twice: once all are its own, a few answers are enough.
kubernetes_wait_until_settled() {
  local answers=0 tries=0 wanted=15
  logStep "Waiting until the API server stays"
  while ((answers < wanted)); do
    if ((wanted == 15)) && [[ -n "${1-}" ]] && kubernetes_has_replaced_pods "$1"; then answers=0 wanted=3; fi
    if kubernetes_api_answers 2>/dev/null; then answers=$((answers + 1)); else answers=0; fi
    tries=$((tries + 1))
    ((tries < 300)) || bail "kubernetes: the API server did not answer for $wanted seconds in a row: see crictl ps --all, and journalctl -u kubelet"
    sleep 1
  done
}

# usage: kubernetes_has_replaced_pods TICKS; whether the kubelet has started since, and has itself started all static pods. Not known of
# those whose container has another name than their file, and where others may answer in the place of this machine's API server.
kubernetes_has_replaced_pods() {
  local kubelet file processes process
  grep -qsF "advertise-address.endpoint: $(kubernetes_api_address)" "$KUBERNETES_MANIFESTS/kube-apiserver.yaml" || return 1
  kubelet="$(kubernetes_start_of "$(curlew_main_pid kubelet)")"
  ((kubelet > $1)) || return 1
  for file in "$KUBERNETES_MANIFESTS"/*; do
    processes="$(kubernetes_processes "$(basename "$file" .yaml)")" || return 1
    # The former process may be about to end.
    for process in ${processes:-0}; do
      (($(kubernetes_start_of "$process") > kubelet)) || return 1
    done
  done
}

# usage: kubernetes_start_of PROCESS|self; its start in ticks of the kernel's clock: that of self is now. 0 if there is no such process
kubernetes_start_of() {
  local text fields
  text="$(maybe cat "/proc/${1:-0}/stat")"
  # The second field is the name of the program, which may contain blanks and parentheses.
  read -ra fields <<<"${text##*) }"
  printf '%s\n' "${fields[19]-0}"
}

# usage: kubernetes_wait_until_ready KUBECONFIG
kubernetes_wait_until_ready() {
  local node
  node="$(get_local_node_name)"
  logStep "Waiting until $node is ready"
  if ! spinner_until 300 kubernetes_is_ready "$1" "$node"; then
    kubectl --kubeconfig="$1" --request-timeout=20s describe node "$node" 1>&2 || true
    bail "kubernetes: $node is not ready after 5 minutes: $(kubernetes_why_not_ready "$1" "$node")"
  fi
  logSuccess "$node is ready"
}

# usage: kubernetes_why_not_ready KUBECONFIG NODE; what the kubelet says, and what to do
kubernetes_why_not_ready() {
  local why
  why="$(maybe kubectl --kubeconfig="$1" --request-timeout=20s get node "$2" -o jsonpath='{.status.conditions[?(@.type=="Ready")].message}')"
  printf '%s. ' "${why:-the API server does not say why}"
  case "$why" in
    *network*) printf 'The network add-on has not written its configuration in /etc/cni/net.d: the spec has none, or its pod does not start on %s; \
if that has no image, run ./tasks.sh load-images\n' "$2" ;;
    *'stopped posting'*) printf 'The kubelet does not reach the API server: see journalctl -u kubelet\n' ;;
    *) printf 'See journalctl -u kubelet; if an image is missing, run ./tasks.sh load-images\n' ;;
  esac
}

# usage: kubernetes_is_ready KUBECONFIG NODE
kubernetes_is_ready() {
  [[ "$(kubectl --kubeconfig="$1" --request-timeout=20s get node "$2" \
    -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null)" == True ]]
}

# The kubelet removes images that no container uses when the disk is 85 % full, and without internet they do not come back: those
# of all packages on this node are pinned.
kubernetes_protect_images() {
  local image
  local -A loose=()
  while IFS= read -r image; do loose[$image]=1; done < <(curlew_ctr images list --quiet 'labels."io.cri-containerd.pinned"!=pinned')
  while IFS= read -r image; do
    image="$(canonical_image_name "$image")"
    if [[ -n "${loose[$image]-}" ]]; then curlew_ctr images label "$image" io.cri-containerd.pinned=pinned >/dev/null; fi
  done < <(kubernetes_packed_images)
}

# As they are named in packages, where a Manifest may name a file instead.
kubernetes_packed_images() {
  maybe grep -hoE '"reference":"[^"]+"' "$DIR"/{addons,packages}/*/*/addon.json | cut -d '"' -f 4
}

# For further control planes, encrypted by a key that only root can read. The cluster deletes them after two hours, and a token of
# join-token is valid for one. Any control plane may upload them, with a key of its own, so what was uploaded is written next to the key.
kubernetes_upload_certificates() {
  local file="$KUBERNETES_STATE/certificate-key" config="$KUBERNETES_STATE/upload.yaml" uploaded key settings
  [[ -n "${LOAD_BALANCER_ADDRESS-}" ]] || return 0
  if [[ -s "$file" && -z "$(find "$file" -mmin +60)" ]]; then
    uploaded="$(kubernetes_uploaded_certificates)"
    if [[ -n "$uploaded" && "$(cat "$file")" == *" $uploaded" ]]; then return 0; fi
  fi
  rm -f "$file"
  # From the cluster: the first control plane, whose file has the same, may be gone.
  settings="$(kubectl --namespace kube-system get configmap kubeadm-config -o jsonpath='{.data.ClusterConfiguration}')"
  key="$(od -An -v -N32 -tx1 /dev/urandom | tr -d ' \n')"
  # Not as an argument, which every user of the machine could read.
  (
    umask 077
    # Without quotes, a key of digits would be a number. Without an address, kubeadm wants a default route.
    printf 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\ncertificateKey: "%s"\n' "$key" >"$config"
    printf 'localAPIEndpoint: { advertiseAddress: "%s" }\nnodeRegistration: { criSocket: "unix://%s" }\n---\n%s\n' \
      "$PRIVATE_ADDRESS" "$(kubeadm_get_containerd_sock)" "$settings" >>"$config"
  )
  kubeadm init phase upload-certs --upload-certs --skip-certificate-key-print --config "$config"
  rm -f "$config"
  uploaded="$(kubernetes_uploaded_certificates)"
  (umask 077 && printf '%s %s\n' "$key" "$uploaded" >"$file.new")
  mv "$file.new" "$file"
}

# Prints what only the present state of the uploaded certificates has, or nothing if there are none. curlew join-token compares it as well.
kubernetes_uploaded_certificates() {
  kubectl --namespace kube-system get secret kubeadm-certs --ignore-not-found \
    -o jsonpath='{.metadata.uid}/{.metadata.resourceVersion}'
}

# For curlew certificates renew: all that kubeadm has made, and then those who read them only when they start, one after the other.
kubernetes_renew_certificates() {
  local name renewed='' alone='' all=(etcd kube-apiserver kube-controller-manager kube-scheduler)
  kubernetes_bypass_proxy
  kubernetes_start_pods
  kubeadm certs renew all ||
    bail "kubernetes: kubeadm has not renewed all certificates (see above), and nothing has restarted. Run the same command again"
  for name in "${all[@]}"; do
    [[ -e "$KUBERNETES_MANIFESTS/$name.yaml" ]] || continue
    logStep "Restarting $name"
    kubernetes_stop_pods "$name" || kubernetes_renewal_stops "$name does not end: does the kubelet run?" "$renewed"
    kubernetes_start_pods
    # Without a quorum of etcd nothing else answers.
    [[ -n "$alone" ]] || spinner_until 120 kubernetes_is_back "$name" ||
      kubernetes_renewal_stops "$name does not come back: see crictl ps --all --name $name, crictl logs and journalctl -u kubelet" "$renewed"
    renewed+="${renewed:+, }$name"
    if [[ "$name" == etcd ]] && ! spinner_until 60 kubernetes_answers etcd readinessProbe; then alone=1; fi
  done
  kubernetes_keep_files
  [[ -z "$alone" ]] || bail "kubernetes: $renewed have restarted with the new certificates, but etcd is not ready. With other control planes, it \
has no quorum yet: run the same command there, too. Without, see crictl ps --all --name etcd and crictl logs"
  spinner_until 300 kubernetes_api_listens || bail "kubernetes: $renewed have restarted with the new certificates, but the API server at \
$(kubernetes_api_address) does not answer: $(kubernetes_reason "$KUBERNETES_API_SAID"). See crictl ps --all, crictl logs and journalctl -u kubelet"
}

# By the timer of curlew certificates renew --every: kubeadm's certificates are valid for a year. Where it cannot start, Kubernetes works.
kubernetes_schedule_renewal() {
  [[ -f "$KUBERNETES_MANIFESTS/kube-apiserver.yaml" ]] || return 0
  if [[ "${KUBERNETES_CERTIFICATE_RENEWAL-}" == manual ]]; then
    kubernetes_remove_timer curlew-certificates
  else
    eval "${BIN_CURLEW:-curlew} certificates renew --within 30d --every 12h --install-dir \"\$DIR\"" >/dev/null || logWarn "The certificates of this control plane expire in a year, and \
no timer renews them (see above): run ./tasks.sh certificates renew before"
  fi
}

# usage: kubernetes_schedule_snapshots FILE; has the options of the timer of curlew etcd snapshot on the machine that is lost, one a line
kubernetes_schedule_snapshots() {
  local words options
  [[ -s "$1" ]] || return 0
  mapfile -t words <"$1"
  options="$(printf ' %q' "${words[@]}")"
  eval "${BIN_CURLEW:-curlew} etcd snapshot$options --install-dir \"\$DIR\"" >/dev/null || logWarn "A timer has saved etcd on the machine \
that is lost, and cannot be started here (see above): correct that, then run ./tasks.sh etcd snapshot$options"
}

# usage: kubernetes_remove_timer UNIT; one of curlew's
kubernetes_remove_timer() {
  systemctl disable --now "$1.timer" >/dev/null 2>&1 || true
  rm -f "/etc/systemd/system/$1".{service,timer}
}

# usage: kubernetes_renewal_stops WHY RENEWED
kubernetes_renewal_stops() {
  bail "kubernetes: $1. All certificates are renewed, and all components are to run again; with the new ones only: ${2:-none}. Once the \
cause is fixed, run the same command again"
}

# usage: kubernetes_restore_etcd FILE [SHOWN]; for curlew etcd restore, on the only control plane. SHOWN is what the operator calls the
# file: etcdutl may read it elsewhere. What etcd had stays next to it: each run keeps
# its own copy, also one that is repeated, because nothing here shows whether clients have changed data meanwhile.
kubernetes_restore_etcd() {
  local manifest="$KUBERNETES_MANIFESTS/etcd.yaml" image name url folder restored was shown="${2-"$1"}" kept=''
  local all=(kube-scheduler kube-controller-manager kube-apiserver etcd)
  kubernetes_bypass_proxy
  if [[ ! -e "$manifest" ]]; then manifest="$KUBERNETES_STATE/manifests/etcd.yaml"; fi
  [[ -e "$manifest" ]] || bail "kubernetes: kubeadm has made no etcd on this machine"
  image="$(awk '$1 == "image:" { print $2; exit }' "$manifest")"
  name="$(kubernetes_flag "$manifest" name)" url="$(kubernetes_flag "$manifest" initial-advertise-peer-urls)"
  folder="$(kubernetes_flag "$manifest" data-dir)"
  [[ -d "$folder" ]] || bail "kubernetes: --data-dir in $manifest is not a folder: '$folder'"
  [[ -z "$(kubernetes_flag "$manifest" wal-dir)" ]] ||
    bail "kubernetes: etcd has a --wal-dir in $manifest, which curlew cannot restore: use etcdutl snapshot restore"
  restored="$folder/restored" was="$folder/member.before-restore-$(date +%s)"
  kubernetes_unpack_snapshot "$1" "$folder" "$image" "$name" "$url" "$shown"
  logStep "Stopping the control plane. If this is cut, run the same command again: it starts it"
  kubernetes_stop_pods "${all[@]}" || {
    rm -rf "$restored"
    bail "kubernetes: the control plane does not end, and is to run again with its data: does the kubelet run? Then run the same command again"
  }
  if ! kubernetes_replace "$restored/member" "$folder/member" "$was"; then
    kubernetes_start_pods
    rm -rf "$restored"
    bail "kubernetes: cannot replace $folder/member, so etcd keeps its data: is it the mount point of a disk, or read-only?"
  fi
  rm -rf "$restored"
  kubernetes_start_pods
  spinner_until 120 kubernetes_is_back etcd || kubernetes_return_etcd "$folder" "$was" "$shown"
  if [[ -e "$was" ]]; then
    kept=". What etcd had is in $was"
    logWarn "What etcd had is in $was: remove it once you no longer need it"
  fi
  spinner_until 300 kubernetes_api_listens || bail "kubernetes: etcd has the data of $shown, but the API server does not answer: \
$(kubernetes_reason "$KUBERNETES_API_SAID"). See crictl ps --all, crictl logs and journalctl -u kubelet$kept"
  logSuccess "etcd has the data of $shown"
}

# usage: kubernetes_unpack_snapshot FILE FOLDER IMAGE NAME URL SHOWN; the data of an etcd with this only member, in FOLDER/restored. SHOWN is
# what the operator calls the file.
kubernetes_unpack_snapshot() {
  local restored="$2/restored" said
  rm -rf "$restored"
  kubernetes_require_space "$2" "$1"
  logStep "Reading $6"
  said="$(kubernetes_read_snapshot "$1" "$restored" "${@:3:3}" 2>&1)" || {
    rm -rf "$restored"
    bail "kubernetes: cannot restore $6, and nothing is changed: $(kubernetes_reason "$said"). If it is damaged, use another snapshot"
  }
}

# usage: kubernetes_read_snapshot FILE FOLDER IMAGE NAME URL
# All of it: etcd would end at a damaged page. Caches of clients must not take older revisions for newer ones.
kubernetes_read_snapshot() {
  local etcdutl=(kubernetes_in_image "$3" usr/local/bin/etcdutl snapshot)
  "${etcdutl[@]}" status "$1" && "${etcdutl[@]}" restore "$1" --data-dir "$2" --name "$4" --initial-cluster "$4=$5" \
    --initial-advertise-peer-urls "$5" --bump-revision 1000000000 --mark-compacted
}

# usage: kubernetes_return_etcd FOLDER KEPT FILE; etcd does not start with the data of the file
kubernetes_return_etcd() {
  local see='see crictl ps --all --name etcd, and crictl logs'
  [[ -e "$2" ]] || bail "kubernetes: etcd does not start with the data of $3, and had none before: $see"
  if kubernetes_stop_pods kube-scheduler kube-controller-manager kube-apiserver etcd && rm -rf "$1/member" && mv -T "$2" "$1/member"; then
    kubernetes_start_pods
    bail "kubernetes: etcd does not start with the data of $3, and starts with its own again: use another snapshot"
  fi
  bail "kubernetes: etcd does not start with the data of $3: $see. What it had is in $2, which is to be $1/member again"
}

# usage: kubernetes_reason TEXT; the end of what a program has printed, without the stack of Go and the checks that pass, as a text of
# bail. A long line keeps its beginning, and its end, which says why.
kubernetes_reason() {
  sed -n '/^goroutine /q; /[^[:space:]]/p' <<<"$1" | grep -vE $'\tinfo\t|"level":"info"|^\\[\\+\\]' | tail -n 2 |
    sed -E 's/^(.{199}).{2,}(.{200})$/\1…\2/' | paste -sd ' ' | sed 's/%/%%/g; s/\\/\\\\/g'
}

# usage: kubernetes_place_snapshot FOLDER; what curlew etcd restore has kept for this machine: before kubeadm init, so that no node ever
# sees a cluster without its data, for which kubelets would end all pods
kubernetes_place_snapshot() {
  local file mode folder=/var/lib/etcd image host="$PRIVATE_ADDRESS"
  if [[ "$host" == *:* ]]; then host="[$host]"; fi
  image="$(kubeadm config images list --config "$KUBERNETES_STATE/new.yaml" | grep /etcd:)"
  if [[ ! -d "$folder" ]]; then mkdir -m 0700 "$folder"; fi
  kubernetes_unpack_snapshot "$1/etcd.db" "$folder" "$image" "$(get_local_node_name)" "https://$host:2380" "$1"
  kubernetes_replace "$folder/restored/member" "$folder/member" "$folder/member.before-restore-$(date +%s)" ||
    bail "kubernetes: cannot replace $folder/member: is it the mount point of a disk, or read-only?"
  rm -rf "$folder/restored"
  while IFS= read -r file; do
    mode=0600
    if [[ "$file" == *.crt ]]; then mode=0644; fi
    install -D -m "$mode" "$1/kubernetes/$file" "/etc/kubernetes/$file"
  done < <(cd "$1/kubernetes" && find . -type f)
}

# What curlew etcd restore has kept, once the control plane has its data. Not before kubernetes_complete: until then a run that was cut is
# undone, and the next one needs it again.
kubernetes_drop_snapshot() {
  local snapshot="$DIR/restore"
  [[ -d "$snapshot" && -f "$KUBERNETES_MANIFESTS/kube-apiserver.yaml" && ! -e "$KUBERNETES_STATE/attempt" ]] || return 0
  kubernetes_schedule_snapshots "$snapshot/timer"
  rm -rf "$snapshot"
  logSuccess "The control plane has the data of the snapshot, and what curlew etcd restore has kept of it is removed"
}

# Control planes that are gone: they have a Node, and no member of etcd, as after a restore.
kubernetes_name_lost() {
  local manifest="$KUBERNETES_MANIFESTS/etcd.yaml" nodes members node addresses
  [[ -f "$manifest" ]] || return 0
  if ! { nodes="$(kubectl --kubeconfig=/etc/kubernetes/admin.conf --request-timeout=20s get nodes \
    --selector=node-role.kubernetes.io/control-plane \
    -o jsonpath='{range .items[*]}{.metadata.name} {.status.addresses[?(@.type=="InternalIP")].address}{"\n"}{end}')" &&
    members="$(kubernetes_members "$manifest" "$nodes")"; }; then
    logWarn "It is not known whether all control planes are members of etcd (see above): compare kubectl get nodes"
    return 0
  fi
  while read -r node addresses; do
    if [[ -z "$node" ]] || kubernetes_is_member "$members" "$node" "$addresses"; then continue; fi
    printf '%s is no longer a control plane, and must be reset before it starts again. Remove its Node: ./tasks.sh node remove %s --yes\n' \
      "$node" "$node"
  done <<<"$nodes"
}

# usage: kubernetes_members MANIFEST NODES; prints a line for each member of etcd. A control plane that is alone is not asked: it is the member.
kubernetes_members() {
  local pki=/etc/kubernetes/pki/etcd
  if (($(wc -l <<<"$2") < 2)); then
    printf ', %s, \n' "$(get_local_node_name)"
    return 0
  fi
  NO_PROXY='*' no_proxy='*' kubernetes_in_image "$(awk '$1 == "image:" { print $2; exit }' "$1")" usr/local/bin/etcdctl --command-timeout=10s \
    --endpoints="$(kubernetes_flag "$1" advertise-client-urls)" --cacert="$pki/ca.crt" --cert="$pki/server.crt" --key="$pki/server.key" member list
}

# usage: kubernetes_is_member MEMBERS NODE ADDRESSES; by its name, or where kubeadm has not given it that of its node, by its address
kubernetes_is_member() {
  local address
  if [[ "$1" == *", $2, "* ]]; then return 0; fi
  for address in $3; do
    if [[ "$1" == *"//$address:"* || "$1" == *"//[$address]:"* ]]; then return 0; fi
  done
  return 1
}

# usage: kubernetes_require_space FOLDER FILE; for what etcdutl makes of a snapshot: a file of its size, and a log of 64 MB
kubernetes_require_space() {
  local needed free
  needed="$(($(stat -L -c %s "$2") / 1048576 + 256))" free="$(df --output=avail -BM "$1" | tail -n 1 | tr -dc 0-9)"
  ((free >= needed)) || bail "kubernetes: cannot restore into $1: $needed MiB are needed, $free MiB are free. Copies of earlier \
restores there, member.before-restore-*, may be removed"
}

# usage: kubernetes_replace NEW FOLDER KEPT; what the folder had is in KEPT. Where it fails, the folder is as it was.
kubernetes_replace() {
  if [[ -e "$2" ]] && ! mv -T "$2" "$3"; then return 1; fi
  if mv -T "$1" "$2"; then return 0; fi
  maybe mv -T "$3" "$2"
  return 1
}

# usage: kubernetes_flag MANIFEST NAME
kubernetes_flag() {
  sed -n "s/^ *- --$2=//p" "$1"
}

# usage: kubernetes_in_image IMAGE PROGRAM WORD…; runs a static program of an image that the machine has
kubernetes_in_image() (
  # containerd does not mount a second time where it has mounted before.
  box="$KUBERNETES_STATE/image/$(date +%s%N)"
  kubernetes_unmount "$KUBERNETES_STATE"/image/*
  mkdir -p "$box"
  trap 'kubernetes_unmount "$box"' EXIT
  curlew_ctr images mount "$1" "$box" >/dev/null || bail "kubernetes: $1 is missing: run ./tasks.sh load-images"
  [[ -x "$box/$2" ]] || bail "kubernetes: $1 has no ${2##*/}"
  "$box/$2" "${@:3}"
)

# usage: kubernetes_unmount FOLDER…; also after a cut
kubernetes_unmount() {
  local folder
  for folder in "$@"; do
    [[ -d "$folder" ]] || continue
    curlew_ctr images unmount --rm "$folder" >/dev/null 2>&1 || true
    maybe rmdir "$folder"
  done
}

# usage: kubernetes_stop_pods NAME…; static pods end when the kubelet no longer finds their files. If one does not, all start again.
kubernetes_stop_pods() {
  local name
  mkdir -p "$KUBERNETES_STATE/manifests"
  for name in "$@"; do
    if [[ -e "$KUBERNETES_MANIFESTS/$name.yaml" ]]; then mv "$KUBERNETES_MANIFESTS/$name.yaml" "$KUBERNETES_STATE/manifests/"; fi
  done
  for name in "$@"; do
    spinner_until 120 kubernetes_is_stopped "$name" || {
      kubernetes_start_pods
      return 1
    }
  done
}

# Also those that a cut has left stopped, unless a newer file has replaced them. Without its data, etcd would begin an empty cluster, and
# the kubelet would end all pods.
kubernetes_start_pods() {
  local stopped="$KUBERNETES_STATE/manifests" file folder
  if [[ -e "$stopped/etcd.yaml" ]]; then
    folder="$(kubernetes_flag "$stopped/etcd.yaml" data-dir)"
    if [[ ! -e "$folder/member" ]] && compgen -G "$folder/member.before-restore-*" >/dev/null; then
      bail "kubernetes: ./tasks.sh etcd restore was cut while it replaced the data of etcd: run it again first"
    fi
  fi
  for file in "$stopped"/*.yaml; do
    if [[ -e "$KUBERNETES_MANIFESTS/${file##*/}" ]]; then
      rm -f "$file"
    elif [[ -e "$file" ]]; then
      mv "$file" "$KUBERNETES_MANIFESTS/"
    fi
  done
}

# What kubeadm has written, for kubernetes_restore_files: neither keys of authorities nor super-admin.conf, which an operator may move away.
kubernetes_keep_files() {
  local kept="$KUBERNETES_STATE/kept" file
  rm -rf "$kept.new"
  (umask 077 && mkdir -p "$kept.new")
  while IFS= read -r file; do
    mkdir -p "$kept.new/${file%/*}"
    cp -p "/etc/kubernetes/$file" "$kept.new/$file"
  done < <(cd /etc/kubernetes && maybe find ./manifests ./pki ./{admin,kubelet,controller-manager,scheduler}.conf -type f ! -name '*ca.key' ! -name '.*')
  rm -rf "$kept"
  mv "$kept.new" "$kept"
}

# Puts back what is missing of it. What kubernetes_stop_pods has moved away is not missing.
kubernetes_restore_files() {
  local kept="$KUBERNETES_STATE/kept" file target
  kubernetes_return_manifests
  [[ -d "$kept" && ! -e "$KUBERNETES_STATE/attempt" ]] || return 0
  while IFS= read -r file; do
    target="/etc/kubernetes/$file"
    if [[ -e "$target" || -e "$KUBERNETES_STATE/$file" ]]; then continue; fi
    logWarn "${target//%/%%} is missing, and is put back"
    mkdir -p "${target%/*}"
    # The kubelet reads each file that it finds, but for hidden ones.
    cp -p "$kept/$file" "${target%/*}/.restored"
    mv "${target%/*}/.restored" "$target"
  done < <(cd "$kept" && find . -type f -printf '%P\n')
}

# For curlew node repair: all that makes this machine a node runs again, without a change of it.
kubernetes_repair() {
  local node name due=''
  node="$(get_local_node_name)"
  kubernetes_bypass_proxy
  kubernetes_restore_files
  kubernetes_start_pods
  kubernetes_remake_manifests
  if ! kubernetes_pods >/dev/null; then
    logStep "Starting containerd"
    systemctl enable containerd >/dev/null 2>&1 || true
    maybe timeout 90 systemctl restart containerd
    spinner_until 30 kubernetes_pods >/dev/null || bail "kubernetes: containerd does not start: see journalctl -u containerd"
    due=1
  fi
  if [[ -n "$due" ]] || ! systemctl is-active --quiet kubelet; then
    logStep "Starting the kubelet"
    systemctl enable kubelet >/dev/null 2>&1 || true
    timeout 90 systemctl restart kubelet || bail "kubernetes: the kubelet does not start: see journalctl -u kubelet"
  fi
  for name in etcd kube-apiserver kube-controller-manager kube-scheduler; do
    [[ -e "$KUBERNETES_MANIFESTS/$name.yaml" ]] || continue
    spinner_until 120 kubernetes_is_running "$name" || bail "kubernetes: $name does not start: see crictl ps --all --name $name, and its log"
  done
  spinner_until 60 kubernetes_knows_node ||
    bail "kubernetes: the API server does not answer, or has no node $node: look on a control plane with kubectl get nodes"
  kubernetes_restore_network "$node"
  spinner_until 120 kubernetes_is_ready /etc/kubernetes/kubelet.conf "$node" || bail "kubernetes: $node is not ready: $(kubernetes_why_not_ready \
    /etc/kubernetes/kubelet.conf "$node")"
  kubernetes_keep_files
  logSuccess "$node is ready"
}

# For a control plane of an earlier version, which has kept no files: kubeadm writes those of static pods again.
kubernetes_remake_manifests() {
  local name file config="$KUBERNETES_STATE/init.yaml" phase
  [[ -f /etc/kubernetes/pki/apiserver.crt ]] || return 0
  for name in etcd kube-apiserver kube-controller-manager kube-scheduler; do
    file="$KUBERNETES_MANIFESTS/$name.yaml" phase="control-plane ${name#kube-}"
    # An etcd elsewhere has no certificates here.
    if [[ -e "$file" || ("$name" == etcd && ! -f /etc/kubernetes/pki/etcd/server.crt) ]]; then continue; fi
    if [[ "$name" == etcd ]]; then phase='etcd local'; fi
    [[ -f "$config" ]] || bail "kubernetes: $file is missing, and this node has no copy of it: copy it from another control plane, with the \
addresses of this one, or reset this node and let it join again"
    logWarn "$file is missing: kubeadm writes it again"
    # Its words are two.
    # shellcheck disable=SC2086
    kubeadm init phase $phase --config "$config" || bail "kubernetes: kubeadm does not write $file (see above)"
  done
}

# usage: kubernetes_restore_network NODE; the first containers of a network add-on's pod write its files, once for each pod
kubernetes_restore_network() {
  local namespace pod first
  if compgen -G '/etc/cni/net.d/*.conf*' >/dev/null; then return 0; fi
  logStep "Starting the network add-on anew: /etc/cni/net.d is empty"
  while read -r namespace pod first; do
    if [[ -z "$first" ]]; then continue; fi
    kubectl --kubeconfig=/etc/kubernetes/kubelet.conf --request-timeout=20s --namespace "$namespace" delete pod "$pod" --wait=false || true
  done < <(kubectl --kubeconfig=/etc/kubernetes/kubelet.conf --request-timeout=20s get pods --all-namespaces \
    --field-selector="spec.nodeName=$1" -o jsonpath='{range .items[?(@.spec.hostNetwork==true)]}{.metadata.namespace} {.metadata.name} {.spec.initContainers[0].name}{"\n"}{end}')
}

# Before a run looks at this machine: a command that was cut may have left its control plane stopped.
kubernetes_resume() {
  kubernetes_restore_files
  compgen -G "$KUBERNETES_STATE/manifests/*.yaml" >/dev/null || return 0
  logWarn "A command that was cut has left the control plane stopped: it starts again"
  kubernetes_start_pods
  try_5m kubernetes_api_answers
}

# usage: kubernetes_processes COMPONENT; of the running containers of its static pod. Other pods may run the same program, also in this
# namespace: only static ones have an UID without dashes.
kubernetes_processes() {
  local filter containers tasks container process state
  filter="labels.\"io.kubernetes.pod.namespace\"==\"kube-system\",labels.\"io.kubernetes.container.name\"==\"$1\""
  filter+=',labels."io.kubernetes.pod.uid"~="^[0-9a-f]+$"'
  # It is asked each second, and warns each time where the machine has cgroups of version 1.
  containers="$(curlew_ctr containers list --quiet "$filter" 2>/dev/null)" && tasks="$(curlew_ctr tasks list 2>/dev/null)" || return 1
  while read -r container process state; do
    if [[ "$state" == RUNNING && $'\n'"$containers"$'\n' == *$'\n'"$container"$'\n'* ]]; then printf '%s\n' "$process"; fi
  done <<<"$tasks"
}

# usage: kubernetes_is_running COMPONENT
kubernetes_is_running() {
  local processes
  processes="$(kubernetes_processes "$1")" && [[ -n "$processes" ]]
}

# usage: kubernetes_is_stopped COMPONENT; not where containerd does not answer
kubernetes_is_stopped() {
  local processes
  processes="$(kubernetes_processes "$1")" && [[ -z "$processes" ]]
}

# usage: kubernetes_is_back COMPONENT; that was stopped
kubernetes_is_back() {
  kubernetes_is_running "$1" && kubernetes_answers "$1" livenessProbe
}

# usage: kubernetes_answers COMPONENT PROBE; as the kubelet asks it, but without the headers that an operator may have added: who is refused
# has an answer. Without such a probe it is enough that it runs.
kubernetes_answers() {
  local url said
  url="$(kubernetes_probe "$2" "$KUBERNETES_MANIFESTS/$1.yaml")" || return 0
  said="$(NO_PROXY='*' no_proxy='*' kubectl --kubeconfig=/dev/null --username=anonymous --password=none --insecure-skip-tls-verify \
    --server="${url%%/*}//$(cut -d / -f 3 <<<"$url")" --request-timeout=5s get --raw "/$(cut -d / -f 4- <<<"$url")" </dev/null 2>&1)" ||
    [[ "$said" == *Unauthorized* || "$said" == *[Ff]orbidden* ]]
}

# usage: kubernetes_probe PROBE MANIFEST; prints the URL that it asks; fails if it asks none
kubernetes_probe() {
  awk -v wanted="$1:" '
    { gsub(/["\047]/, "") }
    $2 == "containerPort:" { number = $3 }
    $1 == "name:" && number { ports[$2] = number; number = "" }
    $1 ~ /Probe:$/ { probe = $1 }
    probe == wanted && $1 ~ /^(host|path|port|scheme):$/ { value[$1] = $2 }
    END {
      port = value["port:"]
      host = value["host:"] == "" ? "127.0.0.1" : value["host:"]
      if (port in ports) port = ports[port]
      if (host ~ /:/) host = "[" host "]"
      if (value["path:"] == "" || value["scheme:"] == "") exit 1
      printf "%s://%s:%s%s\n", tolower(value["scheme:"]), host, port, value["path:"]
    }' "$2"
}
