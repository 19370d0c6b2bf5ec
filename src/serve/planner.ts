/**
 * Tables of contents are read in a thread of their own, and bundles laid out there, since long ones keep a processor. When the thread ends,
 * what it was at fails, and the next job starts another one.
 */
import { MessageChannel, type MessagePort, type Worker } from 'node:worker_threads';
import { asError, CurlewError } from '../core/errors.ts';
import { createSemaphore } from '../platform/limit/semaphore.ts';
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
  /** Of the server: ends the thread. */
  readonly signal: AbortSignal;
  /** Most bytes that the tables of contents of one plan may have together; more are `UNSUPPORTED`. */
  readonly maxTocBytes?: number | undefined;
  /** Milliseconds that a job waits for those before it. */
  readonly patienceMs?: number | undefined;
  /** Starts the thread. */
  readonly startPlanning?: typeof startPlanWorker | undefined;
}

export interface Planner {
  /** `BUSY` for a job that has waited too long, and when the thread ends in the middle of it. */
  readonly run: <Job extends PlanJob>(
    job: Job,
    options: { readonly signal: AbortSignal },
  ) => Promise<PlanResults[Job['kind']]>;
}

const JOBS_AT_ONCE = 2;
/** Whoever asks waits rather than asks again: one job a connection is all that waits, and a job that waits takes little. */
const PATIENCE_MS = 30_000;
/** Some 150,000 entries. */
const MOST_TOC = 48 << 20;
/**
 * A thread that comes to this limit within JSON.parse takes the process with it: it is more than two plans at a time need. A good
 * table of contents takes five times its bytes, one that is only empty objects twenty times.
 */
const MEMORY_MB = 2048;
/** Most of what planning makes is of no use a moment later; a larger young generation would only be more memory. */
const YOUNG_MB = 4;

export function createPlanner(
  store: Store,
  { signal, maxTocBytes = MOST_TOC, patienceMs = PATIENCE_MS, startPlanning = startPlanWorker }: PlannerOptions,
): Planner {
  const jobs = createSemaphore(JOBS_AT_ONCE, { patienceMs });
  let thread: Thread | undefined;
  signal.addEventListener('abort', () => thread?.end(), { once: true });
  return {
    run: async <Job extends PlanJob>(job: Job, options: { readonly signal: AbortSignal }) => {
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
  // A server that has stopped waits for no plan.
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
  return new CurlewError('BUSY', `plan a bundle: the thread has ended: ${error?.message ?? 'nothing was said'}`, {
    cause: error,
  });
}

interface JobContext {
  readonly worker: Worker;
  readonly store: Store;
  readonly maxTocBytes: number;
  /** Fires when nobody waits for the result, or the thread has ended. */
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
    const found = await lookUp(question, context);
    const moved = found.kind === 'get' && found.data.buffer instanceof ArrayBuffer ? [found.data.buffer] : [];
    port.postMessage({ type: 'answer', id, answer: found } satisfies ToPlanner, moved);
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
  throw new CurlewError('FETCH_FAILED', `${store.address}/${key}: gave ${done} bytes, not ${range.length}`);
}
