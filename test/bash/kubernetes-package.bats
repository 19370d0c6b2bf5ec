#!/usr/bin/env bats
# The packages of a cluster: kubernetes, containerd and flannel, from their settings to their removal.
# Functions and variables are used by what is tested.
# shellcheck disable=SC2016,SC2034,SC2317
load setup

setup_file() {
  export ROOT="$BATS_TEST_DIRNAME/../.." NEWEST CONTAINERD FLANNEL
  NEWEST="$(newest packages/kubernetes)"
  CONTAINERD="addons/containerd/$(newest addons/containerd)" FLANNEL="addons/flannel/$(newest addons/flannel)"
}

# usage: newest FOLDER; the newest version that is there
newest() {
  find "$ROOT/$1" -maxdepth 1 -name '[0-9]*' -printf '%f\n' | sort -V | tail -n 1
}

prepare() {
  DIR="$PWD"
  KUBERNETES_VERSION="$NEWEST" CONTAINERD_VERSION="${CONTAINERD##*/}" FLANNEL_VERSION="${FLANNEL##*/}"
  PRIVATE_ADDRESS=10.0.0.1 POD_CIDR=10.32.0.0/20 SERVICE_CIDR=10.96.0.0/22 HOSTNAME=node1
  mkdir -p kustomize/kubeadm/init-patches packages addons
  ln -s "$(realpath "$ROOT")/packages/kubernetes" packages/kubernetes
  ln -s "$(realpath "$ROOT")/addons/containerd" "$(realpath "$ROOT")/addons/flannel" addons/
  local file
  for file in "packages/kubernetes/$NEWEST" "$CONTAINERD" "$FLANNEL"; do
    # shellcheck source=/dev/null
    source "$file/install.sh"
  done
  KUBERNETES_STATE="$PWD/state"
  # Of the machine that runs the tests.
  kubernetes_require_kernel() { :; }
  sleep() { :; }
  timeout() { "${@:2}"; }
  kubeadm() { :; }
  # It has no pods.
  ctr() { :; }
  containerd() { echo "containerd github.com/containerd/containerd/v2 v$CONTAINERD_VERSION abc"; }
  # kustomize as far as it is needed: shows what it was given.
  kubectl() { if [[ "$1" == kustomize ]]; then cat "$2"/kustomization.yaml "$2"/*-*.yaml "$2"/init.yaml; fi; }
}

@test "kubeadm is configured with the networks, the name and the address of this node" {
  prepare
  kubernetes_configure init
  grep -qx "kubernetesVersion: v$NEWEST" state/new.yaml
  grep -qx '  podSubnet: 10.32.0.0/20' state/new.yaml
  grep -qx '  name: node1' state/new.yaml
  grep -qx "  advertiseAddress: '10.0.0.1'" state/new.yaml
  [ "$(stat -c %a state/new.yaml)" = 600 ]
}

@test "a name with quotes stays a text" {
  prepare
  KUBERNETES_CLUSTER_NAME="it's: [x]"
  kubernetes_configure init
  grep -qx "clusterName: 'it''s: \[x\]'" state/new.yaml
}

@test "settings of kURL become fields of kubeadm's configuration" {
  prepare
  KUBERNETES_MAX_PODS_PER_NODE=60 CONTAINER_LOG_MAX_SIZE=10Mi SYSTEM_RESERVED='{"cpu": "200m"}'
  [ "$(kubernetes_kubelet_settings)" = "$(lines 'maxPods: 60' 'containerLogMaxSize: 10Mi' 'systemReserved: {"cpu": "200m"}')" ]
  [[ "$(kubernetes_cluster_settings)" == *'value: 80-60000' ]]
  USE_STANDARD_PORT_RANGE=1 LOAD_BALANCER_ADDRESS=lb API_SERVICE_ADDRESS=lb:6443
  [[ "$(kubernetes_cluster_settings)" == "controlPlaneEndpoint: 'lb:6443'"*'value: 30000-32767' ]]
  NODE_LABELS=a=b,c=d
  [[ "$(kubernetes_node_settings)" == *"name: node-ip"*"value: '10.0.0.1'"*"value: 'a=b,c=d'" ]]
}

@test "what Kubernetes itself needs grows slower than the machine" {
  prepare
  [ "$(kubernetes_reserved 1 2048 | head -n 3)" = "$(lines 'kubeReserved:' '  cpu: 60m' '  memory: 512Mi')" ]
  [ "$(kubernetes_reserved 4 16384 | head -n 3)" = "$(lines 'kubeReserved:' '  cpu: 80m' '  memory: 2662Mi')" ]
}

@test "the kubelet removes no image where containerd cannot pin them" {
  prepare
  run ! grep -q imageGC <<<"$(kubernetes_kubelet_settings)"
  containerd() { echo 'containerd containerd.io 1.7.20 abc'; }
  [ "$(kubernetes_kubelet_settings)" = 'imageGCHighThresholdPercent: 100' ]
  containerd() { echo 'containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1'; }
  [ "$(kubernetes_kubelet_settings)" = 'imageGCHighThresholdPercent: 100' ]
}

@test "patches apply in order: settings, add-ons, the operator's own" {
  prepare
  KUBERNETES_KUBELET_CONFIGURATION='maxPods: 70'
  printf 'kind: KubeletConfiguration\nmetadata:\n  name: any\nmaxPods: 50\n' >kustomize/kubeadm/init-patches/tuning.yaml
  kubernetes_configure init
  [ "$(grep -A2 path: kustomize/kubeadm/init/kustomization.yaml | grep path: | tr -d '\n')" = \
    '- path: setting-cluster.yaml- path: setting-kubelet.yaml- path: setting-node.yaml- path: addon-tuning.yaml- path: operator-KubeletConfiguration.yaml' ]
  grep -qx 'maxPods: 70' kustomize/kubeadm/init/operator-KubeletConfiguration.yaml
}

# usage: with_kustomize; the real one, where its program is built
with_kustomize() {
  KUBECTL="$(printf '%s\n' "$ROOT"/.curlew/tools/kubernetes-*/kubectl | tail -n 1)"
  if [[ ! -x "$KUBECTL" ]]; then skip 'no kubectl in .curlew/tools'; fi
  kubectl() { "$KUBECTL" "$@"; }
}

@test "arguments of the settings stay beside those of the operator, whose own come first" {
  prepare
  with_kustomize
  NODE_LABELS=disk=ssd KUBERNETES_NODE_TAINTS="gpu=it's:NoSchedule"
  KUBERNETES_CLUSTER_CONFIGURATION="$(lines '# twice' --- 'apiVersion: kubeadm.k8s.io/v1beta4' 'kind: ClusterConfiguration' 'apiServer:' '  extraArgs:' \
    '  - { name: service-account-issuer, value: one }' '  - { name: service-account-issuer, value: two }')"
  KUBERNETES_INIT_CONFIGURATION='{ nodeRegistration: { kubeletExtraArgs: [{ name: node-ip, value: 10.0.0.9 }] } }'
  KUBERNETES_KUBELET_CONFIGURATION='{}'
  kubernetes_configure init
  [ "$(awk '$2 == "name:" { name = $3 } $1 == "value:" { print name "=" $2 }' state/new.yaml)" = \
    "$(lines service-account-issuer=one service-account-issuer=two service-node-port-range=80-60000 node-ip=10.0.0.9 \
      node-labels=disk=ssd "register-with-taints=gpu=it's:NoSchedule")" ]
}

@test "a patch with extraArgs of an earlier configuration is refused" {
  prepare
  printf 'apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\nmetadata:\n  name: x\napiServer:\n  extraArgs:\n    v: "4"\n' \
    >kustomize/kubeadm/init-patches/old.yaml
  run kubernetes_configure init
  [ "$status" -eq 1 ]
  [[ "$output" == *'the patch old.yaml has extraArgs of kubeadm.k8s.io/v1beta3'* ]]
}

@test "a configuration that cannot be merged stops the run" {
  prepare
  kubectl() { return 1; }
  run kubernetes_configure init
  [ "$status" -eq 1 ]
  [[ "$output" == *"cannot merge kubeadm's configuration"* ]]
}

@test "joining needs the address, the token and the hash" {
  prepare
  kubernetes_require_host() { :; }
  kubernetes_has_joined() { return 1; }
  run kubernetes_join
  [ "$status" -eq 1 ]
  [[ "$output" == *'masterAddress is not set'* ]]
  KUBERNETES_MASTER_ADDR=10.0.0.1:6443 KUBEADM_TOKEN=abcdef.0123456789abcdef
  run kubernetes_join
  [ "$status" -eq 1 ]
  [[ "$output" == *'kubeadmTokenCAHash is not set'* ]]
}

@test "an old version, and several control planes without an address are refused before anything changes" {
  prepare
  kubernetes_pre_init
  HA_CLUSTER=1
  run kubernetes_pre_init
  [[ "$status" -eq 1 && "$output" == *loadBalancerAddress* ]]
  HA_CLUSTER=''
  PRIVATE_ADDRESS=''
  run kubernetes_pre_init
  [[ "$status" -eq 1 && "$output" == *privateAddress* ]]
  KUBERNETES_VERSION=1.30.1
  run kubernetes_pre_init
  [[ "$status" -eq 1 && "$output" == *'1.31 or newer'* ]]
}

@test "a machine of another cluster is not reset" {
  prepare
  kubeadm() { echo "kubeadm $*" >>calls; }
  mkdir state
  kubernetes_begin
  [ ! -e calls ]
  [ -e state/attempt ]
  # An attempt of ours that was killed is.
  run kubernetes_begin
  [ "$status" -eq 0 ]
  grep -q '^kubeadm reset --force' calls
}

# Only the paths differ: what hooks read of the machine is below the test's folder.
own_machine() {
  prepare
  local file
  for file in "packages/kubernetes/$NEWEST" "$CONTAINERD" "$FLANNEL"; do
    # shellcheck source=/dev/null
    source <(sed -E "s,(/etc/(kubernetes|containerd|NetworkManager|machine-id)|/sys/class/dmi|/var/lib/etcd),$PWD\\1,g" "$file/install.sh")
  done
  mkdir -p etc/kubernetes/curlew etc/kubernetes/manifests etc/containerd var/lib/etcd
  kubernetes_require_kernel() { :; }
  containerd_reads() { :; }
  systemctl() { :; }
  kubeadm() { echo "kubeadm $*" >>calls; }
  ip() { echo "ip $*" >>links; }
}

# usage: strict FUNCTION; as hooks are run: a command that fails ends them, which bats' run would not let it
strict() {
  {
    declare -p DIR HOSTNAME "${!KUBERNETES_@}" "${!CONTAINERD_@}" "${!FLANNEL_@}" "${!LOAD_@}" 2>/dev/null || true
    declare -f
    echo '"$@"'
  } >strict.sh
  bash -e strict.sh "$@"
}

# usage: running_service; a service whose program can be replaced while it runs, as the file `pid` says
running_service() {
  cp "$(type -P sleep)" program
  ./program 60 >/dev/null 2>&1 3>&- &
  echo "$!" >pid
  until [[ "$(readlink "/proc/$!/exe")" == "$PWD/program" ]]; do command sleep 0.05; done
  systemctl() { if [[ "$*" == 'show --property MainPID '* ]]; then echo "MainPID=$(cat pid)"; else echo "systemctl $*" >>calls; fi; }
}

replace_program() {
  cp program new
  mv -f new program
}

@test "an attempt that was not finished a day ago is not reset while etcd has data" {
  own_machine
  touch -d '2 days ago' etc/kubernetes/curlew/attempt
  mkdir var/lib/etcd/member
  run kubernetes_begin
  [[ "$status" -eq 1 && "$output" == *'more than a day ago'* ]]
  [ ! -e calls ]
  rmdir var/lib/etcd/member
  kubernetes_begin
  grep -q '^kubeadm reset --force' calls
  # Each attempt counts from its own beginning.
  mkdir var/lib/etcd/member
  kubernetes_begin
}

@test "a control plane that starts after a power cut is waited for, and is complete when kubeadm's last steps are done" {
  own_machine
  touch etc/kubernetes/curlew/attempt etc/kubernetes/manifests/kube-apiserver.yaml
  kubernetes_api_answers() { echo try >>tries && [ "$(wc -l <tries)" -gt 3 ]; }
  kubectl() { case "$*" in *labels*) cat labels ;; esac; }
  echo '{"kubernetes.io/os":"linux"}' >labels
  run kubernetes_has_control_plane
  [[ "$status" -eq 1 && -e etc/kubernetes/curlew/attempt ]]
  echo '{"node-role.kubernetes.io/control-plane":""}' >labels
  kubernetes_has_control_plane
  [ ! -e etc/kubernetes/curlew/attempt ]
}

@test "a machine with files of another cluster is refused, and nothing of it changes" {
  own_machine
  for file in kubelet.conf admin.conf; do
    echo theirs >"etc/kubernetes/$file"
    run kubernetes_begin
    [[ "$status" -eq 1 && "$output" == *'has files of another cluster'*'./tasks.sh reset or kubeadm reset first'* ]]
    rm "etc/kubernetes/$file"
  done
  [[ ! -e calls && ! -e etc/kubernetes/curlew/attempt ]]
}

@test "a run ends once the node is ready, and says what may be missing if it does not get ready" {
  prepare
  kubectl() {
    if [[ "$*" == *describe* ]]; then
      echo described
    else
      echo try >>tries
      if (($(wc -l <tries) > $(cat after))); then echo True; else echo False; fi
    fi
  }
  echo 3 >after
  kubernetes_wait_until_ready conf
  [ "$(wc -l <tries)" -eq 4 ]
  echo 1000 >after
  run kubernetes_wait_until_ready conf
  [[ "$status" -eq 1 && "$output" == *described*'node1 is not ready after 5 minutes: False. See journalctl'*'./tasks.sh load-images'* ]]
}

# A control plane whose join was cut. The file `found` is what the API server says of the node with its name.
cut_join() {
  own_machine
  MASTER=1
  mkdir -p sys/class/dmi/id
  echo a1 >etc/machine-id
  echo AB-1 >sys/class/dmi/id/product_uuid
  touch etc/kubernetes/curlew/attempt
  echo secret >etc/kubernetes/admin.conf
  kubectl() {
    echo "kubectl $*" >>calls
    if [[ "$*" == *' get node '* ]]; then cat found; fi
  }
}

@test "the node of a control plane whose join was cut is deleted, so that it can join again" {
  cut_join
  echo node1,a1,ab-1 >found
  kubernetes_begin
  [[ "$(cut -d ' ' -f 1-2 calls | tr '\n' ' ')" == 'kubeadm reset kubectl --kubeconfig='* ]]
  grep -q 'delete node node1' calls
  [ ! -e etc/kubernetes/curlew/admin.conf ]
  # Not every machine has an ID in its hardware.
  echo node1,a1, >found
  rm sys/class/dmi/id/product_uuid calls
  kubernetes_begin
  grep -q 'delete node node1' calls
}

@test "a node that may be another machine with the same name stays when the join of a control plane is tried again" {
  cut_join
  # The last one is a clone of this machine.
  local one
  for one in node1,b2,cd-2 node1,,ab-1 node1,, node1,a1,cd-2; do
    echo "$one" >found
    run kubernetes_begin
    [[ "$status" -eq 0 && "$output" == *'may be another machine'*'hostnamectl set-hostname'*'kubectl delete node node1'* ]]
    run ! grep -q 'delete node' calls
  done
  [[ "$(kubernetes_begin 2>&1)" == *'with the machine ID a1.'* ]]
  # A machine without an ID knows no node as its own.
  rm etc/machine-id
  echo node1,, >found
  kubernetes_begin
  run ! grep -q 'delete node' calls
  # It has not registered a node.
  : >found
  run kubernetes_begin
  [[ "$status" -eq 0 && "$output" != *'may be another'* && "$output" != *'is not deleted'* ]]
}

@test "nothing keeps the token after a node has joined" {
  own_machine
  KUBEADM_TOKEN=abcdef.0123456789abcdef KUBEADM_TOKEN_CA_HASH=sha256:0 KUBERNETES_MASTER_ADDR=10.0.0.9:6443
  kubectl() { if [[ "$1" == kustomize ]]; then cat "$2"/*.yaml; fi; }
  kubernetes_configure join
  grep -q "$KUBEADM_TOKEN" etc/kubernetes/curlew/new.yaml
  [ "$(stat -c %a kustomize/kubeadm/join etc/kubernetes/curlew/new.yaml | tr '\n' ' ')" = '700 600 ' ]
  kubernetes_end_join
  run ! grep -rq "$KUBEADM_TOKEN" kustomize etc
}

@test "a snapshot that was kept for an install, with the keys of its cluster, does not stay on a machine that joins" {
  own_machine
  mkdir -p restore/kubernetes/pki
  echo key >restore/kubernetes/pki/ca.key
  run strict kubernetes_end_join
  [[ "$status" -eq 0 && ! -e restore && "$output" == *"the snapshot that curlew etcd restore has kept in $DIR/restore is removed"* ]]
}

@test "snapshots with keys that a worker has from earlier are named and stay, unless they are encrypted" {
  own_machine
  mkdir etcd
  touch etcd/etcd-2027-01-01T00-00-00Z.tar.age
  run strict kubernetes_end_join
  [[ "$status" -eq 0 && "$output" != *snapshot* ]]
  touch etcd/etcd-2027-01-01T00-00-00Z.tar
  run strict kubernetes_end_join
  [[ "$status" -eq 0 && "$output" == *"the snapshots of etcd in $DIR/etcd have the keys of a cluster: move them"* && -e etcd/etcd-2027-01-01T00-00-00Z.tar ]]
  touch etc/kubernetes/manifests/kube-apiserver.yaml
  run strict kubernetes_end_join
  [[ "$status" -eq 0 && "$output" != *snapshot* ]]
}

@test "a token that the cluster does not have is refused before the machine changes, and so is a cluster that does not answer" {
  prepare
  KUBERNETES_MASTER_ADDR=10.0.0.9:6443 KUBEADM_TOKEN=abcdef.0123456789abcdef
  sleep() { :; }
  kubectl() { echo '{"data":{"jws-kubeconfig-abcdef":"x","kubeconfig":"y"}}'; }
  kubernetes_require_token
  KUBEADM_TOKEN=aaaaaa.0123456789abcdef
  run kubernetes_require_token
  [[ "$status" -eq 1 && "$output" == *'does not have the token aaaaaa: it has expired, or another machine has used it'* ]]
  [[ "$output" != *0123456789abcdef* ]]
  kubectl() { return 1; }
  run kubernetes_require_token
  [[ "$status" -eq 1 && "$output" == *'10.0.0.9:6443 does not answer'* ]]
}

@test "a token is spent by itself, from a file that only root can read" {
  own_machine
  KUBEADM_TOKEN=abcdef.0123456789abcdef KUBERNETES_MASTER_ADDR=10.0.0.9:6443
  kubectl() {
    echo "$*" >>calls
    stat -c %a "${1#*=}" >mode
    cp "${1#*=}" given
  }
  kubernetes_spend_token
  [[ "$(cat calls)" == *'delete secret bootstrap-token-abcdef'* && "$(cat calls)" != *0123456789abcdef* ]]
  [ "$(cat mode)" = 600 ]
  grep -q "token: 'abcdef.0123456789abcdef'" given
  [ ! -e etc/kubernetes/curlew/token.conf ]
}

@test "labels that a kubelet may not set are refused, and taints are its own" {
  prepare
  NODE_LABELS=disk=ssd,node.kubernetes.io/pool=a,topology.kubernetes.io/zone=b,example.com/kubernetes.io=c
  kubernetes_pre_init
  NODE_LABELS=failure-domain.beta.kubernetes.io/zone=a,beta.kubernetes.io/instance-type=b,beta.kubernetes.io/arch=amd64
  kubernetes_pre_init
  for NODE_LABELS in beta.kubernetes.io/fluentd=x a=b,node-role.kubernetes.io/worker= kubernetes.io/team=x sub.k8s.io/x=y; do
    run kubernetes_pre_init
    [[ "$status" -eq 1 && "$output" == *'may not give itself the label'* ]]
  done
  KUBERNETES_NODE_TAINTS=gpu=yes:NoSchedule
  [[ "$(kubernetes_node_settings)" == *"name: register-with-taints"*"value: 'gpu=yes:NoSchedule'" ]]
}

@test "certificates for other control planes are uploaded again only when they are gone or replaced, with a key that no argument has" {
  own_machine
  openssl() { return 127; }
  # No file of the first control plane: it is gone, and this is another one.
  kubectl() {
    if [[ "$*" == *' kubeadm-config '* ]]; then
      echo 'kind: ClusterConfiguration'
    elif [[ -e uploaded ]]; then
      wc -l <uploaded
    fi
  }
  kubeadm() {
    echo "kubeadm $*" >>calls
    cp "${!#}" given
    echo >>uploaded
  }
  kubernetes_upload_certificates
  [ ! -e calls ]
  LOAD_BALANCER_ADDRESS=lb
  kubernetes_upload_certificates
  kubernetes_upload_certificates
  [ "$(wc -l <calls)" -eq 1 ]
  [ "$(cut -d ' ' -f 2 etc/kubernetes/curlew/certificate-key)" = 1 ]
  key="$(cut -d ' ' -f 1 etc/kubernetes/curlew/certificate-key)"
  [[ "$key" =~ ^[0-9a-f]{64}$ && "$(cat calls)" != *"$key"* ]]
  [ "$(sed -n '2,3p;$p' given)" = "$(lines 'kind: InitConfiguration' "certificateKey: \"$key\"" 'kind: ClusterConfiguration')" ]
  grep -qxF "localAPIEndpoint: { advertiseAddress: \"$PRIVATE_ADDRESS\" }" given
  [ "$(stat -c %a etc/kubernetes/curlew/certificate-key)" = 600 ]
  [ "$(ls etc/kubernetes/curlew)" = certificate-key ]
  # Another control plane uploads them, with a key of its own.
  echo >>uploaded
  kubernetes_upload_certificates
  kubernetes_upload_certificates
  [ "$(wc -l <calls)" -eq 2 ]
  [[ "$(cat etc/kubernetes/curlew/certificate-key)" != "$key"* ]]
}

@test "a key of certificates that were not uploaded is not kept, and one that ends within the hour of a token is renewed" {
  own_machine
  LOAD_BALANCER_ADDRESS=lb
  echo old uid/1 >etc/kubernetes/curlew/certificate-key
  touch -d '61 minutes ago' etc/kubernetes/curlew/certificate-key
  kubectl() { echo uid/1; }
  kubeadm() { return 1; }
  run strict kubernetes_upload_certificates
  [[ "$status" -eq 1 && ! -e etc/kubernetes/curlew/certificate-key ]]
  kubeadm() { cp "${!#}" given; }
  kubernetes_upload_certificates
  grep -qxF "certificateKey: \"$(cut -d ' ' -f 1 etc/kubernetes/curlew/certificate-key)\"" given
  kubectl() { return 1; }
  run strict kubernetes_upload_certificates
  [ "$status" -eq 1 ]
}

@test "a control plane that the cluster still has is not reset, nor is it taken out of the cluster" {
  own_machine
  kubectl() {
    echo "$*" >>calls
    cat planes
  }
  lines node/node10 node/node1 node/two >planes
  # A worker.
  run kubernetes_leave
  [[ "$status" -eq 0 && "$output" == *'remove it on a control plane: ./tasks.sh node remove node1 --yes'* && ! -e calls ]]
  touch etc/kubernetes/admin.conf
  run kubernetes_leave
  [[ "$status" -eq 1 && "$output" == *'on another control plane, run ./tasks.sh node remove node1 --yes first'* ]]
  [[ "$(grep -c . calls)" -eq 1 && "$(cat calls)" == *'get nodes'* ]]
  # curlew cluster delete resets the others, too.
  KUBERNETES_DELETE_CLUSTER=1 kubernetes_leave
  # The last one, and one that was removed.
  echo node/node1 >planes
  kubernetes_leave
  lines node/node10 node/two >planes
  kubernetes_leave
  kubectl() { return 1; }
  run kubernetes_leave
  [[ "$status" -eq 0 && "$output" == *'The API server does not answer'* ]]
}

@test "a node of another cluster does not join, and nothing of it changes" {
  own_machine
  kubernetes_require_host() { :; }
  kubernetes_has_joined() { touch asked; }
  kubernetes_update_node() { :; }
  mkdir etc/kubernetes/pki
  openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out etc/kubernetes/pki/ca.crt -subj /CN=kubernetes -days 2 2>/dev/null
  KUBERNETES_MASTER_ADDR=10.0.0.9:6443 KUBEADM_TOKEN=abcdef.0123456789abcdef KUBEADM_TOKEN_CA_HASH=sha256:0
  run kubernetes_join
  [[ "$status" -eq 1 && "$output" == *'a node of another cluster'* && ! -e asked ]]
  # What an unfinished join has left of a cluster is no reason.
  touch etc/kubernetes/curlew/attempt
  kubernetes_host() { exit 3; }
  run kubernetes_join
  [[ "$status" -eq 3 && ! -e asked ]]
  rm etc/kubernetes/curlew/attempt
  KUBEADM_TOKEN_CA_HASH="sha256:$(openssl rsa -in key -pubout -outform DER 2>/dev/null | sha256sum | cut -d ' ' -f 1)"
  kubernetes_join
  [ -e asked ]
}

@test "an upgrade of a node waits for an API server that is away, and does not take it for a machine that has to join" {
  own_machine
  kubernetes_update_node() { touch updated; }
  run kubernetes_upgrade
  [[ "$status" -eq 1 && "$output" == *'not a node of a cluster: run join.sh'* ]]
  touch etc/kubernetes/kubelet.conf
  kubernetes_knows_node() { return 1; }
  run kubernetes_upgrade
  [[ "$status" -eq 1 && "$output" == *'API server does not answer, or has no node node1'* && "$output" != *join.sh* ]]
  kubernetes_has_joined() { :; }
  kubernetes_knows_node() { echo try >>tries && [ "$(wc -l <tries)" -gt 3 ]; }
  kubernetes_upgrade
  [ -e updated ]
}

@test "an upgrade takes the settings of its run along, and restarts the kubelet last" {
  prepare
  KUBERNETES_STATE="$PWD/state" CURRENT_KUBERNETES_VERSION=1.36.3 KUBERNETES_VERSION=1.37.2
  KUBERNETES_MANIFESTS="$PWD/state/manifests.now"
  mkdir -p "$KUBERNETES_MANIFESTS"
  touch "$KUBERNETES_MANIFESTS"/kube-{apiserver,controller-manager,scheduler}.yaml
  echo old >state/init.yaml
  echo new >state/new.yaml
  kubeadm() { echo "kubeadm $*" >>calls; }
  kubernetes_host() { :; }
  kubernetes_api_answers() { :; }
  kubernetes_apply_names() { :; }
  kubernetes_fetch_kubelet_configuration() { echo kubelet >>calls; }
  kubernetes_upgrade_first
  [[ "$(head -n 1 calls)" == 'kubeadm upgrade apply v1.37.2 --yes' && "$(tail -n 1 calls)" == kubelet ]]
  grep -q '^kubeadm init phase control-plane all' calls
  [[ "$(cat state/init.yaml)" == new ]]
  KUBERNETES_VERSION=1.38.1
  run kubernetes_upgrade_first
  [[ "$status" -eq 1 && "$output" == *'one minor version at a time'* ]]
}

@test "checks of kubeadm that the operator ignores are ignored on the first node and on the others" {
  prepare
  KUBERNETES_STATE="$PWD/state" CURRENT_KUBERNETES_VERSION=1.36.3 KUBERNETES_VERSION=1.37.2 KUBERNETES_UPGRADE_IGNORE_PREFLIGHT_ERRORS=A,B
  mkdir -p state
  kubeadm() { echo "kubeadm $*" >>calls; }
  kubernetes_host() { :; }
  kubernetes_api_answers() { :; }
  kubernetes_knows_node() { :; }
  kubernetes_reconfigure() { :; }
  kubernetes_upgrade_first
  kubernetes_upgrade_node
  [ "$(cat calls)" = "$(lines 'kubeadm upgrade apply v1.37.2 --yes --ignore-preflight-errors=A,B' \
    'kubeadm upgrade node --ignore-preflight-errors=A,B')" ]
}

@test "kubeadm's test of a pod is passed where another node is there, and none is ready for pods" {
  prepare
  KUBERNETES_STATE="$PWD/state" CURRENT_KUBERNETES_VERSION=1.36.3 KUBERNETES_VERSION=1.37.2
  mkdir -p state
  kubeadm() { echo "kubeadm $*" >calls; }
  kubernetes_host() { :; }
  kubernetes_api_answers() { :; }
  kubernetes_reconfigure() { :; }
  kubectl() { echo "$listed"; }
  local one='one:true node.kubernetes.io/unschedulable' two='two: node.kubernetes.io/unreachable node.kubernetes.io/unreachable'
  for listed in "$(lines "$one" "$two")" "$(lines "$one" 'two: node.kubernetes.io/disk-pressure')"; do
    kubernetes_upgrade_first
    [ "$(cat calls)" = 'kubeadm upgrade apply v1.37.2 --yes --ignore-preflight-errors=CreateJob' ]
  done
  # Without others, kubeadm itself leaves it out.
  for listed in "$one" "$(lines "$one" two:)" "$(lines "$one" "$two" 'three: node-role.kubernetes.io/control-plane')"; do
    kubernetes_upgrade_first
    [ "$(cat calls)" = 'kubeadm upgrade apply v1.37.2 --yes' ]
  done
  listed="$(lines "$one" "$two")" KUBERNETES_UPGRADE_IGNORE_PREFLIGHT_ERRORS=A
  kubernetes_upgrade_first
  [ "$(cat calls)" = 'kubeadm upgrade apply v1.37.2 --yes --ignore-preflight-errors=A,CreateJob' ]
  # The others are upgraded with the checks of the operator.
  [ "$KUBERNETES_UPGRADE_IGNORE_PREFLIGHT_ERRORS" = A ]
  kubectl() { return 1; }
  kubernetes_upgrade_first
  [ "$(cat calls)" = 'kubeadm upgrade apply v1.37.2 --yes --ignore-preflight-errors=A' ]
}

@test "an upgrade that was cut in kubeadm goes on once the API server stays, and each try waits until it answers" {
  prepare
  KUBERNETES_STATE="$PWD/state" CURRENT_KUBERNETES_VERSION=1.36.3 KUBERNETES_VERSION=1.37.2
  mkdir -p state
  touch state/upgrade
  # It goes once more after its first answer, and in the middle of kubeadm's first try.
  local replies=(0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 1 0) asked=0
  kubernetes_api_answers() {
    local status="${replies[asked]:-0}"
    asked=$((asked + 1))
    echo "answer $status" >>calls
    return "$status"
  }
  sleep() { :; }
  kubeadm() {
    echo "kubeadm $*" >>calls
    [[ "$(grep -c '^kubeadm upgrade apply' calls)" -ne 1 ]]
  }
  kubernetes_reconfigure() { :; }
  kubernetes_upgrade_first
  [[ ! -e state/upgrade && "$(grep -c '^kubeadm' calls)" -eq 2 ]]
  # 17 answers until it stayed, and one before the first try; two refusals before the second.
  [[ "$(grep -n '^kubeadm' calls | cut -d : -f 1 | xargs)" == '19 23' ]]
}

@test "the kubelet restarts with its new files after a run that was cut before, and never without a change" {
  own_machine
  DIR="$PWD/bundle"
  local src="$DIR/packages/kubernetes/$NEWEST"
  mkdir -p "$src/assets" crictl
  cp "$ROOT/packages/kubernetes/$NEWEST"/{install.sh,kubelet.service,sysctl.conf} "$src/"
  echo new | tee "$src/assets/kubeadm" "$src/assets/kubectl" >"$src/assets/kubelet"
  touch crictl/crictl
  tar -czf "$src/assets/crictl.tar.gz" -C crictl crictl
  tar -czf "$src/assets/cni-plugins.tgz" -C crictl .
  # shellcheck source=/dev/null
  source <(sed -E "s,(/etc/(kubernetes|systemd|cni|crictl|sysctl|modules)|/usr/local|/opt/cni),$PWD\\1,g" "$src/install.sh")
  mkdir -p etc/modules-load.d etc/sysctl.d usr/local/bin
  kubernetes_kernel() { :; }
  kubernetes_protect_images() { :; }
  kubernetes_wait_until_settled() { echo settled >>restarts; }
  systemctl() { echo "systemctl $*" >>calls; }
  echo same >etc/kubernetes/curlew/init.yaml
  same_settings() {
    echo same >etc/kubernetes/curlew/new.yaml
    kubernetes_reconfigure
  }
  restart_systemd_and_wait() { return 1; }
  run strict same_settings
  [[ "$status" -eq 1 && "$(cat usr/local/bin/kubelet)" == new ]]
  run ! kubernetes_already_applied
  restart_systemd_and_wait() { echo "$1" >>restarts; }
  rm calls
  strict same_settings
  strict same_settings
  [ "$(cat restarts)" = "$(lines kubelet settled)" ]
  [ "$(grep -c daemon-reload calls)" -eq 1 ]
  # A run that was cut and has written nothing down: its files are in place, and the former program runs.
  running_service
  replace_program
  strict same_settings
  kill "$(cat pid)"
  [ "$(cat restarts)" = "$(lines kubelet settled kubelet settled)" ]
  [ "$(grep -c daemon-reload calls)" -eq 2 ]
}

# A node whose kubelet has the configuration `old`, and whose cluster has the text of the file `published`.
node_of_a_cluster() {
  own_machine
  # shellcheck source=/dev/null
  source <(sed -E "s,/(etc/kubernetes|var/lib/kubelet|var/log/pods),$PWD/\\1,g" "packages/kubernetes/$NEWEST/install.sh")
  mkdir -p var/lib/kubelet
  echo old | tee published >var/lib/kubelet/config.yaml
  kubeadm() {
    echo "kubeadm $*" >>calls
    cp published var/lib/kubelet/config.yaml
  }
  kubernetes_require_kernel() { :; }
  kubernetes_protect_images() { :; }
  kubernetes_wait_until_ready() { echo "ready $1" >>calls; }
  systemctl() { :; }
  restart_systemd_and_wait() { echo "restart $1" >>calls; }
  kubernetes_kubelet_stays() { :; }
}

# usage: control_plane_of_a_cluster; kubeadm writes the flags in the file `flags`, and a component runs unless they are bad
control_plane_of_a_cluster() {
  node_of_a_cluster
  mkdir -p etc/kubernetes/pki
  echo good >flags
  for name in kube-apiserver kube-controller-manager kube-scheduler; do echo good >"etc/kubernetes/manifests/$name.yaml"; done
  kubeadm() {
    echo "kubeadm $*" >>calls
    if [[ "$*" == 'init phase control-plane'* ]]; then cp flags etc/kubernetes/manifests/kube-scheduler.yaml; fi
  }
  kubernetes_host() { :; }
  kubernetes_api_answers() { :; }
  kubernetes_wait_until_settled() { :; }
  kubernetes_answers() { :; }
  kubernetes_start_of() { if [[ "$1" == self ]]; then echo 5; else echo 7; fi; }
  kubernetes_processes() { if ! grep -q bad "etc/kubernetes/manifests/$1.yaml"; then echo 1; fi; }
  mkdir -p var/log/pods/kube-system_kube-scheduler-node1_1a/kube-scheduler
  printf '2026-01-01T00:00:00Z stderr F %s\n' Starting '' 'Error: unknown flag: --bad %s' >var/log/pods/kube-system_kube-scheduler-node1_1a/kube-scheduler/1.log
}

@test "settings with which a component does not run are refused with its words, and the cluster has its former ones again" {
  control_plane_of_a_cluster
  printf 'kubernetesVersion: v%s\n' "$NEWEST" >etc/kubernetes/curlew/init.yaml
  echo new >etc/kubernetes/curlew/new.yaml
  echo bad >flags
  run strict kubernetes_reconfigure
  [[ "$status" -eq 1 && "$output" == *'kube-scheduler does not run with the new settings'*'unknown flag: --bad %s. Correct'* ]]
  [[ "$(cat etc/kubernetes/manifests/kube-scheduler.yaml)" == good && ! -e etc/kubernetes/curlew/former ]]
  [[ "$(tail -n 1 calls)" == "kubeadm init phase upload-config all --config $PWD/etc/kubernetes/curlew/init.yaml" ]]
  # Other settings are tried again, and kept.
  echo better >flags
  strict kubernetes_reconfigure
  [[ "$(cat etc/kubernetes/manifests/kube-scheduler.yaml)" == better && "$(cat etc/kubernetes/curlew/init.yaml)" == new ]]
}

@test "a run that was cut while it tried settings is undone by the next one" {
  control_plane_of_a_cluster
  echo new >etc/kubernetes/curlew/new.yaml
  echo bad >flags
  spinner_until() { kill -KILL "$$"; }
  run -137 strict kubernetes_reconfigure
  [[ "$(cat etc/kubernetes/manifests/kube-scheduler.yaml)" == bad ]]
  strict kubernetes_resume
  [[ "$(cat etc/kubernetes/manifests/kube-scheduler.yaml)" == good && ! -e etc/kubernetes/curlew/former ]]
}

@test "a further control plane takes the flags of its cluster where its version stays" {
  control_plane_of_a_cluster
  echo better >flags
  kubelet() { echo "Kubernetes v$NEWEST"; }
  strict kubernetes_update_node
  [[ "$(cat etc/kubernetes/manifests/kube-scheduler.yaml)" == better && "$(cat calls)" == *'upgrade node phase kubelet-config'* ]]
}

@test "the kubelet has its former configuration again if it does not run with another one" {
  node_of_a_cluster
  echo new >published
  kubernetes_kubelet_stays() { return 1; }
  journalctl() { echo 'E1 run.go] "command failed" err="maxPods -5 must be greater than 0"'; }
  run strict kubernetes_fetch_kubelet_configuration
  [[ "$status" -eq 1 && "$output" == *'the kubelet does not run with the new settings'*'maxPods -5 must be greater than 0. Correct'* ]]
  [[ "$(cat var/lib/kubelet/config.yaml)" == old && "$(grep -c 'restart kubelet' calls)" -eq 2 && ! -e etc/kubernetes/curlew/restart ]]
}

@test "a kubelet stays if it is the same process for a while, and not if it is started again and again" {
  prepare
  curlew_main_pid() { echo 7; }
  kubernetes_kubelet_stays
  curlew_main_pid() { echo 0; }
  run ! kubernetes_kubelet_stays
  # Each of its processes is seen three times.
  echo 0 >asked
  curlew_main_pid() {
    echo "$(($(cat asked) + 1))" >asked
    echo "$((1 + $(cat asked) / 3))"
  }
  run ! kubernetes_kubelet_stays
}

@test "the API server gets another certificate only for names that its own does not have" {
  control_plane_of_a_cluster
  # usage: certificate FOLDER NAMES
  certificate() {
    openssl req -x509 -newkey rsa:2048 -nodes -keyout "$1/apiserver.key" -out "$1/apiserver.crt" -subj /CN=x -addext "subjectAltName=$2" 2>/dev/null
  }
  touch etc/kubernetes/pki/ca.{crt,key}
  certificate etc/kubernetes/pki DNS:a,DNS:b,IP:10.0.0.1
  cp etc/kubernetes/pki/apiserver.crt former
  kubeadm() { certificate "$(dirname "${*: -1}")" "$(cat names)"; }
  echo certificatesDir: "$PWD/etc/kubernetes/pki" >config
  echo DNS:b,DNS:a >names
  strict kubernetes_apply_names config
  cmp former etc/kubernetes/pki/apiserver.crt
  echo DNS:a,DNS:b,DNS:c >names
  strict kubernetes_apply_names config
  [[ "$(kubernetes_names etc/kubernetes/pki/apiserver.crt | xargs)" == 'DNS:a DNS:b DNS:c' && ! -e etc/kubernetes/curlew/certificate ]]
}

@test "the kubelet restarts for another configuration of the cluster, and never for the same one" {
  node_of_a_cluster
  strict kubernetes_fetch_kubelet_configuration
  [[ "$(cat calls)" == 'kubeadm upgrade node phase kubelet-config' && ! -e etc/kubernetes/curlew/restart ]]
  echo new >published
  strict kubernetes_fetch_kubelet_configuration
  strict kubernetes_fetch_kubelet_configuration
  [[ "$(grep -c restart calls)" -eq 1 && ! -e etc/kubernetes/curlew/restart ]]
  # What an earlier run has changed, whose restart is due.
  touch etc/kubernetes/curlew/restart
  strict kubernetes_fetch_kubelet_configuration
  [[ "$(grep -c 'restart kubelet' calls)" -eq 2 && ! -e etc/kubernetes/curlew/restart ]]
}

@test "the kubelet restarts after a run that was cut as soon as kubeadm had written its configuration" {
  node_of_a_cluster
  kubeadm() {
    echo new >var/lib/kubelet/config.yaml
    kill -KILL "$$"
  }
  run -137 strict kubernetes_fetch_kubelet_configuration
  kubeadm() { :; }
  strict kubernetes_fetch_kubelet_configuration
  [[ "$(cat calls)" == 'restart kubelet' && ! -e etc/kubernetes/curlew/restart ]]
}

@test "the kubelet does not restart for a kubeadm that has failed before it wrote anything" {
  node_of_a_cluster
  kubeadm() { return 3; }
  run -3 strict kubernetes_fetch_kubelet_configuration
  [[ ! -e calls && ! -e etc/kubernetes/curlew/restart ]]
  kubeadm() {
    echo new >var/lib/kubelet/config.yaml
    return 3
  }
  run -3 strict kubernetes_fetch_kubelet_configuration
  [[ ! -e calls && -e etc/kubernetes/curlew/restart ]]
}

@test "a node that is updated restarts its kubelet after kubeadm, and not again in a second run" {
  node_of_a_cluster
  echo v1.36.3 >version
  kubelet() { echo "Kubernetes $(cat version)"; }
  kubernetes_host() {
    echo "host $*" >>calls
    if [[ "$*" == kubelet ]]; then
      echo v1.37.2 >version
      kubernetes_must_restart
    fi
  }
  strict kubernetes_update_node
  [ "$(cat calls)" = "$(lines 'host kubeadm kubectl' 'kubeadm upgrade node' 'host kubelet' 'restart kubelet' \
    "ready $PWD/etc/kubernetes/kubelet.conf")" ]
  rm calls
  strict kubernetes_update_node
  [ "$(cat calls)" = "$(lines 'host kubeadm kubectl' 'kubeadm upgrade node phase kubelet-config' \
    "ready $PWD/etc/kubernetes/kubelet.conf")" ]
}

@test "a node whose update was cut before the restart of its kubelet restarts it in the next run" {
  node_of_a_cluster
  echo v1.36.3 >version
  kubelet() { echo "Kubernetes $(cat version)"; }
  kubernetes_host() {
    if [[ "$*" == kubelet ]]; then
      kubernetes_must_restart
      echo v1.37.2 >version
      kill -KILL "$$"
    fi
  }
  run -137 strict kubernetes_update_node
  strict kubernetes_update_node
  strict kubernetes_update_node
  [[ "$(grep -c 'restart kubelet' calls)" -eq 1 && "$(grep -cx 'kubeadm upgrade node' calls)" -eq 1 ]]
}

@test "the kubelet restarts if its program was replaced by a run that was cut and wrote nothing down" {
  node_of_a_cluster
  running_service
  kubernetes_api_answers() { :; }
  strict kubernetes_already_applied
  strict kubernetes_restart_kubelet
  [ "$(cat calls)" = "$(lines 'systemctl is-active --quiet kubelet' 'systemctl is-active --quiet kubelet')" ]
  replace_program
  run ! kubernetes_already_applied
  strict kubernetes_restart_kubelet
  kill "$(cat pid)"
  [ "$(tail -n 1 calls)" = 'restart kubelet' ]
}

@test "the plugins and configurations of other programs stay when Kubernetes is removed" {
  own_machine
  # shellcheck source=/dev/null
  source <(sed -E "s,/(opt/cni|etc/cni),$PWD/\\1,g" "packages/kubernetes/$NEWEST/install.sh")
  mkdir -p opt/cni/bin etc/cni/net.d plugins "DIR/packages/kubernetes/$NEWEST/assets"
  touch plugins/bridge plugins/loopback opt/cni/bin/{bridge,loopback,other} etc/cni/net.d/87-podman.conflist
  tar -czf "DIR/packages/kubernetes/$NEWEST/assets/cni-plugins.tgz" -C plugins .
  DIR="$PWD/DIR"
  kubernetes_remove_plugins
  [ "$(find opt/cni etc/cni -type f | sort | tr '\n' ' ')" = 'etc/cni/net.d/87-podman.conflist opt/cni/bin/other ' ]
  rm opt/cni/bin/other etc/cni/net.d/*
  kubernetes_remove_plugins
  [[ ! -e opt/cni/bin && ! -e etc/cni/net.d ]]
}

@test "the addresses of the cluster are not looked for behind a proxy" {
  prepare
  NO_PROXY=example.com KUBERNETES_MASTER_ADDR=10.0.0.9:6443 no_proxy='' http_proxy='' https_proxy='' HTTP_PROXY='' HTTPS_PROXY=''
  kubernetes_bypass_proxy
  [ "$NO_PROXY" = example.com ]
  HTTPS_PROXY=http://proxy:3128
  kubernetes_bypass_proxy
  for address in example.com 10.0.0.1 10.0.0.9 10.96.0.0/22 10.32.0.0/20 .svc; do [[ ",$no_proxy," == *",$address,"* ]]; done
  [ "$NO_PROXY" = "$no_proxy" ]
}

@test "a configuration of containerd that another package made is kept" {
  own_machine
  local src="$CONTAINERD"
  echo 'disabled_plugins = ["cri"]' >etc/containerd/config.toml
  run containerd_configure "$src"
  [[ "$status" -eq 0 && "$output" == *config.toml.former* ]]
  [ "$(cat etc/containerd/config.toml.former)" = 'disabled_plugins = ["cri"]' ]
  run containerd_configure "$src"
  [ "$output" = '' ]
  containerd_is_own_config
  echo '# mine' >etc/containerd/config.toml
  CONTAINERD_PRESERVE_CONFIG=1
  containerd_configure "$src"
  [ "$(cat etc/containerd/config.toml)" = '# mine' ]
  run ! containerd_is_own_config
}

# A containerd that reads as far as it is needed: the file and what that imports, with each table closed. The template is in `made`.
readable_configurations() {
  mkdir made
  sed "s,/etc/containerd,$PWD&,g" "$CONTAINERD/config.tmpl" >made/config.tmpl
  containerd_reads() {
    local folder
    folder="$(sed -n "s/^imports = \['\(.*\)\/\*.toml'\]/\1/p" "$1")"
    ! grep -qx '\[[a-z]*' "$1" "$folder"/*.toml
  }
}

@test "a setting that containerd cannot read leaves its configuration as it was" {
  own_machine
  echo '# mine' >etc/containerd/config.toml
  CONTAINERD_TOML_CONFIG='[plugins'
  readable_configurations
  run strict containerd_configure made
  [[ "$status" -eq 1 && "$output" == *'cannot read the setting containerd.tomlConfig'* ]]
  [[ "$(cat etc/containerd/config.toml)" == '# mine' && ! -e etc/containerd/conf.d ]]
  CONTAINERD_TOML_CONFIG='[plugins]'
  strict containerd_configure made
  grep -qxF '[plugins]' etc/containerd/conf.d/50-settings.toml
}

@test "the configuration that containerd will use is read before anything is replaced, and named if it cannot be" {
  own_machine
  readable_configurations
  CONTAINERD_PRESERVE_CONFIG=1 CONTAINERD_TOML_CONFIG='[plugins]'
  lines "imports = ['$PWD/etc/containerd/conf.d/*.toml']" '[grpc' >etc/containerd/config.toml
  run strict containerd_configure made
  [[ "$status" -eq 1 && "$output" == *"cannot read $PWD/etc/containerd/config.toml, which containerd.preserveConfig keeps"* ]]
  [[ "$output" != *tomlConfig* && ! -e etc/containerd/conf.d ]]
  # What the add-on would write there does not matter.
  sed -i 's/^\[grpc/[grpc]/' etc/containerd/config.toml
  echo '[broken' >>made/config.tmpl
  strict containerd_configure made
  CONTAINERD_TOML_CONFIG='[plugins'
  run strict containerd_configure made
  [[ "$status" -eq 1 && "$output" == *'cannot read the setting containerd.tomlConfig'* ]]
  CONTAINERD_PRESERVE_CONFIG='' CONTAINERD_TOML_CONFIG=''
  run strict containerd_configure made
  [[ "$status" -eq 1 && "$output" == *'cannot read its settings, or a file in '*conf.d* && "$output" != *tomlConfig* ]]
  grep -qxF '[grpc]' etc/containerd/config.toml
  # A file of the operator, which is imported as well.
  sed -i '$d' made/config.tmpl
  echo '[mine' >etc/containerd/conf.d/60-mine.toml
  run strict containerd_configure made
  [[ "$status" -eq 1 && "$output" == *'cannot read its settings, or a file in '*conf.d* ]]
}

@test "a configuration of containerd that is kept may import files by relative paths" {
  own_machine
  readable_configurations
  containerd_reads() { grep -qxF 'imports = ["nvidia.toml"]' "$1" && grep -qxF '[nvidia]' "${1%/*}/nvidia.toml"; }
  CONTAINERD_PRESERVE_CONFIG=1
  echo 'imports = ["nvidia.toml"]' >etc/containerd/config.toml
  echo '[nvidia]' >etc/containerd/nvidia.toml
  strict containerd_configure made
  [[ -e etc/containerd/conf.d/50-settings.toml && "$(cat etc/containerd/config.toml)" == 'imports = ["nvidia.toml"]' ]]
}

@test "containerd restarts with its new files after a run that was cut before, and never without a change" {
  own_machine
  DIR="$PWD/bundle"
  local src="$DIR/$CONTAINERD"
  mkdir -p "$src/assets" usr/local/.containerd-abcdef bin
  cp "$ROOT/$CONTAINERD"/{install.sh,config.tmpl,containerd.service} "$src/"
  printf '#!/bin/sh\n' | tee bin/containerd >"$src/assets/runc"
  tar -czf "$src/assets/containerd.tar.gz" bin
  # shellcheck source=/dev/null
  source <(sed -E "s,(/etc/(containerd|systemd)|/usr/local),$PWD\\1,g" "$src/install.sh")
  containerd_answers() { :; }
  restart_systemd_and_wait() { return 1; }
  # Another package's containerd, which may be the first in PATH, is not asked.
  containerd() { return 1; }
  run strict containerd_install
  [[ "$status" -eq 1 && "$(cat usr/local/bin/containerd)" == '#!/bin/sh' && -z "$(ls -d usr/local/.c*)" ]]
  restart_systemd_and_wait() { echo "$1" >>restarts; }
  strict containerd_install
  strict containerd_install
  [ "$(cat restarts)" = containerd ]
  # A run that was cut and has written nothing down: its files are in place, and the former program runs.
  running_service
  replace_program
  strict containerd_install
  kill "$(cat pid)"
  [ "$(cat restarts)" = "$(lines containerd containerd)" ]
}

@test "containerd is installed again if it must restart or does not answer, and otherwise is not" {
  own_machine
  running_service
  containerd_answers() { [[ ! -e silent ]]; }
  strict containerd_already_applied
  touch silent
  run ! containerd_already_applied
  rm silent
  touch etc/containerd/restart
  run ! containerd_already_applied
  rm etc/containerd/restart
  # By a run that was cut and wrote nothing down.
  replace_program
  run ! containerd_already_applied
  kill "$(cat pid)"
}

@test "NetworkManager leaves the interfaces of pods alone" {
  own_machine
  flannel_network_manager
  [ ! -e etc/NetworkManager ]
  mkdir -p etc/NetworkManager/conf.d
  flannel_join
  grep -qx 'unmanaged-devices+=interface-name:cni0;.*' etc/NetworkManager/conf.d/50-flannel.conf
}

@test "only images that are present and not pinned yet are pinned" {
  prepare
  local images=(registry.k8s.io/pause:3.10.1 registry.k8s.io/kube-proxy:v1.37.2 registry.example/pinned:1)
  ctr() {
    case "$*" in
      *'images list --quiet labels."io.cri-containerd.pinned"!=pinned') printf '%s\n' "${images[@]:0:2}" ;;
      *'images list'*) printf '%s\n' "${images[@]}" ;;
      *) echo "$*" >>calls ;;
    esac
  }
  mkdir -p addons/web/1.0.0
  printf '{"images":[{"id":"a","reference":"%s"},{"id":"b","reference":"%s"},{"id":"c","reference":"%s"},{"id":"d","reference":"%s"}]}' \
    "${images[@]}" registry.example/missing:1 >addons/web/1.0.0/addon.json
  kubernetes_protect_images
  [ "$(wc -l <calls)" -eq 2 ]
  grep -q 'label registry.k8s.io/pause:3.10.1 io.cri-containerd.pinned=pinned' calls
}

@test "containerd is configured for the driver of cgroups, and keeps text of settings" {
  prepare
  [[ "$(containerd_config "$CONTAINERD")" == *'SystemdCgroup = true'* ]]
  CONTAINERD_CGROUP_DRIVER=cgroupfs CONTAINERD_RESTRICT_OOM_SCORE_ADJ=1
  [[ "$(containerd_config "$CONTAINERD")" == *'restrict_oom_score_adj = true'*'SystemdCgroup = false'* ]]
}

@test "flannel reaches the API server by the address that the cluster publishes" {
  prepare
  kubectl() { printf 'clusters:\n- cluster:\n    server: https://10.0.0.9:7443\n'; }
  FLANNEL_INTERFACE=eth1
  flannel_render
  grep -q "value: '10.0.0.9'" kustomize/flannel/daemonset-settings.yaml
  grep -q "value: '7443'" kustomize/flannel/daemonset-settings.yaml
  grep -q "args: \['--iface=eth1'\]" kustomize/flannel/daemonset-settings.yaml
  grep -q '"Network": "10.32.0.0/20"' kustomize/flannel/config.yaml
}

@test "flannel is not applied without the address of the API server" {
  prepare
  kubectl() { if [[ "$*" == *cluster-info* ]]; then cat answer; else echo "kubectl $*" >>calls; fi; }
  flannel_wait() { :; }
  # The API server restarts.
  run strict flannel
  [[ "$status" -eq 1 && "$output" == *'cannot read the address of the API server'* ]]
  [ ! -e calls ]
  # What is removed needs no address.
  strict flannel_pre_remove
  grep -q '^kubectl delete' calls
}

# usage: version_folders PATH; a copy of the package, whose generator writes beside it
version_folders() {
  cp -r "$ROOT/$1" copy
  cd copy/template || return 1
}

@test "the next version of kubernetes has the images that its own kubeadm names" {
  version_folders packages/kubernetes
  printf '#!/bin/sh\necho "$@" >>calls\nfor name in a b c d e f coredns/coredns; do echo "registry.k8s.io/$name:v1"; done\n' >kubeadm
  chmod +x kubeadm
  run ./generate.sh --version=1.35.2 "--from=$PWD/kubeadm"
  [ "$status" -eq 0 ]
  [[ "$output" == 'kubernetes 1.35.2 is made, and untried: '* ]]
  [ "$(cat calls)" = 'config images list --kubernetes-version v1.35.2' ]
  grep -qx 'image coredns registry.k8s.io/coredns/coredns:v1' ../1.35.2/Manifest
  grep -qx 'asset kubelet https://dl.k8s.io/release/v1.35.2/bin/linux/amd64/kubelet' ../1.35.2/Manifest
  grep -qx 'asset crictl.tar.gz .*/v1.35.0/crictl-v1.35.0-linux-amd64.tar.gz' ../1.35.2/Manifest
  grep -q '^asset cni-plugins.tgz .*/v1.10.0/' ../1.35.2/Manifest
  cmp files/install.sh ../1.35.2/install.sh
  run ./generate.sh --version=1.35.2 "--from=$PWD/kubeadm"
  [ "$output" = 'kubernetes 1.35.2 already exists' ]
  run ./generate.sh --version=1.30.0
  [ "$status" -eq 1 ]
  [ "$(find . .. -maxdepth 1 -name '.new-*')" = '' ]
}

@test "each version of kubernetes has the files of the template" {
  version_folders packages/kubernetes
  ./generate.sh --files
  diff -r "$ROOT/packages/kubernetes" ..
}

@test "kubernetes goes to the newest patch of each minor version that is there, and to the next minor version" {
  version_folders packages/kubernetes
  rm -r ../1.*
  mkdir programs ../1.34.4
  # Upstream has a patch of the minor version, the next minor version, and one after that.
  cat >programs/curl <<'END'
#!/bin/bash
case "${*: -1}" in
  */stable-1.34.txt) echo v1.34.9 ;;
  */stable-1.35.txt) if [[ -e next ]]; then echo v1.35.4; else exit 22; fi ;;
  */stable*) echo v1.37.2 ;;
  */kubeadm) printf '#!/bin/sh\nfor name in a b c d e f g; do echo "registry.k8s.io/$name:v1"; done\n' ;;
esac
END
  chmod +x programs/curl
  PATH="$PWD/programs:$PATH" GITHUB_OUTPUT="$PWD/made" ./generate.sh
  [ "$(cat made)" = 'kubernetes_version=1.34.9' ]
  [ "$(cd .. && echo 1.*)" = '1.34.4 1.34.9' ]
  touch next
  PATH="$PWD/programs:$PATH" GITHUB_OUTPUT="$PWD/made" ./generate.sh
  [ "$(cd .. && echo 1.*)" = '1.34.4 1.34.9 1.35.4' ]
  grep -qx 'image a registry.k8s.io/a:v1' ../1.35.4/Manifest
  printf '#!/bin/sh\nexit 6\n' >programs/curl
  run env PATH="$PWD/programs:$PATH" ./generate.sh
  [ "$status" -eq 1 ]
  [[ "$output" == *'cannot fetch https://dl.k8s.io/release/stable-1.34.txt'* ]]
}

@test "the next version of flannel has the CNI plugin of upstream's YAML" {
  version_folders addons/flannel
  printf '        image: ghcr.io/flannel-io/flannel-cni-plugin:v2.0.0-flannel1\n' >upstream.yaml
  ./generate.sh --version=0.29.0 --from=upstream.yaml
  [ "$(cat ../0.29.0/Manifest)" = "$(lines 'image flannel ghcr.io/flannel-io/flannel:v0.29.0' \
    'image flannel-cni-plugin ghcr.io/flannel-io/flannel-cni-plugin:v2.0.0-flannel1')" ]
  [ "$(grep -c 'flannel:v0.29.0$' ../0.29.0/daemonset.yaml)" -eq 2 ]
  grep -q 'flannel-cni-plugin:v2.0.0-flannel1$' ../0.29.0/daemonset.yaml
}

@test "the next version of containerd has a runc" {
  version_folders addons/containerd
  ./generate.sh --version=2.3.1 --from=1.4.0
  grep -q '/v2.3.1/containerd-2.3.1-linux-amd64.tar.gz$' ../2.3.1/Manifest
  grep -q '/v1.4.0/runc.amd64$' ../2.3.1/Manifest
  cmp files/install.sh ../2.3.1/install.sh
  run ./generate.sh --version=1.7.9 --from=1.4.0
  [ "$status" -eq 1 ]
}

@test "each version of containerd and flannel has the files of the template" {
  local name
  for name in containerd flannel; do
    (version_folders "addons/$name" && ./generate.sh --files && diff -r "$ROOT/addons/$name" .. && rm -r ../../copy)
  done
}

@test "containerd goes to the newest patch of each minor version that is there, and to the next minor version" {
  version_folders addons/containerd
  rm -r ../2.*
  mkdir programs ../2.2.6
  # Upstream has patches of the minor version, the next minor version, one after that, and candidates.
  cat >programs/git <<'END'
#!/bin/bash
case "$*" in
  *containerd/containerd*) tags='v2.2.6 v2.2.10 v2.2.9 v2.3.0-rc.1 v2.4.0 api/v2.2.11' ;;
  *opencontainers/runc*) tags='v1.4.10 v1.4.9 v1.5.0-rc.1' ;;
esac
if [[ -e next ]]; then tags+=' v2.3.1'; fi
for tag in $tags; do printf '0123456789\trefs/tags/%s\n' "$tag"; done
END
  chmod +x programs/git
  PATH="$PWD/programs:$PATH" GITHUB_OUTPUT="$PWD/made" ./generate.sh
  [ "$(cat made)" = 'containerd_version=2.2.10' ]
  [ "$(cd .. && echo 2.*)" = '2.2.10 2.2.6' ]
  grep -q '/v1.4.10/runc.amd64$' ../2.2.10/Manifest
  touch next
  PATH="$PWD/programs:$PATH" GITHUB_OUTPUT="$PWD/made" ./generate.sh
  [ "$(cd .. && echo 2.*)" = '2.2.10 2.2.6 2.3.1' ]
  printf '#!/bin/sh\nexit 128\n' >programs/git
  run env PATH="$PWD/programs:$PATH" ./generate.sh
  [ "$status" -eq 1 ]
  [[ "$output" == *'cannot list the tags of https://github.com/containerd/containerd'* ]]
}

@test "a folder that may be a disk's mount point is emptied, and stays" {
  prepare
  mkdir -p etcd/member/snap
  touch etcd/member/snap/db etcd/.hidden
  kubernetes_empty etcd
  [ -d etcd ] && [ -z "$(ls -A etcd)" ]
  kubernetes_empty absent
  mkdir disk
  touch disk/db
  ln -s disk link
  kubernetes_empty link
  [ -z "$(ls -A disk)" ]
}

@test "Kubernetes is removed also where a restore of etcd that was cut has left an image mounted" {
  own_machine
  # shellcheck source=/dev/null
  source <(sed -E "s,/(etc|usr/local|var/lib|opt/cni)/,$PWD/\\1/,g" "packages/kubernetes/$NEWEST/install.sh")
  mkdir -p etc/kubernetes/curlew/image/bin
  # It would run a kubeadm of this machine.
  timeout() { :; }
  # As far as it is needed: a mounted image cannot be written.
  rm() { if [[ "$*" != *etc/kubernetes || ! -e etc/kubernetes/curlew/image/bin ]]; then command rm "$@"; else return 1; fi; }
  curlew_ctr() { if [[ "$*" == "images unmount --rm $PWD/etc/kubernetes/curlew/image" ]]; then rmdir "${!#}/bin"; fi; }
  strict kubernetes_uninstall
  [ ! -e etc/kubernetes ]
}

@test "interfaces that pods of the network have made again are removed once no pod is left" {
  own_machine
  # shellcheck source=/dev/null
  source <(sed -E "s,/(etc|usr/local|var/lib|opt/cni)/,$PWD/\\1/,g" "packages/kubernetes/$NEWEST/install.sh")
  kubernetes_reset() { echo reset >>links; }
  kubernetes_uninstall
  [ "$(cat links)" = $'reset\nip link delete cni0\nip link delete flannel.1' ]
}

# A machine with two pods, which only containerd can remove.
with_pods() {
  prepare
  # shellcheck source=/dev/null
  source <(sed -E "s,/etc/cni,$PWD/cni,g; s,/(run/|sys/fs/cgroup),$PWD/\\1,g; s,/proc/self/mounts,$PWD/mounts," "packages/kubernetes/$NEWEST/install.sh")
  mkdir -p cni/net.d run/containerd/io.containerd.runtime.v2.task/k8s.io
  printf 'a\nb\n' >pods
  ctr() { cat pods; }
  systemctl() { echo "systemctl $*" >>calls; }
  kubeadm() { echo "kubeadm $*" >>calls; }
}

@test "no pod survives a reset, also where the network add-on was removed before" {
  with_pods
  # containerd removes the pod of a network only as long as it has one.
  kubeadm() { if [[ "$*" == 'reset phase cleanup-node --cri-socket unix://'* ]] && grep -q loopback cni/net.d/*; then : >pods; fi; }
  strict kubernetes_reset
  [[ ! -s pods && -z "$(ls cni/net.d)" ]]
  [ ! -e calls ]
}

@test "containerd is started for a reset" {
  with_pods
  mv pods hidden
  ctr() { cat pods; }
  systemctl() { if [[ "$*" == 'restart containerd' ]]; then mv hidden pods; fi; }
  kubeadm() { if [[ -e pods ]]; then : >pods; fi; }
  strict kubernetes_reset
  [ ! -s pods ]
}

@test "where containerd does not start, the processes of pods are ended, and their mounts go" {
  with_pods
  ctr() { return 1; }
  systemctl() { echo "systemctl $*" >>calls && return 1; }
  umount() { echo "umount $*" >>calls; }
  kill() { echo "kill $*" >>calls && rm sys/fs/cgroup/kubepods.slice/pod1/cgroup.procs; }
  mkdir -p sys/fs/cgroup/kubepods.slice/pod1 sys/fs/cgroup/cpu/kubepods/burstable sys/fs/cgroup/cpu/system.slice
  echo 4711 >sys/fs/cgroup/kubepods.slice/pod1/cgroup.procs
  printf 'x %s x x 0 0\n' "$PWD/run/containerd/io.containerd.runtime.v2.task/k8s.io/a/rootfs" \
    "$PWD/run/containerd/io.containerd.runtime.v2.task/moby/b/rootfs" "$PWD/run/netns/cni-1" "$PWD/run/netns/other" >mounts
  run strict kubernetes_reset
  [ "$status" -eq 1 ]
  strict kubernetes_kill_pods
  [ ! -e run/containerd/io.containerd.runtime.v2.task/k8s.io ]
  grep -qx 'systemctl kill --signal=KILL containerd' calls
  grep -qx 'kill -KILL 4711' calls
  [ "$(ls -A sys/fs/cgroup sys/fs/cgroup/cpu)" = "$(lines sys/fs/cgroup: cpu '' sys/fs/cgroup/cpu: system.slice)" ]
  [ "$(grep ^umount calls)" = "$(lines "umount --lazy $PWD/run/containerd/io.containerd.runtime.v2.task/k8s.io/a/rootfs" "umount --lazy $PWD/run/netns/cni-1")" ]
}

# usage: mounted PATH…; the mount points of the machine, as the kernel shows them
mounted() {
  printf '/dev/sda1 %s ext4 rw 0 0\n' "$@" >mounts
  # shellcheck source=/dev/null
  source <(sed -E "s,/proc/self/mounts,$PWD/mounts," "packages/kubernetes/$NEWEST/install.sh")
}

@test "of the kubelet's folder only what holds a mount stays, and the mount is named" {
  prepare
  mkdir -p kubelet/pods/web/volume kubelet/{pods2,pki} 'kubelet/my plugins/a 5%'
  touch kubelet/pods/web/volume/data kubelet/pki/key kubelet/{config.yaml,.hidden} 'kubelet/my plugins/a 5%/data'
  ln -s kubelet link
  mounted "$PWD/kubelet/pods/web/volume" "$PWD/kubelet/my\\040plugins/a\\0405%"
  run strict kubernetes_empty link
  [[ "$status" -eq 1 && -e kubelet/pods/web/volume/data && -e 'kubelet/my plugins/a 5%/data' ]]
  [ "$(ls -A kubelet)" = "$(lines 'my plugins' pods)" ]
  [[ "$output" == *"$PWD/kubelet/pods stays, because $PWD/kubelet/pods/web/volume is mounted. Unmount all that findmnt shows"* ]]
  [[ "$output" == *"$PWD/kubelet/my plugins stays, because $PWD/kubelet/my plugins/a 5% is mounted"* ]]
  # A disk of its own, and one of another folder, are not in the way.
  mounted "$PWD/kubelet" "$PWD/kubelet2/volume" "$PWD/kubelet/pod"
  strict kubernetes_empty link
  [ -z "$(ls -A kubelet)" ]
}

@test "what cannot be deleted is named, and the rest is deleted" {
  prepare
  mkdir -p etcd/member
  touch etcd/other
  find() { if [[ "$1" == */member ]]; then return 1; else command find "$@"; fi; }
  run strict kubernetes_empty etcd
  [[ "$status" -eq 1 && "$output" == *"$PWD/etcd/member stays, because not all of it can be deleted"* && "$(ls -A etcd)" == member ]]
}

@test "Kubernetes is not removed while something is mounted where etcd had its data, and what to do is said" {
  own_machine
  mkdir -p var/lib/etcd/member var/lib/kubelet/pods usr/local/bin
  touch usr/local/bin/kubeadm
  printf '/dev/sdb1 %s ext4 rw 0 0\n' "$PWD/var/lib/etcd/member" >mounts
  # shellcheck source=/dev/null
  source <(sed -E "s,/(etc|usr/local|var/lib|opt/cni)/,$PWD/\\1/,g; s,/proc/self/mounts,$PWD/mounts," "packages/kubernetes/$NEWEST/install.sh")
  timeout() { :; }
  run strict kubernetes_uninstall
  [[ "$status" -eq 1 && "$output" == *"/var/lib/etcd/member is mounted"*'is not empty: unmount what findmnt shows below it'* ]]
  printf '/dev/sdb1 %s ext4 rw 0 0\n' "$PWD/var/lib/kubelet/pods" >mounts
  run strict kubernetes_uninstall
  [[ "$status" -eq 0 && "$output" == *"/var/lib/kubelet/pods is mounted"* && -e var/lib/kubelet/pods && ! -e usr/local/bin/kubeadm ]]
}

# A control plane in this folder, whose static pods run as long as their files are there.
static_pods() {
  prepare
  KUBERNETES_MANIFESTS="$PWD/manifests"
  mkdir -p manifests state etcd/member
  echo old >etcd/member/data
  printf '  - --name=node1\n  - --initial-advertise-peer-urls=https://10.0.0.1:2380\n  - --data-dir=%s\n  image: etcd:1\n' "$PWD/etcd" \
    >manifests/etcd.yaml
  touch manifests/kube-{apiserver,controller-manager,scheduler}.yaml
  kubernetes_processes() { if [[ -e "manifests/$1.yaml" ]]; then echo 1; fi; }
  kubernetes_answers() { [[ "$*" != "${broken-}" ]]; }
  kubernetes_api_answers() { echo api >>calls; }
  kubernetes_require_space() { echo "space $*" >>calls; }
  kubernetes_in_image() {
    echo "$*" >>calls
    mkdir -p etcd/restored/member
    echo new >etcd/restored/member/data
  }
}

@test "certificates are renewed before each component restarts, also those that a cut has left stopped" {
  static_pods
  mkdir state/manifests
  mv manifests/etcd.yaml state/manifests/
  kubeadm() { echo "kubeadm $*" >>calls; }
  kubernetes_stop_pods() { echo "stop $*" >>calls; }
  kubernetes_renew_certificates
  [[ "$(tr '\n' ';' <calls)" == 'kubeadm certs renew all;stop etcd;stop kube-apiserver;stop kube-controller-manager;stop kube-scheduler;api;' ]]
  [ -e manifests/etcd.yaml ]
}

@test "a timer renews the certificates of a control plane, and is gone with a setting and with Kubernetes" {
  own_machine
  # shellcheck source=/dev/null
  source <(sed -E "s,/(etc|usr/local|var/lib|opt/cni)/,$PWD/\\1/,g" packages/kubernetes/1.35.4/install.sh)
  # As far as it is needed: it writes the units.
  starts_timer() { echo "$*" >>calls && touch etc/systemd/system/curlew-certificates.{service,timer}; }
  systemctl() { echo "systemctl $*" >>calls; }
  mkdir -p etc/systemd/system
  BIN_CURLEW='starts_timer "a  b"'
  # A worker has none.
  kubernetes_schedule_renewal
  [ ! -e calls ]
  touch etc/kubernetes/manifests/kube-apiserver.yaml
  kubernetes_schedule_renewal
  [ "$(cat calls)" = "a  b certificates renew --within 30d --every 12h --install-dir $DIR" ]
  KUBERNETES_CERTIFICATE_RENEWAL=manual kubernetes_schedule_renewal
  [[ "$(tail -n 1 calls)" == 'systemctl disable --now curlew-certificates.timer' && -z "$(ls -A etc/systemd/system)" ]]
  starts_timer() { return 1; }
  run kubernetes_schedule_renewal
  [[ "$status" -eq 0 && "$output" == *'no timer renews them'* ]]
  touch etc/systemd/system/curlew-{certificates,etcd-snapshot}.{service,timer}
  timeout() { :; }
  kubernetes_uninstall
  [ -z "$(ls -A etc/systemd/system)" ]
}

@test "a snapshot replaces what etcd has, which stays, however often it is repeated" {
  static_pods
  # Each run at its own time.
  date() { echo run >>runs && wc -l <runs | tr -d ' '; }
  kubernetes_restore_etcd /media/shop.db
  grep -q '^etcd:1 usr/local/bin/etcdutl snapshot restore /media/shop.db .*--initial-cluster node1=https://10.0.0.1:2380' calls
  [[ "$(cat etcd/member/data)" == new && "$(cat etcd/member.before-restore-1/data)" == old && -e manifests/kube-apiserver.yaml ]]
  # The API server did not answer in time, or clients have changed data since.
  echo changed >etcd/member/data
  kubernetes_restore_etcd /media/shop.db
  [[ "$(cat etcd/member/data)" == new && "$(cat etcd/member.before-restore-1/data)" == old ]]
  [[ "$(cat etcd/member.before-restore-2/data)" == changed && ! -e etcd/restored ]]
  # Cut before the control plane has started again.
  kubernetes_stop_pods etcd kube-apiserver
  kubernetes_restore_etcd /media/shop.db
  [[ "$(cat etcd/member/data)" == new && "$(cat etcd/member.before-restore-1/data)" == old && -e manifests/etcd.yaml ]]
}

@test "data of etcd that cannot be moved stays, and the control plane starts again" {
  static_pods
  mv() { if [[ "$2" == */etcd/member ]]; then return 1; else command mv "$@"; fi; }
  run strict kubernetes_restore_etcd /media/shop.db
  [[ "$status" -eq 1 && "$output" == *'cannot replace '*'/etcd/member'* ]]
  [[ "$(cat etcd/member/data)" == old && -e manifests/etcd.yaml && -e manifests/kube-apiserver.yaml && ! -e etcd/restored ]]
}

@test "etcd is restored where its manifest has its data, and not beside a log of its own" {
  static_pods
  mkdir -p disk/member
  echo disk >disk/member/data
  sed -i "s,--data-dir=.*,--data-dir=$PWD/disk," manifests/etcd.yaml
  kubernetes_in_image() { mkdir -p disk/restored/member && echo new >disk/restored/member/data; }
  kubernetes_restore_etcd /media/shop.db
  [[ "$(cat disk/member/data)" == new && "$(cat disk/member.before-restore-*/data)" == disk && "$(cat etcd/member/data)" == old ]]
  echo "  - --wal-dir=$PWD/wal" >>manifests/etcd.yaml
  run strict kubernetes_restore_etcd /media/shop.db
  [[ "$status" -eq 1 && "$output" == *--wal-dir* && -e manifests/etcd.yaml ]]
}

# A machine without Kubernetes, for which curlew etcd restore has kept a snapshot.
kept_snapshot() {
  own_machine
  mkdir -p restore/kubernetes/pki/etcd restore/kubernetes/enc
  echo data >restore/etcd.db
  echo certificate | tee restore/kubernetes/pki/ca.crt >restore/kubernetes/pki/etcd/ca.crt
  echo key | tee restore/kubernetes/pki/ca.key >restore/kubernetes/enc/config.yaml
  kubernetes_host() { :; }
  kubernetes_require_space() { :; }
  get_local_node_name() { echo node1; }
  touch etc/kubernetes/curlew/new.yaml
  kubeadm() {
    if [[ "$*" == 'config images list '* ]]; then
      printf 'registry.k8s.io/pause:3\nregistry.k8s.io/etcd:3.6\n'
      return 0
    fi
    echo "kubeadm $*, $(cat var/lib/etcd/member/data), $(cat etc/kubernetes/pki/ca.key)" >>calls
    touch etc/kubernetes/manifests/kube-apiserver.yaml
  }
  kubernetes_in_image() {
    echo "$*" >>calls
    if [[ "$2" == */etcdctl ]]; then
      printf '8e9e, started, node1, https://10.0.0.1:2380, https://10.0.0.1:2379, false\n9a1b, started, old, https://10.0.0.3:2380, , false\n'
      return 0
    fi
    mkdir -p var/lib/etcd/restored/member
    echo "of $4" >var/lib/etcd/restored/member/data
  }
  kubernetes_bypass_proxy() { :; }
  kubernetes_configure() { :; }
  kubernetes_reconfigure() { :; }
  kubernetes_protect_images() { :; }
  kubernetes_schedule_renewal() { :; }
  kubernetes_api_answers() { :; }
  discover_pod_subnet() { :; }
  discover_service_subnet() { :; }
  export CURRENT_KUBERNETES_VERSION="$KUBERNETES_VERSION"
  kubectl() { printf 'node1 10.0.0.1\nnode2 10.0.0.2\nnode3 10.0.0.3\n'; }
}

@test "a control plane is made from a snapshot: its data and keys are there before kubeadm starts etcd" {
  kept_snapshot
  export PRIVATE_ADDRESS=fd00::1 KUBERNETES_INIT_IGNORE_PREFLIGHT_ERRORS=Swap
  # The disk of etcd may have survived.
  mkdir -p var/lib/etcd/member
  curlew() { printf '<%s>' "$@" >>timer; }
  printf '%s\n' --every=21600000ms '--copy-to=/a b/$c' >restore/timer
  run strict kubernetes
  [[ "$(cat timer)" == "<etcd><snapshot><--every=21600000ms><--copy-to=/a b/\$c><--install-dir><$DIR>" ]]
  [[ "$status" -eq 0 ]]
  grep -q '^registry.k8s.io/etcd:3.6 .* snapshot restore .*/restore/etcd.db .*--initial-cluster node1=https://\[fd00::1\]:2380' calls
  grep -q '^kubeadm init .*--ignore-preflight-errors=Swap,DirAvailable--var-lib-etcd, of restore, key$' calls
  [[ "$(stat -c '%a %n' etc/kubernetes/{pki/ca.key,pki/etcd/ca.crt,enc/config.yaml} | cut -d ' ' -f 1 | xargs)" == '600 644 600' ]]
  [[ ! -e restore && ! -e var/lib/etcd/restored && -e "$(echo var/lib/etcd/member.before-restore-*)" ]]
}

@test "a timer of snapshots that does not start on the machine that takes over is named with its command" {
  kept_snapshot
  curlew() { return 1; }
  printf '%s\n' --every=6h --copy-to=s3://backup/shop >restore/timer
  run strict kubernetes
  [[ "$status" -eq 0 && "$output" == *'then run ./tasks.sh etcd snapshot --every=6h --copy-to=s3://backup/shop'* && ! -e restore ]]
}

@test "a snapshot stays for the next attempt if kubeadm fails" {
  kept_snapshot
  kubernetes_explain() { :; }
  kubeadm() { if [[ "$1" == init ]]; then return 1; else echo registry.k8s.io/etcd:3.6; fi; }
  run strict kubernetes_init
  [[ "$status" -ne 0 && -e restore/etcd.db && -e etc/kubernetes/curlew/attempt ]]
}

@test "a snapshot is removed by the next run if the one that made the control plane was cut, and not before that is complete" {
  kept_snapshot
  kubernetes_is_finished() { [[ -e finished ]]; }
  kubeadm() {
    if [[ "$1" == init ]]; then touch etc/kubernetes/manifests/kube-apiserver.yaml && kill $$; else echo registry.k8s.io/etcd:3.6; fi
  }
  run strict kubernetes
  [[ "$status" -ne 0 && -e restore/etcd.db && -e etc/kubernetes/curlew/attempt ]]
  strict kubernetes_drop_snapshot
  [[ -e restore/etcd.db ]]
  touch finished
  run strict kubernetes
  [[ "$status" -eq 0 && ! -e restore && ! -e etc/kubernetes/curlew/attempt ]]
  # An earlier version has left it.
  mkdir restore
  kubernetes_restart_is_due() { false; }
  run strict kubernetes_already_applied
  [[ "$status" -eq 0 && ! -e restore ]]
}

@test "each run names at its end the control planes that etcd has no member of" {
  kept_snapshot
  run strict kubernetes_outro
  [[ "$status" -eq 0 && "$output" != *'no longer'* && ! -e calls ]]
  printf 'spec:\n  image: etcd:1\n  - --advertise-client-urls=https://10.0.0.1:2379\n' >etc/kubernetes/manifests/etcd.yaml
  run strict kubernetes_outro
  [[ "$status" -eq 0 && "$(grep 'no longer' <<<"$output")" == 'node2 is no longer a control plane'*'./tasks.sh node remove node2 --yes' ]]
  grep -q '^etcd:1 usr/local/bin/etcdctl .*--endpoints=https://10.0.0.1:2379 .*member list$' calls
  kubernetes_in_image() { return 1; }
  run strict kubernetes_outro
  [[ "$status" -eq 0 && "$output" == *'not known whether all control planes'* ]]
}

@test "the API server of admin.conf is not looked for behind a proxy" {
  own_machine
  PRIVATE_ADDRESS='' no_proxy='' NO_PROXY='' HTTPS_PROXY=http://proxy:3128
  printf 'clusters:\n- cluster:\n    server: https://10.9.9.9:6443\n' >etc/kubernetes/admin.conf
  kubernetes_bypass_proxy
  [[ ",$NO_PROXY," == *,10.9.9.9,* ]]
}

@test "a component that a cut has left stopped starts again, but never in the place of a newer file" {
  static_pods
  kubernetes_stop_pods kube-apiserver kube-scheduler
  echo newer >manifests/kube-scheduler.yaml
  kubernetes_start_pods
  [[ -e manifests/kube-apiserver.yaml && "$(cat manifests/kube-scheduler.yaml)" == newer && -z "$(ls state/manifests)" ]]
}

@test "each run starts first what a cut has left stopped, before it takes the machine for one without a control plane" {
  own_machine
  local step
  kubernetes_api_answers() { [[ -e etc/kubernetes/manifests/kube-apiserver.yaml ]]; }
  kubernetes_protect_images() { :; }
  kubernetes_require_host() { :; }
  kubernetes_host() { :; }
  kubernetes_configure() { [[ -e etc/kubernetes/manifests/kube-apiserver.yaml ]] && exit 7; }
  kubernetes_is_of_another_cluster() { kubernetes_configure; }
  kubernetes_has_joined() { kubernetes_configure; }
  discover_pod_subnet() { :; }
  discover_service_subnet() { :; }
  mkdir etc/kubernetes/curlew/manifests
  for step in kubernetes kubernetes_join kubernetes_upgrade; do
    rm -f etc/kubernetes/manifests/*
    touch etc/kubernetes/curlew/manifests/kube-apiserver.yaml
    run strict "$step"
    [[ "$status" -eq 7 && "$output" == *'left the control plane stopped'* ]]
  done
  # The API server answers without a scheduler.
  touch etc/kubernetes/curlew/manifests/kube-scheduler.yaml
  strict kubernetes_already_applied
  [ -e etc/kubernetes/manifests/kube-scheduler.yaml ]
}

@test "a component that does not end starts again with the others" {
  static_pods
  kubernetes_processes() { echo 1; }
  run strict kubernetes_restore_etcd /media/shop.db
  [[ "$status" -eq 1 && "$output" == *'does not end'* && "$(cat etcd/member/data)" == old && ! -e etcd/restored ]]
  [[ -e manifests/etcd.yaml && -e manifests/kube-apiserver.yaml ]]
  kubeadm() { :; }
  run strict kubernetes_renew_certificates
  [[ "$status" -eq 1 && "$output" == *'kubernetes: etcd does not end'*'with the new ones only: none.'* && -e manifests/etcd.yaml ]]
}

@test "a renewal that stops says which components have the new certificates, and leaves none stopped" {
  static_pods
  kubeadm() { :; }
  local -x broken='kube-apiserver livenessProbe'
  run strict kubernetes_renew_certificates
  [[ "$status" -eq 1 && "${lines[-1]}" == *'kubernetes: kube-apiserver does not come back: see crictl'*'with the new ones only: etcd.'* ]]
  [[ "$(ls manifests | wc -l)" -eq 4 && "$output" != *'Restarting kube-scheduler'* ]]
  kubeadm() { return 1; }
  run strict kubernetes_renew_certificates
  [[ "$status" -eq 1 && "$output" == *'nothing has restarted'* && "$output" != *Restarting* ]]
}

@test "expired certificates of a control plane whose etcd has no quorum are renewed, and the others are named" {
  static_pods
  kubeadm() { :; }
  local -x broken='etcd readinessProbe'
  kubernetes_api_answers() { false; }
  run strict kubernetes_renew_certificates
  [[ "$status" -eq 1 && "$output" == *'Restarting kube-scheduler'*'etcd, kube-apiserver, kube-controller-manager, kube-scheduler have restarted'* ]]
  [[ "$output" == *'no quorum yet: run the same command there'* && "$(ls manifests | wc -l)" -eq 4 ]]
}

@test "of a snapshot that is damaged nothing is changed, and the reason has no stack" {
  static_pods
  kubernetes_in_image() {
    echo "$3 $4" >>calls
    printf '2026-01-01T00:00:00Z\tinfo\tsnapshot/v3.go\tfetching\nunexpected 50%% at page 7\npanic: page 7 is \\no page\n\n'
    printf 'goroutine 1 [running]:\ngo.etcd.io/bbolt.(*DB).page\n'
    return 2
  }
  run strict kubernetes_restore_etcd /media/shop.db
  [[ "$status" -eq 1 && "$output" == *'kubernetes: cannot restore /media/shop.db, and nothing is changed: unexpected 50% at page 7 panic: page 7 is \no page. If'* ]]
  [[ "$output" != *goroutine* && "$output" != *Stopping* && "$(grep -c snapshot calls)" -eq 1 && "$(cat etcd/member/data)" == old ]]
}

@test "of a long line that a program has printed, the reason has the beginning and the end" {
  prepare
  run strict kubernetes_reason "cannot read $(printf 'x%.0s' {1..600}): no space left on device"
  [[ "$output" == 'cannot read x'*'x…x'*': no space left on device' && "$(wc -m <<<"$output")" -le 404 ]]
}

@test "etcd that does not start with the data of a snapshot starts with its own again" {
  static_pods
  local -x broken='etcd livenessProbe'
  run strict kubernetes_restore_etcd /media/shop.db
  [[ "$status" -eq 1 && "${lines[-1]}" == *'does not start with the data of /media/shop.db, and starts with its own again'* ]]
  [[ "$(cat etcd/member/data)" == old && "$(ls etcd)" == member && "$(ls manifests | wc -l)" -eq 4 ]]
}

@test "an API server that does not answer after a restore is a failure that says where the former data is" {
  static_pods
  kubernetes_api_answers() {
    printf '%s\n' 'Error from server (InternalError): an error on the server ("[+]ping ok' '[-]etcd failed: reason withheld' '[+]log ok' \
      'readyz check failed") has prevented the request from succeeding' >&2
    return 1
  }
  run strict kubernetes_restore_etcd /media/shop.db
  [[ "$status" -eq 1 && "$output" == *'but the API server does not answer: [-]etcd failed: reason withheld readyz check failed'* ]]
  [[ "$output" == *'What etcd had is in '*/member.before-restore-* && "$(grep -c 'readyz check failed' <<<"$output")" -eq 1 ]]
  [[ "$output" != *'ping ok'* && "$(cat etcd/member/data)" == new && -e manifests/kube-apiserver.yaml ]]
}

@test "an API server that answers after some tries restores without a word of them" {
  static_pods
  kubernetes_api_answers() {
    echo try >>tries
    if [[ "$(wc -l <tries)" -gt 3 ]]; then return 0; fi
    echo 'The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?' >&2
    return 1
  }
  run strict kubernetes_restore_etcd /media/shop.db
  [[ "$status" -eq 0 && "$output" == *'etcd has the data of /media/shop.db'* && "$output" != *refused* ]]
}

@test "a component runs where its static pod does, whatever other pods and programs are called" {
  prepare
  local alive=1
  curlew_ctr() {
    [[ -n "$alive" ]] || return 1
    echo 'level=warning msg="cgroup v1 is deprecated"' >&2
    case "$*" in
      "containers list --quiet "*'"kube-system"'*'=="etcd"'*'pod.uid"~="^[0-9a-f]+$"') lines own ended ;;
      "containers list --quiet "*) ;;
      'tasks list') lines 'TASK PID STATUS' 'own 17 RUNNING' 'other 18 RUNNING' 'ended 19 STOPPED' ;;
    esac
  }
  [ "$(kubernetes_processes etcd 2>&1)" = 17 ]
  kubernetes_is_running etcd
  ! kubernetes_is_stopped etcd
  kubernetes_is_stopped kube-scheduler
  # It may run.
  alive=''
  ! kubernetes_is_running etcd
  ! kubernetes_is_stopped etcd
}

@test "a component is asked as the kubelet asks it" {
  prepare
  KUBERNETES_MANIFESTS="$PWD/manifests"
  mkdir manifests
  cat >manifests/etcd.yaml <<'EOF'
spec:
  containers:
  - command:
    - etcd
    livenessProbe:
      failureThreshold: 8
      httpGet:
        host: '::1'
        path: /livez
        port: probe-port
        scheme: HTTP
    name: etcd
    ports:
    - containerPort: 2381
      name: probe-port
      protocol: TCP
    readinessProbe:
      httpGet:
        path: /readyz?a=b
        port: 6443
        scheme: HTTPS
EOF
  [ "$(kubernetes_probe livenessProbe manifests/etcd.yaml)" = 'http://[::1]:2381/livez' ]
  [ "$(kubernetes_probe readinessProbe manifests/etcd.yaml)" = 'https://127.0.0.1:6443/readyz?a=b' ]
  run kubernetes_probe startupProbe manifests/etcd.yaml
  [ "$status" -eq 1 ]
  kubectl() { echo "$*" >>calls; }
  kubernetes_answers etcd readinessProbe
  [[ "$(cat calls)" == *'--server=https://127.0.0.1:6443 '*'get --raw /readyz?a=b' ]]
  kubectl() { echo "$answer" && return 1; }
  local answer='The connection was refused'
  ! kubernetes_answers etcd readinessProbe
  # The kubelet has a token for it.
  answer='error: You must be logged in to the server (Unauthorized)'
  kubernetes_answers etcd readinessProbe
  answer=
  printf '    livenessProbe:\n      tcpSocket:\n        port: 6443\n' >manifests/kube-apiserver.yaml
  kubernetes_answers kube-apiserver livenessProbe
}

@test "a snapshot that does not fit next to the data of etcd is not restored" {
  prepare
  truncate -s 3G shop.db
  df() { printf ' Avail\n%s\n' "$left"; }
  left=4000M
  kubernetes_require_space etcd shop.db
  left=3200M
  run kubernetes_require_space etcd shop.db
  [[ "$status" -eq 1 && "$output" == *'3328 MiB are needed, 3200 MiB are free'* ]]
}

@test "etcd does not start without its data after a restore that was cut" {
  static_pods
  kubernetes_stop_pods etcd
  mv etcd/member etcd/member.before-restore-1
  run strict kubernetes_start_pods
  [[ "$status" -eq 1 && "$output" == *'run it again first'* && ! -e manifests/etcd.yaml ]]
  kubernetes_restore_etcd /media/shop.db
  [[ "$(cat etcd/member/data)" == new && "$(cat etcd/member.before-restore-1/data)" == old && -e manifests/etcd.yaml ]]
}

@test "without the program that reads snapshots the control plane goes on" {
  static_pods
  kubernetes_in_image() (mkdir -p etcd/restored && bail 'etcd:1 has no etcdutl')
  run strict kubernetes_restore_etcd /media/shop.db
  [[ "$status" -eq 1 && "$(cat etcd/member/data)" == old && -e manifests/etcd.yaml && ! -e etcd/restored ]]
}

@test "add-ons come after an API server that stays, not after the first answer of one that is about to restart" {
  prepare
  local asked=0
  # It goes away after five answers, for three questions.
  kubernetes_api_answers() {
    asked=$((asked + 1))
    ((asked <= 5 || asked > 8))
  }
  kubernetes_wait_until_settled
  [ "$asked" = 23 ]
  kubernetes_api_answers() { false; }
  run kubernetes_wait_until_settled
  [ "$status" != 0 ]
  [[ "$output" == *'did not answer for 15 seconds in a row'* ]]
}

@test "add-ons wait less once the kubelet has replaced every static pod, and no less where it may yet" {
  prepare
  KUBERNETES_MANIFESTS="$PWD/manifests"
  mkdir manifests
  touch manifests/etcd.yaml
  echo '    kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint: 10.0.0.1:6443' >manifests/kube-apiserver.yaml
  local asked=0 api=10.0.0.1:6443
  kubernetes_api_address() { echo "$api"; }
  local -A starts=([kubelet]=200 [etcd]=210 [kube-apiserver]=100)
  curlew_main_pid() { echo "$1"; }
  kubernetes_processes() { echo "$1"; }
  kubernetes_start_of() { echo "${starts[$1]-0}"; }
  # The API server is replaced after five answers, and does not answer to three questions.
  kubernetes_api_answers() {
    asked=$((asked + 1))
    if ((asked == 8)); then starts[kube-apiserver]=220; fi
    ((asked <= 5 || asked > 8))
  }
  kubernetes_wait_until_settled 150
  [ "$asked" = 11 ]
  settled_after() {
    asked=100
    kubernetes_wait_until_settled "$@"
    [ "$((asked - 100))" = "$answers" ]
  }
  local answers=3
  settled_after 150
  answers=15
  # The kubelet has not restarted since, so it may have the former files.
  settled_after 250
  settled_after 200
  settled_after
  # etcd is that of the kubelet before, or is not there yet.
  starts[etcd]=190
  settled_after 150
  starts[etcd]=0
  settled_after 150
  starts[etcd]=210
  # Other control planes may answer behind a balancer.
  api=10.0.0.100:6443
  settled_after 150
  api=10.0.0.1:6443
  # A static pod of another name.
  touch manifests/balancer.yaml
  settled_after 150
}

@test "the start of a process is known, whatever its name is" {
  prepare
  cp "$(type -P sleep)" 'a) b (c'
  local before after program
  before="$(kubernetes_start_of self)"
  command sleep 0.05
  ./'a) b (c' 60 &
  program=$!
  command sleep 0.05
  after="$(kubernetes_start_of self)"
  local start
  start="$(kubernetes_start_of "$program")"
  kill "$program"
  ((before < start && start < after))
  wait "$program" || true
  [[ "$(kubernetes_start_of "$program") $(kubernetes_start_of '') $(kubernetes_start_of 0)" == '0 0 0' ]]
}

@test "files of kubeadm that are gone are put back, but for keys of authorities and what was moved away" {
  own_machine
  local folder="$PWD/etc/kubernetes" file
  mkdir -p etc/kubernetes/pki/etcd
  for file in manifests/etcd.yaml manifests/kube-scheduler.yaml pki/ca.crt pki/ca.key pki/etcd/ca.key pki/sa.key scheduler.conf super-admin.conf; do
    echo "$file" >"$folder/$file"
  done
  chmod 600 "$folder/pki/sa.key"
  kubernetes_keep_files
  mkdir -p etc/kubernetes/curlew/manifests
  mv "$folder/manifests/kube-scheduler.yaml" etc/kubernetes/curlew/manifests/
  rm -r "$folder"/{pki,scheduler.conf,super-admin.conf,manifests/etcd.yaml}
  run kubernetes_restore_files
  [[ "$status" -eq 0 && "$output" == *"$folder/manifests/etcd.yaml is missing, and is put back"* ]]
  [ "$(cd "$folder" && find . -path ./curlew -prune -o -type f -print | sort)" = "$(lines ./manifests/etcd.yaml ./pki/ca.crt ./pki/sa.key ./scheduler.conf)" ]
  [[ "$(stat -c %a "$folder/pki/sa.key")" == 600 && "$(cat "$folder/pki/ca.crt")" == pki/ca.crt ]]
  # What an unfinished attempt has left is not completed.
  rm "$folder/scheduler.conf"
  touch etc/kubernetes/curlew/attempt
  kubernetes_restore_files
  [ ! -e "$folder/scheduler.conf" ]
}

@test "kubeadm writes the static pods of a control plane that has kept no files, or it is said where they come from" {
  own_machine
  mkdir -p etc/kubernetes/pki/etcd
  touch etc/kubernetes/pki/apiserver.crt etc/kubernetes/pki/etcd/server.crt etc/kubernetes/manifests/kube-{apiserver,scheduler}.yaml
  run strict kubernetes_remake_manifests
  [[ "$status" -eq 1 && "$output" == *"manifests/etcd.yaml is missing, and this node has no copy of it: copy it from another control plane"* ]]
  touch "$KUBERNETES_STATE/init.yaml"
  kubernetes_remake_manifests
  [ "$(cat calls)" = "$(lines "kubeadm init phase etcd local --config $KUBERNETES_STATE/init.yaml" \
    "kubeadm init phase control-plane controller-manager --config $KUBERNETES_STATE/init.yaml")" ]
  # An etcd elsewhere has no certificates here.
  rm etc/kubernetes/pki/etcd/server.crt calls
  touch etc/kubernetes/manifests/kube-controller-manager.yaml
  kubernetes_remake_manifests
  [ ! -e calls ]
}

@test "a node whose runtime has stopped runs again, and its network add-on writes what is missing" {
  own_machine
  # shellcheck source=/dev/null
  source <(sed -E "s,/etc/(cni|kubernetes),$PWD/etc/\\1,g" "packages/kubernetes/$NEWEST/install.sh")
  mkdir -p etc/cni/net.d
  ctr() { [[ -e runs ]]; }
  systemctl() {
    echo "systemctl $*" >>calls
    if [[ "$*" == 'restart containerd' ]]; then touch runs; fi
  }
  kubectl() {
    case "$*" in
      *'get pods'*) printf 'kube-flannel flannel-1 install\nkube-system kube-proxy-1 \n' ;;
      *'delete pod'*) echo "kubectl ${*: -4}" >>calls ;;
      *jsonpath*) echo True ;;
    esac
  }
  strict kubernetes_repair
  grep -qx 'systemctl restart containerd' calls
  grep -qx 'systemctl restart kubelet' calls
  grep -qx 'kubectl delete pod flannel-1 --wait=false' calls
  ! grep -q kube-proxy calls
}
