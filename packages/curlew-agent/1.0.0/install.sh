# shellcheck shell=bash
# The agent as a service, which may be the one that runs this.

CURLEW_AGENT_PROGRAM=/usr/local/bin/curlew-agent
CURLEW_AGENT_UNIT=/etc/systemd/system/curlew-agent.service
CURLEW_AGENT_CGROUP=/proc/self/cgroup

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
  curlew_agent_runs_this || systemctl stop curlew-agent 2>/dev/null || true
}

# The agent that runs this hook ends by itself between two jobs when its program is another one or gone: what it has to report comes
# first, and no other hook is killed.
curlew_agent_runs_this() {
  grep -q '/curlew-agent\.service' "$CURLEW_AGENT_CGROUP"
}

curlew_agent_restart() {
  if curlew_agent_runs_this; then
    return
  elif systemctl is-active --quiet curlew-agent; then
    systemctl restart curlew-agent
  else
    systemctl start --no-block curlew-agent
  fi
}

curlew_agent_unit() {
  local word words=''
  for word in "$CURLEW_AGENT_PROGRAM" agent run --kubeconfig "${CURLEW_AGENT_KUBECONFIG:-/etc/kubernetes/admin.conf}" \
    ${CURLEW_AGENT_FROM:+--from "$CURLEW_AGENT_FROM"}; do
    word="${word//\\/\\\\}" word="${word//\"/\\\"}" word="${word//%/%%}"
    words+=" \"${word//\$/\$\$}\""
  done
  cat <<UNIT
[Unit]
Description=curlew: the agent of a fleet
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=${words# }
Restart=always
RestartSec=30

[Install]
WantedBy=multi-user.target
UNIT
}
