/**
 * Test vectors against curlew's own functions: one export for each `fn` of a vector, which takes its `in` and a rule set, and
 * returns its `out`. Plain JSON, no other set-up. `test/fixtures` has vectors in `channels`, `rollout` and `machine`.
 */
import type { Compat, Identity, PruneKind } from '../cluster/channel/channel.ts';
import { choose as chooseEntries, replaces } from '../cluster/channel/choose.ts';
import { manifestAddonName as addonNameOf, resolveLocation } from '../cluster/channel/location.ts';
import { objectKey } from '../cluster/channel/objects.ts';
import { planUpgrade } from '../cluster/channel/upgrade-plan.ts';
import { prune as pruneObjects } from '../cluster/channel/prune.ts';
import { contains, kubernetesTriple, parseRange } from '../cluster/channel/range.ts';
import { orError } from './machines.ts';
import {
  installDiff as diffOfInstalls,
  mergeConfigs as mergeReferences,
  type ConfigReference,
} from '../fleet/upstream/placed.ts';
import type { Observed } from '../fleet/rollout/fleet.ts';
import { compareNames, groupsOf, type Labels } from '../fleet/rollout/groups.ts';
import { ocmBatch, type Standing } from '../fleet/rollout/ocm-batch.ts';
import { parseTimeout as secondsOf, sizeOf as countOf, type Rules } from '../fleet/rollout/limits.ts';
import { step, waitingIn } from '../fleet/rollout/step.ts';
import { specHash as hashOf } from '../fleet/rollout/spec-hash.ts';
import type { State, Strategy } from '../fleet/rollout/strategy.ts';

export type { Compat } from '../cluster/channel/channel.ts';
export { hcp, hrp, hrpDelete, proxyConditions, urlOk } from './helm.ts';
export { addonStatus, lastPlacement, lease, templateRemoval, workload, workProbe } from './upstream.ts';
export {
  clusterDiff,
  deletionOrder,
  drainPlan,
  etcdSafe,
  kcpPick,
  kcpVersionChange,
  mhcAllowed,
  upgradeOrder,
  upgradePlan,
  workerSkew,
} from './machines.ts';
export type { Rules } from '../fleet/rollout/limits.ts';

export interface VectorEntry extends Identity {
  readonly name?: string;
  readonly kubernetesVersion?: string;
  readonly manifest?: string;
  readonly manifestHash?: string;
}

function candidates(
  entries: readonly VectorEntry[],
  { name, compat }: { readonly name: string; readonly compat: Compat },
) {
  return entries.map(({ kubernetesVersion = '', manifestHash, ...entry }) => ({
    name,
    hash: manifestHash,
    ...entry,
    range: parseRange(kubernetesVersion, compat === 'native' ? 'native' : 'kops').range,
  }));
}

/** Is a server's version in a range? A range that cannot be read contains none, with a warning. */
export function rangeMatch(
  input: { readonly range: string; readonly kubernetesVersion: string },
  compat: Compat = 'kops',
): { readonly matches: boolean; readonly warning?: true } {
  const { range } = parseRange(input.range, compat === 'native' ? 'native' : 'kops');
  if (range === undefined) return { matches: false, warning: true };
  return { matches: contains(range, kubernetesTriple(input.kubernetesVersion)) };
}

interface Replacement {
  readonly existing: Identity;
  readonly incoming: Identity;
}

/** Does an incoming entry replace an existing one, by the rule of kops until 2021? */
export function replacesSemver({ existing, incoming }: Replacement, compat: Compat = 'kops-2017'): boolean {
  return replaces(existing, incoming, compat).replaces;
}

/** The same by today's rule of kops. */
export function replacesHash({ existing, incoming }: Replacement, compat: Compat = 'kops'): boolean {
  return replaces(existing, incoming, compat).replaces;
}

type Chosen = Readonly<Record<string, string | undefined>>;

/**
 * The manifest that an index yields for each add-on; a list of them for a list of versions. The `rule` decides before `compat`.
 */
export function choose(
  input: {
    readonly rule?: 'semver' | 'hash';
    readonly kubernetesVersion: string | readonly string[];
    readonly name: string;
    readonly entries: readonly VectorEntry[];
  },
  compat: Compat = 'kops',
): Chosen | readonly Chosen[] {
  const rules = { semver: 'kops-2017', hash: 'kops', none: compat } as const;
  const used = rules[input.rule ?? 'none'];
  const entries = candidates(input.entries, { name: input.name, compat: used });
  const chosenFor = (version: string): Chosen => {
    const chosen = chooseEntries(entries, kubernetesTriple(version), used);
    return Object.fromEntries([...chosen].map(([name, { manifest }]) => [name, manifest]));
  };
  const { kubernetesVersion } = input;
  return typeof kubernetesVersion === 'string' ? chosenFor(kubernetesVersion) : kubernetesVersion.map(chosenFor);
}

/** The location of a manifest that an index names, or null if it has none. */
export function resolve({ index, manifest }: { readonly index: string; readonly manifest: string }): string | null {
  return resolveLocation(index, manifest) ?? null;
}

/** The name of the only add-on of a plain manifest. */
export function manifestAddonName({ location }: { readonly location: string }): string {
  return addonNameOf(location);
}

interface VectorObject {
  readonly group?: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** The objects that the kinds of a prune list delete, as `Kind/namespace/name`, sorted. */
export function prune(input: {
  readonly spec: { readonly kinds: readonly (Pick<PruneKind, 'kind'> & Partial<PruneKind>)[] };
  readonly manifest: readonly VectorObject[];
  readonly live: readonly VectorObject[];
}): readonly string[] {
  const read = ({ group = '', kind, namespace, name, labels = {} }: VectorObject) => {
    return { apiVersion: group === '' ? 'v1' : `${group}/v1`, kind, namespace, name, labels };
  };
  const every = { group: '', namespaces: [], labelSelector: '', fieldSelector: '' };
  const kinds = input.spec.kinds.map((kind) => ({ ...every, ...kind }));
  const keptKeys = new Set(input.manifest.map((object) => objectKey(read(object))));
  const titles = pruneObjects({ kinds, keptKeys }, input.live.map(read)).map(({ kind, namespace, name }) => {
    return [kind, ...(namespace === undefined ? [] : [namespace]), name].join('/');
  });
  return titles.toSorted();
}

/** The steps of an upgrade of Kubernetes with one add-on, or `gap at VERSION` as `error`. */
export function planAddons(
  input: {
    readonly installed: string;
    readonly kubernetes: readonly string[];
    readonly entries: readonly VectorEntry[];
  },
  compat: Compat = 'native',
): { readonly steps: readonly string[] } | { readonly error: string } {
  const { steps, gaps } = planUpgrade(candidates(input.entries, { name: 'addon', compat }), {
    kubernetes: input.kubernetes,
    installed: new Map([['addon', { version: input.installed }]]),
    compat,
  });
  const [gap] = gaps;
  if (gap !== undefined) return { error: `gap at ${gap.at}` };
  return {
    steps: steps.map((step) =>
      step.type === 'kubernetes' ? `kubernetes ${step.version}` : `addon ${step.entry.version ?? ''}`,
    ),
  };
}

/** A number or percentage as a count. */
export function sizeOf(
  { value, total, def }: { readonly value: number | string; readonly total: number; readonly def: number },
  compat: Rules = 'ocm',
): number | 'error' {
  return orError(() => countOf(value, total, def, compat));
}

/** Seconds, `infinite`, or `error`. */
export function parseTimeout({ value }: { readonly value: string }): number | 'infinite' | 'error' {
  const seconds = orError(() => secondsOf(value));
  return seconds === Number.POSITIVE_INFINITY ? 'infinite' : seconds;
}

/** The hash of what a user sets in an object. */
export function specHash({ object }: { readonly object: Readonly<Record<string, unknown>> }): string {
  return hashOf(object);
}

/** Clusters, as labels by name, in decision groups. */
export function groups(
  input: {
    readonly clusters: Readonly<Record<string, Labels>>;
    readonly clustersPerDecisionGroup?: number | string;
    readonly decisionGroups?: readonly { readonly groupName: string; readonly matchLabels: Labels }[];
  },
  compat: Rules = 'ocm',
): readonly { readonly name: string; readonly index: number; readonly clusters: readonly string[] }[] {
  const names = Object.keys(input.clusters).toSorted((a, b) => compareNames(a, b, compat));
  const members = names.map((name) => ({ name, labels: input.clusters[name] ?? {} }));
  const rules = (input.decisionGroups ?? []).map(({ groupName, matchLabels }) => {
    return { name: groupName, selector: { matchLabels } };
  });
  return groupsOf(members, { rules, size: input.clustersPerDecisionGroup }).map(({ name, index, ...group }) => {
    return { name, index, clusters: group.members.map((member) => member.name) };
  });
}

/** The references that remain of layers, by type. */
export function mergeConfigs({
  layers,
}: {
  readonly layers: readonly (readonly ConfigReference[])[];
}): Readonly<Record<string, readonly string[]>> {
  return mergeReferences(layers);
}

/** Clusters that get an add-on, and that lose it. */
export function installDiff(input: {
  readonly type: string;
  /** Null for one that does not exist. */
  readonly placements?: readonly ({ readonly clusters?: readonly string[] | null } | null)[];
  readonly existing: readonly string[];
}): { readonly create: readonly string[]; readonly delete: readonly string[] } {
  const placements = (input.placements ?? []).map((one) => one?.clusters ?? []);
  return diffOfInstalls(input.type === 'Placements' ? placements : undefined, input.existing);
}

interface VectorRollout {
  readonly strategy: Strategy;
  /** Ordered; a name that begins with `_` is that of an unnamed group. */
  readonly groups: Readonly<Record<string, readonly string[]>>;
  /** `Status@T` by cluster, in seconds relative to now. */
  readonly existing: Readonly<Record<string, string>>;
}

const UPSTREAM_STATES: Readonly<Record<string, State>> = {
  TimeOut: 'TimedOut',
  Skip: 'Skipped',
  Unknown: 'Progressing',
};

/** The batch of a rollout as `cluster:Status`, what has timed out, and when time alone changes this. */
export function rollout(input: VectorRollout): Readonly<Record<string, unknown>> {
  const titles = new Map<string, string>();
  const existing = Object.entries(input.existing).map(([cluster, text]): Standing => {
    const [title = '', at] = text.split('@');
    titles.set(cluster, title);
    return { cluster, state: UPSTREAM_STATES[title] ?? (title as State), age: -Number(at ?? 0) };
  });
  const listed = Object.entries(input.groups).map(([name, members], index) => {
    return { name: name.startsWith('_') ? '' : name, index, members };
  });
  const batch = ocmBatch(listed, input.strategy, existing);
  return {
    rollout: batch.rollout.map((cluster) => `${cluster}:${titles.get(cluster) ?? 'ToApply'}`),
    timeout: batch.timedOut,
    breach: batch.breached,
    ...(Number.isFinite(batch.recheckAfter) ? { recheckAfter: batch.recheckAfter } : {}),
    ...(batch.removed.length > 0 ? { removed: batch.removed } : {}),
  };
}

/** One step of a fleet by the rules that its add-ons name, and each cluster that waits; `now` is in seconds since 1970. */
export function fleetStep({ observed, now }: { readonly observed: Observed; readonly now: number }): object {
  const waiting: object[] = [];
  const writes = step(observed, now, undefined, (plan) => {
    waiting.push(...waitingIn(plan).map((one) => ({ addon: plan.run.addon.name, ...one })));
  });
  return { ...writes, waiting };
}
