/** Drains a node by evictions, which respect disruption budgets. */
import * as v from 'valibot';
import type { Report } from '../../core/events.ts';
import { CurlewError } from '../../core/errors.ts';
import { Refused } from '../../cluster/kube/call.ts';
import { getObject, listObjects, mapObjects, type LiveObject, type Named } from '../../cluster/kube/objects.ts';
import type { ApiPath } from '../../cluster/kube/path.ts';
import { objectPath, type Resource } from '../../cluster/kube/resources.ts';
import { drainPlan, type DrainedPod } from '../drain.ts';
import { eachLimited, mapLimited } from '../../platform/limit/each.ts';
import { repeatUntil } from '../../platform/limit/repeat.ts';
import { NODES, seenNode, type NodeApi } from './nodes.ts';

const PODS: Resource = { apiVersion: 'v1', kind: 'Pod', plural: 'pods', namespaced: true };
const DAEMON_SETS: Resource = { apiVersion: 'apps/v1', kind: 'DaemonSet', plural: 'daemonsets', namespaced: true };
/** How long a drain may take by default. */
export const DRAIN_MS = 5 * 60_000;
const AT_ONCE = 8;
const FIRST_MS = 250;
const MAX_MS = 4000;
/** Pods that a message names. */
const MAX_NAMED = 5;

interface PodOnNode extends DrainedPod {
  readonly pod: Named & { readonly uid: string };
}

interface Left {
  readonly toEvict: readonly PodOnNode[];
  readonly waiting: readonly string[];
}

const podSchema = v.object({ status: v.optional(v.object({ phase: v.optional(v.string(), '') }), {}) });

/** What a drain would still do. Two requests. */
export async function leftToDrain({ call }: Pick<NodeApi, 'call'>, node: string): Promise<Left> {
  const known = await daemonSets(call);
  const pods =
    (await mapObjects(call, PODS, { fieldSelector: `spec.nodeName=${node}` }, (pod) => podOf(pod, known))) ?? [];
  const { evictNow, waiting } = drainPlan(pods);
  const chosen = new Set(evictNow);
  return { toEvict: pods.filter(({ name }) => chosen.has(name)), waiting };
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
  return {
    name: `${namespace}/${name}`,
    pod: { namespace, name, uid },
    ...(owner && { owner: owner.kind, orphan: known?.has(`${namespace}/${owner.name}`) === false }),
    phase: v.parse(podSchema, object).status.phase ?? '',
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
  return answer.message;
}

/** Which evictions of a drain the API server would refuse now, and why. Changes nothing. */
export async function refusedEvictions(
  cluster: NodeApi,
  { toEvict }: Left,
  { signal }: { readonly signal: AbortSignal },
): Promise<readonly string[]> {
  const one = async (pod: PodOnNode): Promise<readonly string[]> => {
    const why = await evict(cluster, pod, { signal, isTrial: true });
    return why === undefined ? [] : [`${pod.name}: ${why}`];
  };
  return (await mapLimited(toEvict, one, { width: AT_ONCE, signal })).flat();
}

interface DrainOptions {
  readonly limitMs: number;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/**
 * Evicts pods until none is left but those of DaemonSets and of the kubelet's own files. Returns early if the node stops answering: its
 * pods could not report that they have ended. `CLUSTER_FAILED` after `limitMs`, with the reason of each pod.
 */
export async function drainNode(
  cluster: NodeApi,
  node: string,
  { limitMs, report, signal }: DrainOptions,
): Promise<void> {
  const reported = new Set<string>();
  let reasons: readonly string[] = [];
  const attempt = async (): Promise<number> => {
    const { toEvict, waiting } = await leftToDrain(cluster, node);
    const refused: string[] = [];
    await eachLimited(
      toEvict,
      async (pod, { signal: both }) => {
        const why = await evict(cluster, pod, { signal: both });
        if (why !== undefined) refused.push(`${pod.name}: ${why}`);
      },
      { width: AT_ONCE, signal },
    );
    const news = refused.filter((text) => !reported.has(text));
    for (const text of news) {
      reported.add(text);
      report({ type: 'note', level: 'info', text });
    }
    reasons = [...refused.toSorted(), ...waiting.map((name) => `${name}: has not ended yet`)];
    const object = await getObject(cluster.call, NODES, { name: node });
    return object !== undefined && seenNode(object).answers ? toEvict.length + waiting.length : 0;
  };
  const pods = await repeatUntil(attempt, (count) => count === 0, {
    firstMs: FIRST_MS,
    maxMs: MAX_MS,
    limitMs,
    signal,
  });
  if (pods === 0) return;
  const more = reasons.length > MAX_NAMED ? `; ${reasons.length - MAX_NAMED} more` : '';
  const why = reasons.slice(0, MAX_NAMED).join('; ') + more;
  throw new CurlewError('CLUSTER_FAILED', `cannot drain ${node} in ${Math.round(limitMs / 1000)} s: ${why}`, {
    hint: `let the PodDisruptionBudget allow it, or delete these pods, then run the same command again; kubectl uncordon ${node} lets it take pods again`,
  });
}
