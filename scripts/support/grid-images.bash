# shellcheck shell=bash
# The images of a cluster, and a copy of the add-ons whose Manifests name them and the programs that were built here.
# Sourced by scripts/grid; needs tools.bash. Functions that are steps return after their first failure: `set -e` has no effect there. The programs are upstream's, the images around them are not.

# usage: grid_image FOLDER REFERENCE FILE [ENTRYPOINT]; an image archive of one layer, whose bytes only the folder determines
grid_image() {
  local work layer config
  work="$(mktemp -d)"
  tar -C "$1" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf "$work/layer.tar" .
  layer="$(sha256sum <"$work/layer.tar" | cut -c 1-64)"
  printf '{"architecture":"amd64","os":"linux","config":{"Entrypoint":%s,"Env":["PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
    "${4:-null}" "$layer" >"$work/config.json"
  config="$(sha256sum <"$work/config.json" | cut -c 1-64)"
  mv "$work/config.json" "$work/$config.json"
  printf '[{"Config":"%s.json","RepoTags":["%s"],"Layers":["layer.tar"]}]' "$config" "$2" >"$work/manifest.json"
  mkdir -p "$(dirname "$3")"
  tar -C "$work" --mtime=@0 -cf "$3" manifest.json "$config.json" layer.tar
  rm -rf "$work"
}

# usage: grid_place FOLDER PATH FILE…; hard links where possible
grid_place() {
  mkdir -p "$1/$2"
  cp -lL "${@:3}" "$1/$2/" 2>/dev/null || cp -L "${@:3}" "$1/$2/"
}

# usage: grid_iptables FOLDER NODE; programs of iptables and conntrack, with their libraries and those of their plugins,
# which they load by name
grid_iptables() {
  local to="$1" from="$2" name library
  mkdir -p "$to"/{etc,run,tmp,usr/sbin,usr/lib/x86_64-linux-gnu,usr/lib64}
  ln -s usr/lib "$to/lib"
  ln -s usr/lib64 "$to/lib64"
  ln -s usr/sbin "$to/sbin"
  cp "$from"/usr/sbin/{xtables-nft-multi,conntrack} "$to/usr/sbin/"
  for name in {ip,ip6}tables{,-save,-restore}; do ln -s xtables-nft-multi "$to/usr/sbin/$name"; done
  cp -a "$from/usr/lib/x86_64-linux-gnu/xtables" "$to/usr/lib/x86_64-linux-gnu/"
  cp "$from"/etc/{protocols,services} "$to/etc/" 2>/dev/null || true
  # shellcheck disable=SC2016
  chroot "$from" sh -c 'for file in /usr/sbin/xtables-nft-multi /usr/sbin/conntrack /usr/lib/x86_64-linux-gnu/xtables/*.so; do
    ldd "$file"; done' | grep -o '/[^ ]*' | grep -v ':$' | sort -u | while read -r library; do
    case "$library" in
      */ld-linux*) cp -L "$from$library" "$to/usr/lib64/" ;;
      *) cp -L "$from$library" "$to/usr/lib/x86_64-linux-gnu/" ;;
    esac
  done
}

# usage: grid_program NAME; the path of a program of Kubernetes GRID_VERSION, or of its etcd
grid_program() {
  case "$1" in
    etcd | etcdutl) printf '%s\n' "$TOOLS/$(grid_etcd "$GRID_VERSION")/$1" ;;
    *) printf '%s\n' "$TOOLS/kubernetes-${GRID_VERSION%.*}/$1" ;;
  esac
}

# usage: grid_etcd VERSION; the tool of the etcd that its package names, such as etcd-3.6
grid_etcd() {
  sed -n 's,^image etcd .*:\([0-9]*\.[0-9]*\).*,etcd-\1,p' "packages/kubernetes/$1/Manifest"
}

# usage: grid_cni VERSION; the tool of the plugins that its package names, such as cni-1.10.0
grid_cni() {
  sed -n 's,^asset cni-plugins.*-v\([0-9.]*\)\.tgz$,cni-\1,p' "packages/kubernetes/$1/Manifest"
}

# usage: grid_addon NAME VERSION; the version of an add-on that goes with a version of Kubernetes: the newest with the newest, the one before it
# with the one before that, down to the oldest
grid_addon() {
  local back
  back="$(printf '%s\n' "${GRID_VERSIONS[@]}" | sort -rV | grep -nxF "$2" | cut -d : -f 1)"
  find "addons/$1" -maxdepth 1 -name '[0-9]*' -printf '%f\n' | sort -V | tail -n "$back" | head -n 1
}

# usage: grid_folders; of the packages in the bundle
grid_folders() {
  local name
  printf 'packages/kubernetes/%s\n' "$GRID_VERSION"
  for name in "${GRID_ADDONS[@]}"; do printf 'addons/%s/%s\n' "$name" "$(grid_addon "$name" "$GRID_VERSION")"; done
}

# usage: grid_images FOLDER; ID.tar for every image of the add-ons, below FOLDER/repository/images
grid_images() {
  local box="$1/image-roots" out="$1/repository/images" node="$1/node-root" made="$TOOLS/grid" id image name folders
  mkdir -p "$box" "$out" "$node"
  tar -C "$node" -xf "$made/node.tar"
  for id in kube-apiserver kube-controller-manager kube-scheduler kube-proxy; do
    grid_place "$box/$id" usr/local/bin "$(grid_program "$id")"
  done
  grid_iptables "$box/kube-proxy" "$node"
  grid_place "$box/etcd" usr/local/bin "$(grid_program etcd)" "$(grid_program etcdutl)"
  grid_place "$box/coredns" . "$made/coredns"
  grid_place "$box/pause" . "$made/programs"
  mv "$box/pause/programs" "$box/pause/pause"
  cp -al "$box/pause" "$box/sandbox"
  grid_place "$box/flannel" opt/bin "$TOOLS/flannel-$(grid_addon flannel "$GRID_VERSION")/flanneld"
  grid_iptables "$box/flannel" "$node"
  grid_place "$box/flannel" bin /bin/busybox
  ln -s busybox "$box/flannel/bin/cp"
  grid_place "$box/flannel-cni-plugin" bin /bin/busybox
  ln -s busybox "$box/flannel-cni-plugin/bin/cp"
  cp "$made/programs" "$box/flannel-cni-plugin/flannel"
  grid_place "$box/web" bin "$made/programs"
  mv "$box/web/bin/programs" "$box/web/bin/web"
  grid_place "$box/local-path-busybox" bin /bin/busybox
  for name in sh mkdir rm; do ln -s busybox "$box/local-path-busybox/bin/$name"; done
  mapfile -t folders < <(grid_folders)
  while read -r _ id image _; do
    case "$id" in local-path-provisioner | metrics-server | traefik) grid_place "$box/$id" usr/local/bin "$made/$id" ;; esac
    case "$id" in
      coredns) grid_image "$box/$id" "$image" "$out/$id.tar" '["/coredns"]' ;;
      pause | sandbox) grid_image "$box/$id" "$image" "$out/$id.tar" '["/pause"]' ;;
      metrics-server | traefik) grid_image "$box/$id" "$image" "$out/$id.tar" "[\"/usr/local/bin/$id\"]" ;;
      *) grid_image "$box/$id" "$image" "$out/$id.tar" ;;
    esac
  done < <(grep -h '^image ' "${folders[@]/%//Manifest}")
  grid_image "$box/web" registry.example/grid/web:1 "$out/web.tar"
  rm -rf "$box" "$node"
}

# usage: grid_repository FOLDER; FOLDER/repository with the add-ons, whose assets and images are files there
grid_repository() {
  local to="$1/repository" assets="$1/repository/assets" made="$TOOLS/grid" containerd folder manifest
  containerd="$TOOLS/containerd-$(grid_addon containerd "$GRID_VERSION")"
  mkdir -p "$to/addons" "$assets" "$1/containerd/bin"
  while read -r folder; do
    mkdir -p "$to/${folder%/*}"
    cp -r "${folder%/*}"/{README.md,categories.json} "$folder" "$to/${folder%/*}/"
  done < <(grid_folders)
  cp -r test/grid/addons/. "$to/addons/"
  cp -L "$(grid_program kubeadm)" "$(grid_program kubelet)" "$(grid_program kubectl)" "$assets/"
  cp -L /usr/sbin/runc "$assets/runc"
  cp -L "$containerd"/{containerd,containerd-shim-runc-v2,ctr} "$1/containerd/bin/"
  tar -C "$1/containerd" -czf "$assets/containerd.tar.gz" bin
  rm -r "$1/containerd"
  tar -C "$made" -czf "$assets/crictl.tar.gz" --transform 's/^cri$/crictl/' cri
  tar -C "$TOOLS/$(grid_cni "$GRID_VERSION")" -czf "$assets/cni-plugins.tgz" bridge loopback host-local portmap
  for manifest in "$to"/addons/*/*/Manifest "$to"/packages/*/*/Manifest; do
    sed -i -E -e 's,^(image ([^ ]+)) .*,\1 ../../../images/\2.tar,' -e 's,^(asset ([^ ]+)) .*,\1 ../../../assets/\2,' "$manifest"
  done
}
