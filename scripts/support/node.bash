# shellcheck shell=bash
# The Node side of the set-up: the version, the npm packages, the build. Sourced; needs steps.bash.

node_check() {
  command -v node >/dev/null || die 'node is not in PATH: install Node 20.20 or newer'
  command -v npm >/dev/null || die 'npm is not in PATH: it is included in Node'
  node -e '
    const [major, minor] = process.versions.node.split(".").map(Number);
    process.exit(major > 20 || (major === 20 && minor >= 20) ? 0 : 1);
  ' || die "Node $(node --version) is too old: 20.20 or newer is needed"
}

# npm writes node_modules/.package-lock.json last: newer than the lock means complete.
node_packages_present() {
  [[ node_modules/.package-lock.json -nt package-lock.json ]]
}

node_packages() {
  local try
  # npm would empty the folder that the link names, and replace the link.
  [[ ! -L node_modules ]] || die "node_modules is a link: run npm ci in $(dirname "$(readlink -f node_modules)")"
  for try in 1 2 3; do
    npm ci --no-audit --no-fund && touch node_modules/.package-lock.json && return 0
    printf 'npm ci: try %d failed\n' "$try"
    sleep $((try * 2))
  done
  return 1
}

# Builds dist/ when a source is newer than it.
node_build() {
  if [[ -f dist/cli/main.js ]] && [[ -z "$(find src scripts/lib scripts/*.sh scripts/host-packages scripts/new \
    scripts/build-command.ts scripts/build-node-tool.ts scripts/command scripts/node-tool package.json \
    tsconfig.build.json tsconfig.json \
    -newer dist/cli/main.js -print -quit 2>/dev/null)" ]]; then
    return 0
  fi
  npm run --silent build || {
    # A compiler that found mistakes still writes: its output must not count as a build.
    rm -f dist/cli/main.js
    return 1
  }
}
