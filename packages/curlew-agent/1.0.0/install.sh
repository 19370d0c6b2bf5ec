# shellcheck shell=bash
# The agent as a service. It may be the one that runs this: the service is restarted after the hook has ended.

CURLEW_AGENT_PROGRAM=/usr/local/bin/curlew-agent
CURLEW_AGENT_UNIT=/etc/systemd/system/curlew-agent.service

curlew-agent() {
  local source="$DIR/packages/curlew-agent/$CURLEW_AGENT_VERSION/assets/curlew"
  # A program that runs cannot be written, but replaced.
  install -m 0755 "$source" "$CURLEW_AGENT_PROGRAM.new"
  mv "$CURLEW_AGENT_PROGRAM.new" "$CURLEW_AGENT_PROGRAM"
  curlew_agent_unit >"$CURLEW_AGENT_UNIT.new"
  mv "$CURLEW_AGENT_UNIT.new" "$CURLEW_AGENT_UNIT"
  systemctl daemon-reload
  systemctl enable curlew-agent
  curlew_agent_restart
}

# Fails, so that the package is installed again, if the service is gone.
curlew-agent_already_applied() {
  systemctl is-enabled --quiet curlew-agent
}

curlew-agent_uninstall() {
  systemctl disable curlew-agent 2>/dev/null || true
  rm -f "$CURLEW_AGENT_UNIT" "$CURLEW_AGENT_PROGRAM"
  systemctl daemon-reload
  # Its own removal: what it has to report comes first.
  systemctl stop --no-block curlew-agent 2>/dev/null || true
}

curlew_agent_restart() {
  if systemctl is-active --quiet curlew-agent; then
    systemd-run --quiet --on-active=30 systemctl restart curlew-agent
  else
    systemctl start --no-block curlew-agent
  fi
}

curlew_agent_unit() {
  local words="agent run --kubeconfig ${CURLEW_AGENT_KUBECONFIG:-/etc/kubernetes/admin.conf}"
  [[ -z "${CURLEW_AGENT_FROM-}" ]] || words+=" --from $CURLEW_AGENT_FROM"
  cat <<UNIT
[Unit]
Description=curlew: the agent of a fleet
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=$CURLEW_AGENT_PROGRAM $words
Restart=always
RestartSec=30

[Install]
WantedBy=multi-user.target
UNIT
}
