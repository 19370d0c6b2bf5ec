# shellcheck shell=bash
# containerd and runc as a service of systemd. It restarts only if files of it have changed since it started.

# Exists from the first change of a file until containerd has restarted with it, also after a run that was cut in between.
CONTAINERD_RESTART=/etc/containerd/restart

containerd_pre_init() {
  # Containers of another runtime's service would end with it.
  if [[ ! -e /etc/systemd/system/containerd.service ]] && systemctl is-active --quiet docker; then
    bail "containerd: Docker runs on this machine. Move its containers to another machine, and remove it, first."
  fi
}

containerd_install() {
  local src="$DIR/addons/containerd/$CONTAINERD_VERSION" unpacked file
  # What runs that were cut have left.
  rm -rf /usr/local/.containerd-*
  unpacked="$(mktemp -d /usr/local/.containerd-XXXXXX)"
  tar -xzf "$src/assets/containerd.tar.gz" -C "$unpacked" --no-same-owner
  for file in "$unpacked"/bin/*; do containerd_put "$file" "/usr/local/bin/${file##*/}" 0755; done
  rm -rf "$unpacked"
  containerd_put "$src/assets/runc" /usr/local/bin/runc 0755
  containerd_put "$src/containerd.service" /etc/systemd/system/containerd.service 0644
  containerd_configure "$src"
  if ! containerd_restart_is_due && containerd_answers; then
    logSuccess "containerd $CONTAINERD_VERSION runs already"
    return 0
  fi
  systemctl daemon-reload
  systemctl enable containerd >/dev/null 2>&1
  # Running containers continue: systemd ends only containerd's own process.
  restart_systemd_and_wait containerd
  spinner_until 60 containerd_answers || bail "containerd does not answer: see journalctl -u containerd"
  rm -f "$CONTAINERD_RESTART"
  logSuccess "containerd $CONTAINERD_VERSION runs"
}

# Fails, so that the add-on is installed again, if containerd does not answer or must restart.
containerd_already_applied() {
  containerd_answers && ! containerd_restart_is_due
}

# On every node, after a node has left its cluster: images and containers stay below /var/lib/containerd.
containerd_uninstall() {
  systemctl disable --now containerd >/dev/null 2>&1 || true
  rm -f /etc/systemd/system/containerd.service /etc/containerd/conf.d/50-settings.toml "$CONTAINERD_RESTART"
  if containerd_is_own_config; then rm /etc/containerd/config.toml; fi
  rm -f /usr/local/bin/{containerd,containerd-shim-runc-v2,containerd-stress,ctr,runc}
  systemctl daemon-reload
  logSuccess "containerd is removed; its images stay in /var/lib/containerd"
}

# Also where containerd runs a program that was replaced: not every earlier version of this add-on has written that file.
containerd_restart_is_due() {
  [[ -e "$CONTAINERD_RESTART" || "$(maybe readlink "/proc/$(curlew_main_pid containerd)/exe")" == *' (deleted)' ]]
}

containerd_answers() {
  timeout 10 ctr --address "$(kubeadm_get_containerd_sock)" version >/dev/null 2>&1
}

# usage: containerd_configure FOLDER
containerd_configure() {
  local made main culprit
  made="$(mktemp -d)"
  containerd_config "$1" >"$made/config.toml"
  main="$made/config.toml" culprit='its settings, or a file in /etc/containerd/conf.d'
  if [[ "${CONTAINERD_PRESERVE_CONFIG-}" == 1 && -e /etc/containerd/config.toml ]]; then
    main=/etc/containerd/config.toml culprit='/etc/containerd/config.toml, which containerd.preserveConfig keeps, or a file that it imports'
  fi
  # All of the folder: a file that is kept may import others of it by relative paths.
  mkdir "$made/etc"
  maybe cp -RL /etc/containerd/. "$made/etc/"
  mkdir -p "$made/etc/conf.d"
  printf '%s\n' "${CONTAINERD_TOML_CONFIG-}" >"$made/etc/conf.d/50-settings.toml"
  # Before anything is replaced: containerd would not start again.
  sed "s,/etc/containerd/conf\\.d/,$made/etc/conf.d/,g" "$main" >"$made/etc/config.toml"
  if ! containerd_reads "$made/etc/config.toml"; then
    : >"$made/etc/conf.d/50-settings.toml"
    if containerd_reads "$made/etc/config.toml" 2>/dev/null; then culprit='the setting containerd.tomlConfig'; fi
    rm -rf "$made"
    bail "containerd: it cannot read $culprit, so its configuration stays as it was: correct that, then run the same command again"
  fi
  if [[ "$main" == "$made/config.toml" ]]; then
    if [[ -e /etc/containerd/config.toml ]] && ! containerd_is_own_config; then
      cp -p /etc/containerd/config.toml /etc/containerd/config.toml.former
      logWarn "/etc/containerd/config.toml is replaced: its former text is in config.toml.former"
    fi
    containerd_put "$made/config.toml" /etc/containerd/config.toml 0644
  fi
  containerd_put "$made/etc/conf.d/50-settings.toml" /etc/containerd/conf.d/50-settings.toml 0644
  rm -rf "$made"
}

# usage: containerd_reads FILE; by the program that was just installed: PATH may begin with another package's, which knows other versions
# of the file
containerd_reads() {
  /usr/local/bin/containerd --config "$1" config dump >/dev/null
}

# A file of another package, or one that preserveConfig keeps, belongs to the operator.
containerd_is_own_config() {
  head -n 1 /etc/containerd/config.toml 2>/dev/null | grep -q '^# Written by the containerd add-on'
}

# usage: containerd_config FOLDER; prints the configuration
containerd_config() (
  local systemd=true restrict=false
  if [[ "${CONTAINERD_CGROUP_DRIVER-}" == cgroupfs ]]; then systemd=false; fi
  if [[ "${CONTAINERD_RESTRICT_OOM_SCORE_ADJ-}" == 1 ]]; then restrict=true; fi
  export CONTAINERD_SANDBOX_IMAGE="${CONTAINERD_SANDBOX_IMAGE:-registry.k8s.io/pause:3.10.1}"
  export CONTAINERD_SYSTEMD_CGROUP="$systemd" CONTAINERD_RESTRICT_OOM_SCORE_ADJ="$restrict"
  render_yaml_file_2 "$1/config.tmpl"
)

# usage: containerd_put FILE TARGET MODE; replaces the target in one step, also while it runs, if it differs
containerd_put() {
  if cmp -s "$1" "$2"; then return 0; fi
  mkdir -p "${CONTAINERD_RESTART%/*}"
  touch "$CONTAINERD_RESTART"
  install -D -m "$3" "$1" "$2.new"
  mv -f "$2.new" "$2"
}
