#!/usr/bin/env bash
# Resolves packages of a Debian family system in one transaction and fetches the result with apt-get.
#
# usage: deb.sh NAME…
# Environment:
#   CURLEW_OS            the system's id, for the repository's label
#   CURLEW_ARCH          amd64 or arm64
#   CURLEW_MODE          container: this system's own repositories and installed packages count;
#                        host: only the repositories of CURLEW_REPOSITORIES; this machine is neither read nor changed
#   CURLEW_RESOLVE       all, missing (from a minimal base system) or none (only the named packages)
#   CURLEW_METADATA      1: make Packages and Release
#   CURLEW_REPOSITORIES  host: file in the form of sources.list(5), one-line or deb822
#   CURLEW_KNOWN         folder with files of an earlier run, or empty
#   CURLEW_OUT           empty folder for the package files
#   CURLEW_STATE         private folder
#   CURLEW_RESULT        folder for the result, by default result/ in the private one: packages.tsv, requires, fetched or problem
# Status 1, usually with lines in result/problem, if the packages are not available.
# Works with bash 4.2, apt 1.2 and mawk 1.3.3.
set -euo pipefail
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
umask 022

AWK="$(cd "${BASH_SOURCE[0]%/*}" && pwd)/deb"
RESULT="${CURLEW_RESULT:-$CURLEW_STATE/result}"
TAB=$'\t'
readonly AWK RESULT TAB

# usage: deb_problem KIND FIELD…
deb_problem() {
  local IFS="$TAB"
  printf '%s\n' "$*" >>"$RESULT/problem"
}

deb_need_programs() {
  local program lacking=0
  for program in apt-get apt-cache awk sha256sum; do
    if command -v "$program" >/dev/null; then continue; fi
    deb_problem tool "$program"
    lacking=1
  done
  return "$lacking"
}

# apt reads lowercase proxy variables only, and would use a proxy for this machine itself.
deb_export_proxies() {
  local name upper
  for name in http_proxy https_proxy no_proxy; do
    upper="${name^^}"
    if [[ -z "${!name-}" && -n "${!upper-}" ]]; then export "$name=${!upper}"; fi
  done
  export no_proxy="${no_proxy:+$no_proxy,}localhost,127.0.0.1"
}

# Trusts the authorities of SSL_CERT_FILE in addition to those of the system.
deb_authorities() {
  [[ -n "${SSL_CERT_FILE-}" ]] || return 0
  local system=/etc/ssl/certs/ca-certificates.crt
  if [[ ! -r "$system" ]]; then system=/dev/null; fi
  cat "$system" "$SSL_CERT_FILE" >"$CURLEW_STATE/authorities.pem"
  printf 'Acquire::https::CAInfo "%s";\n' "$CURLEW_STATE/authorities.pem"
}

deb_configure() {
  local state="$CURLEW_STATE/apt"
  mkdir -p "$state"/{etc/apt.conf.d,etc/preferences.d,lib/lists/partial,cache/archives/partial,log} "$CURLEW_STATE/tmp"
  export TMPDIR="$CURLEW_STATE/tmp"
  {
    printf 'Dir::State "%s/lib/";\nDir::Cache "%s/cache/";\nDir::Log "%s/log/";\n' "$state" "$state" "$state"
    printf '%s\n' 'Acquire::Languages "none";' 'Acquire::PDiffs "false";' 'Acquire::GzipIndexes "false";' \
      'Acquire::Retries "2";' 'Acquire::http::Timeout "30";' 'Acquire::https::Timeout "30";' \
      'APT::Get::Assume-Yes "true";' 'APT::Install-Recommends "false";' 'APT::Install-Suggests "false";' \
      '#clear APT::Update::Pre-Invoke;' '#clear APT::Update::Post-Invoke;' \
      '#clear APT::Update::Post-Invoke-Success;' '#clear DPkg::Pre-Invoke;' '#clear DPkg::Post-Invoke;'
    # Whether a phased update is selected would depend on the machine.
    printf 'APT::Get::Always-Include-Phased-Updates "true";\n'
    deb_authorities
  } >"$CURLEW_STATE/apt.conf"
  if [[ "$CURLEW_MODE" == host ]]; then deb_configure_host "$state/etc"; fi
}

# usage: deb_configure_host FOLDER
deb_configure_host() {
  local file=curlew.sources
  if grep -q '^deb ' "$CURLEW_REPOSITORIES"; then file=curlew.list; fi
  cp "$CURLEW_REPOSITORIES" "$1/$file"
  : >"$CURLEW_STATE/status"
  # Read before this machine's own configuration, which it hides.
  {
    printf 'Dir::Etc "%s/";\nDir::Etc::sourcelist "%s";\nDir::Etc::main "apt.conf";\n' "$1" "$file"
    printf 'Dir::State::status "%s";\n#clear APT::Architectures;\n' "$CURLEW_STATE/status"
    printf 'APT::Architecture "%s";\nAPT::Architectures { "%s"; };\n' "$CURLEW_ARCH" "$CURLEW_ARCH"
  } >"$CURLEW_STATE/host.conf"
  export APT_CONFIG="$CURLEW_STATE/host.conf"
}

# usage: deb_apt VARIABLE WORD…; sets VARIABLE to the output of apt-get. Not through a file: the disk may be full.
# If the caller's variable most_kb is set, no file that apt-get writes becomes larger.
deb_apt() {
  local variable="$1" text status=0
  shift
  text="$(
    if [[ -n "${most_kb-}" ]]; then ulimit -S -f "$most_kb"; fi 2>/dev/null || true
    apt-get -c "$CURLEW_STATE/apt.conf" "$@" 2>&1 </dev/null
  )" || status=$?
  printf '%s\n' "$text"
  printf -v "$variable" '%s' "$text"
  return "$status"
}

# usage: deb_say_problems TEXT; status 1 if there are none in it
deb_say_problems() {
  printf '%s\n' "$1" | awk -v "state=$CURLEW_STATE" -f "$AWK/problems.awk" >>"$RESULT/problem"
}

deb_update() {
  # The indexes of Debian and Ubuntu have at most a hundred megabytes, and xz packs a terabyte into one.
  local said status=0 most_kb=$((2 << 20))
  deb_apt said update || status=$?
  # Some failures leave the status 0: older apt-get ignores a repository that could not be read.
  if deb_say_problems "$said"; then return 1; fi
  return "$status"
}

# usage: deb_read_indexes PROGRAM [WORD…]
# Runs an awk program over all indexes, by stanzas, with url set to their repository; WORDs come before them.
deb_read_indexes() {
  local program="$1" list url words
  shift
  words=("$@" 'RS=' 'FS=\n')
  if [[ ! -e "$CURLEW_STATE/indexes" ]]; then
    # apt expands the words in $().
    # shellcheck disable=SC2016
    apt-get -c "$CURLEW_STATE/apt.conf" indextargets --format '$(FILENAME)|$(REPO_URI)' 'Created-By: Packages' \
      >"$CURLEW_STATE/indexes.part"
    mv "$CURLEW_STATE/indexes.part" "$CURLEW_STATE/indexes"
  fi
  while IFS='|' read -r list url; do
    # Without the password.
    if [[ "$url" =~ ^([a-z]+://)[^/]*@(.*)$ ]]; then url="${BASH_REMATCH[1]}${BASH_REMATCH[2]}"; fi
    if [[ -f "$list" ]]; then words+=("url=$url" "$list"); fi
  done <"$CURLEW_STATE/indexes"
  awk -f "$AWK/stanza.awk" -f "$AWK/$program" "${words[@]}"
}

# apt treats an unknown name as a pattern, and a sign at its end as an order to remove; so each name must exist.
deb_check_names() {
  local names="$CURLEW_STATE/names"
  printf '%s\n' "$@" >"$names"
  awk -f "$AWK/stanza.awk" -f "$AWK/names.awk" "$names" "$CURLEW_STATE/index.tsv" >"$names.lacking" && return 0
  # Best first, up to a readable number.
  sort -t "$TAB" -k2,2 -k1,1 -k4,4nr -k3,3 "$names.lacking" |
    awk -F '\t' '$1 == "missing" { print } $1 == "near" && ++shown[$2] <= 3 { printf "near\t%s\t%s\n", $2, $3 }' \
      >>"$RESULT/problem"
  return 1
}

# usage: deb_solve FILE WORD…; writes what a transaction installs: name, version, architecture
deb_solve() {
  local file="$1" said
  shift
  if ! deb_apt said install --simulate "$@"; then
    printf '%s\n' "$said" | awk -f "$AWK/conflicts.awk" >>"$RESULT/problem"
    return 1
  fi
  printf '%s\n' "$said" | awk -f "$AWK/solution.awk" | sort -u >"$file"
}

# On a host the base system is made from the repositories, and counts as installed.
deb_base() {
  local names=() count=0 base="$CURLEW_STATE/base"
  [[ "$CURLEW_MODE" == host && "$CURLEW_RESOLVE" == missing ]] || return 0
  awk -F '\t' '$6 == 1 { print $1 }' "$CURLEW_STATE/index.tsv" | sort -u >"$base"
  while mapfile -t names <"$base" && ((${#names[@]} > count)); do
    count=${#names[@]}
    apt-cache -c "$CURLEW_STATE/apt.conf" show --no-all-versions -- "${names[@]}" >"$base.stanzas"
    awk -f "$AWK/stanza.awk" -f "$AWK/base.awk" "$CURLEW_STATE/index.tsv" 'RS=' 'FS=\n' "$base.stanzas" |
      sort -u >"$base"
  done
  ((count > 0)) || return 0
  awk -f "$AWK/installed.awk" "$CURLEW_STATE/names" "$base.stanzas" >"$CURLEW_STATE/status"
  # Without its dependencies a package differs from the repository's: apt would treat that as an upgrade.
  printf 'Package: *\nPin: release a=now\nPin-Priority: 1001\n' >"$CURLEW_STATE/apt/etc/preferences"
}

# Makes plan.tsv: name, version, architecture, sha256, repository, file.
deb_plan() {
  local solution="$CURLEW_STATE/solution" words=(--reinstall)
  if [[ "$CURLEW_RESOLVE" == all ]]; then
    : >"$CURLEW_STATE/nothing"
    words+=(-o "Dir::State::status=$CURLEW_STATE/nothing")
  fi
  deb_solve "$solution" "${words[@]}" -- "$@" || return 1
  if [[ "$CURLEW_RESOLVE" == none ]]; then
    awk -F '\t' 'FNR == NR { named[$1] = 1; next } $1 in named' "$CURLEW_STATE/names" "$solution" >"$solution.named"
    mv "$solution.named" "$solution"
  fi
  if awk -f "$AWK/plan.awk" "$solution" "$CURLEW_STATE/index.tsv" | sort >"$CURLEW_STATE/plan.tsv"; then return 0; fi
  deb_problem repository - 'its index lacks a package that was chosen, or its sha256'
  return 1
}

# usage: deb_list FOLDER; prints sha256, size and name of each package file in it, with one process for all
deb_list() {
  cd "$1"
  find . -maxdepth 1 -type f -name '*.deb' -exec sha256sum {} + >"$CURLEW_STATE/sums"
  find . -maxdepth 1 -type f -name '*.deb' -printf '%s ./%f\n' |
    awk 'FNR == NR { size[$2] = $1; next } { print $1, size[$2], substr($2, 3) }' - "$CURLEW_STATE/sums"
}

# usage: deb_download PACKAGE=VERSION…; into the current folder
deb_download() {
  local said
  (($# > 0)) || return 0
  deb_apt said download -- "$@" && return 0
  deb_say_problems "$said" || true
  return 1
}

# Puts the files of the plan into CURLEW_OUT: known ones from CURLEW_KNOWN, the others from the repositories.
deb_fetch() {
  local name version arch sum size repository file theirs fetched=0 lacking=()
  local -A sums=() sizes=()
  if [[ -n "${CURLEW_KNOWN-}" ]]; then
    while read -r sum _ file; do sums["$file"]="$sum"; done < <(deb_list "$CURLEW_KNOWN")
  fi
  while IFS="$TAB" read -r name version arch sum repository file; do
    if [[ "${sums["$file"]-}" == "$sum" ]]; then
      cp "$CURLEW_KNOWN/$file" "$CURLEW_OUT/$file"
    else
      lacking+=("$name=$version")
    fi
  done <"$CURLEW_STATE/plan.tsv"
  mkdir -p "$CURLEW_STATE/files"
  # If its own user can write, apt-get downloads with that user's permissions.
  chown _apt "$CURLEW_STATE/files" 2>/dev/null || true
  cd "$CURLEW_STATE/files"
  # bash before 4.4 treats an empty array as unset.
  deb_download ${lacking[@]+"${lacking[@]}"} || return 1
  sums=()
  while read -r sum size theirs; do
    sums["$theirs"]="$sum" sizes["$theirs"]="$size"
  done < <(deb_list "$CURLEW_STATE/files")
  while IFS="$TAB" read -r name version arch sum repository file; do
    if [[ ! -e "$CURLEW_OUT/$file" ]]; then
      # apt-get replaces colons in file names.
      theirs="${name}_${version//:/%3a}_$arch.deb"
      if [[ "${sums["$theirs"]-}" != "$sum" ]]; then
        deb_problem changed "$repository" "$file is not what the index says"
        return 1
      fi
      fetched=$((fetched + sizes["$theirs"]))
      mv "$theirs" "$CURLEW_OUT/$file"
    fi
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$file" "$name" "$version" "$arch" "$sum" "$repository"
  done <"$CURLEW_STATE/plan.tsv" >"$RESULT/packages.tsv"
  printf '%d\n' "$fetched" >"$RESULT/fetched"
}

# Packages and Release, so that "deb [trusted=yes] file:FOLDER ./" is a repository. The stanzas are those of the signed
# indexes; no line depends on the time.
deb_metadata() {
  local size sum
  [[ "$CURLEW_METADATA" == 1 ]] || return 0
  deb_read_indexes print.awk "$CURLEW_STATE/plan.tsv" >"$CURLEW_OUT/Packages"
  size="$(wc -c <"$CURLEW_OUT/Packages")"
  sum="$(sha256sum <"$CURLEW_OUT/Packages")"
  {
    printf 'Origin: curlew\nLabel: curlew\nSuite: %s\n' "$CURLEW_OS"
    printf 'Date: Thu, 01 Jan 1970 00:00:00 UTC\nArchitectures: all %s\n' "$CURLEW_ARCH"
    printf 'SHA256:\n %s %d Packages\n' "${sum%% *}" "$size"
  } >"$CURLEW_OUT/Release"
}

# Each step separately: with `set -e`, a function whose status is tested continues after a failure inside it.
deb_main() {
  mkdir -p "$RESULT"
  deb_need_programs
  deb_export_proxies
  deb_configure
  deb_update
  deb_read_indexes index.awk >"$CURLEW_STATE/index.tsv"
  deb_check_names "$@"
  deb_base
  deb_plan "$@"
  deb_fetch
  deb_metadata
  deb_read_indexes requires.awk "$CURLEW_STATE/plan.tsv" | sort -u >"$RESULT/requires"
}

deb_main "$@"
