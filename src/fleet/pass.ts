/** One pass over a fleet: what is done now on which cluster, and what is kept of it. Pure. */
import { choose } from '../cluster/channel/choose.ts';
import type { ChartAccess, Entry } from '../cluster/channel/channel.ts';
import { parseTriple } from '../cluster/channel/range.ts';
import { Contents, Memo, revisionOf } from './rollout/content.ts';
import type { Cluster, AddonContent, FleetAddon, Observed, Pruning, Waiting, Writes } from './rollout/fleet.ts';
import { leaves } from './rollout/leaving.ts';
import { retryAt } from './rollout/orders.ts';
import { step, waitingIn } from './rollout/step.ts';
import { closedWindows } from './rollout/windows.ts';
import { driftAt, type DriftOf } from './drift.ts';
import { channelEntries, type WrittenFleet } from './fleet.ts';
import { fleetOwner, TEMPLATE } from './observe.ts';
import { objectsOf, type TemplateObjects } from './upstream/template-objects.ts';
import { keep, NEW_ADDON, type AddonState, type FleetState, type StateRevision } from './state.ts';

/** What is done to an add-on on a cluster. */
export interface Job {
  readonly cluster: string;
  readonly addon: string;
  readonly act: 'install' | 'update' | 'go back' | 'continue' | 'restore' | 'remove' | 'forget';
  /** Hash of the content; empty if none is delivered. */
  readonly hash: string;
  /** It may belong to another owner, which hands it over. */
  readonly takesOver: boolean;
  readonly prune?: Pruning;
  /** It changes what is installed, and so waits for a maintenance window. What continues or goes back does not. */
  readonly isNew: boolean;
}

export interface Ended extends Job {
  /** `later`: nothing was done, and the next pass tries again; `asks`: not before a person approves it. */
  readonly result: 'done' | 'failed' | 'later' | 'asks';
  /** Why it was not done; of a removal that is done: what it leaves, and why. */
  readonly reason: string;
  /** Revision of the content that was delivered. */
  readonly revision?: string;
  /** Objects that it has left. */
  readonly orphans?: readonly string[];
}

type Key = Pick<Job, 'cluster' | 'addon'>;

function keyOf({ cluster, addon }: Key): string {
  return `${cluster} ${addon}`;
}

interface Decided {
  readonly writes: Writes;
  /** All that wait, not only those that a status of a hub has. */
  readonly waiting: readonly (Waiting & { readonly addon: string })[];
  readonly jobs: readonly Job[];
}

/** What one step of the fleet begins, and what an earlier pass has begun and not ended. */
export function decide(observed: Observed, now: number, driftOf: DriftOf = () => undefined): Decided {
  const waiting: Decided['waiting'][number][] = [];
  const restored: Job[] = [];
  const late = new Set<string>();
  const writes = step(observed, now, new Memo(), (plan) => {
    const { addon, orders } = plan.run;
    for (const one of waitingIn(plan)) waiting.push({ ...one, addon: addon.name });
    // A removal that is blocked waits for a person, who finds out why.
    for (const target of plan.targets) {
      const { state, record, cluster } = target;
      const drift = driftAt(target, driftOf);
      if (drift !== undefined && drift.reason === undefined) {
        const at = { cluster: cluster.name, addon: addon.name };
        const hash = record?.spec.specHash ?? '';
        restored.push({ ...at, act: 'restore', hash, takesOver: false, isNew: true });
      }
      const isBlocked = state === 'TimedOut' && record?.spec.action === 'Remove';
      if (isBlocked && record.spec.startedAt >= (orders?.retry ?? 0)) late.add(keyOf(record));
    }
  });
  const jobs = [...jobsOf(observed, writes).filter((job) => !late.has(keyOf(job))), ...restored];
  return { writes, waiting, jobs };
}

function jobsOf(observed: Observed, { put, drop }: Writes): readonly Job[] {
  const clusters = new Map(observed.clusters.map((one) => [one.name, one]));
  const addons = new Map(observed.addons.map((one) => [one.name, one]));
  const records = new Map(observed.clusterAddons.map((one) => [keyOf(one), one]));
  const jobs = new Map<string, Job>();
  for (const key of drop) {
    const job = { ...key, act: 'forget', hash: '', takesOver: false, isNew: false } as const;
    if (clusters.get(key.cluster)?.available === true) jobs.set(keyOf(key), job);
  }
  for (const { cluster, addon, spec } of put) {
    const before = records.get(keyOf({ cluster, addon }))?.spec;
    // What was good, and failed when it returned, may be tried again.
    const isAgain = before?.specHash === spec.specHash && addons.get(addon)?.status?.rolledBack === true;
    const isBack = isAgain || before?.knownGood?.specHash === spec.specHash;
    const isRemoved = spec.action === 'Remove';
    const owner = clusters.get(cluster)?.installed?.[spec.identity]?.owner;
    const isAnothers = owner === undefined ? addons.get(addon)?.adopt === true : owner !== fleetOwner(addon);
    jobs.set(keyOf({ cluster, addon }), {
      cluster,
      addon,
      act: leaves(spec)
        ? 'forget'
        : isRemoved
          ? 'remove'
          : isBack
            ? 'go back'
            : owner === fleetOwner(addon)
              ? 'update'
              : 'install',
      hash: leaves(spec) ? '' : spec.specHash,
      takesOver: !isRemoved && isAnothers,
      prune: spec.prune,
      isNew: isRemoved || !isBack,
    });
  }
  for (const { cluster, addon, spec, status } of observed.clusterAddons) {
    const [at, of] = [clusters.get(cluster), addons.get(addon)];
    const isRemoved = spec.action === 'Remove';
    const isFree = at?.available === true && at.paused !== true && of !== undefined && of.paused !== true;
    const isBegun = isRemoved || status?.state === 'Progressing';
    if (!isBegun || !isFree || jobs.has(keyOf({ cluster, addon }))) continue;
    const act = isRemoved ? 'remove' : 'continue';
    const prune = of.prune === 'None' ? 'None' : undefined;
    const job = { cluster, addon, act, hash: spec.specHash, takesOver: false, prune, isNew: false } as const;
    jobs.set(keyOf(job), job);
  }
  return [...jobs.values()];
}

/** Why a job that was decided must not begin now: a maintenance window may have closed since. */
export function closedFor(
  { cluster, addon, isNew }: Job,
  { clusters, addons }: Observed,
  now: number,
): string | undefined {
  if (!isNew) return undefined;
  const at = clusters.find(({ name }) => name === cluster);
  const of = addons.find(({ name }) => name === addon);
  return closedWindows(at?.windows, now) ?? closedWindows(of?.rollout?.windows, now);
}

/** The present content of each add-on. */
export function revisionsOf(
  fleet: WrittenFleet,
  { addons }: Observed,
  hashOf: (entry: Entry) => string,
): ReadonlyMap<string, StateRevision> {
  const written = new Map(fleet.addons.map((one) => [one.name, one]));
  return new Map(
    // What earlier files held back may be there, and is removed by its own content.
    addons.flatMap(({ refuses: _refuses, ...addon }) => {
      const one = written.get(addon.name);
      if (one === undefined) return [];
      const contents = one.entry === undefined ? channelEntries(one, fleet) : [one.entry];
      const entries = contents.map((entry) => ({ ...entry, hash: hashOf(entry) }));
      return [[addon.name, { revision: revisionOf(addon), addon, entries }] as const];
    }),
  );
}

export interface Deliverable {
  readonly entry: Entry;
  readonly content: AddonContent;
  readonly revision: string;
  /** Undefined for what is not made from templates. */
  readonly rendered: TemplateObjects | undefined;
  /** Whose rules its add-on follows. */
  readonly rules: FleetAddon['compat'];
  /** What its chart needs to be downloaded. */
  readonly access?: ChartAccess;
}

/** What is delivered to a cluster under a hash, from the first of these revisions that has it. */
export function deliverable(
  hash: string,
  cluster: Cluster,
  revisions: readonly StateRevision[],
): Deliverable | undefined {
  for (const { revision, addon, entries } of revisions) {
    const content = new Contents(addon, new Memo()).contentOf(cluster, undefined);
    if (typeof content === 'string' || content.specHash !== hash) continue;
    const triple = parseTriple(cluster.kubernetes);
    const chosen = 'channel' in addon.source && triple ? [...choose(entries, triple, 'native').values()] : entries;
    const [entry] = chosen;
    if (entry === undefined) continue;
    const isTemplate = content.source['type'] === TEMPLATE.type;
    const rendered = isTemplate ? objectsOf(content.values, cluster.name, entry.name) : undefined;
    return { entry, content, revision, rendered, rules: addon.compat };
  }
  return undefined;
}

/** The state before anything is done: what is about to begin must be known if this process is killed. */
export function beginPass(
  state: FleetState,
  observed: Observed,
  pass: Decided & { readonly now: number; readonly revisions: ReadonlyMap<string, StateRevision> },
): FleetState {
  const { now, writes, waiting, jobs, revisions } = pass;
  const changed = new Map(writes.status.map(({ addon, status }) => [addon, status]));
  const addons = observed.addons.map(({ name, orders, status: before }): readonly [string, AddonState] => {
    const own = state.addons[name] ?? NEW_ADDON;
    const [revision, status] = [revisions.get(name), changed.get(name) ?? before];
    const isOther = own.status !== undefined && own.status.revision !== status?.revision;
    const previous = isOther ? own.status.since : own.previous;
    const mine = jobs.filter(({ addon }) => addon === name);
    const begun = mine.flatMap(({ cluster, act }) => {
      const since = own.removing[cluster] ?? 0;
      // A removal that is tried again has all its time again.
      return act === 'remove' ? [[cluster, since > 0 && since >= retryAt(orders, now) ? since : now]] : [];
    });
    const cut = Object.entries(own.begun ?? {}).filter(([cluster]) => state.clusters[cluster]?.available === false);
    const delivered = mine.flatMap(({ cluster, act, hash }) =>
      act === 'remove' || act === 'forget' ? [] : [[cluster, { hash, since: now }] as const],
    );
    const base = mine.length > 0 && revision !== undefined ? keep(own, revision) : own;
    const all = waiting.flatMap(({ addon, ...one }) => (addon === name ? [one] : []));
    return [
      name,
      {
        ...base,
        ...(status && { status: { ...status, waiting: all } }),
        ...(previous !== undefined && { previous }),
        removing: { ...own.removing, ...Object.fromEntries(begun) },
        begun: Object.fromEntries([...cut, ...delivered]),
      },
    ];
  });
  return { ...state, addons: { ...state.addons, ...Object.fromEntries(addons) } };
}

/**
 * The state after a pass; `before` it, nothing had begun. What was under way on a cluster that no longer answers has neither failed nor
 * ended.
 */
export function endPass(state: FleetState, done: readonly Ended[], now: number, before: FleetState): FleetState {
  const addons = { ...state.addons };
  for (const { cluster, addon, act, hash, result, reason, revision } of done) {
    const { failures, removing, begun = {}, kept, ...rest } = addons[addon] ?? NEW_ADDON;
    const { [cluster]: _failure, ...others } = failures;
    const { [cluster]: _since, ...removals } = removing;
    const { [cluster]: _attempt, ...attempts } = begun;
    if (result === 'later') {
      const { [cluster]: since } = before.addons[addon]?.removing ?? {};
      const { [cluster]: attempt } = before.addons[addon]?.begun ?? {};
      addons[addon] = {
        ...rest,
        failures,
        kept,
        removing: since === undefined ? removals : removing,
        begun: attempt === undefined ? attempts : { ...attempts, [cluster]: attempt },
      };
      continue;
    }
    const isDone = result === 'done';
    const isThere = state.clusters[cluster]?.available === true;
    const counts = !isDone && (act === 'install' || act === 'update' || act === 'go back') && isThere;
    const failure = { hash, since: now, reason, ...(result === 'asks' && { asks: true as const }) };
    addons[addon] = {
      ...rest,
      failures: counts ? { ...others, [cluster]: failure } : isDone ? others : failures,
      removing: isDone || act !== 'remove' ? removals : removing,
      begun: isThere ? attempts : begun,
      kept: kept.map((one) => (isDone && one.revision === revision ? { ...one, isGood: true } : one)),
    };
  }
  return { ...state, addons };
}
