/** A fleet as the engine observes it: from its files, and from what each cluster records. Pure. */
import type { Entry } from '../cluster/channel/channel.ts';
import { recordKey, type AddonRecord } from '../cluster/channel/record.ts';
import { groupBy } from '../core/group-by.ts';
import { secondsOf } from '../core/time.ts';
import { revisionOf } from './rollout/content.ts';
import type { Cluster, ClusterAddon, FleetAddon, Observed } from './rollout/fleet.ts';
import type { Rules } from './rollout/limits.ts';
import { DELETIONS } from './rollout/pruning.ts';
import { refusalWithoutAgent } from './upstream/addon-template.ts';
import {
  channelEntries,
  identityOf,
  recordIdentity,
  identityOfChart,
  releaseIdentity,
  type Reply,
  type Look,
  type WrittenAddon,
  type FleetCluster,
  type WrittenFleet,
} from './fleet.ts';
import {
  NEW_ADDON,
  seenIn,
  withState,
  type AddonState,
  type FleetOrders,
  type FleetState,
  type Seen,
} from './state.ts';

/** An owner in a cluster's records is `fleet:NAME`. */
const OWNER = 'fleet:';

export function fleetOwner(addon: string): string {
  return `${OWNER}${addon}`;
}

/** Records of a fleet whose objects can be compared with them. */
export function settledRecords(records: readonly AddonRecord[]): readonly AddonRecord[] {
  return records.filter(({ owner, state }) => owner.startsWith(OWNER) && state === 'Succeeded');
}

/** When, and what is known besides the clusters. */
interface Known {
  readonly now: number;
  readonly state: FleetState;
  readonly orders: FleetOrders;
}

/**
 * `looks` by cluster, and the hash of what each entry delivers: two entries of one hash deliver the same, wherever it is read from.
 * What a cluster records is what counts; a record says which content it has by its hash, as its `id`.
 */
export function observedOf(
  fleet: WrittenFleet,
  looks: ReadonlyMap<string, Look>,
  hashOf: (entry: Entry) => string,
  { now, state, orders }: Known,
): Observed {
  const addons = fleet.addons.map((written): FleetAddon => {
    const addon = addonOf(written, fleet, hashOf);
    const { [addon.name]: own } = state.addons;
    return withState(addon, { revision: revisionOf(addon), now, own, order: orders.addons[addon.name] });
  });
  const identities = new Map(addons.map(({ name, identity }) => [name, identity]));
  return {
    complete: true,
    clusters: fleet.clusters.map((cluster) => {
      const { [cluster.name]: known } = state.clusters;
      const seen = clusterOf(cluster, looks.get(cluster.name), known?.seen);
      return known?.available === seen.available && known.since > 0 ? { ...seen, since: known.since } : seen;
    }),
    addons,
    clusterAddons: [...looks].flatMap(([cluster, look]) => {
      const isGone = 'problem' in look;
      const { records, ahead = 0 } = seenIn(look) ?? state.clusters[cluster]?.seen ?? NOT_SEEN;
      const recorded = records
        .filter(({ owner }) => owner.startsWith(OWNER))
        .map((record) => ({ record, one: recordedAddon(cluster, record, identities, { now, ahead, isGone }) }));
      const names = new Set(recorded.map(({ one }) => one.addon));
      const others = addons.filter(({ name }) => !names.has(name));
      return [
        ...recorded.map(({ record, one }) => {
          return withOwn(one, state.addons[one.addon], { isGone, isGood: isKnownGood(record) });
        }),
        ...others.flatMap(({ name, identity }) => {
          const spec = { ...UNRECORDED, specHash: '', identity, startedAt: 0 };
          return attempted({ cluster, addon: name, spec }, state.addons[name], { isGone, isGood: false }) ?? [];
        }),
      ];
    }),
  };
}

/** The clusters that have each add-on of the fleet, by what they recorded when they answered last. */
export function havingIn({ clusters }: Pick<FleetState, 'clusters'>): ReadonlyMap<string, ReadonlySet<string>> {
  const all = Object.entries(clusters).flatMap(([cluster, { seen }]) =>
    (seen?.records ?? []).flatMap(({ owner }) =>
      owner.startsWith(OWNER) ? [{ cluster, addon: owner.slice(OWNER.length) }] : [],
    ),
  );
  const byAddon = groupBy(all, ({ addon }) => addon);
  return new Map([...byAddon].map(([addon, own]) => [addon, new Set(own.map(({ cluster }) => cluster))]));
}

/** The records of a cluster; none if it has not answered. */
export function recordsOf(look: Look | undefined): readonly AddonRecord[] {
  return look === undefined || 'problem' in look ? [] : [...look.facts.records.values()];
}

/** What a record says about the state of an add-on of the fleet, or why it failed without one. */
export function recordedReason(look: Look | undefined, addon: string, failure = ''): string {
  return ownRecord(recordsOf(look), addon)?.reason || failure;
}

/** The record of an add-on of the fleet. */
export function ownRecord(records: readonly AddonRecord[], addon: string): AddonRecord | undefined {
  return records.find(({ owner }) => owner === fleetOwner(addon));
}

/** Another record has its release, too: until one of them goes, what differs from either is the doing of the other. */
export function isHandedOver(record: AddonRecord, records: readonly AddonRecord[]): boolean {
  const { release } = record;
  const isSame = (other: AddonRecord['release']): boolean =>
    release !== undefined && other !== undefined && releaseIdentity(other) === releaseIdentity(release);
  return records.some((one) => one !== record && isSame(one.release));
}

type Place = Pick<Entry, 'namespace' | 'name' | 'source'>;

/**
 * The record that an add-on of the fleet has on a cluster, or takes over there: its own, wherever it is, since earlier versions had it in
 * other namespaces; or else the one at the place of its entry, or that of its release.
 */
export function recordFor(
  records: ReadonlyMap<string, AddonRecord>,
  addon: string,
  { namespace, name, source }: Place,
): AddonRecord | undefined {
  const all = [...records.values()];
  const wanted = source?.type === 'chart' ? identityOfChart(source.chart) : undefined;
  // One of the fleet is handed over: its own goes.
  const isTaken = ({ owner, release }: AddonRecord): boolean =>
    release !== undefined && releaseIdentity(release) === wanted && !owner.startsWith(OWNER);
  return ownRecord(all, addon) ?? records.get(recordKey(namespace, name)) ?? all.find(isTaken);
}

/** Titles of the objects that earlier contents of an add-on of the fleet have left on a cluster. */
export function leftOf(records: readonly AddonRecord[], addon: string): readonly string[] {
  const { orphans = [] } = ownRecord(records, addon) ?? {};
  return orphans.flatMap((kind) =>
    kind.objects.map(({ namespace, name }) => `${kind.kind} ${[namespace, name].filter(Boolean).join('/')}`),
  );
}

interface About {
  /** The cluster does not answer. */
  readonly isGone: boolean;
  /** What the record wants there became healthy, whatever has failed since. */
  readonly isGood: boolean;
}

function isKnownGood({ desired, applied, knownGood }: AddonRecord): boolean {
  return knownGood?.id !== undefined && knownGood.id === (desired ?? applied)?.id;
}

const UNRECORDED = { source: {}, values: {}, revision: 1, action: 'Install' } as const;
const NOT_SEEN: Pick<Seen, 'records' | 'ahead'> = { records: [] };

/**
 * A record, with what only the state knows: a removal that has begun, or an attempt. The state in a record is that of an installation,
 * and says nothing about a removal: a record that is there is one that is not removed.
 */
function withOwn(recorded: ClusterAddon, own: AddonState = NEW_ADDON, about: About): ClusterAddon {
  const { cluster, addon, spec } = recorded;
  const { [cluster]: begun } = own.removing;
  if (begun !== undefined) return { cluster, addon, spec: { ...spec, action: 'Remove', startedAt: begun } };
  return attempted(recorded, own, about) ?? recorded;
}

/**
 * An attempt of which the cluster has no record: one that failed before it left anything there, or that was under way when the cluster
 * ceased to answer.
 */
function attempted(
  recorded: ClusterAddon,
  { failures, begun = {}, status }: AddonState = NEW_ADDON,
  { isGone, isGood }: About,
): ClusterAddon | undefined {
  const { cluster, addon, spec, status: before } = recorded;
  const { [cluster]: cut } = isGone ? begun : {};
  const { [cluster]: failure } = failures;
  const attempt = cut ?? failure;
  if (attempt === undefined || (cut === undefined && attempt.hash === spec.specHash)) return undefined;
  const { hash, since } = attempt;
  const reason = failure?.reason ?? '';
  // Going back is tried again: the record stays as it is. What the files want has failed, even if it was good before.
  const isBack = status?.rolledBack === true && hash === spec.knownGood?.specHash;
  if (cut === undefined && isBack) return { ...recorded, backFailure: reason };
  const { version, specHash } = spec;
  const isOther = (before?.state === 'Succeeded' || isGood) && specHash !== hash;
  const knownGood = isOther ? { ...UNRECORDED, ...versionOf({ version }), specHash } : spec.knownGood;
  return {
    cluster,
    addon,
    spec: { ...spec, specHash: hash, startedAt: since, ...(knownGood && { knownGood }) },
    ...(cut === undefined && {
      status: {
        applied: { revision: 1, hash },
        since,
        ...(failure?.asks ? { state: 'Skipped', reason: DELETIONS } : { state: 'Failed' }),
        ...(reason !== '' && { message: reason }),
      },
    }),
  };
}

/** A cluster of the files, as far as it has answered now or before. */
export function clusterOf(
  { name, labels, fields, object, roots }: FleetCluster,
  look: Look = { problem: 'not asked' },
  seen?: Seen,
): Cluster {
  const { kubernetes, access: _access, ...others } = fields.spec;
  const spec = { ...others, object, ...(roots && { roots }) };
  if ('problem' in look) {
    const before = seen && { kubernetes: seen.kubernetes, server: seen.server, facts: { version: seen.kubernetes } };
    return { name, labels, ...spec, available: false, kubernetes: kubernetes?.version ?? '', ...before };
  }
  const installed = installedIn(look.facts);
  const facts = { version: look.kubernetes };
  return { name, labels, ...spec, available: true, kubernetes: look.kubernetes, server: look.server, facts, installed };
}

/** Who has installed what in a cluster, by identity. */
export function installedIn({ annotations, records, installer }: Reply['facts']): NonNullable<Cluster['installed']> {
  const installed: Record<string, { readonly owner: string }> = {};
  for (const addon of installer)
    installed[recordIdentity({ namespace: 'kube-system', addon })] = { owner: 'installer' };
  for (const key of annotations.keys()) {
    const [namespace = '', addon = ''] = key.split(':');
    installed[recordIdentity({ namespace, addon })] = { owner: 'another program' };
  }
  for (const record of records.values()) {
    const { owner, release } = record;
    installed[recordIdentity(record)] = { owner };
    if (release !== undefined) installed[releaseIdentity(release)] = { owner };
  }
  return installed;
}

/** An add-on of the files. */
export function addonOf(addon: WrittenAddon, fleet: WrittenFleet, hashOf: (entry: Entry) => string): FleetAddon {
  const { name, entry, fields, compat, problem } = addon;
  const { source: _source, drift: _drift, ...spec } = fields.spec;
  const entries = channelEntries(addon, fleet);
  const content = entry && (addon.kind === 'ClusterManagementAddOn' ? TEMPLATE : contentOf(entry, hashOf, compat));
  const own = content && { content: { ...content }, ...versionOf(entry) };
  const namespace = entry?.namespace ?? entries[0]?.namespace;
  return {
    name,
    generation: 1,
    identity: identityOf(addon, fleet) ?? name,
    ...(namespace !== undefined && { namespace }),
    ...(compat !== undefined && { compat }),
    // A release of the same name is taken over there without a question.
    ...(compat === 'caaph' && { adopt: true }),
    ...(problem !== undefined && { problem }),
    ...(addon.kind === 'ClusterManagementAddOn' && { refuses: refusalWithoutAgent }),
    source: own ?? {
      channel: entries.map((one) => ({ ...one, hash: hashOf(one), source: contentOf(one, hashOf) as Entry['source'] })),
      addon: entries[0]?.name ?? name,
    },
    ...spec,
  };
}

/** The templates are among its values, since a layer of configuration can have others. */
export const TEMPLATE = { type: 'template' } as const;

/** Without the places that it is read from, which differ from machine to machine. */
function contentOf(entry: Entry, hashOf: (entry: Entry) => string, compat?: Rules): Readonly<Record<string, unknown>> {
  const { source } = entry;
  const hash = hashOf(entry);
  if (source?.type === 'manifest') return { type: 'manifest', hash };
  if (source?.type !== 'chart') return { ...source };
  // Options alone change no release by the rules of the Helm add-on provider.
  const options = compat === 'caaph' ? { wait: false, atomic: false } : {};
  const chart = { ...source.chart, ...options, package: source.chart.package && hash };
  return { type: 'chart', chart: Object.fromEntries(Object.entries(chart).filter(([, value]) => value !== undefined)) };
}

function versionOf({ version }: { readonly version?: string | undefined }): { readonly version?: string } {
  return version === undefined ? {} : { version };
}

function recordedAddon(
  cluster: string,
  record: Seen['records'][number],
  identities: ReadonlyMap<string, string>,
  { now, ahead, isGone }: { readonly now: number; readonly ahead: number; readonly isGone: boolean },
): ClusterAddon {
  const { owner, release, state, reason, applied, knownGood, history, desired = applied ?? {} } = record;
  const addon = owner.slice(OWNER.length);
  const known = identities.get(addon);
  const isByName = known?.startsWith('addon:') === true;
  // A hub names the record of an add-on from a channel as the add-on itself.
  const ofRecord = isByName && record.addon === addon ? known : recordIdentity(record);
  const identity = release === undefined || isByName ? ofRecord : releaseIdentity(release);
  // By the clock of this machine: an operator with another one may have written it.
  const at = Math.max(0, secondsOf(record.since) - ahead);
  // The time is from a clock that was ahead, or from an interrupted delivery: the next pass continues it, however late.
  const since = state === 'Progressing' && !isGone ? now : at <= now ? at : state === 'Failed' ? 0 : now;
  const specHash = desired.id ?? '';
  // What became healthy last may be what is there: going back then means what was healthy before.
  const before = history.find(({ revision }) => revision.id !== undefined && revision.id !== specHash);
  const good = knownGood?.id === specHash ? (before?.revision ?? knownGood) : knownGood;
  const back = good?.id !== undefined && { source: {}, values: {}, ...versionOf(good), specHash: good.id };
  return {
    cluster,
    addon,
    spec: {
      ...UNRECORDED,
      ...versionOf(desired),
      specHash,
      identity,
      startedAt: since,
      ...(back !== false && { knownGood: back }),
    },
    status: {
      applied: { revision: 1, hash: specHash },
      state: state === 'Paused' ? 'Skipped' : state,
      since,
      ...(reason !== '' && { message: reason }),
    },
  };
}
