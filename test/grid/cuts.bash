# shellcheck shell=bash
# One node whose first install is killed at seconds of kubeadm init, and whose upgrade is killed after its last hook. Sourced by scripts/grid.

RANDOM="$GRID_SEED"
# Seconds after kubeadm init has begun.
INSTALL_KILLS=($((RANDOM % 4)) $((RANDOM % 5 + 4)) $((RANDOM % 10)))
APPLY=("${IGNORE[@]}" airgap installer-spec-file=/media/node-settings.yaml)

# usage: killed_install FILE SECONDS; kill -9 of the install and all its processes, so long after it has written this file. Then curlew says
# why the machine is in no cluster, unless kubeadm was quicker.
killed_install() {
  local text
  # shellcheck disable=SC2016
  on one 300 bash -c '
    file="$1" seconds="$2"; shift 2
    touch /run/begun
    setsid "$@" >/run/killed.log 2>&1 &
    until test "$file" -nt /run/begun; do kill -0 $! 2>/dev/null || { wait $!; exit; }; sleep 0.02; done
    sleep "$seconds"
    kill -9 -- -$!; ! wait $! || test ! -e /etc/kubernetes/curlew/attempt' killed "$1" "$2" /root/bundle/install.sh "${APPLY[@]}" || return 1
  text="$(on one 60 /root/bundle/tasks.sh status)" || return 1
  printf '%s\n' "$text"
  on one 20 test -e /etc/kubernetes/curlew/attempt || return 0
  [[ "$text" == *'kubeadm init or join has not finished'* ]]
}

# The API server is stopped from the last hooks on, so that the end of the run takes its time.
killed_before_uncordon() {
  # shellcheck disable=SC2016
  on one 600 bash -c '
    newest() { ls /var/lib/curlew/runs | tail -n 1; }
    begun() { grep -qs "\"type\":\"started\",\"action\":\"$1\"" "/var/lib/curlew/runs/$(newest)/journal.jsonl"; }
    before="$(newest)"
    setsid "$@" >/run/killed.log 2>&1 &
    until [[ "$(newest)" != "$before" ]] && begun "hook kubernetes_outro"; do kill -0 $! || exit 1; sleep 0.02; done
    pkill -STOP -x kube-apiserver
    until begun "node uncordon"; do kill -0 $! || exit 1; sleep 0.02; done
    kill -9 -- -$! && ! wait $!
    status=$?
    pkill -CONT -x kube-apiserver
    exit "$status"' killed /root/bundle/upgrade.sh "${APPLY[@]}" && grid_until 60 cordoned_is true
}

# usage: cordoned_is true|''
cordoned_is() {
  local found
  found="$(kubectl_on one get node one -o jsonpath='{.spec.unschedulable}')" && [[ "$found" == "$1" ]]
}

what_is_left_is_shown() {
  local text
  text="$(on one 60 /root/bundle/tasks.sh why kubernetes)" || return 1
  printf '%s\n' "$text"
  [[ "$text" == *'node uncordon'* ]]
}

resume_uncordons() {
  on one 600 /root/bundle/tasks.sh resume && cordoned_is '' && node_ready one && control_plane_works
}

# As a version of curlew before this one left it.
earlier_cordon_is_lifted() {
  kubectl_on one annotate node one curlew.dev/cordon=v1 && kubectl_on one cordon one && install_on one && cordoned_is ''
}

note "The first install is killed when admin.conf is there, and ${INSTALL_KILLS[*]} s after kubeadm init has begun"
step 'node one boots' grid_start_node one 1
step 'unpack the bundle before it' unpack one "$GRID_BEFORE"
# Its rights come seconds later.
step 'an install that was killed with admin.conf says so' killed_install /etc/kubernetes/admin.conf 0
for seconds in "${INSTALL_KILLS[@]}"; do
  step "the same at $seconds s" killed_install /etc/kubernetes/curlew/attempt "$seconds"
done
step 'its repeat completes it' install_on one
step 'the control plane works' control_plane_works
step 'unpack the bundle on one' unpack one
step 'an upgrade is killed after its last hook' killed_before_uncordon
step 'why shows what is left' what_is_left_is_shown
step 'resume uncordons the node' resume_uncordons
step 'a cordon of an earlier version is lifted' earlier_cordon_is_lifted
step 'second run restarts nothing' nothing_restarts
