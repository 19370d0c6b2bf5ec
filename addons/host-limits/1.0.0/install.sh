# shellcheck shell=bash
# Limits of the kernel and of logins, raised to what machines with many containers need.

HOST_LIMITS_SRC="$DIR/addons/host-limits/1.0.0"
HOST_LIMITS_DST="$DIR/kustomize/host-limits"

host-limits_pre_init() {
  host-limits_settings
  # Kept for the end of the run: what the limits were before.
  HOST_LIMITS_FOUND="$(cat /proc/sys/fs/inotify/max_user_instances)"
}

host-limits() {
  host-limits_settings
  host-limits_render "$HOST_LIMITS_DST"
  install -D -m 0644 "$HOST_LIMITS_DST/sysctl.conf" "$HOST_LIMITS_SYSCTL"
  install -D -m 0644 "$HOST_LIMITS_DST/limits.conf" "$HOST_LIMITS_LOGIN"
  install -D -m 0755 "$HOST_LIMITS_SRC/assets/host-limits-report" "$HOST_LIMITS_BIN_DIRECTORY/host-limits-report"
  logSuccess "Limits written to $HOST_LIMITS_CONFIG_DIRECTORY"
  if [[ "${HOST_LIMITS_APPLY_NOW-}" == 1 ]]; then sysctl --quiet --load="$HOST_LIMITS_SYSCTL"; fi
}

# Fails, so that the add-on is installed again, if one of the files was changed.
host-limits_already_applied() {
  host-limits_settings
  local expected
  expected="$(mktemp -d)"
  host-limits_render "$expected"
  local status=0
  cmp "$expected/sysctl.conf" "$HOST_LIMITS_SYSCTL" && cmp "$expected/limits.conf" "$HOST_LIMITS_LOGIN" || status=1
  rm -rf "$expected"
  return "$status"
}

host-limits_join() {
  mkdir -p "$HOST_LIMITS_DST"
  host-limits
}

host-limits_outro() {
  host-limits_settings
  printf 'inotify instances were %s, are to be %s\n' \
    "${HOST_LIMITS_FOUND:-unknown}" "$HOST_LIMITS_INOTIFY_INSTANCES"
  if [[ "${HOST_LIMITS_APPLY_NOW-}" != 1 ]]; then
    printf "in force from the next boot, or at once by 'sysctl --system'\n"
  fi
}

host-limits_uninstall() {
  host-limits_settings
  rm -f "$HOST_LIMITS_SYSCTL" "$HOST_LIMITS_LOGIN" "$HOST_LIMITS_BIN_DIRECTORY/host-limits-report"
}

# What the installer spec leaves out.
host-limits_settings() {
  : "${HOST_LIMITS_FILE_MAX:=2097152}"
  : "${HOST_LIMITS_INOTIFY_INSTANCES:=1024}"
  : "${HOST_LIMITS_INOTIFY_WATCHES:=524288}"
  : "${HOST_LIMITS_MAP_COUNT:=262144}"
  : "${HOST_LIMITS_OPEN_FILES:=1048576}"
  : "${HOST_LIMITS_CONFIG_DIRECTORY:=/etc}"
  : "${HOST_LIMITS_BIN_DIRECTORY:=/usr/local/bin}"
  HOST_LIMITS_SYSCTL="$HOST_LIMITS_CONFIG_DIRECTORY/sysctl.d/90-host-limits.conf"
  HOST_LIMITS_LOGIN="$HOST_LIMITS_CONFIG_DIRECTORY/security/limits.d/90-host-limits.conf"
}

# usage: host-limits_render FOLDER
host-limits_render() {
  local file
  for file in sysctl.conf limits.conf; do
    render_yaml_file_2 "$HOST_LIMITS_SRC/$file" >"$1/$file"
  done
}
