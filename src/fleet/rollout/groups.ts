/** Which clusters are selected, and in which groups and order a rollout reaches them. Pure. */
import { sizeOf, type Rules } from './limits.ts';

export type Labels = Readonly<Record<string, string>>;

/** A label selector of Kubernetes. An empty one selects everything. */
export interface Selector {
  readonly matchLabels?: Labels;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
    readonly values?: readonly string[];
  }[];
}

/** Lists longer than this are looked up: a selector may name each cluster of a fleet. */
const FEW = 16;
const sets = new WeakMap<readonly string[], ReadonlySet<string>>();

function has(values: readonly string[], value: string): boolean {
  if (values.length <= FEW) return values.includes(value);
  const all = sets.get(values) ?? new Set(values);
  sets.set(values, all);
  return all.has(value);
}

/** Loops and no closures: a step asks this several times for each cluster and add-on. */
export function selects({ matchLabels, matchExpressions }: Selector, labels: Labels): boolean {
  for (const key in matchLabels) if (labels[key] !== matchLabels[key]) return false;
  if (matchExpressions === undefined) return true;
  for (const { key, operator, values = [] } of matchExpressions) {
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
    const isMeant = operator === 'Exists' || operator === 'In';
    const isBare = operator === 'Exists' || operator === 'DoesNotExist';
    if (isMeant !== (value !== undefined && (isBare || has(values, value)))) return false;
  }
  return true;
}

const NATURAL = new Intl.Collator('en', { numeric: true });

/** Compares names: natively c2 comes before c10, elsewhere after it. */
export function compareNames(a: string, b: string, rules: Rules): number {
  return (rules === 'native' ? NATURAL.compare(a, b) : 0) || (a < b ? -1 : a > b ? 1 : 0);
}

export interface GroupRule {
  readonly name: string;
  readonly selector: Selector;
  /** Most clusters of one group; longer ones are cut into several groups of this name. */
  readonly size?: number | string | undefined;
}

export interface Group<Member> {
  /** Empty for the rest, which no rule selects. */
  readonly name: string;
  readonly index: number;
  readonly members: readonly Member[];
}

/** How approvals and messages name a group. */
export function selectorKey({ name, index }: Pick<Group<unknown>, 'name' | 'index'>): string {
  return name || String(index);
}

export interface Grouping {
  readonly rules: readonly GroupRule[];
  readonly size: number | string | undefined;
  /** A rule without members has an empty group, so that the groups after it keep their index when clusters go. */
  readonly keepsEmpty?: boolean;
}

/**
 * Members in groups: for each rule the members that it is the first one to select, then the rest, each cut by size (a percentage counts
 * all members). The order of the members stays. There is at least one group, which may be empty.
 */
export function groupsOf<Member extends { readonly labels: Labels }>(
  members: readonly Member[],
  { rules, size, keepsEmpty = false }: Grouping,
): readonly Group<Member>[] {
  const total = members.length;
  const parts = rules.map((rule) => ({ ...rule, members: [] as Member[] }));
  parts.push({ name: '', size, selector: {}, members: [] });
  for (const member of members) {
    for (const part of parts) {
      if (!selects(part.selector, member.labels)) continue;
      part.members.push(member);
      break;
    }
  }
  const groups: Group<Member>[] = [];
  for (const part of parts) {
    if (keepsEmpty && part.members.length === 0) groups.push({ name: part.name, index: groups.length, members: [] });
    const most = sizeOf(part.size ?? size, total, total, 'ocm');
    for (let at = 0; at < part.members.length; at += most) {
      groups.push({ name: part.name, index: groups.length, members: part.members.slice(at, at + most) });
    }
  }
  return groups.length > 0 ? groups : [{ name: '', index: 0, members: [] }];
}
