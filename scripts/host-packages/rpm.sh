#!/usr/bin/env bash
# Resolves packages of an rpm system in one transaction and fetches the result: with dnf's library (rpm/main.py
# below this folder), or with yumdownloader on systems older than dnf.
#
# usage: rpm.sh NAME…
# Environment:
#   CURLEW_OS            the system's id
#   CURLEW_ARCH          amd64 or arm64
#   CURLEW_TASK          collect, or requires: only print what the packages in CURLEW_KNOWN require; dnf only
#   CURLEW_MODE          container: this system's installed packages count, and its own repositories unless others are
#                        given; host: those of CURLEW_REPOSITORIES; this machine is neither read nor changed
#   CURLEW_RESOLVE       all, missing (from a minimal base system) or none (only the named packages)
#   CURLEW_METADATA      1: make repodata/
#   CURLEW_MODULES       1: with the documents of the module streams that the packages belong to
#   CURLEW_REPOSITORIES  file with sections of repositories as in dnf.conf(5)
#   CURLEW_KNOWN         folder with files of an earlier run, or empty
#   CURLEW_OUT           empty folder for the package files
#   CURLEW_STATE         private folder
#   CURLEW_RESULT        folder for the result, by default result/ in the private one: packages.tsv, requires, fetched or problem
# Status 1 with one or more lines in result/problem if the packages are not available.
# Works with bash 4.2.
set -euo pipefail
export LC_ALL=C PYTHONIOENCODING=utf-8 PYTHONDONTWRITEBYTECODE=1
umask 022

readonly RESULT="${CURLEW_RESULT:-$CURLEW_STATE/result}" HERE="${BASH_SOURCE[0]%/*}"

# The packages of a minimal system with a package manager. Names that a system does not have are omitted.
readonly BASE='basesystem bash ca-certificates centos-release coreutils curl dnf filesystem findutils gawk glibc grep
  gzip hostname iproute iputils kmod less oraclelinux-release passwd procps-ng redhat-release rocky-release rootfiles rpm
  sed setup shadow-utils sudo system-release systemd tar util-linux vim-minimal which xz yum'

# usage: rpm_problem KIND FIELD…
rpm_problem() {
  local IFS=$'\t'
  printf '%s\n' "$*" >>"$RESULT/problem"
}

rpm_prepare() {
  mkdir -p "$RESULT" "$CURLEW_STATE"/{repos,root,log,home,tmp,vars,persist}
  export TMPDIR="$CURLEW_STATE/tmp"
  # Some builds of rpm keep their database in the home folder.
  if [[ "$CURLEW_MODE" == host ]]; then export HOME="$CURLEW_STATE/home"; fi
  if [[ -n "${CURLEW_REPOSITORIES-}" ]]; then cp "$CURLEW_REPOSITORIES" "$CURLEW_STATE/repos/curlew.repo"; fi
  if [[ -n "${SSL_CERT_FILE-}" ]]; then rpm_authorities; fi
}

# Trusts the authorities of SSL_CERT_FILE in addition to those of the system.
rpm_authorities() {
  local system
  for system in /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/certs/ca-certificates.crt /dev/null; do
    if [[ -r "$system" ]]; then break; fi
  done
  cat "$system" "$SSL_CERT_FILE" >"$CURLEW_STATE/authorities.pem"
  export CURLEW_AUTHORITIES="$CURLEW_STATE/authorities.pem"
}

# dnf would treat anything else as an option, a group, a pattern or a file.
rpm_check_names() {
  local name status=0
  for name in "$@"; do
    [[ "$name" =~ ^[A-Za-z0-9][A-Za-z0-9._+~:-]*$ ]] && continue
    rpm_problem missing "$name"
    status=1
  done
  return "$status"
}

# usage: rpm_dnf NAME…; with a Python that can load dnf 4. Status 96 if there is none: a separate check would load dnf twice.
rpm_dnf() {
  local python status
  for python in /usr/libexec/platform-python /usr/bin/python3; do
    [[ -x "$python" ]] || continue
    status=0
    CURLEW_BASE="$BASE" "$python" "$HERE/rpm/main.py" "$@" || status=$?
    if ((status != 96)); then return "$status"; fi
  done
  return 96
}

# usage: rpm_install_tool PROGRAM PACKAGE…; in a disposable container, the first package that exists
rpm_install_tool() {
  local program="$1" package manager words=(-y)
  shift
  command -v "$program" >/dev/null && return 0
  [[ "$CURLEW_MODE" == container ]] || return 1
  manager="$(command -v dnf || command -v yum)" || return 1
  if [[ -n "${CURLEW_REPOSITORIES-}" ]]; then words+=("--setopt=reposdir=$CURLEW_STATE/repos"); fi
  for package in "$@"; do
    "$manager" "${words[@]}" install "$package" && return 0
  done
  return 1
}

rpm_collect() {
  local status=0
  case "$CURLEW_OS" in
    rhel-*) export CURLEW_PLATFORM="platform:el${CURLEW_OS#rhel-}" ;;
  esac
  rpm_dnf "$@" || status=$?
  if ((status != 96)); then return "$status"; fi
  if [[ "$CURLEW_MODE" == container && "$CURLEW_TASK" == collect ]] && rpm_install_tool yumdownloader yum-utils; then
    # shellcheck source=scripts/host-packages/rpm/yum.bash
    source "$HERE/rpm/yum.bash"
    yum_collect "$@"
    return
  fi
  rpm_problem tool dnf
  return 1
}

# The time in the metadata is that of the newest package, so that equal packages give equal bytes.
rpm_metadata() {
  local revision words program=createrepo_c
  if ! rpm_install_tool createrepo_c createrepo_c; then
    program=createrepo
    if ! rpm_install_tool createrepo createrepo; then
      rpm_problem tool createrepo_c
      return 1
    fi
  fi
  revision="$(cat "$CURLEW_STATE/revision")"
  words=(--quiet --no-database --simple-md-filenames --checksum sha256 --revision "$revision")
  if [[ "$program" == createrepo_c ]]; then words+=(--compress-type gz --general-compress-type gz --workers 1); fi
  find "$CURLEW_OUT" -name '*.rpm' -exec touch -d @0 {} + &&
    "$program" "${words[@]}" "$CURLEW_OUT" &&
    rpm_modules &&
    sed -i "s|<timestamp>[0-9.]*</timestamp>|<timestamp>$revision</timestamp>|" "$CURLEW_OUT/repodata/repomd.xml"
}

rpm_modules() {
  if [[ "$CURLEW_MODULES" != 1 || ! -s "$CURLEW_STATE/modules.yaml" ]]; then return 0; fi
  modifyrepo_c --mdtype=modules --simple-md-filenames --compress-type gz "$CURLEW_STATE/modules.yaml" \
    "$CURLEW_OUT/repodata"
}

# Fetches metadata with its output shown, and distinguishes a full disk from other failures. Partial data is then deleted,
# which frees space for the message.
rpm_describe() {
  local said
  if said="$(rpm_metadata 2>&1)"; then return 0; fi
  printf '%s\n' "$said" >&2
  case "$said" in
    *'No space left'* | *'Disk quota exceeded'*)
      rm -rf "$CURLEW_STATE/cache" "${CURLEW_OUT:?}"/*
      rpm_problem full "$CURLEW_OUT"
      ;;
  esac
  return 1
}

# If a repository's metadata are signed, dnf runs gpg, which leaves an agent running.
rpm_end_agents() {
  local folder
  for folder in "$CURLEW_STATE"/cache/*/pubring; do
    if [[ -d "$folder" ]]; then gpgconf --homedir "$folder" --kill gpg-agent || true; fi
  done
}

trap rpm_end_agents EXIT
rpm_prepare
rpm_check_names "$@"
rpm_collect "$@"
if [[ "$CURLEW_METADATA" == 1 ]]; then rpm_describe; fi
