/** One writer at a time: a Lease in the cluster, as controllers of Kubernetes elect their leader. */
import { randomBytes } from 'node:crypto';
import * as v from 'valibot';
import { asError, CurlewError } from '../../core/errors.ts';
import { visible } from '../../core/diagnostic.ts';
import type { KubeApi } from './api.ts';
import { openCalls, type Call } from './call.ts';
import { objectPath, collectionPath, type Resource } from './resources.ts';
import { pause } from '../../platform/limit/repeat.ts';

export const LEASES: Resource = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  plural: 'leases',
  namespaced: true,
};
const DURATION_MS = 15_000;
const RENEW_MS = DURATION_MS / 3;
/** The next holder waits for the whole duration; what is sent before it takes the lease must have arrived by then. */
const DEADLINE_MS = (2 * DURATION_MS) / 3;
const MAX_RENEWALS = 5;
const LOOK_MS = 1000;
/** A server that does not answer holds up no end. */
const RELEASE_MS = 2000;
const MAX_CONFLICTS = 10;
const CONFLICT_MS = 20;

export interface LeaseRequest {
  readonly namespace: string;
  readonly name: string;
  /** For people, such as the machine; a random part is added to it. */
  readonly holder: string;
  /** Begins the errors: `cannot DOING: …`. */
  readonly doing: string;
  readonly signal: AbortSignal;
  /** Called once if another holder must be waited for that has not renewed yet. */
  readonly onWait?: ((holder: string) => void) | undefined;
  /** Default: the clocks of this process and of its machine. */
  readonly now?: () => Moment;
}

/** Milliseconds of two clocks. */
type Moment = readonly [number, number];

/** A lease that this process holds, renewed until it is disposed of. */
export interface HeldLease extends AsyncDisposable {
  /** Aborts with the given signal, and when the lease is lost: then nothing may be written any more. */
  readonly signal: AbortSignal;
  /**
   * Called before each write. If the last renewal is too long ago, since this process or its machine was paused, it renews first;
   * it rejects if the lease was lost meanwhile.
   */
  readonly guard: () => Promise<void>;
}

const leaseSchema = v.looseObject({
  metadata: v.looseObject({ resourceVersion: v.string() }),
  spec: v.optional(
    v.looseObject({ holderIdentity: v.optional(v.string(), ''), renewTime: v.optional(v.string(), '') }),
    { holderIdentity: '', renewTime: '' },
  ),
});

type Lease = v.InferOutput<typeof leaseSchema>;

/** A lease that was written, and when the request began. */
interface Written {
  readonly lease: Lease;
  readonly at: Moment;
}

/**
 * Takes the lease by this call, and releases it by the API itself, since the signal of the call may have aborted. A holder that renews it
 * makes this fail at once with `BUSY` and its name; one that does not for 15 seconds is gone. Only changes are observed and no times
 * compared: clocks may differ.
 */
export async function holdLease(
  { api, call }: { readonly api: KubeApi; readonly call: Call },
  request: LeaseRequest,
): Promise<HeldLease> {
  const identity = `${request.holder}_${randomBytes(6).toString('hex')}`;
  const renewals = new Renewals(call, request, { identity, held: await takeLease(call, request, identity) });
  const { lost } = renewals;
  const signal = AbortSignal.any([request.signal, lost.signal]);
  const stopped = new AbortController();
  const renewing = (async (): Promise<void> => {
    while (!lost.signal.aborted) {
      await pause(RENEW_MS, stopped).catch(() => undefined);
      if (stopped.signal.aborted) return;
      const failed = await renewals.renew().then(() => undefined, asError);
      if (renewals.age() > DURATION_MS) renewals.lose(failed);
    }
  })();
  const guard = async (): Promise<void> => {
    signal.throwIfAborted();
    if (renewals.age() > DEADLINE_MS) await renewals.renew();
    // Another process may have taken the Lease before the response arrived.
    if (renewals.age() > DEADLINE_MS) renewals.lose();
    signal.throwIfAborted();
  };
  return {
    signal,
    guard,
    [Symbol.asyncDispose]: async () => {
      stopped.abort();
      await renewing;
      // Otherwise the next process waits for 15 seconds; nothing else is lost.
      if (!lost.signal.aborted) await renewals.release(api).catch(() => undefined);
    },
  };
}

class Renewals {
  readonly lost: AbortController = new AbortController();
  readonly #call: Call;
  readonly #request: LeaseRequest;
  readonly #identity: string;
  #held: Written;
  #running: Promise<void> | undefined;
  constructor(
    call: Call,
    request: LeaseRequest,
    { identity, held }: { readonly identity: string; readonly held: Written },
  ) {
    this.#call = call;
    this.#request = request;
    this.#identity = identity;
    this.#held = held;
  }

  /** Milliseconds since the request began that renewed it last. */
  age(): number {
    const { at } = this.#held;
    const now = clocksOf(this.#request);
    return Math.max(now[0] - at[0], now[1] - at[1]);
  }

  /** Two at once would conflict: the second one waits for the first. */
  async renew(): Promise<void> {
    this.#running ??= this.#renewNow().finally(() => (this.#running = undefined));
    await this.#running;
  }

  async #renewNow(): Promise<void> {
    for (let times = 0; times < MAX_RENEWALS; times += 1) {
      const next = await writeLease(this.#call, this.#request, { lease: this.#held.lease, identity: this.#identity });
      if (next !== 'conflict') {
        this.#held = next;
        return;
      }
      // The response to an earlier renewal may have been lost.
      const lease = await readLease(this.#call, this.#request);
      if (lease?.spec.holderIdentity !== this.#identity) break;
      this.#held = { ...this.#held, lease };
    }
    this.lose();
  }

  /** `cause`: why it could not be renewed; another process may have it now. */
  lose(cause?: Error): void {
    const why = cause?.message ?? `${leaseTitle(this.#request)} was lost to another process`;
    const hint = 'run the same command again: it continues where this one stopped';
    const code = cause === undefined ? 'BUSY' : 'CLUSTER_FAILED';
    this.lost.abort(new CurlewError(code, `cannot ${this.#request.doing}: ${why}`, { hint, cause }));
  }

  async release(api: KubeApi): Promise<void> {
    const call = openCalls(api, { patienceMs: 0, signal: AbortSignal.timeout(RELEASE_MS) });
    await writeLease(call, this.#request, { lease: this.#held.lease, identity: '' });
  }
}

/** The clock of the process does not run while the machine is suspended; that of the machine may be set back. */
function clocksOf({ now = () => [performance.now(), Date.now()] }: LeaseRequest): Moment {
  return now();
}

function leaseTitle({ namespace, name }: LeaseRequest): string {
  return `the Lease ${namespace}/${name}`;
}

async function takeLease(call: Call, request: LeaseRequest, identity: string): Promise<Written> {
  let seen: { readonly lease: Lease; readonly at: number } | undefined;
  for (let conflicts = 0; ;) {
    request.signal.throwIfAborted();
    const lease = await readLease(call, request);
    const holder = lease?.spec.holderIdentity ?? '';
    if (lease === undefined || holder === '' || (seen !== undefined && performance.now() - seen.at >= DURATION_MS)) {
      const taken = await writeLease(call, request, { lease, identity });
      if (taken !== 'conflict') return taken;
      conflicts += 1;
      if (conflicts === MAX_CONFLICTS) throw contended(request, holder);
      seen = undefined;
      await pause(CONFLICT_MS * conflicts, { signal: request.signal });
      continue;
    }
    if (seen === undefined) request.onWait?.(visible(holder));
    else if (seen.lease.metadata.resourceVersion !== lease.metadata.resourceVersion) throw busy(request, holder);
    seen ??= { lease, at: performance.now() };
    await pause(LOOK_MS, { signal: request.signal });
  }
}

function busy({ doing }: LeaseRequest, holder: string): CurlewError {
  return new CurlewError('BUSY', `cannot ${doing}: ${visible(holder)} is doing it now`, {
    hint: 'wait until it ends, then run the same command again',
  });
}

function contended(request: LeaseRequest, holder: string): CurlewError {
  const last = holder === '' ? '' : `; the last holder was ${visible(holder)}`;
  const what = `another program changed ${leaseTitle(request)} each of ${MAX_CONFLICTS} times that it was to be taken${last}`;
  return new CurlewError('BUSY', `cannot ${request.doing}: ${what}`, {
    hint: `kubectl get lease -n ${request.namespace} ${request.name} -o yaml --show-managed-fields names the programs that write it`,
  });
}

async function readLease(call: Call, request: LeaseRequest): Promise<Lease | undefined> {
  const doing = `read ${leaseTitle(request)}`;
  const answer = await call(doing, { verb: 'get', path: objectPath(LEASES, request) });
  return answer.outcome === 'done' ? leaseOf(answer.value, doing) : undefined;
}

function leaseOf(value: unknown, doing: string): Lease {
  const read = v.safeParse(leaseSchema, value);
  if (read.success) return read.output;
  throw new CurlewError('CLUSTER_FAILED', `cannot ${doing}: the response is not a Lease`);
}

/** Only if the lease has not changed since it was read. */
async function writeLease(
  call: Call,
  request: LeaseRequest,
  { lease, identity }: { readonly lease: Lease | undefined; readonly identity: string },
): Promise<Written | 'conflict'> {
  const { namespace, name } = request;
  const at = clocksOf(request);
  const now = new Date().toISOString().replace('Z', '000Z');
  const spec = { holderIdentity: identity, leaseDurationSeconds: DURATION_MS / 1000, renewTime: now, acquireTime: now };
  const metadata = lease === undefined ? { namespace, name } : lease.metadata;
  const document = JSON.stringify({ apiVersion: LEASES.apiVersion, kind: LEASES.kind, metadata, spec });
  const doing = `write ${leaseTitle(request)}`;
  const answer = await call(
    doing,
    lease === undefined
      ? { verb: 'create', path: collectionPath(LEASES, namespace), document }
      : { verb: 'replace', path: objectPath(LEASES, request), document },
  );
  return answer.outcome === 'done' ? { lease: leaseOf(answer.value, doing), at } : 'conflict';
}
