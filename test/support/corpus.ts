/**
 * Generated add-ons of the shapes that real ones have: 24 names, 612 versions, and the same number of each combination
 * of directives, of dockerout lines and of destinations as in kURL's repository.
 */
import { writeTree } from './tree.ts';

export interface CorpusAddon {
  readonly name: string;
  readonly version: string;
  readonly manifest: string;
}

/** Versions of each add-on, images of one Manifest, and how its lines are made; `nth` counts from 0. */
interface Shape {
  readonly name: string;
  readonly count: number;
  readonly version: (nth: number) => string;
  readonly lines: (nth: number, version: string) => readonly string[];
}

const REGISTRIES = ['registry.k8s.io/', 'docker.io/', '', 'k8s.gcr.io/', 'quay.io/', 'ghcr.io/', 'docker.elastic.co/'];

function images(name: string, count: number, version: string): readonly string[] {
  return Array.from({ length: count }, (_, index) => {
    const registry = REGISTRIES[(index + version.length) % REGISTRIES.length] ?? '';
    return `image ${name}-part.${index}_x ${registry}example/${name}-${index}:v${version}`;
  });
}

function semver(nth: number): string {
  return `1.${Math.floor(nth / 10)}.${nth % 10}`;
}

/** An add-on of images only. */
function plain(name: string, count: number, perVersion: number, version: Shape['version'] = semver): Shape {
  return { name, count, version, lines: (_, own) => images(name, perVersion, own) };
}

function kotsadm(nth: number, version: string): readonly string[] {
  // 169 of 179 have kots.tar.gz; 49 use bcrypt:latest, 15 of those with the fourth column.
  const bcrypt = nth < 49 ? [`image bcrypt docker.io/epicsoft/bcrypt:latest${nth < 15 ? ' no_remote_load' : ''}`] : [];
  const kots = nth < 10 ? [] : [`asset kots.tar.gz https://github.com/example/kots/releases/v${version}/kots.tar.gz`];
  return [...images('kotsadm', 7 - bcrypt.length, version), ...bcrypt, '', ...kots];
}

const OLD_FOLDERS: readonly (readonly string[])[] = [
  ...Array.from({ length: 5 }, () => ['rhel-8', 'ubuntu-18.04', 'rhel-9', 'ubuntu-16.04']),
  ...Array.from({ length: 5 }, () => ['rhel-8', 'ubuntu-18.04', 'rhel-9']),
  ['rhel-8', 'ubuntu-18.04', 'ubuntu-20.04'],
];
const NEW_FOLDERS = ['rhel-7', 'rhel-7-force', 'rhel-8', 'ubuntu-18.04', 'ubuntu-20.04', 'ubuntu-22.04'];

function containerd(nth: number, version: string): readonly string[] {
  const base = [...images('containerd', 2, version), 'asset runc https://github.com/example/runc/runc.amd64'];
  if (nth === 0) return [...base, 'asset containerd.tar.gz https://github.com/example/containerd.tar.gz'];
  const old = nth <= OLD_FOLDERS.length ? OLD_FOLDERS[nth - 1] : undefined;
  const folders = old ?? (nth > 44 ? [...NEW_FOLDERS, 'rhel-9'] : NEW_FOLDERS);
  const builds = folders.map((os) => {
    const dockerfile = `addons/containerd/template/Dockerfile.${os.replace(/[-.]/g, '')}`;
    return `dockerout ${os} ${dockerfile} ${os === 'ubuntu-18.04' ? '1.6.21' : version}`;
  });
  if (old !== undefined) return [...base, 'yum libzstd', ...builds];
  const apt26 = nth >= 50 ? ['apt26 containerd'] : [];
  const packages = ['yum libzstd', 'yum container-selinux', 'yum2023 containerd', 'yum2023 libzstd'];
  return [...base, '', ...packages, 'apt24 containerd', ...apt26, '', ...builds];
}

const COLLECTD = [
  'apt collectd',
  'yum collectd',
  'yum collectd-rrdtool',
  'yum8 collectd-disk',
  'yum9 collectd',
  'yum9 collectd-rrdtool',
  'yum9 collectd-disk',
  'yum2023 collectd',
  'yum2023 collectd-rrdtool',
  'yum2023 collectd-disk',
];

const ISCSI = ['apt nfs-common', 'apt open-iscsi', 'yum nfs-utils', 'yum iscsi-initiator-utils'];

function withAsset(name: string, count: number, file: string): Shape {
  const asset = `asset ${file} https://github.com/example/${name}/${file}`;
  return { name, count, version: semver, lines: (_, version) => [asset, ...images(name, 2, version)] };
}

const SHAPES: readonly Shape[] = [
  withAsset('antrea', 7, 'antctl'),
  { name: 'aws', count: 2, version: (nth) => `0.${nth}.0`, lines: () => [] },
  plain('calico', 1, 3),
  plain('cert-manager', 8, 2),
  { name: 'collectd', count: 1, version: () => 'v5', lines: () => COLLECTD },
  { name: 'containerd', count: 52, version: semver, lines: containerd },
  plain('contour', 38, 2),
  plain('ekco', 1, 2),
  plain('flannel', 40, 2),
  plain('fluentd', 1, 2),
  plain('goldpinger', 13, 2, (nth) => `3.${nth}.2-1.1.2`),
  { name: 'kotsadm', count: 179, version: semver, lines: kotsadm },
  {
    name: 'longhorn',
    count: 6,
    version: semver,
    lines: (_, version) => [...images('longhorn', 2, version), '', ...ISCSI],
  },
  plain('metrics-server', 8, 2),
  { ...plain('minio', 68, 2, (nth) => `20${20 + (nth % 6)}-10-${10 + (nth % 20)}T17-29-${10 + nth}Z`) },
  { name: 'nodeless', count: 1, version: () => '0.0.1', lines: () => [] },
  plain('openebs', 16, 2),
  plain('prometheus', 62, 7, (nth) => `0.${nth}.1-87.15.1`),
  plain('registry', 7, 2),
  {
    name: 'rook',
    count: 43,
    version: (nth) => `1.0.${nth}-14.2.21`,
    lines: (_, version) => [...images('rook', 8, version), '', 'apt lvm2', 'yum lvm2', 'yumol lvm2'],
  },
  plain('rookupgrade', 1, 20, () => '10to14'),
  withAsset('sonobuoy', 18, 'sonobuoy.tar.gz'),
  {
    name: 'velero',
    count: 15,
    version: semver,
    lines: (_, version) => [
      ...images('velero', 2, version),
      'asset velero.tar.gz https://github.com/example/velero/velero.tar.gz',
      'apt nfs-common',
      'yum nfs-utils',
    ],
  },
  plain('weave', 24, 2, (nth) => `2.8.1-202304${10 + nth}`),
];

/** All 612, by name and in the order of their versions. */
export function corpus(): readonly CorpusAddon[] {
  return SHAPES.flatMap(({ name, count, version, lines }) =>
    Array.from({ length: count }, (_, nth) => {
      const own = version(nth);
      const written = lines(nth, own);
      return { name, version: own, manifest: written.length === 0 ? '' : `${written.join('\n')}\n` };
    }),
  );
}

/** An install.sh with the hooks that real ones have, and what a reader of bash may stumble over. */
export function corpusScript(name: string): string {
  const install = name === 'containerd' ? 'containerd_install' : name;
  const inner = name.replaceAll('-', '_');
  return `# Installs ${name}.

function ${name}_pre_init() {
    local src="$DIR/addons/${name}"
    if [ ! -d "$src" ]; then
        echo "no $src () { here }" # not_a_function() {
    fi
}

${install}() {
    local dst="$DIR/kustomize/${name}"
    ${inner}_render "$dst"
    cat > "$dst/kustomization.yaml" <<EOF
resources:
- deployment.yaml
not_a_function() {
EOF
    case "$dst" in
        *x*) echo 'it is() {' ;;
        *) echo "$(basename "$dst")" ;;
    esac
}

function ${name}_already_applied() {
    ${inner}_render "$DIR/kustomize/${name}"
}

function ${name}_join() {
    echo "joined $((1 << 2))"
}

function ${inner}_render() {
    mkdir -p "$1"
}
`;
}

/** Writes `addons/<name>/<version>/{Manifest,install.sh}` of the first `count` add-ons, and the Dockerfiles they name. */
export async function writeCorpus(root: string, { count }: { readonly count: number }): Promise<void> {
  const files: Record<string, string> = {};
  for (const { name, version, manifest } of corpus().slice(0, count)) {
    files[`addons/${name}/${version}/Manifest`] = manifest;
    files[`addons/${name}/${version}/install.sh`] = corpusScript(name);
    for (const [, path = ''] of manifest.matchAll(/^dockerout \S+ (\S+)/gm)) files[path] = 'FROM scratch\n';
  }
  await writeTree(root, files);
}
