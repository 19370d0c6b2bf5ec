# shellcheck shell=bash
# A server on every node, with which the grid tests the network.

web() {
  kubectl apply -f "$DIR/addons/web/$WEB_VERSION/web.yaml"
  spinner_until 120 web_already_applied || bail "web: no pod runs"
}

web_already_applied() {
  [[ "$(kubectl get daemonset web -o jsonpath='{.status.numberReady}')" =~ ^[1-9] ]]
}

web_pre_remove() {
  kubectl delete -f "$DIR/addons/web/$WEB_VERSION/web.yaml" --ignore-not-found --timeout=60s
}
