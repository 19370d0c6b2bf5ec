#!/usr/bin/env bash
# What curlew's add-ons do on a node, written by hand as the documentation of kubeadm has it: for comparison. Runs on a node.
# usage: plain.bash keep NAME          keeps what curlew has installed: programs, units, settings, and images as archives
#        plain.bash empty              an empty containerd, after a reset
#        plain.bash install NAME
#        plain.bash join NAME COMMAND…  the words that kubeadm prints on the first node
#        plain.bash upgrade NAME VERSION first|node
#        plain.bash drain|uncordon NODE
set -euo pipefail
KEPT=/root/plain
# Of version 1 of cgroups.
IGNORED=--ignore-preflight-errors=SystemVerification
export KUBECONFIG=/etc/kubernetes/admin.conf

keep() {
  local image number=0 to="$KEPT/$1"
  mkdir -p "$to/images"
  tar -C / --ignore-failed-read -cf "$to/files.tar" usr/local/bin opt/cni/bin etc/containerd etc/crictl.yaml etc/kubernetes/curlew \
    etc/systemd/system/kubelet.service etc/systemd/system/containerd.service
  touch "$KEPT/names"
  # Images of the version before, which are still there, are no part of an upgrade.
  for image in $(ctr --namespace k8s.io images list --quiet | grep -v '@\|^sha256:' | grep -vxFf "$KEPT/names"); do
    number=$((number + 1))
    echo "$image" >>"$KEPT/names"
    ctr --namespace k8s.io images export --local - "$image" | gzip -1 >"$to/images/$number.tar.gz"
  done
  ((number > 0))
  [[ -e "$KUBECONFIG" ]] || return 0
  # What was applied, without what the cluster has added.
  kubectl apply view-last-applied --namespace kube-flannel --output json namespace/kube-flannel serviceaccount/flannel \
    clusterrole/flannel clusterrolebinding/flannel configmap/kube-flannel daemonset/kube-flannel >"$to/flannel.json"
  kubectl apply view-last-applied --output json daemonset/web service/web >"$to/web.json"
}

empty() {
  systemctl disable --now containerd 2>/dev/null || true
  find /var/lib/containerd -mindepth 1 -delete
}

# usage: host NAME; programs, services, images
host() {
  tar -C / --no-same-owner -xf "$KEPT/$1/files.tar"
  # Old state of curlew is no part of it, besides the configuration for kubeadm.
  systemctl daemon-reload
  systemctl enable --quiet --now containerd
  systemctl enable --quiet kubelet
  until ctr version >/dev/null 2>&1; do sleep 0.1; done
  images "$1"
}

images() {
  local file
  for file in "$KEPT/$1"/images/*.tar.gz; do
    gunzip -c "$file" | ctr --namespace k8s.io images import --local - >/dev/null
  done
}

node_is_ready() {
  kubectl wait --for=condition=Ready "node/$1" --timeout=120s
}

case "$1" in
  keep | empty) "$@" ;;
  install)
    host "$2"
    kubeadm init --config /etc/kubernetes/curlew/init.yaml --skip-token-print "$IGNORED"
    kubectl taint nodes --all node-role.kubernetes.io/control-plane- || true
    kubectl apply -f "$KEPT/$2/flannel.json"
    kubectl --namespace kube-flannel rollout status daemonset --timeout=120s
    node_is_ready "$(hostname)"
    kubectl --namespace kube-system rollout status deployment/coredns --timeout=120s
    kubectl apply -f "$KEPT/$2/web.json"
    kubectl rollout status daemonset/web --timeout=120s
    ;;
  join)
    host "$2"
    "${@:3}" "$IGNORED"
    KUBECONFIG=/etc/kubernetes/kubelet.conf node_is_ready "$(hostname)"
    ;;
  drain)
    # The API server of an only control plane is away for moments after its upgrade.
    for _ in 1 2 3 4 5; do
      if kubectl drain "$2" --ignore-daemonsets --delete-emptydir-data --timeout=300s; then exit 0; fi
      sleep 1
    done
    exit 1
    ;;
  uncordon) kubectl uncordon "$2" ;;
  upgrade)
    images "$2"
    tar -C / --no-same-owner -xf "$KEPT/$2/files.tar" usr/local/bin/kubeadm
    if [[ "$4" == first ]]; then kubeadm upgrade apply "$3" --yes "$IGNORED"; else kubeadm upgrade node "$IGNORED"; fi
    systemctl stop kubelet
    tar -C / --no-same-owner -xf "$KEPT/$2/files.tar" usr/local/bin opt/cni/bin
    systemctl daemon-reload
    systemctl start kubelet
    # The Node still has the condition of the kubelet before.
    KUBECONFIG=/etc/kubernetes/kubelet.conf kubectl wait --for=jsonpath='{.status.nodeInfo.kubeletVersion}'="$3" "node/$(hostname)" --timeout=120s
    KUBECONFIG=/etc/kubernetes/kubelet.conf node_is_ready "$(hostname)"
    ;;
esac
