# shellcheck shell=bash
# systemd services.

curlew_main_pid() {
  local line
  line="$(systemctl show --property MainPID "$1")"
  printf '%s\n' "${line#MainPID=}"
}

# usage: curlew_has_restarted OLD-PID UNIT
curlew_has_restarted() {
  local pid
  systemctl is-active --quiet "$2" || return 1
  pid="$(curlew_main_pid "$2")"
  [[ "$pid" != 0 && "$pid" != "$1" && ! -d "/proc/$1/task" ]]
}

# usage: restart_systemd_and_wait UNIT
# Restarts it and waits up to 120 s for a new main process; otherwise shows the journal and bails.
restart_systemd_and_wait() {
  local unit="$1" pid
  pid="$(curlew_main_pid "$unit")"
  # Process 0 means none.
  if [[ "$pid" == 0 ]]; then pid=none; fi
  logSubstep "Restarting ${unit//%/%%}..."
  systemctl restart "$unit"
  log "Checking if $unit was restarted successfully"
  if ! spinner_until 120 curlew_has_restarted "$pid" "$unit"; then
    journalctl -xe --no-pager --lines 200 || true
    bail "Could not successfully restart systemd service ${unit//%/%%}"
  fi
  logSuccess "Service ${unit//%/%%} restarted."
}

# usage: curlew_start_service UNIT
# Starts it now and at each boot.
curlew_start_service() {
  systemctl -q is-active "$1" || systemctl start "$1"
  systemctl -q is-enabled "$1" || systemctl enable "$1"
}
