# shellcheck shell=bash
# The components of a control plane restart, for new certificates and for a snapshot of etcd, beside pods that run the same programs; and each
# command in the cases in which it fails. Sourced by scripts/grid.

# usage: fails TEXT COMMAND…; on node one, with a text that is as long as a screen at most
fails() {
  local text
  if text="$(on one 500 "${@:2}" 2>&1)"; then return 1; fi
  printf '%s\n' "$text"
  [[ "$text" == *"$1"* && "$(wc -l <<<"$text")" -lt 24 && "$text" != *goroutine* ]]
}

# A workload, and a pod whose programs have the names of components.
pods_run() {
  local image
  image="$(on one 10 sed -n 's/^ *image: //p' /etc/kubernetes/manifests/etcd.yaml)"
  sed "s,IMAGE,$image," test/grid/foreign.yaml >"$GRID/foreign.yaml"
  grid_docker 20 cp "$GRID/foreign.yaml" one:/root/foreign.yaml &&
    grid_docker 20 cp "$PWD/test/grid/moved.yaml" one:/root/moved.yaml &&
    on one 10 mkdir /root/foreign && grid_docker 20 cp "$(grid_program etcd)" one:/root/foreign/kube-apiserver &&
    kubectl_on one apply -f /root/foreign.yaml -f /root/moved.yaml &&
    kubectl_on one rollout status deployment/moved --timeout=55s &&
    grid_until 60 foreign_runs && on one 10 pgrep -f '^etcd --name=foreign' && on one 10 pgrep -f '^kube-apiserver --name=foreign'
}

# Also without a restart.
foreign_runs() {
  [[ "$(kubectl_on one --namespace kube-system get pod etcd-foreign \
    -o jsonpath='{.status.phase} {.status.containerStatuses[*].restartCount}')" == 'Running 0 0' ]]
}

# What was changed since the snapshot is gone, and what was there before is back.
snapshot_is_restored() {
  kubectl_on one create configmap before &&
    on one 60 /root/bundle/tasks.sh etcd snapshot /root/kept.db &&
    [[ "$(on one 20 stat -c %a /root/kept.db)" == 600 ]] &&
    kubectl_on one delete configmap before && kubectl_on one create configmap after || return 1
  if on one 60 /root/bundle/tasks.sh etcd restore /root/kept.db; then return 1; fi
  on one 300 /root/bundle/tasks.sh etcd restore /root/kept.db --confirm one &&
    grid_until 120 control_plane_works &&
    [[ "$(kubectl_on one get configmaps before after --ignore-not-found --output=name)" == configmap/before ]] &&
    kubectl_on one rollout restart deployment/moved && kubectl_on one rollout status deployment/moved --timeout=55s && foreign_runs
}

bootstrap_tokens() {
  kubectl_on one --namespace kube-system get secrets --field-selector=type=bootstrap.kubernetes.io/token --output=name
}

# Without an address of all control planes there are no certificates for another one. Neither a file nor a token is left.
join_files_that_fail() {
  local before
  before="$(bootstrap_tokens)" || return 1
  fails 'the cluster has no certificates for another control plane' /root/bundle/tasks.sh join-token --control-plane -o /root/join.yaml &&
    fails '/root/none' /root/bundle/tasks.sh join-token -o /root/none/join.yaml &&
    on one 10 test ! -e /root/join.yaml && [[ "$(bootstrap_tokens)" == "$before" ]]
}

# usage: serial_of FILE; of a certificate of node one
serial_of() {
  on one 10 openssl x509 -noout -serial -in "/etc/kubernetes/pki/$1"
}

# That of the running API server.
served_serial() {
  on one 10 sh -c 'openssl s_client -connect 127.0.0.1:6443 </dev/null 2>/dev/null | openssl x509 -noout -serial'
}

# The install has started it. It renews nothing that is valid for long, and leaves its result to status.
timer_renews_certificates() {
  local before unit=/etc/systemd/system/curlew-certificates.service
  before="$(serial_of apiserver.crt)"
  on one 10 systemctl is-active curlew-certificates.timer &&
    on one 60 systemctl start curlew-certificates.service && [[ "$(serial_of apiserver.crt)" == "$before" ]] &&
    on one 10 sed -i s/--within=720h/--within=9000h/ "$unit" && on one 10 systemctl daemon-reload &&
    on one 400 systemctl start curlew-certificates.service && [[ "$(serial_of apiserver.crt)" != "$before" ]] &&
    grid_until 60 control_plane_works && [[ "$(served_serial)" == "$(serial_of apiserver.crt)" ]] &&
    on one 60 /root/bundle/tasks.sh status --prometheus /root/curlew.prom &&
    on one 10 grep -x 'curlew_certificate_renewal_success 1' /root/curlew.prom
}

# The components have the new certificates, and pods go on.
certificates_are_renewed() {
  local before pods
  before="$(serial_of apiserver.crt)$(serial_of etcd/server.crt)"
  pods="$(kubectl_on one get pods --selector=app=moved --output=jsonpath='{.items[*].metadata.uid}')"
  on one 60 /root/bundle/tasks.sh certificates renew --dry-run &&
    [[ "$before" == "$(serial_of apiserver.crt)$(serial_of etcd/server.crt)" ]] &&
    on one 400 /root/bundle/tasks.sh certificates renew && grid_until 60 control_plane_works &&
    [[ "$before" != "$(serial_of apiserver.crt)"* && "$before" != *"$(serial_of etcd/server.crt)" ]] &&
    [[ "$(served_serial)" == "$(serial_of apiserver.crt)" ]] &&
    [[ "$pods" == "$(kubectl_on one get pods --selector=app=moved --output=jsonpath='{.items[*].metadata.uid}')" ]] && foreign_runs
}

# Its image is missing: the kubelet has a static pod, but no container of it.
renewal_says_where_it_stops() {
  local file=/etc/kubernetes/manifests/kube-scheduler.yaml
  on one 10 sed -i.kept 's,image: .*,image: registry.example/missing:1,' "$file" && on one 10 mv "$file.kept" /root/kube-scheduler.yaml || return 1
  fails 'with the new ones only: etcd, kube-apiserver, kube-controller-manager.' /root/bundle/tasks.sh certificates renew &&
    [[ "$(served_serial)" == "$(serial_of apiserver.crt)" ]] && on one 10 test -e "$file" || return 1
  on one 10 mv /root/kube-scheduler.yaml "$file" && grid_until 120 component_runs kube-scheduler
}

# usage: component_runs NAME
component_runs() {
  [[ "$(kubectl_on one --namespace kube-system get pod "$1-one" -o jsonpath='{.status.containerStatuses[*].ready}')" == true ]]
}

# The data as etcd sends it, with a digest that fits, but with other pages in its middle.
damaged_snapshot_changes_nothing() {
  local before
  # shellcheck disable=SC2016
  on one 60 sh -c 'cd /root && tar -xf kept.db snapshot/etcd.db && size=$(($(stat -c %s snapshot/etcd.db) - 32)) &&
    head -c "$size" snapshot/etcd.db >bad.db &&
    dd if=/dev/urandom of=bad.db bs=4096 seek=$((size / 8192)) count=$((size / 32768)) conv=notrunc status=none &&
    openssl dgst -sha256 -binary bad.db >digest && cat digest >>bad.db && head -c 20000 snapshot/etcd.db >short.db' || return 1
  before="$(processes one)"
  fails '/root/short.db is not a whole snapshot' /root/bundle/tasks.sh etcd restore /root/short.db --confirm one &&
    fails 'cannot restore /root/bad.db, and nothing is changed' /root/bundle/tasks.sh etcd restore /root/bad.db --confirm one &&
    [[ "$(processes one)" == "$before" ]] && control_plane_works && on one 10 test ! -e /var/lib/etcd/restored
}

snapshots_that_fail() {
  on one 10 sh -c 'mkdir /mnt/small && mount -t tmpfs -o size=1m none /mnt/small' || return 1
  fails 'already exists' /root/bundle/tasks.sh etcd snapshot /root/kept.db &&
    fails '/mnt/none' /root/bundle/tasks.sh etcd snapshot /mnt/none/new.db &&
    fails '/mnt/small' /root/bundle/tasks.sh etcd snapshot /mnt/small/new.db &&
    [[ -z "$(on one 10 ls -A /mnt/small)" ]]
}

# The kubelet does not run, so nothing ends.
stopped_kubelet_is_named() {
  on one 20 systemctl stop kubelet || return 1
  fails 'the control plane does not end' /root/bundle/tasks.sh etcd restore /root/kept.db --confirm one &&
    [[ "$(on one 10 sh -c 'ls /etc/kubernetes/manifests | wc -l; ls -A /etc/kubernetes/curlew/manifests')" == 4 ]] || return 1
  on one 20 systemctl start kubelet && grid_until 120 control_plane_works
}

step 'node one boots' grid_start_node one 1
step 'unpack the bundle' unpack one
step 'install' install_on one
step 'pods run programs with the names of components' pods_run
step 'files for a join that fail' join_files_that_fail
step 'certificates are renewed' certificates_are_renewed
step 'a timer renews certificates' timer_renews_certificates
step 'a renewal says where it stops' renewal_says_where_it_stops
step 'a snapshot is restored' snapshot_is_restored
step 'snapshots that fail' snapshots_that_fail
step 'a damaged snapshot changes nothing' damaged_snapshot_changes_nothing
step 'a stopped kubelet is named' stopped_kubelet_is_named
