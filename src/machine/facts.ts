/** The facts of a host about itself, and to which cluster it belongs. Pure. */
import { fieldsOf, jsonIn } from '../core/json.ts';
import { ADMIN_CONF, ATTEMPT, CONFIGS, madeOf } from '../core/kubeadm.ts';
import { CONTAINERD_SOCKET } from '../core/layout.ts';
import type { RecordedSettings } from './cluster.ts';

export interface HostFacts {
  /** Lower case, as Kubernetes names its Node. */
  readonly hostname: string;
  /** Unique for each host, but for clones of one template; empty where it was not set up. */
  readonly machineId: string;
  /** UUID of its mainboard or virtual machine, where it has one. */
  readonly productId: string | undefined;
  /** `debian 12` */
  readonly os: string;
  /** The machine type, as `uname -m` prints it. */
  readonly arch: string;
  readonly memoryMiB: number;
  /** Swap is on. */
  readonly swap: boolean;
  /** How far its clock is ahead of this machine's, in seconds, as far as the connection lets that be known. */
  readonly skewS: number;
  /** TCP ports on which something listens. */
  readonly ports: readonly number[];
  /** Programs that curlew needs there, and that it does not have. */
  readonly missing: readonly string[];
  /** Free space where packages and images are; what has arrived of a bundle counts as free. */
  readonly diskMiB: number;
  /** Where the first container runtime will keep images; undefined on a node, and where one runs, which alone knows what it has. */
  readonly imageDisk: ImageDisk | undefined;
  /** `v1.37.2`; undefined where no kubelet is installed. */
  readonly kubelet: string | undefined;
  /** kubeadm has begun to make it part of a cluster. */
  readonly isPart: boolean;
  /** kubeadm has not ended there, or its end was not seen. */
  readonly isUnfinished: boolean;
  /** curlew has begun to make it a node, and that has not ended without a failure: its add-ons may be missing. */
  readonly begun: 'init' | 'join' | undefined;
  /** It can administer its cluster: it is a control plane of it, and kubeadm has ended there. */
  readonly isControlPlane: boolean;
  /** sha256 of the certificate of its cluster's authority. */
  readonly authority: string | undefined;
  /** The cluster for which curlew prepares it, by its own record. */
  readonly cluster: string | undefined;
  /** Digest of the bundle that is unpacked on it. */
  readonly bundle: string | undefined;
  /** Its provider called it outdated when it was new. */
  readonly born: BornOutdated | undefined;
  /** The settings that curlew has given it; undefined without a record that can be read. */
  readonly settings: RecordedSettings | undefined;
  /** Its images were loaded while the host was a node already. */
  readonly hasImages: boolean;
  /** The run of curlew on it now. */
  readonly running: string | undefined;
  /** Components that a node needs and does not run there, such as `etcd has no manifest`. */
  readonly broken: readonly string[];
  /** The operator who changes the cluster now, by a lock on this host. */
  readonly lock: HostLock | undefined;
}

/** The file system of a folder, in bytes. */
export interface ImageDisk {
  readonly path: string;
  readonly total: number;
  readonly free: number;
}

export interface HostLock {
  readonly owner: string;
  /** Time in ISO 8601, by the clock of the host; undefined where the lock does not say it. */
  readonly since: string | undefined;
}

export interface BornOutdated {
  /** Digest of what its provider said, and of the configuration that it got. */
  readonly mark: string;
  /** Time in ISO 8601, by the clock of the host; undefined where the record does not say it. */
  readonly at: string | undefined;
}

/** For sh, on a host that is a node of systemd's: prints what does not run, without the API server. `root` is for tests. */
export function brokenScript(root = ''): string {
  const [kubernetes, network] = [`${root}/etc/kubernetes`, `${root}/etc/cni/net.d`];
  return `cd ${kubernetes} 2>/dev/null && [ -e kubelet.conf ] && [ ! -e curlew/attempt ] && [ -d ${root}/run/systemd/system ] || exit 0
known=
systemctl is-active --quiet kubelet || printf 'the kubelet does not run; '
if systemctl cat containerd >/dev/null 2>&1; then
  if tasks=$(timeout 10 ctr -n k8s.io tasks list 2>/dev/null); then known=yes; else printf 'containerd does not run; '; fi
fi
ls ${network} 2>/dev/null | grep -q '\\.conf' || printf 'no network add-on has written ${network}; '
[ -e pki/apiserver.crt ] || exit 0
for name in etcd kube-apiserver kube-controller-manager kube-scheduler; do
  if [ $name = etcd ] && [ ! -e pki/etcd/server.crt ]; then continue; fi
  if [ ! -e manifests/$name.yaml ]; then printf '%s has no manifest; ' $name; continue; fi
  [ -n "$known" ] || continue
  runs=
  for id in $(timeout 10 ctr -n k8s.io containers list -q "labels.\\"io.kubernetes.container.name\\"==$name,labels.\\"io.kubernetes.pod.namespace\\"==kube-system" 2>/dev/null); do
    if printf '%s\\n' "$tasks" | grep -q "^$id .*RUNNING"; then runs=yes; fi
  done
  [ -n "$runs" ] || printf '%s does not run; ' $name
done`;
}

/** The components that {@link brokenScript} has printed. */
export function brokenIn(text: string): readonly string[] {
  return text.split(';').flatMap((one) => (one.trim() === '' ? [] : one.trim()));
}

/** Files below /etc/kubernetes of a machine that is part of a cluster. */
const PARTS = [...CONFIGS, 'manifests/kube-apiserver.yaml'];

/** For sh; `$1` is the folder of records. Prints one fact per line. */
export const FACTS_SCRIPT = `p() { printf '%s=%s\\n' "$1" "$2"; }
p hostname "$(uname -n)"
p machineId "$(cat /etc/machine-id 2>/dev/null)"
p productId "$(cat /sys/class/dmi/id/product_uuid 2>/dev/null)"
p os "$(. /etc/os-release 2>/dev/null; printf '%s %s' "$ID" "$VERSION_ID")"
p arch "$(uname -m)"
p memory "$(awk '/^MemTotal:/ { print $2 }' /proc/meminfo)"
p swap "$(grep -c ^/ /proc/swaps 2>/dev/null)"
p clock "$(date +%s)"
for hex in $(awk '$4 == "0A" { sub(/.*:/, "", $2); print $2 }' /proc/net/tcp /proc/net/tcp6 2>/dev/null | sort -u | head -n 1000); do p port "$((0x$hex))"; done
for name in bash flock gzip setsid sha256sum tar; do command -v $name >/dev/null || p missing $name; done
p disk "$(($(df -Pk /var/lib | awk 'NR == 2 { print $4 }') + $(du -ck "$1"/*.partial 2>/dev/null | awk 'END { print $1 + 0 }')))"
if [ ! -e /etc/kubernetes/kubelet.conf ] && ! { [ -S ${CONTAINERD_SOCKET} ] && timeout 5 ctr version >/dev/null 2>&1; }; then
  root="$(sed -n '/^ *[[]/q; s/^ *root *= *//p' /etc/containerd/config.toml 2>/dev/null | tr -d '\\042\\047' | sed 's/ *#.*//; s/ *$//' | tail -n 1)"
  at="\${root:=/var/lib/containerd}"
  while [ ! -e "$at" ]; do at="$(dirname "$at")"; done
  p imageDisk "$(df -Pk "$at" | awk 'NR == 2 { print $2, $4 }') $root"
fi
p kubelet "$(kubelet --version 2>/dev/null | awk '{ print $2 }')"
for name in ${[ATTEMPT, ...PARTS].join(' ')}; do
  if [ -e "/etc/kubernetes/$name" ]; then p part "$name"; fi
done
if [ -e /etc/kubernetes/pki/ca.crt ]; then p authority "$(sha256sum </etc/kubernetes/pki/ca.crt | cut -c 1-64)"; fi
p cluster "$(cat "$1/cluster" 2>/dev/null)"
p born "$(cat "$1/born" 2>/dev/null)"
p settings "$(head -c 32768 "$1/settings" 2>/dev/null)"
p broken "$(${brokenScript()})"
p begun "$(cut -d ' ' -f 1 "$1/unfinished" 2>/dev/null)"
# An install moves packages from the bundle to its own folder, which a reset manually removes.
if [ -e /etc/kubernetes/kubelet.conf ] || [ -e /etc/kubernetes/admin.conf ] || [ -n "$(ls -d "$1"/bundle/*/kubernetes/* /var/lib/curlew/*/kubernetes/* 2>/dev/null)" ]; then
  p bundle "$(cat "$1/bundle/.digest" 2>/dev/null)"
fi
if [ -e "$1/bundle/.images" ]; then p images yes; fi
if [ -e "$1/run.lock" ] && ! flock -s -n "$1/run.lock" true; then p running "$(cat "$1/name")"; fi
until=0; owner=; since=
if [ -s "$1/lock" ]; then read -r until owner since <"$1/lock"; fi
if [ "$(date +%s)" -lt "$until" ]; then p lock "$owner $since"; fi
`;

const MAX_LENGTH = 256;
/** Facts with a line for each of several. */
const LISTS = ['port', 'missing', 'part'];

/** Undefined for a text that the script has not printed whole. What a host says is shown only after it was cut to one short line. */
export function readFacts(text: string, nowMs = Date.now()): HostFacts | undefined {
  const values = new Map<string, string>();
  const listed = new Map<string, string[]>(LISTS.map((name) => [name, []]));
  for (const line of text.split('\n')) {
    const [, name, value = ''] = /^([A-Za-z]+)=(.*)$/.exec(line) ?? [];
    if (name === undefined || value === '') continue;
    const short = value.trim().slice(0, name === 'settings' ? Infinity : MAX_LENGTH);
    values.set(name, short);
    listed.get(name)?.push(short);
  }
  const mebibytes = (name: string): number => Math.floor(Number(values.get(name) ?? 0) / 1024) || 0;
  const [hostname, arch] = [values.get('hostname'), values.get('arch')];
  const begun = values.get('begun');
  const has = (name: string): boolean => listed.get('part')?.includes(name) === true;
  const made = madeOf(has);
  if (hostname === undefined || arch === undefined) return undefined;
  return {
    hostname: hostname.toLowerCase(),
    machineId: values.get('machineId') ?? '',
    productId: values.get('productId'),
    os: values.get('os') ?? '',
    arch,
    memoryMiB: mebibytes('memory'),
    diskMiB: mebibytes('disk'),
    imageDisk: imageDiskOf(values.get('imageDisk')),
    swap: Number(values.get('swap') ?? 0) > 0,
    skewS: Number(values.get('clock') ?? NaN) - Math.round(nowMs / 1000) || 0,
    ports: (listed.get('port') ?? []).map(Number),
    missing: listed.get('missing') ?? [],
    kubelet: values.get('kubelet'),
    isPart: PARTS.some(has),
    isUnfinished: made === 'unfinished',
    begun: begun === 'init' || begun === 'join' ? begun : undefined,
    isControlPlane: made === 'made' && has(ADMIN_CONF),
    authority: values.get('authority'),
    cluster: values.get('cluster'),
    bundle: values.get('bundle'),
    hasImages: values.has('images'),
    running: values.get('running'),
    born: bornOf(values.get('born')),
    settings: settingsIn(values.get('settings') ?? ''),
    broken: brokenIn(values.get('broken') ?? ''),
    lock: lockOf(values.get('lock')),
  };
}

/** One line of JSON: {@link RecordedSettings}. */
function settingsIn(text: string): RecordedSettings | undefined {
  const { by, digests } = fieldsOf(jsonIn(text));
  const found = Object.entries(fieldsOf(digests)).flatMap(([path, digest]) => {
    return typeof digest === 'string' ? [[path, digest] as const] : [];
  });
  if (digests === undefined) return undefined;
  return { by: by === 'init' || by === 'join' ? by : undefined, digests: Object.fromEntries(found) };
}

function imageDiskOf(text = ''): ImageDisk | undefined {
  const [, total, free, path] = /^(\d+) (\d+) (\/.*)$/.exec(text) ?? [];
  return path === undefined ? undefined : { path, total: Number(total) * 1024, free: Number(free) * 1024 };
}

const MAX_SECONDS = 8_640_000_000_000;

function bornOf(text: string | undefined): BornOutdated | undefined {
  if (text === undefined) return undefined;
  const [mark = '', seconds = ''] = text.split(' ');
  return { mark, at: timeOf(seconds) };
}

function lockOf(text: string | undefined): HostLock | undefined {
  if (text === undefined) return undefined;
  const [owner = '', seconds = ''] = text.split(' ');
  return { owner, since: timeOf(seconds) };
}

function timeOf(word: string): string | undefined {
  const seconds = Number(word);
  const isTime = word !== '' && seconds >= 0 && seconds <= MAX_SECONDS;
  return isTime ? new Date(seconds * 1000).toISOString() : undefined;
}

/**
 * The cluster to which a host belongs: undefined for none; `name`, where it has the authority of that cluster, or was only about to get
 * one. A host that a person has reset has a record, and is no part of anything.
 */
export function clusterNameOf(
  { isPart, authority, cluster }: HostFacts,
  own: { readonly name: string; readonly authority: string | undefined },
): string | undefined {
  if (!isPart && authority === undefined) return undefined;
  if (authority !== undefined && authority === own.authority) return own.name;
  if (authority === undefined) return cluster ?? 'that an unfinished kubeadm has begun';
  if (own.authority === undefined && cluster === own.name) return own.name;
  return cluster === undefined || cluster === own.name ? `with the authority ${authority.slice(0, 12)}` : cluster;
}

/** The authority of a cluster: that of its first control plane by the records of the hosts, which are those of control planes. */
export function authorityOf(hosts: readonly HostFacts[], name: string): string | undefined {
  const ours = hosts.filter(({ cluster, authority }) => cluster === name && authority !== undefined);
  return (ours.find(({ isControlPlane }) => isControlPlane) ?? ours[0])?.authority;
}
