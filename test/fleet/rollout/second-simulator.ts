/**
 * A second implementation of the rollout rules of Open Cluster Management, written from their description alone. It shares no
 * code with `src/fleet/rollout`: where both give the same answer, a slip in one of them is unlikely to be in the other.
 */

type Size = number | string;

export interface Fleet {
  readonly strategy: {
    readonly type: string;
    /** Seconds, minutes or hours, such as `90s`. */
    readonly minSuccessTime?: string;
    /** The same, or `None`. */
    readonly progressDeadline?: string;
    readonly maxFailures?: Size;
    readonly maxConcurrency?: Size;
    readonly mandatoryDecisionGroups?: readonly { readonly groupName?: string; readonly groupIndex?: number }[];
  };
  /** Clusters by decision group, in order; a key that begins with `_` is a group without a name. */
  readonly groups: Readonly<Record<string, readonly string[]>>;
  /** `Status` or `Status@T` by cluster, T in seconds relative to now. */
  readonly existing: Readonly<Record<string, string>>;
}

export interface Answer {
  /** The batch, as `cluster:Status`. */
  readonly rollout: readonly string[];
  readonly timeout: readonly string[];
  readonly breach: boolean;
  readonly recheckAfter?: number;
  /** Clusters that have a state and no group. */
  readonly removed?: readonly string[];
}

interface Known {
  readonly cluster: string;
  readonly status: string;
  /** Seconds relative to now; now if it is not known. */
  readonly since: number;
}

interface Times {
  readonly soak: number;
  readonly deadline: number;
}

interface Draft {
  readonly batch: string[];
  readonly timeout: string[];
  readonly rechecks: number[];
  breach: boolean;
}

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 };

function seconds(text: string): number {
  const [, count, unit] = /^(\d+)([smh])$/.exec(text) ?? [];
  return Number(count) * (SECONDS[unit ?? ''] ?? Number.NaN);
}

function sizeOf(value: Size | undefined, total: number, fallback: number): number {
  const count = typeof value === 'string' ? Math.ceil((Number.parseInt(value, 10) * total) / 100) : (value ?? 0);
  return count <= 0 || count > total ? fallback : count;
}

function knownOf({ existing }: Fleet): readonly Known[] {
  return Object.entries(existing).map(([cluster, text]) => {
    const [status = '', since] = text.split('@');
    return { cluster, status, since: Number(since ?? 0) };
  });
}

/** Puts a cluster where its status says, and says whether that counts as a failure. */
function decide({ cluster, status, since }: Known, { soak, deadline }: Times, draft: Draft): boolean {
  if (status === 'TimeOut' || status === 'Skip') return status === 'TimeOut';
  const left = since + (status === 'Succeeded' ? soak : deadline);
  if (status === 'ToApply' || left > 0) {
    draft.batch.push(`${cluster}:${status}`);
    if (status !== 'ToApply' && Number.isFinite(left)) draft.rechecks.push(left);
  } else if (status !== 'Succeeded') {
    draft.timeout.push(cluster);
    return true;
  }
  return status === 'Failed';
}

interface Limits {
  readonly size: number;
  readonly maxFailures: number;
}

function perCluster(clusters: readonly string[], limits: Limits, times: Times, known: readonly Known[]): Draft {
  const draft: Draft = { batch: [], timeout: [], rechecks: [], breach: false };
  let failures = 0;
  for (const one of known.toSorted((a, b) => (a.cluster < b.cluster ? -1 : 1))) {
    if (!(draft.breach && one.status === 'ToApply') && decide(one, times, draft)) failures += 1;
    draft.breach = failures > limits.maxFailures;
    if (draft.batch.length >= limits.size) return draft;
  }
  if (draft.breach) return draft;
  const seen = new Set(known.map(({ cluster }) => cluster));
  const fresh = clusters.filter((cluster) => !seen.has(cluster)).toSorted();
  draft.batch.push(...fresh.slice(0, limits.size - draft.batch.length).map((cluster) => `${cluster}:ToApply`));
  return draft;
}

function perGroup(
  groups: readonly (readonly string[])[],
  maxFailures: Size,
  times: Times,
  known: readonly Known[],
): Draft {
  const draft: Draft = { batch: [], timeout: [], rechecks: [], breach: false };
  const decided = known.filter(({ status }) => status !== 'ToApply');
  const seen = new Set(decided.map(({ cluster }) => cluster));
  const failed = new Set(decided.filter((one) => decide(one, times, draft)).map(({ cluster }) => cluster));
  let failures = 0;
  for (const group of groups) {
    const count = group.filter((cluster) => failed.has(cluster)).length;
    draft.breach = count > sizeOf(maxFailures, group.length, 0);
    const fresh = group.filter((cluster) => !seen.has(cluster)).toSorted();
    draft.batch.push(...fresh.map((cluster) => `${cluster}:ToApply`));
    failures += count;
    if (draft.batch.length - failures > 0 || draft.breach) return draft;
  }
  return draft;
}

function draftOf({ strategy, groups }: Fleet, known: readonly Known[]): Draft {
  const { type, maxFailures = 0 } = strategy;
  const deadline = strategy.progressDeadline ?? '';
  const times = {
    soak: seconds(strategy.minSuccessTime ?? '0s'),
    deadline: deadline === '' || deadline === 'None' ? Number.POSITIVE_INFINITY : seconds(deadline),
  };
  const all = Object.values(groups).flat();
  const everyOne = { size: all.length, maxFailures: all.length };
  if (type === 'All') return perCluster(all, everyOne, { ...times, soak: 0 }, known);

  const isFirst = ([key]: readonly [string, unknown], index: number): boolean =>
    (strategy.mandatoryDecisionGroups ?? []).some(({ groupName, groupIndex }) =>
      groupName === undefined ? groupIndex === index : groupName === key && !key.startsWith('_'),
    );
  const marked = Object.entries(groups).map((entry, index) => ({ clusters: entry[1], first: isFirst(entry, index) }));
  const first = marked.filter((group) => group.first).map(({ clusters }) => clusters);
  const rest = marked.filter((group) => !group.first).map(({ clusters }) => clusters);
  if (first.length > 0) {
    const draft = perGroup(first, 0, times, known);
    if (draft.batch.length > 0 || draft.timeout.length > 0) return draft;
  }
  if (type === 'ProgressivePerGroup') return perGroup(rest, maxFailures, times, known);
  const others = rest.flat();
  const size = sizeOf(strategy.maxConcurrency, others.length, others.length);
  return perCluster(others, { size, maxFailures: sizeOf(maxFailures, all.length, 0) }, times, known);
}

/** What a fleet does next. A cluster that has a state and no group takes no part. */
export function simulate(fleet: Fleet): Answer {
  const all = new Set(Object.values(fleet.groups).flat());
  const known = knownOf(fleet);
  const present = known.filter(({ cluster }) => all.has(cluster));
  const removed = known.filter(({ cluster }) => !all.has(cluster)).map(({ cluster }) => cluster);
  const { batch, timeout, rechecks, breach } = draftOf(fleet, present);
  const recheck = rechecks.length > 0 ? { recheckAfter: Math.min(...rechecks) } : {};
  return { rollout: batch, timeout, breach, ...recheck, ...(removed.length > 0 ? { removed } : {}) };
}
