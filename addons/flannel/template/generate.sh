#!/usr/bin/env bash
# Makes addons/flannel/<version> from template/files; the version of the CNI plugin is that of upstream's YAML.
# usage: generate.sh [--version=VERSION] [--from=FILE] [--force] [--files]
# Without --version it makes the newest release; --from is upstream's YAML of it, which is otherwise downloaded. Without --force it
# leaves an existing version alone. --files only makes the files of all versions that are here again. Writes flannel_version=VERSION to
# $GITHUB_OUTPUT if it has made one.
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

# usage: write_version FOLDER VERSION PLUGIN; into an empty folder, PLUGIN being the tag of the CNI plugin's image
write_version() {
  cp -R files/. "$1/"
  sed -i "s,VERSION,$2,; s,PLUGIN,$3," "$1/daemonset.yaml"
  sed -nE 's,^ *image: (.*/(flannel[a-z-]*):.*)$,image \2 \1,p' "$1/daemonset.yaml" | sort -u >"$1/Manifest"
}

# usage: copy_files; also removes what template/files no longer has
copy_files() {
  local folder plugin
  for folder in ../[0-9]*; do
    plugin="$(sed -n 's,^image flannel-cni-plugin .*:,,p' "$folder/Manifest")"
    find "$folder" -mindepth 1 -maxdepth 1 ! -name Manifest.lock -exec rm -r {} +
    write_version "$folder" "${folder##*/}" "$plugin"
  done
}

version='' upstream='' force='' files=''
for word in "$@"; do
  case "$word" in
    --version=*) version="${word#*=}" ;;
    --from=*) upstream="${word#*=}" ;;
    --force) force=1 ;;
    --files) files=1 ;;
    *) fail "unknown argument $word" ;;
  esac
done
if [[ -n "$files" ]]; then
  copy_files
  exit 0
fi
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
plugin="$(sed -nE 's,^.*image: .*/flannel-cni-plugin:(v[0-9][A-Za-z0-9._-]*)[^A-Za-z0-9._-]*$,\1,p' "$upstream" | head -n 1)"
[[ -n "$plugin" ]] || fail 'the YAML of upstream names no image of its CNI plugin'
mkdir "$work/made"
write_version "$work/made" "$version" "$plugin"
rm -rf "../$version"
mv "$work/made" "../$version"
if [[ -n "${GITHUB_OUTPUT-}" ]]; then printf 'flannel_version=%s\n' "$version" >>"$GITHUB_OUTPUT"; fi
printf 'flannel %s is made\n' "$version"
