# shellcheck shell=bash
# Snapshots of etcd by a timer, encrypted, with copies in a folder and in S3: what says that they fail, and the copy in S3 brings a bare machine
# and its worker back. Sourced by scripts/grid.

S3="$GRID/s3"
S3_ADDRESS="$GRID_NETWORK.1:7070"
S3_KEYS=(grid-key grid-secret-of-s3)

# usage: in_network COMMAND…; on a machine that is none of the nodes
in_network() {
  nsenter --net --target "$(cat "$GRID_RUN/engine")" "$@"
}

# It ends with the engine.
start_s3() {
  mkdir -p "$S3/data/backup" "$S3/side"
  ROOT_ACCESS_KEY="${S3_KEYS[0]}" ROOT_SECRET_KEY="${S3_KEYS[1]}" in_network --pid="/proc/$(cat "$GRID_RUN/engine")/ns/pid_for_children" \
    "$TOOLS/bin/versitygw" --quiet --port "$S3_ADDRESS" posix --sidecar "$S3/side" "$S3/data" >>"$GRID/logs/s3" 2>&1 9>&- &
  echo $! >"$S3/pid"
  grid_until 20 in_network curl --silent --max-time 2 --output /dev/null "http://$S3_ADDRESS/"
}

stop_s3() {
  local process child
  process="$(cat "$S3/pid")"
  # The server is the last of the programs of which each has started the next.
  while child="$(pgrep --parent "$process")"; do process="$child"; done
  kill "$process" && ! grid_until 5 in_network curl --silent --max-time 2 --output /dev/null "http://$S3_ADDRESS/"
}

# An identity of age, and one that is for nothing. The keys of S3 are on the node only where the page says.
identities() {
  rm -rf "$S3"
  (umask 077 && mkdir -p "$S3" && for name in own other; do
    # shellcheck disable=SC2016
    node --input-type=module -e '
      import { generateIdentity, identityToRecipient } from "age-encryption";
      const identity = await generateIdentity();
      console.log(`# public key: ${await identityToRecipient(identity)}\n${identity}`);' >"$S3/$name" || exit 1
  done)
}

recipient() {
  sed -n 's/^# public key: //p' "$S3/own"
}

keys_are_there() {
  on one 20 sh -c "umask 077; mkdir -p /etc/kubernetes/curlew
    printf 'AWS_ACCESS_KEY_ID=%s\nAWS_SECRET_ACCESS_KEY=%s\n' '${S3_KEYS[0]}' '${S3_KEYS[1]}' >/etc/kubernetes/curlew/snapshot.env"
}

# usage: timer EVERY; the command as on the page, with the variables of the timer
timer() {
  # shellcheck disable=SC2016
  on one 120 sh -c 'set -a && . /etc/kubernetes/curlew/snapshot.env && exec /root/bundle/tasks.sh etcd snapshot "$@"' snapshot --every "$1" \
    --copy-to s3://backup/shop --s3-endpoint "http://$S3_ADDRESS" --s3-region us-east-1 --s3-path-style --recipient "$(recipient)"
}

# usage: fails TEXT COMMAND…
fails() {
  local text
  if text="$("${@:2}" 2>&1)"; then return 1; fi
  printf '%s\n' "$text"
  [[ "$text" == *"$1"* && "$text" != *"${S3_KEYS[1]}"* && "$text" != *AGE-SECRET* ]]
}

# Without a server nothing is repeated, and status says it.
timer_needs_its_store() {
  keys_are_there && fails "$S3_ADDRESS" timer 30s && ! on one 10 systemctl is-enabled curlew-etcd-snapshot.timer &&
    status_says 'the snapshot of etcd has failed on ' 0
}

# usage: status_says TEXT SUCCESS; and what node_exporter gets
status_says() {
  local text
  text="$(on one 60 /root/bundle/tasks.sh status --prometheus /root/curlew.prom)" || return 1
  printf '%s\n' "$text"
  [[ "$text" == *"$1"* ]] && on one 10 grep -x "curlew_etcd_snapshot_success $2" /root/curlew.prom
}

# usage: copies; of the node, in S3
copies() {
  find "$S3/data/backup/shop/one" -name 'etcd-*.tar.age' 2>/dev/null | sort
}

timer_starts() {
  local text
  text="$(timer 30s)" || return 1
  printf '%s\n' "$text"
  [[ "$text" == *'s3://backup/shop/one/etcd-'*'curlew-etcd-snapshot.timer repeats this'* && "$(copies | wc -l)" == 1 ]] || return 1
  head -c 21 "$(copies)" | grep -q age-encryption.org/v1 && on one 10 systemctl is-active curlew-etcd-snapshot.timer &&
    ! on one 10 grep -r "${S3_KEYS[1]}" /etc/systemd/system /root/curlew.prom || return 1
  [[ "$(on one 10 sh -c 'stat -c %a /var/lib/curlew/etcd/*.tar.age' | sort -u)" == 600 ]]
}

copy_in_a_folder() {
  on one 60 /root/bundle/tasks.sh etcd snapshot --copy-to /root/copies --recipient "$(recipient)" &&
    [[ "$(on one 10 sh -c 'stat -c %a /root/copies/one/etcd-*.tar.age')" == 600 ]] && fails 'FILE_UNUSABLE' copy_to_a_file
}

copy_to_a_file() {
  on one 60 /root/bundle/tasks.sh etcd snapshot --copy-to /etc/hostname
}

# systemd itself, within its accuracy of a minute.
timer_repeats() {
  local before
  before="$(copies | wc -l)"
  grid_until 150 more_copies "$before" && status_says '' 1
}

more_copies() {
  (($(copies | wc -l) > $1))
}

no_snapshot_runs() {
  [[ "$(on one 10 systemctl show --property ActiveState --value curlew-etcd-snapshot.service)" =~ ^(inactive|failed)$ ]]
}

lost_store_is_named() {
  local text
  # A run that has its copy already would be the one that is waited for.
  on one 10 systemctl stop curlew-etcd-snapshot.timer && grid_until 60 no_snapshot_runs && stop_s3 || return 1
  if on one 120 systemctl start curlew-etcd-snapshot.service; then return 1; fi
  text="$(on one 20 sh -c 'systemctl --failed --no-legend; journalctl --no-pager --unit curlew-etcd-snapshot -n 20')" || return 1
  printf '%s\n' "$text"
  [[ "$text" == *curlew-etcd-snapshot.service*"$S3_ADDRESS"* && "$text" != *"${S3_KEYS[1]}"* ]] &&
    status_says 'the snapshot of etcd has failed on ' 0
}

store_comes_back() {
  start_s3 && on one 60 systemctl start curlew-etcd-snapshot.service && ! status_says 'the snapshot of etcd has failed' 1 &&
    on one 10 grep -x 'curlew_etcd_snapshot_success 1' /root/curlew.prom
}

# What is restored later: another timer takes the place of the first.
last_copy() {
  kubectl_on one create configmap before && timer 6h && kubectl_on one create configmap after &&
    on one 10 grep -q OnUnitActiveSec=21600s /etc/systemd/system/curlew-etcd-snapshot.timer
}

worker_joins() {
  join_file two && join_on two && node_ready two && pods_talk
}

# The pods of the worker, which nothing may end.
pods_of_two() {
  on two 20 crictl ps --quiet | sort
}

control_plane_is_destroyed() {
  pods_of_two >"$GRID/pods-of-two" && [[ -s "$GRID/pods-of-two" ]] && grid_docker 30 rm --force --volumes one
}

# By any program for S3.
copy_is_fetched() {
  local key
  key="$(copies | tail -n 1)"
  in_network curl --silent --show-error --fail --aws-sigv4 aws:amz:us-east-1:s3 --user "${S3_KEYS[0]}:${S3_KEYS[1]}" \
    --header 'x-amz-content-sha256: UNSIGNED-PAYLOAD' --output "$S3/fetched.tar.age" "http://$S3_ADDRESS/${key#"$S3/data/"}" &&
    grid_docker 60 cp "$S3/fetched.tar.age" one:/root/shop.tar.age && grid_docker 20 cp "$S3/own" one:/root/own &&
    grid_docker 20 cp "$S3/other" one:/root/other
}

restore() {
  on one 400 /root/bundle/tasks.sh etcd restore "$@"
}

# A byte in the middle, and one that is missing at the end.
bad_restores() {
  fails 'the identity of a recipient is missing' restore /root/shop.tar.age --confirm one &&
    fails 'it is encrypted for others' restore /root/shop.tar.age --identity /root/other --confirm one || return 1
  # shellcheck disable=SC2016
  on one 20 bash -c 'cd /root && cp shop.tar.age changed.tar.age && size=$(stat -c %s shop.tar.age) &&
    byte=$(od -An -tu1 -j $((size / 2)) -N 1 shop.tar.age) &&
    printf "\\x$(printf %x $((byte ^ 1)))" | dd of=changed.tar.age bs=1 seek=$((size / 2)) conv=notrunc status=none &&
    head -c -1 shop.tar.age >cut.tar.age' || return 1
  fails 'changed.tar.age is not a whole snapshot of etcd' restore /root/changed.tar.age --identity /root/own --confirm one &&
    fails 'cut.tar.age is not a whole snapshot of etcd' restore /root/cut.tar.age --identity /root/own --confirm one &&
    on one 20 sh -c 'test ! -e /etc/kubernetes/pki && test ! -e /var/lib/curlew/restore'
}

bare_machine_takes_over() {
  restore /root/shop.tar.age --identity /root/own --confirm one && on one 20 rm /root/own && install_on one
}

cluster_is_back() {
  grid_until 120 control_plane_works && grid_until 120 node_ready two && pods_talk &&
    [[ "$(kubectl_on one get configmaps before after --ignore-not-found --output=name)" == configmap/before ]] &&
    [[ -z "$(comm -23 "$GRID/pods-of-two" <(pods_of_two))" ]]
}

step 'an identity of age' identities
step 'node one boots' grid_start_node one 1
step 'unpack the bundle' unpack one
step 'install' install_on one
step 'node two boots' grid_start_node two 2
step 'unpack the bundle' unpack two
step 'two joins as a worker' worker_joins
step 'no timer without its store' timer_needs_its_store
step 'S3 starts' start_s3
step 'a timer starts' timer_starts
step 'a copy in a folder' copy_in_a_folder
step 'the timer repeats it' timer_repeats
step 'a store that is lost is named' lost_store_is_named
step 'the store comes back' store_comes_back
step 'another timer, and its copy' last_copy
step 'the only control plane is destroyed' control_plane_is_destroyed
step 'a bare machine boots' grid_start_node one 1
step 'unpack the bundle' unpack one
step 'the copy is fetched from S3' copy_is_fetched
step 'restores that are refused' bad_restores
step 'the bare machine takes over' bare_machine_takes_over
step 'the cluster is back' cluster_is_back
