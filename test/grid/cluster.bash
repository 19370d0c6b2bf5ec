# shellcheck shell=bash
# What scenarios of the grid do with nodes. A step returns after its first failure by itself: `set -e` has no effect there.

# usage: unpack NODE [NAME]; the bundle, or another one
unpack() {
  on "$1" 240 sh -c "rm -rf /root/bundle && mkdir /root/bundle && tar -xzf /media/${2:-bundle}.tar.gz -C /root/bundle"
}

# A container has the clock of the machine and no service for it, and the folder of images is small on purpose.
IGNORE=(--ignore 'NTP Status' --ignore 'Ephemeral Disk Usage /var/lib/containerd')

# usage: balancer_is NODE; by the address GRID_BALANCER, other control planes reach all of them
balancer_is() {
  on "$1" 20 ip address add "$GRID_BALANCER/24" dev eth0
}

# usage: install_on NODE [FLAG…]
install_on() {
  on "$1" 600 /root/bundle/install.sh "${IGNORE[@]}" airgap installer-spec-file=/media/node-settings.yaml "${@:2}"
}

# usage: join_file NODE [OPTION…]; a new file for the node, with the settings of containers
join_file() {
  on one 60 /root/bundle/tasks.sh join-token -o /root/join.yaml "${@:2}" &&
    (umask 077 && on one 20 cat /root/join.yaml >"$GRID/join.yaml") &&
    [[ "$(on one 20 stat -c %a /root/join.yaml)" == 600 ]] &&
    grid_docker 20 cp "$GRID/join.yaml" "$1:/root/join.yaml" &&
    grid_docker 20 cp "$PWD/test/grid/join-settings.yaml" "$1:/root/join-settings.yaml" &&
    rm "$GRID/join.yaml" &&
    on "$1" 60 sh -c 'cd /root/bundle && umask 077 && ./tasks.sh installer merge /root/join-settings.yaml /root/join.yaml >/root/merged.yaml'
}

# usage: join_on NODE [WORD…]; with the file of join_file
join_on() {
  on "$1" 600 /root/bundle/join.sh "${IGNORE[@]}" airgap installer-spec-file=/root/merged.yaml "${@:2}"
}

# usage: upgrade_on NODE [WORD…]
upgrade_on() {
  local settings=/media/node-settings.yaml
  if [[ "$1" == two ]]; then settings=/root/join-settings.yaml; fi
  on "$1" 900 /root/bundle/upgrade.sh "${IGNORE[@]}" airgap "installer-spec-file=$settings" "${@:2}"
}

# usage: processes NODE; what a run that has nothing to do must not restart
processes() {
  on "$1" 20 systemctl show --property MainPID containerd kubelet
  on "$1" 20 crictl ps --quiet | sort
}

# A pod that is on its way out takes its containers with it, whatever runs meanwhile.
no_pod_is_ending() {
  local times
  times="$(kubectl_on one get pods --all-namespaces -o jsonpath='{.items[*].metadata.deletionTimestamp}')" && [[ -z "$times" ]]
}

nothing_restarts() {
  local before after
  grid_until 90 no_pod_is_ending || return 1
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

# usage: node_is_lost NODE; its kubelet has not been heard for a while
node_is_lost() {
  [[ "$(kubectl_on one get node "$1" -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}')" == Unknown ]]
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
  # The pod of a node that was away for a moment may be replaced once more.
  grid_until 60 pods_answer || return 1
  services_work one && services_work two || return 1
  # kube-proxy stays Ready when it cannot write its rules.
  ! kubectl_on one --namespace kube-system logs --selector=k8s-app=kube-proxy --tail=500 | grep -E 'Sync failed|Failed to execute'
}

pods_answer() {
  local address name pair
  node_web_ready two || return 1
  for pair in 'one two' 'two one'; do
    read -r name address < <(web_pod "${pair#* }")
    [[ "$(fetch_from "${pair% *}" "http://$address/")" == "$name" ]] || return 1
  done
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

# usage: images_fill NODE; a fifth of the disk stays free: with less, the kubelet would say for five minutes that its disk has pressure
images_fill() {
  # shellcheck disable=SC2016
  on "$1" 20 sh -c 'mount -o remount,size=$(($(df -k --output=used /var/lib/containerd | tail -n 1) * 5 / 4))k /var/lib/containerd'
}

# usage: images_have_room NODE; again
images_have_room() {
  on "$1" 20 mount -o "remount,size=$GRID_IMAGES_SIZE" /var/lib/containerd
}

# usage: killed_at NODE TEXT COMMAND…; kill -9 of the command on the node, with all its processes, when it prints this
killed_at() {
  # shellcheck disable=SC2016
  on "$1" 300 bash -c '
    text="$1"; shift
    setsid "$@" >/run/killed.log 2>&1 &
    until grep -q "$text" /run/killed.log; do kill -0 $! || exit 1; sleep 0.02; done
    kill -9 -- -$! && ! wait $!' killed "${@:2}"
}

# usage: versions_are VERSION-OF-ONE VERSION-OF-TWO; and both nodes take pods
versions_are() {
  local found
  found="$(kubectl_on one get nodes -o jsonpath='{range .items[*]}{.metadata.name} {.status.nodeInfo.kubeletVersion} {.spec.unschedulable}{"\n"}{end}')"
  printf '%s\n' "$found"
  [[ "$found" == "one $1 "$'\n'"two $2 " ]]
}

# A pod ends only after kube-proxy knows that it does.
served_pods() {
  local patch='{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":30,"containers":[{"name":"web","lifecycle":{"preStop":{"sleep":{"seconds":10}}}}]}}}}'
  grid_docker 20 cp "$PWD/test/grid/moved.yaml" one:/root/moved.yaml &&
    kubectl_on one apply -f /root/moved.yaml &&
    kubectl_on one patch deployment moved --patch "$patch" &&
    kubectl_on one rollout status deployment/moved --timeout=55s &&
    kubectl_on one expose deployment moved --port=80 &&
    kubectl_on one create poddisruptionbudget moved --selector=app=moved --min-available=1
}

# From the network of node two, until the file /run/probe is gone; each answer and each failure is a line.
start_probe() {
  local address
  address="$(kubectl_on one get service moved -o jsonpath='{.spec.clusterIP}')"
  # kube-proxy has not heard of a new service at once.
  grid_until 30 on two 20 curl --silent --fail --max-time 5 "http://$address/" && on two 20 touch /run/probe &&
    grid_docker 20 exec --detach two sh -c "while test -e /run/probe; do
      date +%T; curl --silent --show-error --fail --max-time 5 http://$address/ || echo FAILED; echo; sleep 0.2; done >/var/log/probe 2>&1"
}

probe_never_failed() {
  local log="$GRID/logs/two/probe"
  on two 20 rm /run/probe
  grep -c moved- "$log"
  if grep -B 2 FAILED "$log"; then return 1; fi
  (($(grep -c moved- "$log") > 50))
}
