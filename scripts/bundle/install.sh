#!/usr/bin/env bash
# Installs on this machine what the bundle around this file holds. Options are those of `curlew install`.
set -eu
bundle="$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)"
recent='const [major, minor] = process.versions.node.split(".").map(Number); process.exit(major > 20 || (major === 20 && minor >= 20) ? 0 : 1)'
if ! command -v node >/dev/null || ! node -e "$recent"; then
  echo "install.sh: Node.js 20.20 or newer is needed on this machine, and 'node' is not that" >&2
  exit 22
fi
exec node "$bundle/bin/curlew" install --dir "$bundle" "$@"
