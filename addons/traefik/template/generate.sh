#!/usr/bin/env bash
# Makes addons/traefik/<version> from the newest version that exists here.
# usage: generate.sh [--version=VERSION] [--force]
# Without --version it makes the newest release. Without --force it leaves an existing version alone.
# Writes traefik_version=VERSION to $GITHUB_OUTPUT if it has made one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

fail() {
  printf 'generate.sh: %s\n' "$*" >&2
  exit 1
}

version='' force=''
for word in "$@"; do
  case "$word" in
    --version=*) version="${word#*=}" ;;
    --force) force=1 ;;
    *) fail "unknown argument $word" ;;
  esac
done
work="$(mktemp -d "$PWD/.new-XXXXXX")"
trap 'rm -rf "$work"' EXIT
if [[ -z "$version" ]]; then
  address="$(curl --fail --silent --show-error --location --retry 3 --connect-timeout 30 --max-time 120 --max-filesize 8388608 \
    --output "$work/page" --write-out '%{url_effective}' -- https://github.com/traefik/traefik/releases/latest)" || fail 'cannot fetch the newest release'
  version="${address##*/v}"
fi
[[ "$version" =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "\"${version:0:40}\" is not a version of traefik"
if [[ -e "../$version" && -z "$force" ]]; then
  printf 'traefik %s already exists\n' "$version"
  exit 0
fi
model="$(find .. -maxdepth 1 -name '[0-9]*' -printf '%f\n' | sort -V | tail -n 1)"
cp -R "../$model" "$work/made"
rm -f "$work/made/Manifest.lock"
sed -i "s,library/traefik:v${model//./\\.}\$,library/traefik:v$version," "$work/made/Manifest" "$work/made/daemonset.yaml"
rm -rf "../$version"
mv "$work/made" "../$version"
if [[ -n "${GITHUB_OUTPUT-}" ]]; then printf 'traefik_version=%s\n' "$version" >>"$GITHUB_OUTPUT"; fi
printf 'traefik %s is made\n' "$version"
