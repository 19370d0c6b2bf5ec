/** ManagedCluster, Placement and PlacementDecision of Open Cluster Management -> clusters by name, in groups. Pure. */
import * as v from 'valibot';
import type { Findings } from '../../cluster/channel/findings.ts';
import { isObject } from '../../core/json.ts';
import { aMap, aText, fields, type Read } from '../../core/schema.ts';
import { selects, type GroupRule, type Labels, type Selector } from '../rollout/groups.ts';
import { anything, anyOf, clusterName, dnsName, foreign, list, selector, part } from './kinds.ts';

const SET = 'cluster.open-cluster-management.io/clusterset';
/** Name of the placement that a decision is about. */
const PLACEMENT_LABEL = 'cluster.open-cluster-management.io/placement';
const GROUP_NAME = 'cluster.open-cluster-management.io/decision-group-name';
const GROUP_INDEX = 'cluster.open-cluster-management.io/decision-group-index';

const map = v.exactOptional(aMap);

export const MANAGED_CLUSTER = foreign(clusterName, {
  ...v.entriesFromList(['hubAcceptsClient', 'managedClusterClientConfigs', 'leaseDurationSeconds'], anything),
  taints: v.exactOptional(list(aMap)),
});

const clusterSelector = {
  labelSelector: v.exactOptional(selector),
  claimSelector: v.exactOptional(selector),
};
const decisionGroup = fields({
  groupName: v.exactOptional(aText),
  groupClusterSelector: v.exactOptional(fields(clusterSelector)),
});
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
  ...v.entriesFromList(
    ['numberOfClusters', 'prioritizerPolicy', 'spreadPolicy', 'tolerations', 'sortBy', 'scoreRateLimit'],
    anything,
  ),
});

export const PLACEMENT_DECISION = foreign(dnsName, {});

/** A cluster as placements see it. */
export interface PlaceableCluster {
  readonly name: string;
  readonly labels: Labels;
  readonly claims: Labels;
}

export interface Placed {
  readonly names: readonly string[];
  readonly groups: readonly Omit<GroupRule, 'size'>[];
  readonly groupSize: number | string | undefined;
}

type Decision = Read<typeof PLACEMENT_DECISION>;

/** Names and values of the claims that a cluster has made about itself. */
export function claimsOf({ status = {} }: Read<typeof MANAGED_CLUSTER>): Labels {
  const { clusterClaims } = status as { readonly clusterClaims?: unknown };
  return Object.fromEntries(
    itemsOf(clusterClaims).flatMap(({ name, value }) =>
      typeof name === 'string' && typeof value === 'string' ? [[name, value] as const] : [],
    ),
  );
}

/** Clusters that a decision of a hub names. */
export function decidedIn({ status = {} }: Decision): readonly string[] {
  const { decisions } = status as { readonly decisions?: unknown };
  return itemsOf(decisions).flatMap(({ clusterName: name }) => (typeof name === 'string' ? [name] : []));
}

function itemsOf(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
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

/** What a placement selects without the scores of a hub: all clusters that match one of its predicates. */
export function placeAll({ spec }: Read<typeof PLACEMENT>, clusters: readonly PlaceableCluster[]): Placed {
  const { clusterSets = [], predicates = [], decisionStrategy = {} } = spec;
  const { decisionGroups = [], clustersPerDecisionGroup } = decisionStrategy.groupStrategy ?? {};
  const isInSet = ({ labels }: PlaceableCluster): boolean =>
    clusterSets.length === 0 || clusterSets.includes('global') || clusterSets.includes(labels[SET] ?? 'default');
  const chosen = clusters.filter((one) => {
    const isMeant = predicates.some(({ requiredClusterSelector: wanted = {} }) => {
      return wanted.celSelector === undefined && matches(wanted, one);
    });
    return isInSet(one) && (predicates.length === 0 || isMeant);
  });
  const groups = decisionGroups.map(({ groupName = '', groupClusterSelector = {} }) => {
    const members = chosen.filter((one) => matches(groupClusterSelector, one));
    return { name: groupName, selector: anyOf(members.map(({ name }) => name)) };
  });
  return { names: chosen.map(({ name }) => name), groups, groupSize: clustersPerDecisionGroup };
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

const IGNORED = {
  numberOfClusters: 'every cluster that matches is selected',
  prioritizerPolicy: 'no cluster is preferred to another one',
  spreadPolicy: 'no cluster is preferred to another one',
  tolerations: 'taints are not looked at',
  sortBy: 'clusters are in the order of their names',
  scoreRateLimit: 'there are no scores',
} as const;
const DECIDE = 'add the PlacementDecision of the hub to the folder: its clusters are selected then';

/** What an API server sets if nothing is written. */
const DEFAULTS: Readonly<Record<string, string>> = { sortBy: 'ClusterName', scoreRateLimit: '1m' };

/** Warns of each field that has no effect, or another one than on a hub. */
export function notePlacement({ spec }: Read<typeof PLACEMENT>, findings: Findings): void {
  for (const [field, why] of Object.entries(IGNORED)) {
    const { [field]: value } = spec as Readonly<Record<string, unknown>>;
    if (value !== undefined && value !== DEFAULTS[field])
      findings.add('warning', 'ignored', ['spec', field], `${field} has no effect: ${why}`, DECIDE);
  }
  if (spec.clusterSets !== undefined) {
    const message = `clusterSets is compared with the label ${SET}: a set with a selector of its own is not read`;
    findings.add('warning', 'ignored', ['spec', 'clusterSets'], message, DECIDE);
  }
  for (const [index, { requiredClusterSelector }] of (spec.predicates ?? []).entries()) {
    if (requiredClusterSelector?.celSelector === undefined) continue;
    const message = 'a predicate with celSelector selects no cluster: CEL is not evaluated';
    const path = ['spec', 'predicates', index, 'requiredClusterSelector', 'celSelector'];
    findings.add('warning', 'ignored', path, message, DECIDE);
  }
}
