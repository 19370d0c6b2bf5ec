# shellcheck shell=bash
# deb packages, installed from a folder without a repository.

# Prints the version of a completely installed package, or nothing.
curlew_deb_version() {
  local line
  # shellcheck disable=SC2016
  line="$(dpkg-query -W -f '${db:Status-Status} ${Version}\n' "$1" 2>/dev/null || true)"
  if [[ "$line" == 'installed '* ]]; then printf '%s\n' "${line#installed }"; fi
}

# usage: curlew_choose_debs FOLDER PACKAGE…
# Fills CURLEW_DEBS with the files to install. Leaves out packages that the machine has in the same or a newer version,
# which other packages may need. Only containerd.io may be downgraded: it determines the image of its
# sandboxes.
curlew_choose_debs() {
  local file name version present
  CURLEW_DEBS=()
  for file in "$1"/*.deb; do
    # shellcheck disable=SC2016
    IFS=$'\t' read -r name version < <(dpkg-deb -W --showformat='${Package}:${Architecture}\t${Version}\n' "$file") ||
      bail "${file//%/%%} is not a package that dpkg can read"
    present="$(curlew_deb_version "${name%:all}")"
    name="${name%:*}"
    if [[ -z "$present" ]] || dpkg --compare-versions "$present" lt "$version"; then
      CURLEW_DEBS+=("$file")
    elif [[ "$present" != "$version" ]]; then
      if [[ "$name" == containerd.io && " ${*:2} " == *' containerd.io'* ]]; then
        logWarn "containerd.io is downgraded from $present to $version, whose sandbox image is part of the package"
        CURLEW_DEBS+=("$file")
      else
        logWarn "${name} ${present} of this machine is newer than ${version} in the package, and stays"
      fi
    fi
  done
}

# usage: curlew_dpkg_install FOLDER PACKAGE…
# Three tries, then status 1 with an explanation.
curlew_dpkg_install() {
  local folder="$1" try output status
  shift
  if ! curlew_has_file "$folder" deb; then
    curlew_no_packages "$@"
    return 0
  fi
  curlew_finish_dpkg
  curlew_choose_debs "$folder" "$@"
  if ((${#CURLEW_DEBS[@]} == 0)); then
    logSuccess "Host packages $* are installed already"
    return 0
  fi
  output="$(mktemp)"
  for try in 1 2 3; do
    DEBIAN_FRONTEND=noninteractive dpkg --install --force-depends-version --force-confold --auto-deconfigure \
      "${CURLEW_DEBS[@]}" 2>&1 | tee "$output"
    status="${PIPESTATUS[0]}"
    if ((status == 0)); then
      rm -f "$output"
      curlew_apt_repair
      logSuccess "Host packages $* installed"
      return 0
    fi
    if ((try < 3)); then sleep 1; fi
  done
  curlew_explain_dpkg "$output"
  rm -f "$output"
  logFail "Host packages $* could not be installed from ${folder//%/%%}"
  return 1
}

# Completes an interrupted run of dpkg first.
curlew_finish_dpkg() {
  if [[ -z "$(dpkg --audit 2>/dev/null)" ]]; then return 0; fi
  logWarn 'dpkg was interrupted on this machine earlier: completing that run'
  DEBIAN_FRONTEND=noninteractive dpkg --configure --pending --force-confold ||
    logWarn 'Some packages are still half installed; see dpkg --audit'
}

# usage: curlew_explain_dpkg FILE
# Explains dpkg's output, one line per problem.
curlew_explain_dpkg() {
  local line
  while IFS= read -r line; do logFail "${line//%/%%}"; done < <(
    awk '
      /dependency problems prevent configuration of/ { package = $NF; sub(/:$/, "", package) }
      / depends on .*; however:$/ { wanted = $0; sub(/^.* depends on /, "", wanted); sub(/; however:$/, "", wanted)
        reason[package "\t" wanted] = package " needs " wanted ", which neither this machine nor the add-on has" }
      / conflicts with / { text = $0; sub(/^[ \t]*/, "", text); reason[text] = "conflict: " text }
      /is another process using it|frontend lock|dpkg frontend/ { reason["lock"] = "another program is installing packages: wait for it to end" }
      /trying to overwrite/ { text = $0; sub(/^[ \t]*/, "", text); reason[text] = "a file belongs to another package: " text }
      END { for (key in reason) print reason[key] }
    ' "$1" | sort
  )
}

curlew_apt_repair() {
  command -v apt-get >/dev/null 2>&1 || return 0
  if apt-get check >/dev/null 2>&1; then return 0; fi
  logWarn 'apt-get check found broken dependencies; trying to repair them'
  DEBIAN_FRONTEND=noninteractive apt-get install --fix-broken --yes --no-remove ||
    logWarn 'The dependencies are still broken: run apt-get install --fix-broken when a repository is reachable'
}
