/** `kurl cluster check-free-disk-space`: checks the free space for volumes of a storage class. */
import { listOf } from '../../core/json.ts';
import { CurlewError, errorAbout } from '../../core/errors.ts';
import { parseQuantity } from '../../runtime/preflight/go-notation.ts';
import { readYaml } from '../../formats/yaml/yaml.ts';
import { formatBytes } from '../render/units.ts';
import { apiPath } from '../../cluster/kube/path.ts';
import { at, clusterCalls, countFrom, stringOf } from './cluster-calls.ts';
import type { ClusterCalls, VerbContext } from './cluster-calls.ts';
import { runJob } from './jobs.ts';

const VERB = 'cluster check-free-disk-space';

export interface SpaceCheck {
  /** Empty: the cluster's default. */
  readonly storageClass: string;
  /** A Kubernetes quantity; empty to only report the free space. */
  readonly biggerThan: string;
  /** Image with `df`, for pods on nodes. */
  readonly image: string;
  /** Empty: all nodes. */
  readonly node: string;
}

const failure = errorAbout('CLUSTER_FAILED', `kurl ${VERB}`);

/** Reports the free space; throws `CLUSTER_FAILED` if it is too small, or if it cannot be determined. */
export async function checkFreeSpace(check: SpaceCheck, context: VerbContext): Promise<string> {
  const required = check.biggerThan === '' ? 0 : parseQuantity(check.biggerThan);
  if (required === undefined) {
    throw new CurlewError(
      'USAGE',
      `kurl ${VERB}: --bigger-than ${JSON.stringify(check.biggerThan)}: not a quantity such as 10Gi`,
    );
  }
  const cluster = await clusterCalls(VERB, context);
  const storage = await storageClass(cluster, check.storageClass, context.signal);
  const provisioner = stringOf(at(storage, 'provisioner'));
  if (/^rook-ceph\.(?:rbd|cephfs)\.csi\.ceph\.com$/.test(provisioner)) {
    return requireSpace('Rook', await freeInCeph(cluster, storage, context.signal), required);
  }
  // An unknown amount is not an error in kURL either.
  if (provisioner !== 'openebs.io/local') return `Provisioner ${provisioner}: its free space is unknown`;
  const lines: string[] = [];
  for (const node of await selectedNodes(cluster, check.node, context.signal)) {
    lines.push(
      requireSpace(`node ${node}`, await freeOnNode(cluster, { storage, node, image: check.image }, context), required),
    );
  }
  return lines.join('\n');
}

function requireSpace(where: string, free: number, required: number): string {
  const amounts =
    required === 0 ? `${formatBytes(free)} free` : `${formatBytes(free)} free, ${formatBytes(required)} required`;
  if (free < required) throw failure(`not enough space on ${where}: ${amounts}`);
  return `${where}: ${amounts}`;
}

async function storageClass(cluster: ClusterCalls, name: string, signal: AbortSignal): Promise<unknown> {
  const all = await cluster.list(apiPath`/apis/storage.k8s.io/v1/storageclasses`, signal);
  const isDefault = (one: unknown): boolean =>
    at(one, 'metadata', 'annotations', 'storageclass.kubernetes.io/is-default-class') === 'true';
  const match = all.find((one) => (name === '' ? isDefault(one) : at(one, 'metadata', 'name') === name));
  if (match !== undefined) return match;
  throw failure(name === '' ? 'the cluster has no default storage class' : `no storage class ${JSON.stringify(name)}`);
}

async function freeInCeph(cluster: ClusterCalls, storage: unknown, signal: AbortSignal): Promise<number> {
  const parameter = (name: string): string => stringOf(at(storage, 'parameters', name));
  if (parameter('pool') === '') throw failure('the storage class does not specify a pool with replicas');
  const poolPath = apiPath`/apis/ceph.rook.io/v1/namespaces/rook-ceph/cephblockpools/${parameter('pool')}`;
  const pool = await cluster.find(poolPath, signal);
  const copies = countFrom(at(pool, 'spec', 'replicated', 'size'));
  if (copies < 1) throw failure('the storage class does not specify a pool with replicas');
  const cephPath = apiPath`/apis/ceph.rook.io/v1/namespaces/rook-ceph/cephclusters/${parameter('clusterID')}`;
  const ceph = await cluster.find(cephPath, signal);
  const free = at(ceph, 'status', 'ceph', 'capacity', 'bytesAvailable');
  if (typeof free !== 'number') throw failure('the Ceph cluster does not report its free space');
  return Math.floor(free / copies);
}

async function selectedNodes(cluster: ClusterCalls, node: string, signal: AbortSignal): Promise<readonly string[]> {
  const names = (await cluster.list(apiPath`/api/v1/nodes`, signal)).map((one) =>
    stringOf(at(one, 'metadata', 'name')),
  );
  if (node === '') return names;
  if (!names.includes(node)) throw failure(`no node ${JSON.stringify(node)}`);
  return [node];
}

/** The folder for volumes of OpenEBS, from the annotation of its storage class. */
function basePath(storage: unknown): string {
  const text = stringOf(at(storage, 'metadata', 'annotations', 'cas.openebs.io/config'));
  const { value } = readYaml('cas.openebs.io/config', text);
  const path = listOf(value).find((one) => at(one, 'name') === 'BasePath');
  const folder = stringOf(at(path, 'value'));
  if (folder.startsWith('/')) return folder;
  throw failure('the annotation cas.openebs.io/config of the storage class does not contain a BasePath');
}

/** Runs df in a pod on the node: the folder may be a separate file system. Creates it if the node has no volume yet. */
async function freeOnNode(
  cluster: ClusterCalls,
  { storage, node, image }: { readonly storage: unknown; readonly node: string; readonly image: string },
  context: VerbContext,
): Promise<number> {
  const output = await runJob(
    cluster,
    {
      name: 'curlew-free-space',
      namespace: 'default',
      node,
      image,
      command: ['df', '-P', '-B1', '/data'],
      hostPath: { path: basePath(storage), mountPath: '/data', type: 'DirectoryOrCreate' },
    },
    context,
  );
  const free = parseDf(output);
  if (free === undefined) throw failure(`cannot parse the output of df on node ${node}`);
  return free;
}

/** The free bytes of `/data`. */
export function parseDf(text: string): number | undefined {
  for (const line of text.split('\n')) {
    const fields = line.trim().split(/\s+/);
    const free = fields.at(-3) ?? '';
    if (fields.at(-1) === '/data' && /^\d{1,16}$/.test(free)) return Number(free);
  }
  return undefined;
}
