#!/usr/bin/env bash
# Makes addons/flannel/<version> from the newest version that exists here; the version of the CNI plugin is that of upstream's YAML.
# usage: generate.sh [--version=VERSION] [--from=FILE] [--force]
# Without --version it makes the newest release; --from is upstream's YAML of it, which is otherwise downloaded. Without --force it
# leaves an existing version alone. Writes flannel_version=VERSION to $GITHUB_OUTPUT if it has made one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

RELEASES=https://github.com/flannel-io/flannel/releases

fail() {
  printf 'generate.sh: %s\n' "$*" >&2
  exit 1
}

# usage: fetch URL FILE; prints the final URL after redirects
fetch() {
  curl --fail --silent --show-error --location --retry 3 --connect-timeout 30 --max-time 120 --max-filesize 8388608 \
    --output "$2" --write-out '%{url_effective}' -- "$1" || fail "cannot fetch $1"
}

version='' upstream='' force=''
for word in "$@"; do
  case "$word" in
    --version=*) version="${word#*=}" ;;
    --from=*) upstream="${word#*=}" ;;
    --force) force=1 ;;
    *) fail "unknown argument $word" ;;
  esac
done
work="$(mktemp -d "$PWD/.new-XXXXXX")"
trap 'rm -rf "$work"' EXIT
if [[ -z "$version" ]]; then
  address="$(fetch "$RELEASES/latest" "$work/page")"
  version="${address##*/v}"
fi
[[ "$version" =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "\"${version:0:40}\" is not a version of flannel"
if [[ -e "../$version" && -z "$force" ]]; then
  printf 'flannel %s already exists\n' "$version"
  exit 0
fi
if [[ -z "$upstream" ]]; then
  upstream="$work/upstream.yaml"
  fetch "$RELEASES/download/v$version/kube-flannel.yml" "$upstream" >/dev/null
fi
plugin="$(sed -nE 's,^.*image: .*/(flannel-cni-plugin:v[0-9][A-Za-z0-9._-]*)[^A-Za-z0-9._-]*$,\1,p' "$upstream" | head -n 1)"
[[ -n "$plugin" ]] || fail 'the YAML of upstream names no image of its CNI plugin'
model="$(find .. -maxdepth 1 -name '[0-9]*' -printf '%f\n' | sort -V | tail -n 1)"
cp -R "../$model" "$work/made"
rm -f "$work/made/Manifest.lock"
sed -i -E -e "s,(flannel-io/flannel):v[0-9.]+,\1:v$version,g" -e "s,flannel-cni-plugin:v[A-Za-z0-9._-]+,$plugin,g" \
  "$work/made/Manifest" "$work/made/daemonset.yaml"
rm -rf "../$version"
mv "$work/made" "../$version"
if [[ -n "${GITHUB_OUTPUT-}" ]]; then printf 'flannel_version=%s\n' "$version" >>"$GITHUB_OUTPUT"; fi
printf 'flannel %s is made\n' "$version"
