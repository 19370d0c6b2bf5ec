/** The recorded add-ons of a cluster, and their health. */
import type { AddonRecord, Annotated, RecordedRelease } from '../cluster/channel/record.ts';
import { mapLimited } from '../platform/limit/each.ts';
import { Refused } from '../cluster/kube/call.ts';
import { getObject, titleOf } from '../cluster/kube/objects.ts';
import { observe } from '../cluster/deliver/deliver.ts';
import { currentHealth } from '../cluster/deliver/health.ts';
import { diagnose } from '../cluster/deliver/diagnose.ts';
import { AT_ONCE, openChannelCluster, type ChannelCluster } from '../cluster/deliver/channel-cluster.ts';
import { CHANNEL_STATUS } from '../requests/channel.ts';
import { useCase } from '../core/request.ts';

export interface ChannelAddonStatus {
  readonly addon: string;
  /** Namespace of the record. */
  readonly namespace: string;
  /** Undefined for what another program has applied. */
  readonly owner: string | undefined;
  readonly installed: Annotated | undefined;
  /** `Recorded`: another program has applied it, and only its annotation is known. */
  readonly state: AddonRecord['state'] | 'Recorded';
  readonly since: string | undefined;
  readonly reason: string;
  /** Set for charts only. */
  readonly release: Omit<RecordedRelease, 'hash'> | undefined;
  readonly objects: number;
  readonly missing: readonly string[];
  /** Objects that another manager has changed. */
  readonly changed: readonly string[];
  readonly unhealthy: readonly { readonly object: string; readonly reason: string }[];
}

export interface ChannelStatus {
  readonly cluster: { readonly server: string; readonly kubernetes: string };
  readonly addons: readonly ChannelAddonStatus[];
  readonly warnings: readonly string[];
}

/** Reads records, and every object of them. Changes nothing. */
export const channelStatus = useCase(CHANNEL_STATUS, async (request, context): Promise<ChannelStatus> => {
  const cluster = await openChannelCluster(request, context);
  const { facts, server, kubernetes, warnings } = cluster;
  const keys = [...new Set([...facts.annotations.keys(), ...facts.records.keys()])].toSorted();
  const named = request.addons ?? [];
  const wanted = keys.filter((key) => named.length === 0 || named.includes(key.split(':')[1] ?? ''));
  const looks = await observe(
    cluster,
    wanted.flatMap((key) => facts.records.get(key) ?? []),
  );
  const addons: ChannelAddonStatus[] = [];
  for (const key of wanted) {
    const [namespace = '', addon = ''] = key.split(':');
    const { objects = [], release, ...record } = facts.records.get(key) ?? UNRECORDED;
    addons.push({
      addon,
      namespace,
      owner: record.owner,
      installed: facts.annotations.get(key),
      state: record.state,
      since: record.since,
      reason: record.reason,
      release: release && withoutHash(release),
      objects: objects.reduce((sum, kind) => sum + kind.objects.length, 0),
      ...(looks.get(key) ?? { missing: [], changed: [] }),
      unhealthy: await unhealthyObjects(cluster, { objects }),
    });
  }
  return { cluster: { server, kubernetes }, addons, warnings };
});

const UNRECORDED = {
  owner: undefined,
  state: 'Recorded',
  since: undefined,
  reason: 'applied by another program',
  objects: undefined,
  release: undefined,
} as const;

function withoutHash({ hash: _hash, ...release }: RecordedRelease): Omit<RecordedRelease, 'hash'> {
  return release;
}

async function unhealthyObjects(
  cluster: ChannelCluster,
  { objects = [] }: Pick<AddonRecord, 'objects'>,
): Promise<ChannelAddonStatus['unhealthy']> {
  const refs = objects.flatMap((resource) => resource.objects.map((object) => ({ resource, ...object })));
  const refused: ChannelAddonStatus['unhealthy'][number][] = [];
  const live = await mapLimited(
    refs,
    async ({ resource, namespace, name }) => {
      try {
        const current = await getObject(cluster.call, resource, { namespace, name });
        return current === undefined ? [] : [{ resource, live: current }];
      } catch (error) {
        // The server has answered: other objects and records can be read.
        if (!(error instanceof Refused)) throw error;
        refused.push({ object: titleOf(resource, { namespace, name }), reason: error.message });
        return [];
      }
    },
    { width: AT_ONCE, signal: cluster.signal },
  );
  const there = live.flat();
  const all = there.map(({ resource: { kind }, live: value }) => ({
    kind,
    namespace: value.metadata.namespace,
    value,
  }));
  const look = async (one: (typeof there)[number]): Promise<ChannelAddonStatus['unhealthy']> => {
    const { state, reason } = await currentHealth(cluster, one, all);
    if (state === 'healthy') return [];
    const problems = await diagnose(cluster, one.resource, one.live);
    // A pod says why; the object itself often only that it waits for the pod.
    const trouble = problems.find((line) => line.startsWith('pod ')) ?? problems[0];
    const why = trouble === undefined ? reason : `${reason}; ${trouble}`;
    return [{ object: titleOf(one.resource, one.live.metadata), reason: why }];
  };
  const unhealthy = await mapLimited(there, look, { width: AT_ONCE, signal: cluster.signal });
  return [...refused, ...unhealthy.flat()];
}
