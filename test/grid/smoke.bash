# shellcheck shell=bash
# A cluster from a bundle, tried by use. Sourced by scripts/grid: every step is one line with its seconds. A step returns
# after its first failure by itself: `set -e` has no effect there.

# usage: unpack NODE
unpack() {
  on "$1" 60 sh -c 'rm -rf /root/bundle && mkdir /root/bundle && tar -xzf /media/bundle.tar.gz -C /root/bundle'
}

# A container has the clock of the machine and no service for it, and the folder of images is small on purpose.
IGNORE=(--ignore 'NTP Status' --ignore 'Ephemeral Disk Usage /var/lib/containerd')

# usage: install_on NODE [FLAG…]
install_on() {
  on "$1" 600 /root/bundle/install.sh "${IGNORE[@]}" airgap installer-spec-file=/media/node-settings.yaml "${@:2}"
}

# The other node gets the file that the first one has written, and the settings of containers.
join_on() {
  (umask 077 && on one 20 cat /etc/kubernetes/curlew/join.yaml >"$GRID/join.yaml")
  grid_docker 20 cp "$GRID/join.yaml" "$1:/root/join.yaml" &&
    grid_docker 20 cp "$PWD/test/grid/join-settings.yaml" "$1:/root/join-settings.yaml" &&
    rm "$GRID/join.yaml" &&
    on "$1" 600 sh -c 'cd /root/bundle && ./tasks.sh installer merge /root/join-settings.yaml /root/join.yaml >/root/merged.yaml' &&
    on "$1" 600 /root/bundle/join.sh "${IGNORE[@]}" airgap installer-spec-file=/root/merged.yaml
}

# usage: processes NODE; what a run that has nothing to do must not restart
processes() {
  on "$1" 20 systemctl show --property MainPID containerd kubelet
  on "$1" 20 crictl ps --quiet | sort
}

nothing_restarts() {
  local before after
  before="$(processes one)"
  install_on one || return 1
  after="$(processes one)"
  [[ "$before" == "$after" ]] || {
    diff <(echo "$before") <(echo "$after")
    return 1
  }
}

# usage: node_ready NODE
node_ready() {
  [[ "$(kubectl_on one get node "$1" -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}')" == True ]]
}

control_plane_works() {
  [[ "$(kubectl_on one get --raw /readyz)" == ok ]] && node_ready one &&
    kubectl_on one --namespace kube-system rollout status deployment/coredns --timeout=50s
}

# usage: web_pod NODE; its name and its address
web_pod() {
  kubectl_on one get pods --selector=app=web --field-selector="spec.nodeName=$1" \
    -o jsonpath='{range .items[?(@.status.phase=="Running")]}{.metadata.name} {.status.podIP}{end}'
}

# usage: fetch_from NODE URL
fetch_from() {
  local pod
  read -r pod _ < <(web_pod "$1")
  kubectl_on one exec "$pod" -- /bin/web get "$2"
}

# The name of a service goes through CoreDNS, its address through kube-proxy.
services_work() {
  grid_until 30 fetch_from "$1" http://web.default.svc.cluster.local/
}

pods_talk() {
  local address name pair
  grid_until 60 node_web_ready two || return 1
  for pair in 'one two' 'two one'; do
    read -r name address < <(web_pod "${pair#* }")
    [[ "$(fetch_from "${pair% *}" "http://$address/")" == "$name" ]] || return 1
  done
  services_work one && services_work two || return 1
  # kube-proxy stays Ready when it cannot write its rules.
  ! kubectl_on one --namespace kube-system logs --selector=k8s-app=kube-proxy --tail=500 | grep -E 'Sync failed|Failed to execute'
}

node_web_ready() {
  [[ -n "$(web_pod "$1")" ]] && fetch_from "$1" http://127.0.0.1/
}

# usage: images_pinned NODE; what the kubelet's collector sees over CRI
images_pinned() {
  local loose
  loose="$(on "$1" 20 crictl images --output json | node -e '
    const { images } = JSON.parse(require("fs").readFileSync(0, "utf8"));
    const loose = images.filter(({ pinned }) => pinned !== true).map((one) => (one.repo_tags ?? [one.id]).join(" "));
    console.log(images.length === 0 ? "no image at all" : loose.join("\n"));
  ')" || return 1
  [[ -z "$loose" ]] || {
    printf 'not pinned on %s: %s\n' "$1" "$loose"
    return 1
  }
}

setting_changes() {
  local before after
  before="$(on one 20 crictl ps --quiet | sort)"
  install_on one kubernetes-max-pods-per-node=60 || return 1
  after="$(on one 20 crictl ps --quiet | sort)"
  grid_until 30 pods_allowed one 60 || return 1
  # Only the kubelet restarts: containers go on.
  [[ "$before" == "$after" ]]
}

# usage: pods_allowed NODE NUMBER
pods_allowed() {
  [[ "$(kubectl_on one get node "$1" -o jsonpath='{.status.allocatable.pods}')" == "$2" ]]
}

# A node that was reset is clean enough to join again.
reset_and_join() {
  kubectl_on one drain two --ignore-daemonsets --delete-emptydir-data --timeout=50s &&
    kubectl_on one delete node two &&
    on two 300 /root/bundle/tasks.sh reset --yes &&
    on two 20 sh -c 'test ! -e /etc/kubernetes && test ! -e /usr/local/bin/kubelet && ! ip link show cni0' &&
    unpack two &&
    join_on two &&
    pods_talk
}

step 'node one boots' grid_start_node one 1
step 'unpack the bundle' unpack one
step 'install' install_on one
step 'control plane works' control_plane_works
step 'services work' services_work one
step 'second run restarts nothing' nothing_restarts
step 'node two boots' grid_start_node two 2
step 'unpack the bundle' unpack two
step 'join' join_on two
step 'both nodes are ready' node_ready two
step 'pods talk across nodes' pods_talk
step 'images are pinned, one' images_pinned one
step 'images are pinned, two' images_pinned two
step 'a changed setting' setting_changes
step 'reset, and join again' reset_and_join
