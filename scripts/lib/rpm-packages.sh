# shellcheck shell=bash
# rpm packages, installed from a folder that serves as a repository for one call.

curlew_dnf() {
  if command -v dnf >/dev/null 2>&1; then dnf "$@"; else yum "$@"; fi
}

yum_is_host_package_installed() {
  curlew_dnf list installed "$1" >/dev/null 2>&1
}

# usage: curlew_local_dnf LISTS WORD…
# Uses only the repository below LISTS; the machine's configuration stays unchanged.
curlew_local_dnf() {
  curlew_dnf --setopt="reposdir=$1" --disablerepo='*' --enablerepo=curlew-local --noplugins -y "${@:2}"
}

# usage: curlew_rpm_install FOLDER PACKAGE…
# Returns the status of dnf (yum), after explaining problems.
curlew_rpm_install() {
  local folder="$1" lists output status
  local -a words=(install)
  shift
  if ! curlew_has_file "$folder" rpm; then
    curlew_no_packages "$@"
    return 0
  fi
  folder="$(realpath "$folder")"
  if [[ "$folder" == */rhel-7-force || "$folder" == */rhel-7-force/archives ]]; then
    rpm --upgrade --force --nodeps --nosignature "$folder"/*.rpm
    logSuccess "Host packages $* installed"
    return 0
  fi
  curlew_say_newer "$folder"
  # Docker's own packages conflict with these.
  if [[ " $* " == *' containerd.io'* || " $* " == *' docker-ce'* ]]; then words+=(--allowerasing); fi
  if [[ ! -f "$folder/repodata/repomd.xml" ]]; then set -- "$folder"/*.rpm; fi
  lists="$(mktemp -d)"
  output="$lists/output"
  printf '%s\n' '[curlew-local]' 'name=packages of an add-on' "baseurl=file://$folder" 'enabled=1' 'gpgcheck=0' \
    'repo_gpgcheck=0' 'metadata_expire=0' >"$lists/curlew-local.repo"
  if [[ ! -f "$folder/repodata/repomd.xml" ]]; then
    sed -i 's/^enabled=1$/&\nskip_if_unavailable=1/' "$lists/curlew-local.repo"
  fi
  curlew_local_dnf "$lists" "${words[@]}" "$@" 2>&1 | tee "$output"
  status="${PIPESTATUS[0]}"
  curlew_local_dnf "$lists" clean metadata >/dev/null 2>&1 || true
  if ((status != 0)); then curlew_explain_dnf "$output"; fi
  rm -rf "$lists"
  if ((status != 0)); then
    logFail "Host packages could not be installed from ${folder//%/%%}"
    return "$status"
  fi
  logSuccess "Host packages installed from ${folder//%/%%}"
}

# usage: curlew_say_newer FOLDER
# Reports packages that the machine has in a newer version; they stay.
curlew_say_newer() {
  local name version present
  command -v rpm >/dev/null 2>&1 || return 0
  while IFS=$'\t' read -r name version; do
    present="$(rpm -q --qf '%{VERSION}-%{RELEASE}\n' "$name" 2>/dev/null | tail -n 1)" || continue
    if [[ -z "$present" || "$present" == "$version" || "$present" == *' '* ]]; then continue; fi
    if [[ "$(printf '%s\n' "$present" "$version" | sort -V | tail -n 1)" == "$present" ]]; then
      logWarn "$name $present of this machine is newer than $version in the package, and stays"
    fi
  done < <(rpm -qp --nosignature --qf '%{NAME}\t%{VERSION}-%{RELEASE}\n' "$1"/*.rpm 2>/dev/null)
}

# usage: curlew_explain_dnf FILE
curlew_explain_dnf() {
  local line
  while IFS= read -r line; do logFail "${line//%/%%}"; done < <(
    awk '
      /nothing provides/ { text = $0; sub(/^.*nothing provides /, "", text); n = split(text, part, / needed by /)
        package = part[2]; sub(/ from .*/, "", package)
        reason[text] = package " needs " part[1] ", which neither this machine nor the add-on has" }
      /conflicts with/ { text = $0; sub(/^[ \t-]*/, "", text); reason[text] = "conflict: " text }
      /Unable to find a match|No match for argument|No package .* available/ { text = $0; sub(/^.*: /, "", text); reason[text] = "the add-on has no package " text }
      /waiting for process|Another app is currently holding/ { reason["lock"] = "another program is installing packages: wait for it to end" }
      END { for (key in reason) print reason[key] }
    ' "$1" | sort -u
  )
}
