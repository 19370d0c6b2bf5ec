/**
 * Reads tables of contents and plans bundles in a worker thread, because long ones need much CPU time. If the thread ends,
 * its jobs fail, and the next job starts a new thread.
 */
import { MessageChannel, type MessagePort, type Worker } from 'node:worker_threads';
import type { Cancellable } from '../../core/cancellable.ts';
import { asError, CurlewError } from '../../core/errors.ts';
import { createSemaphore } from '../../platform/limit/semaphore.ts';
import type { Store } from '../store/store.ts';
import {
  errorOf,
  errorParts,
  type FromPlanner,
  type PlanJob,
  type PlanOrder,
  type PlanResult,
  type PlanResults,
  type StoreAnswer,
  type StoreQuestion,
  type ToPlanner,
} from './plan-protocol.ts';
import { startPlanWorker } from './start-plan-worker.ts';

export interface PlannerOptions {
  /** The server's signal: ends the thread. */
  readonly signal: AbortSignal;
  /** Maximum total bytes of the tables of contents of one plan; more are `UNSUPPORTED`. */
  readonly maxTocBytes?: number | undefined;
  /** Milliseconds that a job waits for earlier ones. */
  readonly patienceMs?: number | undefined;
  /** Starts the thread. */
  readonly startPlanning?: typeof startPlanWorker | undefined;
}

export interface Planner {
  /** `BUSY` for a job that has waited too long, or if the thread ends during the job. */
  readonly run: <Job extends PlanJob>(job: Job, options: Cancellable) => Promise<PlanResults[Job['kind']]>;
}

const CONCURRENCY = 2;
/** Waiting is better than a retry by the client: at most one job per connection waits, and needs little memory. */
const PATIENCE_MS = 30_000;
/** About 150,000 entries. */
const MAX_TOC_BYTES = 48 << 20;
/**
 * Reaching this limit within JSON.parse ends the whole process, so it is more than two concurrent plans need. A normal
 * table of contents needs five times its size in memory, one with only empty objects twenty times.
 */
const MEMORY_MB = 2048;
/** Most objects of planning are short-lived; a larger young generation would only increase memory. */
const YOUNG_MB = 4;

export function createPlanner(
  store: Store,
  { signal, maxTocBytes = MAX_TOC_BYTES, patienceMs = PATIENCE_MS, startPlanning = startPlanWorker }: PlannerOptions,
): Planner {
  const jobs = createSemaphore(CONCURRENCY, { patienceMs });
  let thread: Thread | undefined;
  signal.addEventListener('abort', () => thread?.end(), { once: true });
  return {
    run: async <Job extends PlanJob>(job: Job, options: Cancellable) => {
      const result = await jobs.run(async () => {
        signal.throwIfAborted();
        if (thread?.hasEnded() !== false) thread = startThread(store, maxTocBytes, startPlanning);
        return thread.run(job, options.signal);
      }, options);
      // The thread answers each kind of job with its kind of result.
      return result as PlanResults[Job['kind']];
    },
  };
}

interface Thread {
  readonly run: (job: PlanJob, signal: AbortSignal) => Promise<PlanResult>;
  readonly hasEnded: () => boolean;
  readonly end: () => void;
}

function startThread(store: Store, maxTocBytes: number, start: typeof startPlanWorker): Thread {
  const worker = start({ resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB, maxYoungGenerationSizeMb: YOUNG_MB } });
  // A stopped server does not wait for plans.
  worker.unref();
  const running = new Set<AbortController>();
  let isOver = false;
  const ended = (error?: Error): void => {
    isOver = true;
    for (const job of running) job.abort(endOf(error));
  };
  worker.once('error', ended);
  worker.once('exit', () => ended());
  return {
    run: async (job, signal) => {
      const stopped = new AbortController();
      const stop = (): void => stopped.abort(signal.reason);
      signal.addEventListener('abort', stop, { once: true });
      running.add(stopped);
      try {
        return await runJob(job, { worker, store, maxTocBytes, signal: stopped.signal });
      } finally {
        running.delete(stopped);
        signal.removeEventListener('abort', stop);
      }
    },
    hasEnded: () => isOver,
    end: () => void worker.terminate(),
  };
}

function endOf(error: Error | undefined): CurlewError {
  return new CurlewError(
    'BUSY',
    `cannot plan a bundle: the planner thread has ended: ${error?.message ?? 'without an error'}`,
    { cause: error },
  );
}

interface JobContext {
  readonly worker: Worker;
  readonly store: Store;
  readonly maxTocBytes: number;
  /** Aborted when no client waits for the result, or the thread has ended. */
  readonly signal: AbortSignal;
}

async function runJob(job: PlanJob, { worker, store, maxTocBytes, signal }: JobContext): Promise<PlanResult> {
  const { port1: own, port2: port } = new MessageChannel();
  try {
    return await new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(asError(signal.reason)), { once: true });
      own.on('message', (message: FromPlanner) => {
        if (message.type === 'ask') void answer(own, message, { store, signal });
        else if (message.type === 'done') resolve(message.result);
        else reject(errorOf(message.error));
      });
      const { address, place } = store;
      worker.postMessage({ job, store: { address, place }, maxTocBytes, port } satisfies PlanOrder, [port]);
    });
  } finally {
    own.close();
  }
}

async function answer(
  port: MessagePort,
  { id, question }: Extract<FromPlanner, { type: 'ask' }>,
  context: { readonly store: Store; readonly signal: AbortSignal },
): Promise<void> {
  try {
    const result = await lookUp(question, context);
    const moved = result.kind === 'get' && result.data.buffer instanceof ArrayBuffer ? [result.data.buffer] : [];
    port.postMessage({ type: 'answer', id, answer: result } satisfies ToPlanner, moved);
  } catch (error) {
    port.postMessage({ type: 'refused', id, error: errorParts(error) } satisfies ToPlanner);
  }
}

async function lookUp(
  question: StoreQuestion,
  { store, signal }: { readonly store: Store; readonly signal: AbortSignal },
): Promise<StoreAnswer> {
  const { key } = question;
  if (question.kind === 'head') return { kind: 'head', object: await store.head(key, { signal }) };
  const { range, ifMatch } = question;
  const memory = new Uint8Array(range.length);
  let done = 0;
  const allocate = (length: number): Uint8Array => memory.subarray(done, done + length);
  const { body, ...object } = await store.get(key, { range, ifMatch, signal, allocate });
  for await (const chunk of body) {
    if (chunk.buffer !== memory.buffer) memory.set(chunk, done);
    done += chunk.byteLength;
  }
  if (done === range.length) return { kind: 'get', object, data: memory };
  throw new CurlewError('FETCH_FAILED', `${store.address}/${key}: returned ${done} bytes instead of ${range.length}`);
}
