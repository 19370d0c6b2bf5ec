/** Drains a node by evictions, which respect disruption budgets. */
import * as v from 'valibot';
import type { Cancellable, Reporting } from '../../core/cancellable.ts';
import { CurlewError } from '../../core/errors.ts';
import { Refused } from '../../cluster/kube/call.ts';
import { getObject, listObjects, mapObjects, type LiveObject, type Named } from '../../cluster/kube/objects.ts';
import type { ApiPath } from '../../cluster/kube/path.ts';
import { objectPath, type Resource } from '../../cluster/kube/resources.ts';
import { drainPlan, lossOf, type DrainedPod } from '../drain.ts';
import { eachLimited, mapLimited } from '../../platform/limit/each.ts';
import { repeatUntil } from '../../platform/limit/repeat.ts';
import { seenNode, type NodeApi } from './nodes.ts';
import { NODES, PODS } from '../../cluster/kube/core-kinds.ts';

const DAEMON_SETS: Resource = { apiVersion: 'apps/v1', kind: 'DaemonSet', plural: 'daemonsets', namespaced: true };
/** How long a drain may take by default. */
export const DRAIN_MS = 5 * 60_000;
/** Least time for pods that are deleted. */
const GRACE_MS = 60_000;
const AT_ONCE = 8;
const FIRST_MS = 250;
const MAX_MS = 4000;
/** Pods that a message names. */
const MAX_NAMED = 5;
const REMIND_MS = 30_000;

interface PodOnNode extends DrainedPod {
  readonly pod: Named & { readonly uid: string };
}

interface Left {
  readonly toEvict: readonly PodOnNode[];
  readonly waiting: readonly string[];
  /** Losses with pods to evict: `default/web: no controller creates it again`. */
  readonly lost: readonly string[];
}

const podSchema = v.object({
  spec: v.optional(
    v.object({
      volumes: v.optional(v.array(v.object({ name: v.string(), emptyDir: v.exactOptional(v.unknown()) })), []),
    }),
    {},
  ),
  status: v.optional(v.object({ phase: v.optional(v.string(), '') }), {}),
});

/** The pods that a drain would still move. Two requests. */
export async function leftToDrain({ call }: Pick<NodeApi, 'call'>, node: string): Promise<Left> {
  const known = await daemonSets(call);
  const pods =
    (await mapObjects(call, PODS, { fieldSelector: `spec.nodeName=${node}` }, (pod) => podOf(pod, known))) ?? [];
  const { evictNow, waiting } = drainPlan(pods);
  const chosen = new Set(evictNow);
  const toEvict = pods.filter(({ name }) => chosen.has(name));
  const lost = toEvict.flatMap((pod) => {
    const loss = lossOf(pod);
    return loss === undefined ? [] : [`${pod.name}: ${loss}`];
  });
  return { toEvict, waiting, lost };
}

/** Undefined for a kubelet, which may not list them. */
async function daemonSets(call: NodeApi['call']): Promise<ReadonlySet<string> | undefined> {
  try {
    const sets = await listObjects(call, DAEMON_SETS, { onlyMetadata: true });
    return new Set((sets ?? []).map(({ metadata: { namespace, name } }) => `${namespace}/${name}`));
  } catch (error) {
    if (error instanceof Refused && error.isForbidden) return undefined;
    throw error;
  }
}

function podOf(object: LiveObject, known: ReadonlySet<string> | undefined): PodOnNode {
  const { namespace, name, uid, labels, annotations, ownerReferences, deletionTimestamp } = object.metadata;
  const owner = ownerReferences.find(({ kind }) => kind === 'DaemonSet') ?? ownerReferences[0];
  const drainLabel = labels['cluster.x-k8s.io/drain'];
  const { spec, status } = v.parse(podSchema, object);
  return {
    name: `${namespace}/${name}`,
    pod: { namespace, name, uid },
    ...(owner && { owner: owner.kind, orphan: known?.has(`${namespace}/${owner.name}`) === false }),
    controlled: ownerReferences.some(({ controller }) => controller === true),
    emptyDirs: (spec.volumes ?? []).flatMap((volume) => (volume.emptyDir === undefined ? [] : [volume.name])),
    phase: status.phase ?? '',
    mirror: Object.hasOwn(annotations, 'kubernetes.io/config.mirror'),
    deleting: (deletionTimestamp ?? undefined) !== undefined,
    ...(drainLabel !== undefined && { drainLabel }),
  };
}

/** Why the API server refuses it for now; undefined if the pod ends, or is gone. */
async function evict(
  { api }: NodeApi,
  { pod }: PodOnNode,
  { signal, isTrial = false }: { readonly signal: AbortSignal; readonly isTrial?: boolean },
): Promise<string | undefined> {
  const { uid, ...metadata } = pod;
  const value = { apiVersion: 'policy/v1', kind: 'Eviction', metadata, deleteOptions: { preconditions: { uid } } };
  const path = `${objectPath(PODS, pod)}/eviction${isTrial ? '?dryRun=All' : ''}` as ApiPath;
  const answer = await api.ask({ verb: 'create', path, document: JSON.stringify(value) }, { signal });
  if (answer.kind === 'answer' || answer.problem === 'not found' || answer.problem === 'conflict') return undefined;
  return answer.budget ?? answer.message;
}

/** Deletes it, whatever budgets say. Returns why it cannot. */
async function deletePod({ api }: NodeApi, { pod }: PodOnNode, { signal }: Cancellable): Promise<string | undefined> {
  const document = JSON.stringify({ preconditions: { uid: pod.uid } });
  const answer = await api.ask({ verb: 'delete', path: objectPath(PODS, pod), document }, { signal });
  if (answer.kind === 'answer' || answer.problem === 'not found' || answer.problem === 'conflict') return undefined;
  return answer.message;
}

/** Which evictions of a drain the API server would refuse now, and why. Changes nothing. */
export async function refusedEvictions(
  cluster: NodeApi,
  { toEvict }: Left,
  { signal }: Cancellable,
): Promise<readonly string[]> {
  const one = async (pod: PodOnNode): Promise<readonly string[]> => {
    const why = await evict(cluster, pod, { signal, isTrial: true });
    return why === undefined ? [] : [`${pod.name}: ${why}`];
  };
  return (await mapLimited(toEvict, one, { width: AT_ONCE, signal })).flat();
}

/** `CLUSTER_FAILED` where something would be lost, and the operator has not allowed it. */
export function requireForce(node: string, { lost }: { readonly lost: readonly string[] }, force: boolean): void {
  if (lost.length === 0 || force) return;
  throw new CurlewError(
    'CLUSTER_FAILED',
    `cannot drain ${node}: not everything on it would come back: ${named(lost)}`,
    { hint: 'save what is needed, then add --force' },
  );
}

interface DrainOptions extends Reporting {
  readonly limitMs: number;
  /** After `limitMs`, deletes the pods that a PodDisruptionBudget still keeps, and waits until they have ended. */
  readonly ignoreBudgets?: boolean;
  /** Lifts the cordon that the caller has just made: called where the drain fails, and has evicted nothing. */
  readonly release?: (() => Promise<void>) | undefined;
  /** How often what it waits for is repeated; default: every 30 seconds. */
  readonly remindMs?: number;
}

/**
 * Evicts pods until none is left but those of DaemonSets and of the kubelet's own files. Returns early if the node stops answering: its
 * pods could not report that they have ended. `CLUSTER_FAILED` after `limitMs`, with the reason of each pod.
 */
export async function drainNode(cluster: NodeApi, node: string, options: DrainOptions): Promise<void> {
  const { limitMs, ignoreBudgets = false, release, signal } = options;
  const say = sayer(node, options);
  let reasons: readonly string[] = [];
  let isKept = false;
  let isBegun = false;
  const attempt = async (remove: typeof evict): Promise<number> => {
    const { toEvict, waiting } = await leftToDrain(cluster, node);
    const refused: string[] = [];
    const ending = [...waiting];
    const one = async (pod: PodOnNode, within: Cancellable): Promise<void> => {
      const why = await remove(cluster, pod, within);
      if (why === undefined) ending.push(pod.name);
      else refused.push(`${pod.name}: ${why}`);
    };
    await eachLimited(toEvict, one, { width: AT_ONCE, signal });
    isKept = refused.length > 0;
    isBegun ||= ending.length > waiting.length;
    reasons = [...refused.toSorted(), ...ending.map((name) => `${name}: has not ended yet`)];
    say(refused, reasons);
    const object = await getObject(cluster.call, NODES, { name: node });
    return object !== undefined && seenNode(object).answers ? toEvict.length + waiting.length : 0;
  };
  const until = async (remove: typeof evict, untilMs = limitMs): Promise<number> =>
    repeatUntil(
      async () => attempt(remove),
      (count) => count === 0,
      { firstMs: FIRST_MS, maxMs: MAX_MS, limitMs: untilMs, signal },
    );
  let pods = await until(evict);
  if (pods > 0 && isKept && ignoreBudgets) {
    const text = `${node}: deleting the pods that budgets have kept for ${seconds(limitMs)}: ${named(reasons)}`;
    options.report({ type: 'note', level: 'warning', text });
    pods = await until(deletePod, Math.max(limitMs, GRACE_MS));
  }
  if (pods === 0) return;
  if (!isBegun) await release?.();
  const open = isBegun || release === undefined ? '' : '; none was evicted, so it takes pods again';
  throw new CurlewError('CLUSTER_FAILED', `cannot drain ${node} in ${seconds(limitMs)}: ${named(reasons)}${open}`, {
    hint: `let the PodDisruptionBudget allow it, or delete these pods, then run the same command again; curlew node drain ${node} --ignore-budgets --yes deletes them at the end of its time${open === '' ? `; kubectl uncordon ${node} lets it take pods again` : ''}`,
  });
}

/** Reports each refusal once, and all that a drain waits for again and again. */
function sayer(
  node: string,
  { report, remindMs = REMIND_MS }: DrainOptions,
): (refused: readonly string[], all: readonly string[]) => void {
  const reported = new Set<string>();
  let saidAt = performance.now();
  return (refused, all) => {
    const isDue = performance.now() - saidAt >= remindMs;
    if (isDue) saidAt = performance.now();
    const again = isDue && all.length > 0 ? [`${node}: still waiting for ${named(all)}`] : [];
    for (const text of [...refused.filter((one) => !reported.has(one)), ...again]) {
      reported.add(text);
      report({ type: 'note', level: 'info', text });
    }
  };
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}

function named(reasons: readonly string[]): string {
  const more = reasons.length > MAX_NAMED ? `; ${reasons.length - MAX_NAMED} more` : '';
  return reasons.slice(0, MAX_NAMED).join('; ') + more;
}
