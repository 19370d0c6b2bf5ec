# shellcheck shell=bash
# Settings of a cluster change in its file: what its components then have, and settings with which one of them does not run. Sourced by scripts/grid.

# shellcheck source=test/grid/operator.bash
source test/grid/operator.bash
NODES=(one=control-plane two=worker)

# usage: kubelet_has NODE TEXT; in the configuration with which it runs
kubelet_has() {
  [[ "$(kubectl_on one get --raw "/api/v1/nodes/$1/proxy/configz")" == *"$2"* ]]
}

certificate_has() {
  on one 20 openssl x509 -in /etc/kubernetes/pki/apiserver.crt -noout -ext subjectAltName | grep -qF "DNS:$1"
}

GOOD=('maxPods: 77' 'apiServer: { certSANs: [shop.example], extraArgs: [{ name: profiling, value: "false" }] }')
changes_are_named() {
  settings_are "${GOOD[@]}" &&
    is_planned bundle 'one configure (the file has another kubernetes.clusterConfiguration.apiServer, kubernetes.kubeletConfiguration.maxPods)' \
      'two configure (the file has another kubernetes.kubeletConfiguration.maxPods), after configure one'
}

changes_are_applied() {
  apply bundle --yes && kubelet_has one '"maxPods":77' && kubelet_has two '"maxPods":77' &&
    api_server_has one --profiling=false && certificate_has shop.example && control_plane_works
}

# usage: refused TEXT COMMAND…; status other than 0
refused() {
  local text status=0
  text="$("${@:2}" 2>&1)" || status=$?
  printf '%s\nstatus %s\n' "$text" "$status"
  ((status != 0)) && [[ "$text" == *"$1"* ]]
}

# The cluster goes on as it was.
bad_flag_is_refused() {
  settings_are "${GOOD[0]}" "${GOOD[1]/profiling/no-such-flag}" && refused 'unknown flag: --no-such-flag' apply bundle --yes &&
    api_server_has one --profiling=false && control_plane_works
}

bad_kubelet_is_refused() {
  settings_are 'maxPods: -5' "${GOOD[1]}" && refused 'the kubelet does not run with the new settings' apply bundle --yes &&
    kubelet_has one '"maxPods":77' && node_ready one
}

correction_heals() {
  settings_are 'maxPods: 88' "${GOOD[1]/false/true}" && apply bundle --yes && kubelet_has one '"maxPods":88' && kubelet_has two '"maxPods":88' &&
    api_server_has one --profiling=true
}

fixed_setting_is_refused() {
  settings_are 'maxPods: 88' 'networking: { dnsDomain: other.local }' && refused 'stays as it was when the cluster was made' apply bundle --yes &&
    settings_are 'maxPods: 88' "${GOOD[1]/false/true}"
}

step "the operator's machine" operator_machine
step 'node one boots' starts_bare one 1
step 'node two boots' starts_bare two 2
step 'a file' cluster_file "v$GRID_NEWEST" "${NODES[@]}"
step 'apply' apply bundle --yes
step 'pods talk across nodes' pods_talk
step 'changes are named' changes_are_named
step 'changes are applied' changes_are_applied
step 'a second apply changes nothing' nothing_is_left bundle
step 'a flag that a component does not know' bad_flag_is_refused
step 'a kubelet that does not start' bad_kubelet_is_refused
step 'the correction heals' correction_heals
step 'pods talk across nodes' pods_talk
step 'a second apply changes nothing' nothing_is_left bundle
step 'a setting of the cluster for good' fixed_setting_is_refused
step 'nothing is left of it' nothing_is_left bundle
