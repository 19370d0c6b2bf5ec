#!/usr/bin/env bash
# Makes versions of the package: their files are those of template/files, and their Manifest names the images that kubeadm of the version needs.
# usage: generate.sh [--version=VERSION] [--from=KUBEADM] [--force] [--files]
# Without --version it makes the newest patch of each minor version that is here, and of the minor version after them: clusters go
# up one minor version at a time. --from is a kubeadm of the version, which is otherwise downloaded. Without --force it leaves an
# existing version alone. --files only copies template/files into all versions that are here. Writes the newest version that it has made to
# $GITHUB_OUTPUT, as kubernetes_version=VERSION.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

DOWNLOADS=https://dl.k8s.io/release
made=''

fail() {
  printf 'generate.sh: %s\n' "$*" >&2
  exit 1
}

fetch() {
  curl --fail --silent --show-error --location --retry 3 --connect-timeout 30 --max-time 600 --max-filesize 268435456 -- "$1" ||
    fail "cannot fetch $1"
}

# usage: minors; the minor versions that are here, the oldest first
minors() {
  find .. -maxdepth 1 -name '1.*' -printf '%f\n' | cut -d . -f 2 | sort -nu
}

# usage: newest_patch MINOR; prints nothing for a minor version that upstream has not released
newest_patch() {
  curl --fail --silent --location --retry 3 --connect-timeout 30 --max-time 60 --max-filesize 100 -- "$DOWNLOADS/stable-1.$1.txt" || {
    # A minor version that is not there yet is answered like any file that is not there.
    (($? == 22)) || fail "cannot fetch $DOWNLOADS/stable-1.$1.txt"
  }
}

# usage: image_lines KUBEADM VERSION; the id is the last part of an image's name
image_lines() {
  "$1" config images list --kubernetes-version "v$2" | while read -r image; do
    name="${image%:*}"
    printf 'image %s %s\n' "${name##*/}" "$image"
  done
}

# usage: make_version VERSION [KUBEADM]
make_version() {
  local version="$1" kubeadm="${2-}" minor
  [[ "$version" =~ ^1\.([0-9]+)\.[0-9]+$ ]] || fail "\"${version:0:40}\" is not a version of Kubernetes"
  minor="${BASH_REMATCH[1]}"
  ((minor >= 31)) || fail 'the package needs Kubernetes 1.31 or newer: its configuration is kubeadm.k8s.io/v1beta4'
  if [[ -e "../$version" && -z "$force" ]]; then
    printf 'kubernetes %s already exists\n' "$version"
    return 0
  fi
  if [[ -z "$kubeadm" ]]; then
    kubeadm="$work/kubeadm"
    fetch "$DOWNLOADS/v$version/bin/linux/amd64/kubeadm" >"$kubeadm"
    chmod +x "$kubeadm"
  fi
  rm -rf "$work/made"
  cp -R files "$work/made"
  {
    image_lines "$kubeadm" "$version"
    # crictl of the same minor version; the plugins of CNI have versions of their own.
    sed "s,VERSION,$version,g; s,MINOR,$minor,g" assets
  } >"$work/made/Manifest"
  [[ "$(grep -c '^image ' "$work/made/Manifest")" -ge 7 ]] || fail 'kubeadm has listed fewer images than a control plane needs'
  rm -rf "../$version"
  mv "$work/made" "../$version"
  made="$version"
  printf 'kubernetes %s is made, and untried: scripts/grid run minors goes through the versions that are here\n' "$version"
}

# usage: copy_files; also removes what template/files no longer has
copy_files() {
  local version
  for version in ../1.*; do
    find "$version" -mindepth 1 -maxdepth 1 ! -name 'Manifest*' -exec rm -r {} +
    cp -R files/. "$version/"
  done
}

version='' from='' force='' files=''
for word in "$@"; do
  case "$word" in
    --version=*) version="${word#*=}" ;;
    --from=*) from="${word#*=}" ;;
    --force) force=1 ;;
    --files) files=1 ;;
    *) fail "unknown argument $word" ;;
  esac
done
if [[ -n "$files" ]]; then
  copy_files
  exit 0
fi
[[ -z "$from" || -n "$version" ]] || fail '--from needs --version'
work="$(mktemp -d "$PWD/.new-XXXXXX")"
trap 'rm -rf "$work"' EXIT
if [[ -n "$version" ]]; then
  make_version "${version#v}" "$from"
else
  mapfile -t here < <(minors)
  for minor in "${here[@]}" $((here[-1] + 1)); do
    newest="$(newest_patch "$minor")"
    if [[ -n "$newest" ]]; then make_version "${newest#v}"; fi
  done
fi
if [[ -n "${GITHUB_OUTPUT-}" && -n "$made" ]]; then printf 'kubernetes_version=%s\n' "$made" >>"$GITHUB_OUTPUT"; fi
