# shellcheck shell=bash
# The add-ons of a cluster that are for what runs on it, tried by use: volumes, metrics, Ingresses. Sourced by smoke.bash, after two nodes are there.

claim_is_written() {
  grid_docker 20 cp "$PWD/test/grid/useful.yaml" one:/root/useful.yaml && kubectl_on one apply -f /root/useful.yaml &&
    grid_until 60 data_is_there
}

data_is_there() {
  [[ "$(kubectl_on one get persistentvolumeclaim kept -o jsonpath='{.status.phase} {.spec.storageClassName}')" == 'Bound local-path' &&
    "$(kubectl_on one exec kept -- busybox cat /data/file)" == kept ]]
}

top_shows_nodes() {
  local text
  text="$(kubectl_on one top nodes --no-headers && kubectl_on one top pods --all-namespaces --no-headers)" || return 1
  [[ "$text" =~ one\ +[0-9]+m.*two\ +[0-9]+m && "$text" == *etcd-one* ]] && printf '%s\n' "$text"
}

# usage: ingress_answers NODE…; from the other one, by HTTP and by HTTPS, and only for the host of the Ingress
ingress_answers() {
  local node address from
  for node in "$@"; do
    from=one address="$GRID_NETWORK.12"
    if [[ "$node" == one ]]; then from=two address="$GRID_NETWORK.11"; fi
    [[ "$(on "$from" 20 curl --silent --max-time 5 --header 'Host: web.example' "http://$address/")" == web-* &&
      "$(on "$from" 20 curl --silent --max-time 5 --insecure --connect-to "web.example:443:$address:443" https://web.example/)" == web-* &&
      "$(on "$from" 20 curl --silent --max-time 5 --output /dev/null --write-out '%{http_code}' "http://$address/")" == 404 ]] || return 1
  done
}

# What they may not do shows in their logs only.
nothing_is_forbidden() {
  local log
  log="$(kubectl_on one --namespace kube-system logs deployment/metrics-server --tail=500 &&
    kubectl_on one --namespace local-path-storage logs deployment/local-path-provisioner --tail=500 &&
    kubectl_on one --namespace traefik logs daemonset/traefik --tail=500)" || return 1
  ! grep -iE 'forbidden|unauthorized|cannot (get|list|watch)' <<<"$log"
}

# usage: uninstall_on NODE ADDON; prints what it prints
uninstall_on() {
  on "$1" 300 /root/bundle/tasks.sh uninstall "$2" --yes 2>&1
}

# An Ingress whose server is removed has no answer; everything else goes on, and the next run brings it back.
traefik_goes_and_returns() {
  local text
  text="$(uninstall_on one traefik && uninstall_on two traefik)" || return 1
  printf '%s\n' "$text"
  [[ "$text" != *'leaves files and services'* ]] || return 1
  if on two 20 curl --silent --max-time 5 --output /dev/null "http://$GRID_NETWORK.11/"; then return 1; fi
  [[ "$(kubectl_on one get ingress web -o name)" == ingress.networking.k8s.io/web ]] || return 1
  if kubectl_on one get namespace traefik 2>/dev/null; then return 1; fi
  control_plane_works && services_work two && data_is_there && top_shows_nodes || return 1
  # The files of what is removed are gone: an install had moved them out of the bundle's folder.
  unpack one && install_on one && grid_until 60 ingress_answers one two
}

# Volumes and their data outlive their provisioner; with it, the folder of a claim goes when the claim does.
volumes_are_kept() {
  local text volume folder node
  volume="$(kubectl_on one get persistentvolumeclaim kept -o jsonpath='{.spec.volumeName}')"
  text="$(uninstall_on one local-path)" || return 1
  printf '%s\n' "$text"
  [[ "$text" == *"these volumes and their data in /var/lib/local-path stay: $volume"* ]] && data_is_there || return 1
  uninstall_on two local-path && unpack one && install_on one && data_is_there || return 1
  node="$(kubectl_on one get pod kept -o jsonpath='{.spec.nodeName}')"
  folder="$(kubectl_on one get persistentvolume "$volume" -o jsonpath='{.spec.hostPath.path}{.spec.local.path}')"
  on "$node" 20 test -s "$folder/file" && kubectl_on one delete pod/kept persistentvolumeclaim/kept && grid_until 60 volume_is_gone "$volume" &&
    on "$node" 20 test ! -e "$folder"
}

# usage: volume_is_gone VOLUME
volume_is_gone() {
  [[ -z "$(kubectl_on one get persistentvolume "$1" --ignore-not-found -o name)" ]]
}

step 'a pod writes on a volume' claim_is_written
step 'kubectl top shows both nodes' grid_until 90 top_shows_nodes
step 'an Ingress answers at each node' grid_until 60 ingress_answers one two
step 'the add-ons may do what they do' nothing_is_forbidden
step 'a run with these add-ons restarts nothing' nothing_restarts
step 'traefik is removed, and installed again' traefik_goes_and_returns
step 'volumes outlive local-path' volumes_are_kept
