#!/usr/bin/env bash
# Makes addons/containerd/<version> from the newest version that exists here, with the newest runc.
# usage: generate.sh [--version=VERSION] [--from=RUNC-VERSION] [--force]
# Without --version it makes the newest release; without --force it leaves an existing version alone.
# Writes containerd_version=VERSION to $GITHUB_OUTPUT if it has made one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

fail() {
  printf 'generate.sh: %s\n' "$*" >&2
  exit 1
}

# usage: newest OWNER/NAME; the version of its newest release
newest() {
  local address
  address="$(curl --fail --silent --show-error --location --retry 3 --connect-timeout 30 --max-time 120 --output /dev/null \
    --write-out '%{url_effective}' -- "https://github.com/$1/releases/latest")" || fail "cannot fetch the releases of $1"
  printf '%s\n' "${address##*/v}"
}

version='' runc='' force=''
for word in "$@"; do
  case "$word" in
    --version=*) version="${word#*=}" ;;
    --from=*) runc="${word#*=}" ;;
    --force) force=1 ;;
    *) fail "unknown argument $word" ;;
  esac
done
if [[ -z "$version" ]]; then version="$(newest containerd/containerd)"; fi
[[ "$version" =~ ^2\.[0-9]+\.[0-9]+$ ]] || fail "\"${version:0:40}\" is not a version of containerd 2, whose configuration this add-on writes"
if [[ -e "../$version" && -z "$force" ]]; then
  printf 'containerd %s already exists\n' "$version"
  exit 0
fi
if [[ -z "$runc" ]]; then runc="$(newest opencontainers/runc)"; fi
[[ "$runc" =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "\"${runc:0:40}\" is not a version of runc"
model="$(find .. -maxdepth 1 -name '2.*' -printf '%f\n' | sort -V | tail -n 1)"
work="$(mktemp -d "$PWD/.new-XXXXXX")"
trap 'rm -rf "$work"' EXIT
cp -R "../$model" "$work/made"
rm -f "$work/made/Manifest.lock"
sed -E -e "/^asset containerd/s,[0-9]+\.[0-9]+\.[0-9]+,$version,g" -e "/^asset runc/s,[0-9]+\.[0-9]+\.[0-9]+,$runc,g" \
  "../$model/Manifest" >"$work/made/Manifest"
rm -rf "../$version"
mv "$work/made" "../$version"
if [[ -n "${GITHUB_OUTPUT-}" ]]; then printf 'containerd_version=%s\n' "$version" >>"$GITHUB_OUTPUT"; fi
printf 'containerd %s is made\n' "$version"
