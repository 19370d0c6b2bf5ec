/** A fleet as the engine observes it: from its files, and from what each cluster records. Pure. */
import type { Entry } from '../channel/channel.ts';
import type { ClusterFacts } from '../channel/pass.ts';
import type { AddonRecord } from '../channel/record.ts';
import type { Cluster, ClusterAddon, FleetAddon, Observed } from '../rollout/fleet.ts';
import {
  channelEntries,
  identityOf,
  recordIdentity,
  releaseIdentity,
  type WrittenAddon,
  type WrittenCluster,
  type WrittenFleet,
} from './fleet.ts';

/** What a cluster has answered, or why it has not. */
export type Look =
  | {
      readonly server: string;
      /** `v1.31.2` */
      readonly kubernetes: string;
      readonly facts: Pick<ClusterFacts, 'annotations' | 'records'>;
      readonly warnings: readonly string[];
    }
  | { readonly problem: string };

/** An owner in a cluster's records is `fleet:NAME`. */
const OWNER = 'fleet:';

/**
 * `looks` by cluster, and the hash of what each entry delivers: two entries of one hash deliver the same, wherever it is read from.
 * What a cluster records is what counts; a record says which content it has by its hash, as its `id`.
 */
export function observedOf(
  fleet: WrittenFleet,
  looks: ReadonlyMap<string, Look>,
  hashOf: (entry: Entry) => string,
): Observed {
  const addons = fleet.addons.map((addon) => addonOf(addon, fleet, hashOf));
  const identities = new Map(addons.map(({ name, identity }) => [name, identity]));
  return {
    complete: true,
    clusters: fleet.clusters.map((cluster) => clusterOf(cluster, looks.get(cluster.name))),
    addons,
    clusterAddons: [...looks].flatMap(([cluster, look]) => {
      const records = 'problem' in look ? [] : [...look.facts.records.values()];
      return records
        .filter(({ owner }) => owner.startsWith(OWNER))
        .map((one) => recordedAddon(cluster, one, identities));
    }),
  };
}

/** What the record of an add-on of the fleet says about its state. */
export function recordedReason(look: Look | undefined, addon: string): string {
  const records = look === undefined || 'problem' in look ? [] : [...look.facts.records.values()];
  return records.find(({ owner }) => owner === `${OWNER}${addon}`)?.reason ?? '';
}

function clusterOf({ name, labels, fields }: WrittenCluster, look: Look = { problem: 'not asked' }): Cluster {
  const { kubernetes, access: _access, ...spec } = fields.spec;
  if ('problem' in look) return { name, labels, ...spec, available: false, kubernetes: kubernetes?.version ?? '' };
  const { annotations, records } = look.facts;
  const installed: Record<string, { readonly owner: string }> = {};
  for (const key of annotations.keys()) {
    const [namespace = '', addon = ''] = key.split(':');
    installed[recordIdentity({ namespace, addon })] = { owner: 'another program' };
  }
  for (const record of records.values()) {
    const { owner, release } = record;
    installed[recordIdentity(record)] = { owner };
    if (release !== undefined) installed[releaseIdentity(release)] = { owner };
  }
  const facts = { version: look.kubernetes };
  return { name, labels, ...spec, available: true, kubernetes: look.kubernetes, server: look.server, facts, installed };
}

function addonOf(addon: WrittenAddon, fleet: WrittenFleet, hashOf: (entry: Entry) => string): FleetAddon {
  const { name, entry, fields } = addon;
  const { source: _source, drift: _drift, ...spec } = fields.spec;
  const entries = channelEntries(addon, fleet);
  const own = entry && { content: { ...contentOf(entry, hashOf) }, ...versionOf(entry) };
  const namespace = entry?.namespace ?? entries[0]?.namespace;
  return {
    name,
    generation: 1,
    identity: identityOf(addon, fleet) ?? name,
    ...(namespace !== undefined && { namespace }),
    source: own ?? {
      channel: entries.map((one) => ({ ...one, hash: hashOf(one), source: contentOf(one, hashOf) as Entry['source'] })),
      addon: entries[0]?.name ?? name,
    },
    ...spec,
  };
}

/** Without the places that it is read from, which differ from machine to machine. */
function contentOf(entry: Entry, hashOf: (entry: Entry) => string): Readonly<Record<string, unknown>> {
  const { source } = entry;
  const hash = hashOf(entry);
  if (source?.type === 'manifest') return { type: 'manifest', hash };
  if (source?.type !== 'chart') return { ...source };
  const chart = { ...source.chart, package: source.chart.package && hash };
  return { type: 'chart', chart: Object.fromEntries(Object.entries(chart).filter(([, value]) => value !== undefined)) };
}

function versionOf({ version }: { readonly version?: string | undefined }): { readonly version?: string } {
  return version === undefined ? {} : { version };
}

function recordedAddon(cluster: string, record: AddonRecord, identities: ReadonlyMap<string, string>): ClusterAddon {
  const { owner, release, state, applied, knownGood, desired = applied ?? {} } = record;
  const addon = owner.slice(OWNER.length);
  const isByName = identities.get(addon)?.startsWith('addon:') === true;
  const identity = release === undefined || isByName ? recordIdentity(record) : releaseIdentity(release);
  const since = Math.floor(Date.parse(record.since) / 1000) || 0;
  const specHash = desired.id ?? '';
  const content = { source: {}, values: {} };
  const good =
    knownGood?.id === undefined ? undefined : { ...content, ...versionOf(knownGood), specHash: knownGood.id };
  return {
    cluster,
    addon,
    spec: {
      ...content,
      ...versionOf(desired),
      specHash,
      revision: 1,
      identity,
      action: 'Install',
      startedAt: since,
      ...(good !== undefined && { knownGood: good }),
    },
    status: { applied: { revision: 1, hash: specHash }, state: state === 'Paused' ? 'Skipped' : state, since },
  };
}
