#!/usr/bin/env bash
# Runs the curlew of this bundle. install.sh, join.sh and upgrade.sh are this file: they run the command of their name with the
# bundle. So is tasks.sh, which runs any other command: ./tasks.sh load-images and preflight with the bundle, ./tasks.sh --help.
set -eu
# In syntax that any shell has, so that `sh install.sh` prints the right message.
case "${0##*/}" in
bash | dash | sh | -*)
  echo "this script was read from a pipe and cannot determine whether it is install.sh, join.sh, upgrade.sh or tasks.sh: run the script in its folder, as in: sudo ./install.sh airgap" >&2
  exit 64
  ;;
esac
if [ -z "${BASH_VERSION-}" ]; then echo "$0: this is a script for bash: run it with bash, not with sh" >&2 && exit 64; fi
name="${0##*/}"
stop() { printf '%s: %s\n' "$name" "$2" >&2 && exit "$1"; }
pwd -P &>/dev/null || stop 25 "the working folder was removed: change to another one; cd \"\$PWD\" enters a folder that was made again at its path"
bundle="$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)"
[[ -e "$bundle/bin/curlew" || ! -e "$bundle/contents.json" ]] || stop 22 "$bundle is an unpacked delta, without a curlew: run the curlew of this machine with the delta itself, as in: curlew install --bundle delta.tar.gz"
libc="$(getconf GNU_LIBC_VERSION 2>/dev/null || true)" least='glibc 2.28'
[[ -z "$libc" || "$(printf '%s\n' "$least" "$libc" | sort -V | head -n 1)" == "$least" ]] || stop 22 "this system has $libc, and the curlew of this bundle needs $least or newer: el8, Amazon Linux 2023, Debian 10, Ubuntu 20.04, or what came after"
# OpenSSL takes a fifth of the time of a sha256sum that is built without it, as Debian's is.
is_whole() {
  local sum=none
  { read -r sum _ <curlew.sha256; } 2>/dev/null || true
  [[ "$(openssl dgst -sha256 -r curlew 2>/dev/null)" == "$sum "* ]] || sha256sum --check curlew.sha256 &>/dev/null
}
(cd -- "$bundle/bin" && is_whole) || stop 15 "$bundle/bin/curlew is damaged: it is not the one that the bundle was made with. Unpack the bundle again, or get it again"
[[ -x "$bundle/bin/curlew" ]] || stop 25 "$bundle/bin/curlew cannot be executed: its file system is mounted noexec, or its mode was lost. Unpack the bundle with tar where programs may run, such as /var/lib, or: mount -o remount,exec"
said="$("$bundle/bin/curlew" --version 2>&1)" || stop 22 "$bundle/bin/curlew does not run on this system ($(uname -m)); it needs the architecture of the bundle, $least and libstdc++: $said"
case "$name" in install.sh | join.sh | upgrade.sh) set -- "${name%.sh}" --dir "$bundle" --require-statement "$@" ;; esac
if [[ "${1-}" == load[-_]images ]]; then set -- load-images --dir "$bundle" "${@:2}"; fi
if [[ "${1-}" == preflight && "$*" != *--@(bundle|dir|from|installer)* ]]; then set -- preflight --dir "$bundle" "${@:2}"; fi
# The name as typed: curlew is not in PATH, and its hints suggest commands to type.
CURLEW_CALLED="$(dirname -- "$0")/tasks.sh" exec "$bundle/bin/curlew" "$@"
