#!/usr/bin/env bash
# Makes versions of the add-on: their files are those of template/files, and their Manifest names containerd of the version and a runc.
# usage: generate.sh [--version=VERSION] [--from=RUNC-VERSION] [--force] [--files]
# Without --version it makes the newest patch of each minor version that is here, and of the minor version after them; without --from
# with the newest runc. Without --force it leaves an existing version alone. --files only copies template/files into all versions that
# are here. Writes the newest version that it has made to $GITHUB_OUTPUT, as containerd_version=VERSION.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

made='' runc=''

fail() {
  printf 'generate.sh: %s\n' "$*" >&2
  exit 1
}

# usage: releases OWNER/NAME; its versions that are no candidates for a release, the oldest first
releases() {
  local address="https://github.com/$1" tags
  tags="$(GIT_TERMINAL_PROMPT=0 timeout 120 git ls-remote --tags --refs "$address" 'v[0-9]*')" || fail "cannot list the tags of $address"
  sed -nE 's,^.*refs/tags/v([0-9]+\.[0-9]+\.[0-9]+)$,\1,p' <<<"$tags" | sort -V
}

# usage: versions; those that are here, the oldest first
versions() {
  find .. -maxdepth 1 -name '2.*' -printf '%f\n' | sort -V
}

# usage: make_version VERSION
make_version() {
  [[ "$1" =~ ^2\.[0-9]+\.[0-9]+$ ]] || fail "\"${1:0:40}\" is not a version of containerd 2, whose configuration this add-on writes"
  if [[ -e "../$1" && -z "$force" ]]; then
    printf 'containerd %s already exists\n' "$1"
    return 0
  fi
  if [[ -z "$runc" ]]; then runc="$(releases opencontainers/runc | tail -n 1)"; fi
  [[ "$runc" =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "\"${runc:0:40}\" is not a version of runc"
  rm -rf "$work/made"
  cp -R files "$work/made"
  sed "s,VERSION,$1,g; s,RUNC,$runc,g" assets >"$work/made/Manifest"
  rm -rf "../$1"
  mv "$work/made" "../$1"
  made="$1"
  printf 'containerd %s is made\n' "$1"
}

# usage: copy_files; also removes what template/files no longer has
copy_files() {
  local version
  for version in ../2.*; do
    find "$version" -mindepth 1 -maxdepth 1 ! -name 'Manifest*' -exec rm -r {} +
    cp -R files/. "$version/"
  done
}

version='' force='' files=''
for word in "$@"; do
  case "$word" in
    --version=*) version="${word#*=}" ;;
    --from=*) runc="${word#*=}" ;;
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
if [[ -n "$version" ]]; then
  make_version "$version"
else
  upstream="$(releases containerd/containerd)"
  mapfile -t minors < <(versions | cut -d . -f 2 | uniq)
  for minor in "${minors[@]}" $((minors[-1] + 1)); do
    newest="$(grep "^2\.$minor\." <<<"$upstream" | tail -n 1 || true)"
    if [[ -n "$newest" ]]; then make_version "$newest"; fi
  done
fi
if [[ -n "${GITHUB_OUTPUT-}" && -n "$made" ]]; then printf 'containerd_version=%s\n' "$made" >>"$GITHUB_OUTPUT"; fi
