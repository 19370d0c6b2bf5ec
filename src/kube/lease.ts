/** One writer at a time: a Lease in the cluster, as controllers of Kubernetes elect their leader. */
import { randomBytes } from 'node:crypto';
import * as v from 'valibot';
import { CurlewError } from '../core/errors.ts';
import { visible } from '../core/diagnostic.ts';
import type { Call } from './call.ts';
import { objectPath, collectionPath, type Resource } from './resources.ts';
import { pause } from '../platform/http/retry.ts';

const LEASES: Resource = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', plural: 'leases', namespaced: true };
const DURATION_MS = 15_000;
const RENEW_MS = DURATION_MS / 3;
const LOOK_MS = 1000;

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
}

/** A lease that this process holds, renewed until it is disposed of. */
export interface HeldLease extends AsyncDisposable {
  /** Aborts with the given signal, and when the lease is lost: then nothing may be written any more. */
  readonly signal: AbortSignal;
}

const leaseSchema = v.looseObject({
  metadata: v.looseObject({ resourceVersion: v.string() }),
  spec: v.optional(
    v.looseObject({ holderIdentity: v.optional(v.string(), ''), renewTime: v.optional(v.string(), '') }),
    { holderIdentity: '', renewTime: '' },
  ),
});

type Lease = v.InferOutput<typeof leaseSchema>;

/**
 * Takes the lease. A holder that renews it makes this fail at once with `BUSY` and its name; one that does not for 15 seconds is
 * gone. Only changes are observed and no times compared: clocks may differ.
 */
export async function holdLease(call: Call, request: LeaseRequest): Promise<HeldLease> {
  const identity = `${request.holder}_${randomBytes(6).toString('hex')}`;
  let lease = await takeLease(call, request, identity);
  const lost = new AbortController();
  const stopped = new AbortController();
  const renewing = (async (): Promise<void> => {
    let renewed = performance.now();
    while (!stopped.signal.aborted) {
      await pause(RENEW_MS, stopped).catch(() => undefined);
      if (stopped.signal.aborted) return;
      const next = await writeLease(call, request, { lease, identity }).catch(() => 'failed' as const);
      if (next === 'conflict' || (next === 'failed' && performance.now() - renewed > DURATION_MS)) {
        lost.abort(
          new CurlewError('BUSY', `cannot ${request.doing}: ${leaseTitle(request)} was lost to another process`, {
            hint: 'run the same command again: it continues where this one stopped',
          }),
        );
        return;
      }
      if (next === 'failed') continue;
      lease = next;
      renewed = performance.now();
    }
  })();
  return {
    signal: AbortSignal.any([request.signal, lost.signal]),
    [Symbol.asyncDispose]: async () => {
      stopped.abort();
      await renewing;
      // Otherwise the next process waits for 15 seconds; nothing else is lost.
      if (!lost.signal.aborted) await writeLease(call, request, { lease, identity: '' }).catch(() => undefined);
    },
  };
}

function leaseTitle({ namespace, name }: LeaseRequest): string {
  return `the Lease ${namespace}/${name}`;
}

async function takeLease(call: Call, request: LeaseRequest, identity: string): Promise<Lease> {
  let seen: { readonly lease: Lease; readonly at: number } | undefined;
  for (;;) {
    request.signal.throwIfAborted();
    const found = await readLease(call, request);
    const holder = found?.spec.holderIdentity ?? '';
    if (found === undefined || holder === '' || (seen !== undefined && performance.now() - seen.at >= DURATION_MS)) {
      const taken = await writeLease(call, request, { lease: found, identity });
      if (taken !== 'conflict') return taken;
      seen = undefined;
      continue;
    }
    if (seen === undefined) request.onWait?.(visible(holder));
    else if (seen.lease.metadata.resourceVersion !== found.metadata.resourceVersion) throw busy(request, holder);
    seen ??= { lease: found, at: performance.now() };
    await pause(LOOK_MS, { signal: request.signal });
  }
}

function busy({ doing }: LeaseRequest, holder: string): CurlewError {
  return new CurlewError('BUSY', `cannot ${doing}: ${visible(holder)} is doing it now`, {
    hint: 'wait until it ends, then run the same command again',
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
): Promise<Lease | 'conflict'> {
  const { namespace, name } = request;
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
  return answer.outcome === 'done' ? leaseOf(answer.value, doing) : 'conflict';
}
