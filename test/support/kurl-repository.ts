/** A generated repository in the manner of kURL's: add-ons, its own scripts, lists of versions, host preflights. */
import { corpus } from './corpus.ts';
import { writeTree, type Files } from './tree.ts';

/** An install.sh that uses what real ones use, and nothing that is absent. */
function kurlScript(name: string, version: string): string {
  const inner = name.replaceAll('-', '_');
  const install = name === 'containerd' ? 'containerd_install' : name;
  return `function ${name}_pre_init() {
    if [ -n "$DOCKER_VERSION" ] && ! commandExists ${inner}_cli; then
        logWarn "${name} ${version}: $LSB_DIST $DIST_VERSION"
    fi
}

function ${install}() {
    local src="$DIR/addons/${name}/${version}"
    local dst="$DIR/kustomize/${name}"

    cp "$src/kustomization.yaml" "$dst/"
    render_yaml_file_2 "$src/deployment.yaml" > "$dst/deployment.yaml"
    insert_resources "$dst/kustomization.yaml" deployment.yaml
    cat > "$dst/proxy.yaml" <<EOF
proxy: $PROXY_ADDRESS
skip: $(echo "$NO_PROXY_ADDRESSES" | tr , ' ')
EOF
    kubectl apply -k "$dst/"
    if ! spinner_until 120 ${inner}_ready ${name}; then
        bail "${name} failed to deploy"
    fi
    case "$K8S_DISTRO" in
        kubeadm|rke2) ${inner}_outside "$src" ;;
        *) exit 1 ;;
    esac
}

function ${name}_join() {
    if host_packages_shipped; then
        log "$KUBERNETES_VERSION on $(uname -r)"
    fi
}

function ${inner}_ready() {
    local namespace="$1"
    [[ "$(kubectl get pods -n "$namespace" --no-headers | awk '{ print $3 }' | sort -u)" =~ ^(Running)?$ ]]
}

function ${inner}_outside() {
    local file
    for file in "$1"/*.yaml; do
        [ -f "$file" ] && echo "\${file##*/}: \${${inner.toUpperCase()}_VERSION:-none}"
    done
}
`;
}

const PREFLIGHT = `apiVersion: troubleshoot.sh/v1beta2
kind: HostPreflight
metadata:
  name: ports
spec:
  collectors:
    - tcpPortStatus:
        collectorName: "port"
        port: 9100
        exclude: '{{kurl .IsUpgrade }}'
{{kurl- range .RemoteHosts }}
    - tcpConnect:
        collectorName: "to {{kurl . }}"
        address: "{{kurl . }}:6783"
{{kurl- end }}
  analyzers:
    - tcpPortStatus:
        checkName: "port"
        collectorName: "port"
        exclude: '{{kurl .IsUpgrade }}'
        outcomes:
          - fail: {when: "address-in-use", message: "taken"}
          - pass: {message: "free"}
`;

/** Files of one add-on that works as it is. */
export function kurlAddon(name: string, version: string, manifest = ''): Files {
  const at = `addons/${name}/${version}`;
  return {
    [`${at}/Manifest`]: manifest,
    [`${at}/install.sh`]: kurlScript(name, version),
    [`${at}/kustomization.yaml`]: 'resources: []\n',
    [`${at}/deployment.yaml`]: 'image: example/x:1\nproxy: "$PROXY_ADDRESS"\n',
  };
}

/** What lies beside the add-ons. */
export const KURL_SCRIPTS: Files = {
  'scripts/common/common.sh': 'function bail() { exit 1; }\nfunction tell_the_world() { KURL_GREETING=hello; }\n',
  'scripts/install.sh': '#!/bin/bash\nmain() { INSTALLER_ID=abc; }\n',
};

/** `versions.js` with these lists. */
export function versionsScript(lists: Readonly<Record<string, readonly string[]>>): string {
  const rows = Object.entries(lists).map(([key, versions], index) => {
    const items = versions.map((version) => `    "${version}",`).join('\n');
    return index % 2 === 0
      ? `  ${key}: [\n    // cron-${key}-update\n${items}\n  ],`
      : `  ${key}: [${versions.map((version) => `"${version}"`).join(', ')}, ], // cron-${key}-update`;
  });
  return `\n// first version of each is "latest"\nmodule.exports.InstallerVersions = {\n${rows.join('\n')}\n};\n`;
}

/** A whole repository of 24 add-ons in 612 versions, or its first ones; all of them work. */
export async function writeKurlRepository(
  root: string,
  { count = 612 }: { readonly count?: number } = {},
): Promise<void> {
  const lists: Record<string, string[]> = {};
  for (const { name, version, manifest } of corpus().slice(0, count)) {
    const files: Record<string, string | Uint8Array> = { ...kurlAddon(name, version, manifest) };
    if (['kotsadm', 'prometheus', 'weave', 'containerd'].includes(name)) {
      files[`addons/${name}/${version}/host-preflight.yaml`] = PREFLIGHT;
    }
    files[`addons/${name}/categories.json`] =
      `${JSON.stringify({ name, fulfills: [], requires: [], recommends: [] })}\n`;
    for (const [, path = ''] of manifest.matchAll(/^dockerout \S+ (\S+)/gm)) files[path] = 'FROM scratch\n';
    const key = name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
    (lists[key] ??= []).unshift(version);
    await writeTree(root, files);
  }
  await writeTree(root, { ...KURL_SCRIPTS, 'web/src/installers/versions.js': versionsScript(lists) });
}
