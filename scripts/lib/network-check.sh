# shellcheck shell=bash
# Checks that pods reach each other by name.

curlew_kurlnet() {
  cat <<YAML
apiVersion: v1
kind: Service
metadata:
  name: kurlnet
  namespace: default
spec:
  selector: {app: kurlnet, component: server}
  ports:
  - {protocol: TCP, port: 8080, targetPort: 8080}
---
apiVersion: v1
kind: Pod
metadata:
  name: kurlnet-server
  namespace: default
  labels: {app: kurlnet, component: server}
spec:
  restartPolicy: OnFailure
  containers:
  - name: pod
    image: "${KURL_UTIL_IMAGE-}"
    command: [/usr/local/bin/network, --server]
---
apiVersion: v1
kind: Pod
metadata:
  name: kurlnet-client
  namespace: default
  labels: {app: kurlnet, component: client}
spec:
  restartPolicy: OnFailure
  containers:
  - name: pod
    image: "${KURL_UTIL_IMAGE-}"
    command: [/usr/local/bin/network, --client, --address, "http://kurlnet.default.svc.cluster.local:8080"]
YAML
}

curlew_kurlnet_remove() {
  kubectl -n default delete pods kurlnet-client kurlnet-server --force --grace-period=0 --ignore-not-found >/dev/null 2>&1 ||
    true
}

# Waits for a ready node, then lets two pods of kURL's helper image communicate. They must start within 120 s and succeed
# within 60 s; otherwise it shows the log and waits without a limit.
check_network() {
  logStep 'Checking cluster networking'
  if [[ -z "${KURL_UTIL_IMAGE-}" ]]; then
    bail 'KURL_UTIL_IMAGE is empty, and pods of that image check cluster networking: publish packages/curlew-utils of curlew with the add-ons'
  fi
  if ! kubernetes_any_node_ready; then
    echo 'Waiting up to 10 minutes for node to report Ready'
    if ! spinner_until 600 kubernetes_any_node_ready; then
      kubectl get nodes || true
      bail 'Any Node failed to report Ready'
    fi
  fi
  curlew_kurlnet_remove
  curlew_kurlnet | kubectl apply -f -
  echo 'Waiting for kurlnet-client pod to start'
  if ! spinner_until 120 kubernetes_pod_started kurlnet-client default; then
    bail 'kurlnet-client pod failed to start'
  fi
  if ! spinner_until 60 kubernetes_pod_completed kurlnet-client default; then
    logWarn 'There appears to be a problem with cluster networking'
    kubectl -n default logs kurlnet-client || true
    spinner_until -1 kubernetes_pod_completed kurlnet-client default
  fi
  if ! kubernetes_pod_succeeded kurlnet-client default; then
    bail 'kurlnet-client pod failed to validate cluster networking'
  fi
  curlew_kurlnet_remove
  kubectl -n default delete service kurlnet --ignore-not-found
}
