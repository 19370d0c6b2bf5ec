/** What a controller decides about requests for certificates: renewals of accepted agents, and whatever breaks the rules. */
import { asError, CurlewError } from '../../core/errors.ts';
import { decision, REQUESTS, type AgentRequest } from '../../hub/requests.ts';
import { requestRole, resourceOfRight } from '../../hub/rights.ts';
import type { Call } from '../../kube/call.ts';
import { mergeObject, patchObject } from '../../kube/objects.ts';
import type { Watch } from '../../kube/watch.ts';
import type { Backoff } from '../../platform/limit/backoff.ts';
import { eachLimited } from '../../platform/limit/each.ts';
import { readAccepted } from './accepted.ts';

const AT_ONCE = 4;

export interface Renewing {
  readonly call: Call;
  readonly signal: AbortSignal;
  readonly requests: Watch<AgentRequest | undefined>;
  /** For those that could not be decided, by name. */
  readonly backoff: Backoff;
  readonly report: (text: string) => void;
}

/**
 * Approves renewals, and denies what breaks a rule, what a newer request of the agent replaces, and requests of agents that were
 * detached. A request by a token waits for a person. Returns why something could not be decided, and after how many milliseconds it is
 * tried again.
 */
export async function passRequests(
  hub: Renewing,
): Promise<{ readonly problem: string | undefined; readonly nextMs: number }> {
  const { requests, signal, backoff } = hub;
  if (requests.problem !== undefined) return { problem: requests.problem, nextMs: Infinity };
  const pending = requests.values().flatMap((one) => (one?.isPending === true ? [one] : []));
  let problem: string | undefined;
  const work = async (one: AgentRequest): Promise<void> => {
    try {
      if (!backoff.mayBegin(one.name)) return;
      await decide(hub, one, pending);
      backoff.succeeded(one.name);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof CurlewError)) throw error;
      problem ??= asError(error).message;
      backoff.failed(one.name);
    }
  };
  await eachLimited(pending, work, { width: AT_ONCE, signal });
  return { problem, nextMs: backoff.keep(new Set(pending.map(({ name }) => name))) };
}

async function decide(hub: Renewing, one: AgentRequest, pending: readonly AgentRequest[]): Promise<void> {
  const { call } = hub;
  if (one.problem !== undefined) return answer(hub, one, 'Denied', one.problem);
  if (one.kind !== 'renewal') return;
  const { user, cluster } = one;
  const isNewer = (other: AgentRequest): boolean =>
    other.kind === 'renewal' && other.by === user && other.problem === undefined && isLater(other, one);
  if (pending.some(isNewer)) return answer(hub, one, 'Denied', 'the agent has made a newer request');
  if ((await readAccepted(call, cluster)) !== user)
    return answer(hub, one, 'Denied', `this is not the accepted agent of ${cluster}`);
  // The agent may read the request before its certificate is there, and cannot get it otherwise.
  const role = requestRole(cluster, one.name);
  const changed = await mergeObject(call, resourceOfRight(role), role.metadata, { rules: role['rules'] });
  if (changed === undefined) {
    throw new CurlewError(
      'CLUSTER_FAILED',
      `cannot renew the certificate of ${cluster}: ClusterRole ${role.metadata.name} is gone`,
      {
        hint: `curlew fleet detach ${cluster}, and register it again`,
      },
    );
  }
  return answer(hub, one, 'Approved', 'a renewal by the accepted agent');
}

function isLater(a: AgentRequest, b: AgentRequest): boolean {
  return a.createdAt === b.createdAt ? a.name > b.name : a.createdAt > b.createdAt;
}

async function answer(hub: Renewing, one: AgentRequest, type: 'Approved' | 'Denied', why: string): Promise<void> {
  const { call, requests, report } = hub;
  const operations = decision(one, type, why);
  const changed = await patchObject(call, REQUESTS, one, { operations, subresource: 'approval' });
  if (changed === undefined) throw new CurlewError('BUSY', `cannot decide about ${one.name}: it has changed meanwhile`);
  requests.put(changed);
  report(`${one.name} of ${one.cluster}: ${type.toLowerCase()}: ${why}`);
}
