/** The revisions of releases, as helm keeps them in Secrets of the cluster: what it has recorded is read without running it. */
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import * as v from 'valibot';
import type { LiveState } from '../channel/pass.ts';
import { recordKey, type AddonRecord, type RecordedRelease } from '../channel/record.ts';
import { CurlewError } from '../../core/errors.ts';
import { isObject, jsonIn } from '../../core/json.ts';
import { getObject, listObjects, titleOf } from '../kube/objects.ts';
import { discover, type Discovery } from '../kube/resources.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { AT_ONCE, type ChannelCluster } from './channel-cluster.ts';
import { releaseObjects, type AddonObject } from './addon-objects.ts';
import { SECRETS } from '../kube/core-kinds.ts';

export type ReleaseName = Pick<RecordedRelease, 'name' | 'namespace'>;

export interface ReleaseRevision {
  readonly revision: number;
  /** Status from helm, such as `deployed` or `pending-upgrade`. */
  readonly status: string;
  /** Milliseconds since 1970. */
  readonly since: number;
  /** Name of its Secret. */
  readonly secret: string;
}

/** What helm has stored of a revision. */
interface StoredRevision {
  /** The record of it, without a hash. */
  readonly release: RecordedRelease;
  readonly manifest: string;
}

const PATIENCE_MS = 30_000;
/** Releases have whole charts in them: a few long texts. Many values would take forty times the memory of their text. */
const MAX_BYTES = 32 << 20;
const MAX_VALUES = 500_000;

export function titleOfRelease({ name, namespace }: ReleaseName): string {
  return `release ${namespace}/${name}`;
}

/** The revisions of a release, the oldest first; empty if it does not exist. Reads labels only. */
export async function readRevisions(
  { call }: Pick<ChannelCluster, 'call'>,
  { name, namespace }: ReleaseName,
): Promise<readonly ReleaseRevision[]> {
  return (await listRevisions({ call }, namespace, `owner=helm,name=${name}`)).get(name) ?? [];
}

async function listRevisions(
  { call }: Pick<ChannelCluster, 'call'>,
  namespace: string,
  labelSelector: string,
): Promise<ReadonlyMap<string, readonly ReleaseRevision[]>> {
  const secrets = (await listObjects(call, SECRETS, { namespace, labelSelector, onlyMetadata: true })) ?? [];
  const revisions = new Map<string, ReleaseRevision[]>();
  for (const { metadata } of secrets) {
    const { name = '', version = '', status = '', modifiedAt, createdAt } = metadata.labels;
    const since = Number(modifiedAt ?? createdAt ?? 0) * 1000;
    const one = { revision: Number(version), status, since, secret: metadata.name };
    const known = revisions.get(name);
    if (known === undefined) revisions.set(name, [one]);
    else known.push(one);
  }
  return new Map([...revisions].map(([name, all]) => [name, all.toSorted((a, b) => a.revision - b.revision)]));
}

const storedSchema = v.object({
  chart: v.object({ metadata: v.object({ name: v.string(), version: v.string() }) }),
  manifest: v.optional(v.string(), ''),
});

/** The content of a Secret of helm is JSON, compressed, in base64. Errors quote nothing of it: values are in it, too. */
export async function readRevision(
  { call }: Pick<ChannelCluster, 'call'>,
  { name, namespace }: ReleaseName,
  { revision, status, secret }: ReleaseRevision,
): Promise<StoredRevision> {
  const object = { namespace, name: secret };
  const stored = await getObject(call, SECRETS, object);
  const { release: text = '' } = isObject(stored?.['data']) ? stored['data'] : {};
  const bytes = Buffer.from(Buffer.from(String(text), 'base64').toString(), 'base64');
  const json = await promisify(gunzip)(bytes, { maxOutputLength: MAX_BYTES }).catch(() => undefined);
  const read = v.safeParse(storedSchema, jsonIn(json?.toString() ?? '', MAX_VALUES));
  if (!read.success) {
    const reason = `${titleOf(SECRETS, object)} has no release that can be read`;
    throw new CurlewError('CLUSTER_FAILED', `cannot read the ${titleOfRelease({ name, namespace })}: ${reason}`, {
      hint: `if helm status ${name} -n ${namespace} cannot read it either: kubectl delete secret ${secret} -n ${namespace}`,
    });
  }
  const { chart, manifest } = read.output;
  const title = `${chart.metadata.name}-${chart.metadata.version}`;
  return { release: { name, namespace, revision, status, chart: title }, manifest };
}

/** The last revision; `CLUSTER_FAILED` if there is none. */
export async function readLast({ call }: Pick<ChannelCluster, 'call'>, named: ReleaseName): Promise<StoredRevision> {
  const last = (await readRevisions({ call }, named)).at(-1);
  if (last !== undefined) return readRevision({ call }, named, last);
  throw new CurlewError('CLUSTER_FAILED', `cannot read the ${titleOfRelease(named)}: helm has left no Secret`, {
    hint: 'run the same command again; helm history shows what helm has',
  });
}

/** The objects that a manifest of helm has made. */
export async function manifestObjects(
  release: ReleaseName,
  manifest: string,
  cluster: Pick<ChannelCluster, 'api' | 'signal' | 'discovery'>,
): Promise<readonly AddonObject[]> {
  try {
    return releaseObjects(release, manifest, await cluster.discovery());
  } catch (error) {
    if (!(error instanceof CurlewError)) throw error;
    // The release may have brought kinds that the cluster did not serve when it was asked.
    return releaseObjects(release, manifest, await kindsNow(cluster));
  }
}

/** What the cluster serves at this moment. */
export async function kindsNow({ api, signal }: Pick<ChannelCluster, 'api' | 'signal'>): Promise<Discovery> {
  return discover(api, { patienceMs: PATIENCE_MS, signal });
}

/** How releases differ from what was recorded, by {@link recordKey}: one list for each namespace. */
export async function lookAtReleases(
  { call, signal }: Pick<ChannelCluster, 'call' | 'signal'>,
  records: readonly AddonRecord[],
): Promise<ReadonlyMap<string, LiveState>> {
  const namespaces = new Set(records.flatMap(({ release }) => release?.namespace ?? []));
  const lists = await mapLimited(
    [...namespaces],
    async (namespace) => [namespace, await listRevisions({ call }, namespace, 'owner=helm')] as const,
    { width: AT_ONCE, signal },
  );
  const live = new Map(lists);
  return new Map(
    records.flatMap(({ namespace, addon, release }) => {
      if (release?.revision === undefined) return [];
      const last = live.get(release.namespace)?.get(release.name)?.at(-1);
      const isSame = last?.revision === release.revision && last.status === release.status;
      const title = titleOfRelease(release);
      const look = { missing: last === undefined ? [title] : [], changed: last === undefined || isSame ? [] : [title] };
      return [[recordKey(namespace, addon), look] as const];
    }),
  );
}
