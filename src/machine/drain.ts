/** The treatment of each pod of a node in a drain. Pure. */

export interface DrainedPod {
  readonly name: string;
  /** Kind of its controller. */
  readonly owner?: string;
  /** No DaemonSet has the name of its controller. */
  readonly orphan?: boolean;
  /** Some controller makes another one in its place. */
  readonly controlled?: boolean;
  /** Names of its emptyDir volumes. */
  readonly emptyDirs?: readonly string[];
  readonly phase?: string;
  /** The kubelet runs it from a file. */
  readonly mirror?: boolean;
  /** Value of the label `cluster.x-k8s.io/drain`. */
  readonly drainLabel?: string;
  readonly deleting?: boolean;
  /** It is deleted for long, and its node does not answer. */
  readonly lost?: boolean;
}

export interface DrainPlan {
  readonly evictNow: readonly string[];
  /** Evicted once those of a lower order are gone; curlew has no rules that give an order. */
  readonly later: readonly string[];
  /** They end by themselves. */
  readonly waiting: readonly string[];
  readonly ignored: readonly string[];
}

/** Names in the order of the pods. */
export function drainPlan(pods: readonly DrainedPod[]): DrainPlan {
  const plan = { evictNow: [] as string[], later: [], waiting: [] as string[], ignored: [] as string[] };
  for (const pod of pods) plan[fateOf(pod)].push(pod.name);
  return plan;
}

/** The loss with a pod that is evicted; undefined for one that has ended, or that starts elsewhere with all that it had. */
export function lossOf({ owner, controlled, orphan, emptyDirs = [], phase = '' }: DrainedPod): string | undefined {
  if (isFinished(phase)) return undefined;
  const isBare = controlled !== true || (owner === 'DaemonSet' && orphan === true);
  const losses = [
    ...(isBare ? ['no controller creates it again'] : []),
    ...(emptyDirs.length === 0 ? [] : [`loses the data in its emptyDir ${emptyDirs.join(', ')}`]),
  ];
  return losses.length === 0 ? undefined : losses.join(', and ');
}

function isFinished(phase: string): boolean {
  return phase === 'Succeeded' || phase === 'Failed';
}

/** A pod of a DaemonSet would come back at once, and a mirror pod has nothing to evict. */
function fateOf({
  owner,
  orphan,
  phase = '',
  mirror,
  drainLabel,
  deleting,
  lost,
}: DrainedPod): 'evictNow' | 'waiting' | 'ignored' {
  if (lost === true || mirror === true) return 'ignored';
  if (owner === 'DaemonSet' && !isFinished(phase) && orphan !== true) return 'ignored';
  const label = drainLabel?.toLowerCase().replace('-', '');
  if (label === 'skip') return 'ignored';
  return label === 'waitcompleted' || deleting === true ? 'waiting' : 'evictNow';
}
