/** Requests that are repeated while the API server is unreachable, as during an upgrade of its node. */
import { CurlewError } from '../../core/errors.ts';
import type { ApiRequest, KubeApi } from './api.ts';
import { TooLong } from './exchange.ts';
import type { FieldCause, FieldConflict, ApiFailure } from './problem.ts';
import { repeatUntil } from '../../platform/limit/repeat.ts';

export interface CallOptions {
  /** How long an API server may be unreachable before that is an error. */
  readonly patienceMs: number;
  /** How long a missing permission may be one of a server that has just started; default: not at all. */
  readonly settleMs?: number | undefined;
  readonly signal: AbortSignal;
  /** Called before each attempt to write; nothing is written if it rejects. */
  readonly guard?: (() => Promise<void>) | undefined;
  /** Called if a request is not answered after two seconds, with what is tried, and why again. */
  readonly onSlow?: ((text: string) => void) | undefined;
}

const SLOW_MS = 2000;

export type Called =
  | { readonly outcome: 'done'; readonly value: unknown; readonly bytes: number }
  | { readonly outcome: 'not found' | 'already exists' | 'expired' }
  | { readonly outcome: 'conflict'; readonly message: string; readonly fields: readonly FieldConflict[] };

/** The API server refused a request, or the user has no permission for it. Other requests may succeed. */
export class Refused extends CurlewError {
  /** The user may not do it: neither may other requests of this kind. */
  readonly isForbidden: boolean;
  /** The object is not valid as long as the cluster is as it is. */
  readonly isInvalid: boolean;
  readonly causes: readonly FieldCause[];
  constructor(what: string, hint: string, { status, causes = [] }: Pick<ApiFailure, 'status' | 'causes'>) {
    super('CLUSTER_FAILED', what, { hint });
    this.isForbidden = status === 403;
    this.isInvalid = status === 422;
    this.causes = causes;
  }
}

const SETTLE_PAUSE_MS = 500;
/** How long an API server may deny requests after its start. */
export const SETTLE_MS = 10_000;
/** An API server that was unreachable within this time may just have started. */
const STARTED_MS = 30_000;

/** For `settleMs`, repeats a request that returns 403: an API server denies all users until it has read its role bindings. */
export async function askSettled(
  api: KubeApi,
  request: ApiRequest,
  { settleMs = 0, signal, guard }: Pick<CallOptions, 'settleMs' | 'signal' | 'guard'>,
): ReturnType<KubeApi['ask']> {
  return repeatUntil(
    async () => api.ask(request, { signal, guard }),
    (answer) => answer.kind === 'answer' || answer.status !== 403,
    { firstMs: SETTLE_PAUSE_MS, limitMs: settleMs, signal },
  );
}

/**
 * `doing` begins its errors: `cannot DOING: reason`. Throws `CLUSTER_FAILED`, {@link Refused} if the server has answered. Where it waits for a
 * server that is unreachable, it also waits for the permissions of one that has come back.
 */
export type Call = (doing: string, request: ApiRequest) => Promise<Called>;

export function openCalls(api: KubeApi, { patienceMs, settleMs, signal, guard, onSlow }: CallOptions): Call {
  let awayAt = -Infinity;
  return async (doing, request) => {
    let last = 'no response yet';
    using _slow = setTimeout(() => onSlow?.(`trying to ${doing}: ${last}`), SLOW_MS);
    const answer = await repeatUntil(
      async () => {
        const isBack = performance.now() - awayAt < STARTED_MS;
        return askSettled(api, request, {
          settleMs: isBack ? Math.min(patienceMs, SETTLE_MS) : settleMs,
          signal,
          guard,
        });
      },
      (result) => {
        if (result.kind === 'answer' || result.problem !== 'unreachable') return true;
        awayAt = performance.now();
        last = result.message;
        return false;
      },
      { firstMs: 250, maxMs: 4000, limitMs: patienceMs, signal },
    );
    if (answer.kind === 'answer') return { outcome: 'done', value: answer.value, bytes: answer.bytes };
    const { problem, message, hint, status, conflicts = [] } = answer;
    if (problem === 'conflict') return { outcome: problem, message, fields: conflicts };
    if (problem === 'not found' || problem === 'already exists' || problem === 'expired') return { outcome: problem };
    const what = `cannot ${doing}: ${message}`;
    if (problem === 'unreachable' || status === undefined || status === 401) {
      const advice = hint ?? (problem === 'unreachable' && status === undefined ? NOT_RUNNING : NOT_DONE);
      throw new (answer.isTooLong === true ? TooLong : CurlewError)('CLUSTER_FAILED', what, { hint: advice });
    }
    throw new Refused(what, hint ?? NOT_DONE, answer);
  };
}

const NOT_RUNNING =
  'check its address, and that the API server runs: on a control plane, crictl ps -a shows its container; then run the same command again';
const NOT_DONE = 'fix the cause on the API server, then run the same command again';
