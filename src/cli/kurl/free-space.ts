/** `kurl cluster check-free-disk-space`: whether the volumes of a storage class have room. */
import { CurlewError } from '../../core/errors.ts';
import { parseQuantity } from '../../runtime/preflight/go-notation.ts';
import { readYaml } from '../../formats/yaml/yaml.ts';
import { formatBytes } from '../render/units.ts';
import { apiPath } from '../../kube/path.ts';
import { at, clusterCalls, listOf, numberOf, textOf } from './cluster-calls.ts';
import type { ClusterCalls, VerbContext } from './cluster-calls.ts';
import { runJob } from './jobs.ts';

const VERB = 'cluster check-free-disk-space';

export interface SpaceQuestion {
  /** Empty: the cluster's default. */
  readonly storageClass: string;
  /** A quantity of Kubernetes; empty only asks how much there is. */
  readonly biggerThan: string;
  /** Of pods that look at nodes: one with `df`. */
  readonly image: string;
  /** Empty: all nodes. */
  readonly node: string;
}

function failure(what: string): CurlewError {
  return new CurlewError('CLUSTER_FAILED', `kurl ${VERB}: ${what}`);
}

/** Says how much there is; throws `CLUSTER_FAILED` where that is less than asked for, or where it cannot be known. */
export async function checkFreeSpace(question: SpaceQuestion, context: VerbContext): Promise<string> {
  const wanted = question.biggerThan === '' ? 0 : parseQuantity(question.biggerThan);
  if (wanted === undefined) {
    throw new CurlewError(
      'USAGE',
      `kurl ${VERB}: --bigger-than ${JSON.stringify(question.biggerThan)}: not an amount such as 10Gi`,
    );
  }
  const cluster = await clusterCalls(VERB, context);
  const storage = await storageClass(cluster, question.storageClass, context.signal);
  const provisioner = textOf(at(storage, 'provisioner'));
  if (/^rook-ceph\.(?:rbd|cephfs)\.csi\.ceph\.com$/.test(provisioner)) {
    return enough('Rook', await freeInCeph(cluster, storage, context.signal), wanted);
  }
  // As kURL: what cannot be known stops nobody.
  if (provisioner !== 'openebs.io/local') return `Provisioner ${provisioner}: its free space is not known`;
  const lines: string[] = [];
  for (const node of await nodesAsked(cluster, question.node, context.signal)) {
    lines.push(
      enough(`node ${node}`, await freeOnNode(cluster, { storage, node, image: question.image }, context), wanted),
    );
  }
  return lines.join('\n');
}

function enough(where: string, free: number, wanted: number): string {
  const said = wanted === 0 ? `${formatBytes(free)} free` : `${formatBytes(free)} free, ${formatBytes(wanted)} needed`;
  if (free < wanted) throw failure(`not enough space on ${where}: ${said}`);
  return `${where}: ${said}`;
}

async function storageClass(cluster: ClusterCalls, name: string, signal: AbortSignal): Promise<unknown> {
  const all = await cluster.list(apiPath`/apis/storage.k8s.io/v1/storageclasses`, signal);
  const isDefault = (one: unknown): boolean =>
    at(one, 'metadata', 'annotations', 'storageclass.kubernetes.io/is-default-class') === 'true';
  const found = all.find((one) => (name === '' ? isDefault(one) : at(one, 'metadata', 'name') === name));
  if (found !== undefined) return found;
  throw failure(name === '' ? 'the cluster has no default storage class' : `no storage class ${JSON.stringify(name)}`);
}

async function freeInCeph(cluster: ClusterCalls, storage: unknown, signal: AbortSignal): Promise<number> {
  const parameter = (name: string): string => textOf(at(storage, 'parameters', name));
  if (parameter('pool') === '') throw failure('the storage class names no pool with replicas');
  const poolPath = apiPath`/apis/ceph.rook.io/v1/namespaces/rook-ceph/cephblockpools/${parameter('pool')}`;
  const pool = await cluster.find(poolPath, signal);
  const copies = numberOf(at(pool, 'spec', 'replicated', 'size'));
  if (copies < 1) throw failure('the storage class names no pool with replicas');
  const cephPath = apiPath`/apis/ceph.rook.io/v1/namespaces/rook-ceph/cephclusters/${parameter('clusterID')}`;
  const ceph = await cluster.find(cephPath, signal);
  const free = at(ceph, 'status', 'ceph', 'capacity', 'bytesAvailable');
  if (typeof free !== 'number') throw failure('the Ceph cluster does not say what is free');
  return Math.floor(free / copies);
}

async function nodesAsked(cluster: ClusterCalls, node: string, signal: AbortSignal): Promise<readonly string[]> {
  const names = (await cluster.list(apiPath`/api/v1/nodes`, signal)).map((one) => textOf(at(one, 'metadata', 'name')));
  if (node === '') return names;
  if (!names.includes(node)) throw failure(`no node ${JSON.stringify(node)}`);
  return [node];
}

/** Where OpenEBS keeps volumes, by the annotation of its storage class. */
function basePath(storage: unknown): string {
  const text = textOf(at(storage, 'metadata', 'annotations', 'cas.openebs.io/config'));
  const { value } = readYaml('cas.openebs.io/config', text);
  const path = listOf(value).find((one) => at(one, 'name') === 'BasePath');
  const found = textOf(at(path, 'value'));
  if (found.startsWith('/')) return found;
  throw failure('annotation cas.openebs.io/config of the storage class names no BasePath');
}

interface NodeQuestion {
  readonly storage: unknown;
  readonly node: string;
  readonly image: string;
}

/** A pod on the node looks: the folder may be a file system of its own, and is made where no volume has been yet. */
async function freeOnNode(
  cluster: ClusterCalls,
  { storage, node, image }: NodeQuestion,
  context: VerbContext,
): Promise<number> {
  const said = await runJob(
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
  const free = parseDf(said);
  if (free === undefined) throw failure(`what df printed on node ${node} is not what df prints`);
  return free;
}

/** The bytes that are free below `/data`. */
export function parseDf(text: string): number | undefined {
  for (const line of text.split('\n')) {
    const words = line.trim().split(/\s+/);
    const free = words.at(-3) ?? '';
    if (words.at(-1) === '/data' && /^\d{1,16}$/.test(free)) return Number(free);
  }
  return undefined;
}
