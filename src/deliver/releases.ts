/** Releases of helm as the cluster has them: one Secret for each revision. */
import type { LiveLook } from '../channel/pass.ts';
import { recordKey, type AddonRecord, type RecordedRelease } from '../channel/record.ts';
import { listObjects } from '../kube/objects.ts';
import type { Resource } from '../kube/resources.ts';
import { mapLimited } from '../platform/limit/each.ts';
import { AT_ONCE, lookAtObjects, type ChannelCluster } from './cluster.ts';

export type ReleaseName = Pick<RecordedRelease, 'name' | 'namespace'>;

export interface ReleaseRevision {
  readonly revision: number;
  /** As helm names it, such as `deployed` or `pending-upgrade`. */
  readonly status: string;
  /** Milliseconds since 1970. */
  readonly since: number;
}

const SECRETS: Resource = { apiVersion: 'v1', kind: 'Secret', plural: 'secrets', namespaced: true };

/** Statuses of a release that an operation has left, or is in. */
const UNDER_WAY = /^(?:pending-|uninstalling)/;

export function isUnderWay({ status }: ReleaseRevision): boolean {
  return UNDER_WAY.test(status);
}

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
  const found = new Map<string, ReleaseRevision[]>();
  for (const { metadata } of secrets) {
    const { name = '', version = '', status = '', modifiedAt, createdAt } = metadata.labels;
    const one = { revision: Number(version), status, since: Number(modifiedAt ?? createdAt ?? 0) * 1000 };
    const known = found.get(name);
    if (known === undefined) found.set(name, [one]);
    else known.push(one);
  }
  return new Map([...found].map(([name, all]) => [name, all.toSorted((a, b) => a.revision - b.revision)]));
}

/** How releases and objects of records differ from what was recorded, by {@link recordKey}: a list for each kind and namespace. */
export async function lookAtAddons(
  cluster: Pick<ChannelCluster, 'call' | 'signal' | 'warnings'>,
  records: readonly AddonRecord[],
): Promise<ReadonlyMap<string, LiveLook>> {
  const [objects, releases] = await Promise.all([lookAtObjects(cluster, records), lookAtReleases(cluster, records)]);
  return new Map(
    [...objects].map(([key, { missing, changed }]) => {
      const release = releases.get(key);
      const look = {
        missing: [...(release?.missing ?? []), ...missing],
        changed: [...(release?.changed ?? []), ...changed],
      };
      return [key, look] as const;
    }),
  );
}

async function lookAtReleases(
  { call, signal }: Pick<ChannelCluster, 'call' | 'signal'>,
  records: readonly AddonRecord[],
): Promise<ReadonlyMap<string, LiveLook>> {
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
