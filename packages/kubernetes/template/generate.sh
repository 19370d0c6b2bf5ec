#!/usr/bin/env bash
# Makes packages/kubernetes/<version> from the newest version that exists here: kubeadm of the new one says which images it needs.
# usage: generate.sh [--version=VERSION] [--from=KUBEADM] [--force]
# Without --version it makes the newest stable version; --from is a kubeadm of that version, which is otherwise downloaded. Without
# --force it leaves an existing version alone. Writes kubernetes_version=VERSION to $GITHUB_OUTPUT if it has made one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

DOWNLOADS=https://dl.k8s.io/release

fail() {
  printf 'generate.sh: %s\n' "$*" >&2
  exit 1
}

fetch() {
  curl --fail --silent --show-error --location --retry 3 --connect-timeout 30 --max-time 600 --max-filesize 268435456 -- "$1" ||
    fail "cannot fetch $1"
}

# usage: image_lines KUBEADM VERSION; the id is the last part of an image's name
image_lines() {
  "$1" config images list --kubernetes-version "v$2" | while read -r image; do
    name="${image%:*}"
    printf 'image %s %s\n' "${name##*/}" "$image"
  done
}

version='' kubeadm='' force=''
for word in "$@"; do
  case "$word" in
    --version=*) version="${word#*=}" ;;
    --from=*) kubeadm="${word#*=}" ;;
    --force) force=1 ;;
    *) fail "unknown argument $word" ;;
  esac
done
work="$(mktemp -d "$PWD/.new-XXXXXX")"
trap 'rm -rf "$work"' EXIT
if [[ -z "$version" ]]; then version="$(fetch "$DOWNLOADS/stable.txt")"; fi
version="${version#v}"
[[ "$version" =~ ^1\.([0-9]+)\.[0-9]+$ ]] || fail "\"${version:0:40}\" is not a version of Kubernetes"
minor="${BASH_REMATCH[1]}"
((minor >= 31)) || fail 'the package needs Kubernetes 1.31 or newer: its configuration is kubeadm.k8s.io/v1beta4'
if [[ -e "../$version" && -z "$force" ]]; then
  printf 'kubernetes %s already exists\n' "$version"
  exit 0
fi
model="$(find .. -maxdepth 1 -name '1.*' -printf '%f\n' | sort -V | tail -n 1)"
if [[ -z "$kubeadm" ]]; then
  kubeadm="$work/kubeadm"
  fetch "$DOWNLOADS/v$version/bin/linux/amd64/kubeadm" >"$kubeadm"
  chmod +x "$kubeadm"
fi
cp -R "../$model" "$work/made"
rm -f "$work/made/Manifest.lock"
{
  image_lines "$kubeadm" "$version"
  # crictl of the same minor version; the plugins of CNI have versions of their own.
  grep '^asset ' "../$model/Manifest" | sed -E "s,v1\.[0-9]+\.[0-9]+/bin/,v$version/bin/,; \
/^asset crictl/s,v1\.[0-9]+\.[0-9]+,v1.$minor.0,g"
} >"$work/made/Manifest"
[[ "$(grep -c '^image ' "$work/made/Manifest")" -ge 7 ]] || fail 'kubeadm has listed fewer images than a control plane needs'
rm -rf "../$version"
mv "$work/made" "../$version"
if [[ -n "${GITHUB_OUTPUT-}" ]]; then printf 'kubernetes_version=%s\n' "$version" >>"$GITHUB_OUTPUT"; fi
printf 'kubernetes %s is made\n' "$version"
