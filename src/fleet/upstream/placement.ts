/** Placements of Open Cluster Management, and what they choose from -> clusters by name, in groups. Pure. */
import * as v from 'valibot';
import type { Findings } from '../../cluster/channel/findings.ts';
import { fieldsOf, listOf } from '../../core/json.ts';
import { aMap, aText, fields, type Read } from '../../core/schema.ts';
import { compareNames, selects, type GroupRule, type Labels, type Selector } from '../rollout/groups.ts';
import {
  amount,
  anything,
  anyOf,
  clusterName,
  dnsName,
  foreign,
  list,
  loose,
  optionalText,
  part,
  selector,
} from './kinds.ts';

const SET = 'cluster.open-cluster-management.io/clusterset';
/** Name of the placement that a decision is about. */
export const PLACEMENT_LABEL = 'cluster.open-cluster-management.io/placement';
const GROUP_NAME = 'cluster.open-cluster-management.io/decision-group-name';
const GROUP_INDEX = 'cluster.open-cluster-management.io/decision-group-index';

const map = v.exactOptional(aMap);

export const MANAGED_CLUSTER = foreign(clusterName, {
  ...v.entriesFromList(['hubAcceptsClient', 'managedClusterClientConfigs', 'leaseDurationSeconds'], anything),
  taints: v.exactOptional(list(fields({ key: aText, value: optionalText, effect: optionalText, timeAdded: anything }))),
});

const clusterSelector = {
  labelSelector: v.exactOptional(selector),
  claimSelector: v.exactOptional(selector),
};
const decisionGroup = fields({
  groupName: v.exactOptional(aText),
  groupClusterSelector: v.exactOptional(fields(clusterSelector)),
});
const prioritizer = {
  scoreCoordinate: v.exactOptional(loose({ type: optionalText, builtIn: optionalText })),
};
export const PLACEMENT = foreign(dnsName, {
  clusterSets: v.exactOptional(list(aText)),
  predicates: v.exactOptional(
    list(fields({ requiredClusterSelector: v.exactOptional(fields({ ...clusterSelector, celSelector: map })) })),
  ),
  decisionStrategy: v.exactOptional(
    fields({
      groupStrategy: v.exactOptional(
        fields({
          decisionGroups: v.exactOptional(list(decisionGroup)),
          clustersPerDecisionGroup: v.exactOptional(part),
        }),
      ),
    }),
  ),
  numberOfClusters: v.exactOptional(amount),
  tolerations: v.exactOptional(
    list(
      fields({
        ...v.entriesFromList(['key', 'operator', 'value', 'effect'], optionalText),
        tolerationSeconds: anything,
      }),
    ),
  ),
  prioritizerPolicy: v.exactOptional(loose({ configurations: v.exactOptional(list(loose(prioritizer))) })),
  spreadPolicy: map,
  ...v.entriesFromList(['sortBy', 'scoreRateLimit'], anything),
});

/** The sets that its namespace may choose from. */
export const SET_BINDING = foreign(dnsName, { clusterSet: aText });
export const CLUSTER_SET = foreign(dnsName, {
  clusterSelector: v.exactOptional(fields({ selectorType: optionalText, labelSelector: v.exactOptional(selector) })),
});

export const PLACEMENT_DECISION = foreign(dnsName, {});

/** A cluster as placements see it. */
export interface PlaceableCluster {
  readonly name: string;
  readonly labels: Labels;
  readonly claims: Labels;
  readonly taints: NonNullable<Read<typeof MANAGED_CLUSTER>['spec']['taints']>;
}

export interface Placed {
  /** Why it is not known which clusters are chosen: what has been chosen before stays. */
  readonly problem?: string;
  readonly names: readonly string[];
  readonly groups: readonly Omit<GroupRule, 'size'>[];
  readonly groupSize: number | string | undefined;
}

type Decision = Read<typeof PLACEMENT_DECISION>;

/** Names and values of the claims that a cluster has made about itself. */
export function claimsOf({ status = {} }: Read<typeof MANAGED_CLUSTER>): Labels {
  return Object.fromEntries(
    listOf(fieldsOf(status)['clusterClaims'])
      .map(fieldsOf)
      .flatMap(({ name, value }) =>
        typeof name === 'string' && typeof value === 'string' ? [[name, value] as const] : [],
      ),
  );
}

/** Clusters that a decision of a hub names. */
export function decidedIn({ status = {} }: Decision): readonly string[] {
  const decisions = listOf(fieldsOf(status)['decisions']).map(fieldsOf);
  return decisions.flatMap(({ clusterName: name }) => (typeof name === 'string' ? [name] : []));
}

/** What a hub has decided, by `NAMESPACE/NAME` of the placement; groups in the order of their indexes. */
export function placeDecided(decisions: readonly Decision[]): Map<string, Placed> {
  const placed = new Map<string, Map<number, { readonly name: string; readonly names: string[] }>>();
  for (const decision of decisions) {
    const { namespace = 'default', labels: { [PLACEMENT_LABEL]: placement = '', ...labels } = {} } = decision.metadata;
    const key = `${namespace}/${placement}`;
    const groups = placed.get(key) ?? new Map<number, { readonly name: string; readonly names: string[] }>();
    const { [GROUP_INDEX]: index = '0', [GROUP_NAME]: name = '' } = labels;
    const group = groups.get(Number(index)) ?? { name, names: [] };
    group.names.push(...decidedIn(decision));
    placed.set(key, groups.set(Number(index), group));
  }
  return new Map([...placed].map(([key, groups]) => [key, inGroups(groups)]));
}

function inGroups(groups: ReadonlyMap<number, { readonly name: string; readonly names: readonly string[] }>): Placed {
  const sorted = [...groups].toSorted(([a], [b]) => a - b).map(([, group]) => group);
  return {
    names: sorted.flatMap(({ names }) => names),
    groups: sorted.map(({ name, names }) => ({ name, selector: anyOf(names) })),
    groupSize: undefined,
  };
}

/** What a placement chooses from. */
export interface Choice {
  readonly clusters: readonly PlaceableCluster[];
  /** By name. */
  readonly sets: ReadonlyMap<string, Read<typeof CLUSTER_SET>['spec']>;
  /** Names of sets that are bound in a namespace. */
  readonly bound: ReadonlyMap<string, readonly string[]>;
  /** Clusters that it has chosen before. */
  readonly kept: ReadonlySet<string>;
}

const ALL: Read<typeof CLUSTER_SET>['spec'] = { clusterSelector: { selectorType: 'LabelSelector', labelSelector: {} } };
/** Sets that each hub has. */
const BUILT_IN = new Map([
  ['global', ALL],
  ['default', {}],
]);

/**
 * What the scheduler of a hub would choose, but for scores: clusters of the sets that are bound in its namespace, which match one of its
 * predicates, and whose taints it tolerates. Of more than `numberOfClusters`, those that were chosen before stay, then the name decides.
 */
export function placeAll(placement: Read<typeof PLACEMENT>, choice: Choice): Placed {
  const { predicates = [], decisionStrategy = {}, numberOfClusters = Infinity, ...spec } = placement.spec;
  const { decisionGroups = [], clustersPerDecisionGroup } = decisionStrategy.groupStrategy ?? {};
  const unknown = (problem: string): Placed => ({ problem, names: [], groups: [], groupSize: undefined });
  const inSets = clustersOfSets(placement, choice);
  if (typeof inSets === 'string') return unknown(inSets);
  if (predicates.some(({ requiredClusterSelector: wanted }) => wanted?.celSelector !== undefined))
    return unknown('a predicate has a celSelector, which is not evaluated');
  const matching = inSets.filter((one) => {
    const isMeant = predicates.some(({ requiredClusterSelector: wanted = {} }) => matches(wanted, one));
    return predicates.length === 0 || isMeant;
  });
  const timed = matching.find((one) => tolerance(one, placement.spec, choice.kept) === 'for a time');
  if (timed !== undefined) return unknown(`a toleration of a taint of ${timed.name} has tolerationSeconds`);
  const feasible = matching.filter((one) => tolerance(one, placement.spec, choice.kept) === 'yes');
  const scored = spec.prioritizerPolicy?.configurations?.find(
    ({ scoreCoordinate = {} }) => !isNeutral(scoreCoordinate),
  );
  if (feasible.length > numberOfClusters && (scored ?? spec.spreadPolicy) !== undefined) {
    const what = scored === undefined ? 'spreadPolicy' : 'prioritizerPolicy';
    return unknown(
      `${what} chooses ${numberOfClusters} of ${feasible.length} clusters by scores, which are not computed`,
    );
  }
  const rank = ({ name }: PlaceableCluster): number => (choice.kept.has(name) ? 0 : 1);
  const chosen = feasible
    .toSorted((a, b) => rank(a) - rank(b) || compareNames(a.name, b.name, 'native'))
    .slice(0, numberOfClusters);
  const groups = decisionGroups.map(({ groupName = '', groupClusterSelector = {} }) => {
    const members = chosen.filter((one) => matches(groupClusterSelector, one));
    return { name: groupName, selector: anyOf(members.map(({ name }) => name)) };
  });
  return { names: chosen.map(({ name }) => name), groups, groupSize: clustersPerDecisionGroup };
}

/** Prioritizers that any placement has: whatever they prefer, decisions that were made are kept first. */
function isNeutral({ type = 'BuiltIn', builtIn = '' }: { readonly type?: string; readonly builtIn?: string }): boolean {
  return type === 'BuiltIn' && (builtIn === 'Steady' || builtIn === 'Balance');
}

/** Why the scheduler of a hub has not decided about a placement: what is missing, or what it says itself. */
export function undecidedBecause(placement: Read<typeof PLACEMENT>, choice: Omit<Choice, 'kept'>): string | undefined {
  const inSets = clustersOfSets(placement, choice);
  if (typeof inSets === 'string') return inSets;
  const said = listOf(fieldsOf(placement.status)['conditions']).map(fieldsOf);
  const { message } = said.find(({ type, status }) => type === 'PlacementSatisfied' && status === 'False') ?? {};
  return typeof message === 'string' ? message.slice(0, MAX_SAID) : undefined;
}

/** Characters of what a scheduler says. */
const MAX_SAID = 256;

/** A set that each hub has, whether its object is there or not. */
export function isBuiltIn(set: string): boolean {
  return BUILT_IN.has(set);
}

/** The clusters of the sets that are bound, or why that is not known. */
function clustersOfSets(
  { metadata: { namespace = 'default' }, spec: { clusterSets = [] } }: Read<typeof PLACEMENT>,
  { clusters, sets, bound }: Omit<Choice, 'kept'>,
): readonly PlaceableCluster[] | string {
  const all = bound.get(namespace) ?? [];
  if (all.length === 0) return `namespace ${namespace} has no ManagedClusterSetBinding`;
  const names = clusterSets.length === 0 ? all : all.filter((one) => clusterSets.includes(one));
  if (names.length === 0)
    return `none of its clusterSets is bound in namespace ${namespace}: ${clusterSets.join(', ')}`;
  const known = names.map((name) => ({ name, set: sets.get(name) ?? BUILT_IN.get(name) }));
  const missing = known.find(({ set }) => set === undefined);
  if (missing !== undefined) return `there is no ManagedClusterSet ${missing.name}, which namespace ${namespace} binds`;
  return clusters.filter(({ labels }) =>
    known.some(({ name, set }) => {
      const { selectorType, labelSelector = {} } = set?.clusterSelector ?? {};
      return selectorType === 'LabelSelector' ? selects(labelSelector, labels) : (labels[SET] ?? 'default') === name;
    }),
  );
}

/** Does a placement tolerate the taints of a cluster? */
function tolerance(
  { name, taints }: PlaceableCluster,
  { tolerations = [] }: Read<typeof PLACEMENT>['spec'],
  kept: ReadonlySet<string>,
): 'yes' | 'no' | 'for a time' {
  const refused = taints.filter(
    ({ effect }) => effect === 'NoSelect' || (effect === 'NoSelectIfNew' && !kept.has(name)),
  );
  const answers = refused.map((taint) => {
    const fitting = tolerations.filter(
      ({ key = '', operator = 'Equal', value = '', effect = '' }) =>
        (effect === '' || effect === taint.effect) &&
        (key === '' ? operator === 'Exists' : key === taint.key) &&
        (operator === 'Exists' || value === (taint.value ?? '')),
    );
    if (fitting.length === 0) return 'no';
    return fitting.some(({ tolerationSeconds }) => tolerationSeconds === undefined) ? 'yes' : 'for a time';
  });
  return answers.find((one) => one === 'no') ?? answers.find((one) => one === 'for a time') ?? 'yes';
}

interface ClusterSelector {
  readonly labelSelector?: Selector;
  readonly claimSelector?: Selector;
}

function matches(
  { labelSelector = {}, claimSelector = {} }: ClusterSelector,
  { labels, claims }: PlaceableCluster,
): boolean {
  return selects(labelSelector, labels) && selects(claimSelector, claims);
}

/** What an API server sets if nothing is written. */
const DEFAULTS: Readonly<Record<string, string>> = { sortBy: 'ClusterName', scoreRateLimit: '1m' };
const IGNORED = { sortBy: 'clusters are in the order of their names', scoreRateLimit: 'there are no scores' } as const;

/** Warns of each field that has no effect. */
export function notePlacement({ spec }: Read<typeof PLACEMENT>, findings: Findings): void {
  for (const [field, why] of Object.entries(IGNORED)) {
    const { [field]: value } = spec as Readonly<Record<string, unknown>>;
    if (value !== undefined && value !== DEFAULTS[field]) findings.ignored(['spec', field], field, why);
  }
}
