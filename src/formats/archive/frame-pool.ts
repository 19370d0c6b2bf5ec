/**
 * The threads that frame, hash and write payloads, and the memory that they share with the receiving thread: a fixed number
 * of slots of 1 MiB, independent of payload sizes. A receiver waits if no slot is free.
 */
import type { Worker } from 'node:worker_threads';
import { fileError } from '../../core/errors.ts';
import {
  GROUP_SIZE,
  type WorkerResponse,
  type Deflated,
  type FramePoolMemory,
  type WorkerRequest,
  type FrameValue,
} from './frame-protocol.ts';
import { createSink, type FrameSink } from './frame-sink.ts';
import { startFrameWorker } from './start-frame-worker.ts';

/** Slots in addition to one per receiver, for the groups that the threads work on. */
const SLOTS_IN_FLIGHT = 4;

/** The threads create little garbage; larger young generations would dominate their memory. */
const YOUNG_MB = 2;

export interface FramePool extends AsyncDisposable {
  /** A sink for `size` raw bytes whose member begins at `offset` of the open file. */
  openSink: (fd: number, offset: number, size: number) => FrameSink;
  /** Deflates a file into a new file with one member. */
  deflate: (input: string, output: string) => Promise<Deflated>;
}

interface SlotWaiter {
  readonly resolve: (slot: number) => void;
  readonly reject: (error: Error) => void;
}

interface Waiting {
  readonly resolve: (value: FrameValue) => void;
  readonly reject: (error: Error) => void;
}

/** Starts the pool. `width` sinks may be open at once. */
export function createFramePool({ threads, width }: { readonly threads: number; readonly width: number }): FramePool {
  const count = width + SLOTS_IN_FLIGHT;
  const memory = new SharedArrayBuffer(count * GROUP_SIZE);
  const view = new Uint8Array(memory);
  const pool = new Pool(memory, view, count, threads);
  return {
    openSink: (fd, offset, size) => pool.openSink(fd, offset, size),
    deflate: async (input, output) =>
      (await pool.request({ type: 'deflate', id: pool.nextId(), input, output })) as Deflated,
    [Symbol.asyncDispose]: async () => {
      await pool.close();
    },
  };
}

class Pool {
  readonly #view: Uint8Array;
  readonly #free: number[];
  readonly #slotWaiters: SlotWaiter[] = [];
  #broken: Error | undefined;
  readonly #waiting = new Map<number, Waiting>();
  readonly #failures = new Map<number, Error>();
  readonly #workers: Worker[] = [];
  readonly #memory: SharedArrayBuffer;
  readonly #threads: number;
  #last = 0;

  constructor(memory: SharedArrayBuffer, view: Uint8Array, count: number, threads: number) {
    this.#memory = memory;
    this.#view = view;
    this.#threads = threads;
    this.#free = Array.from({ length: count }, (_, slot) => slot);
  }

  nextId(): number {
    this.#last += 1;
    return this.#last;
  }

  /** The worker for this id; threads start on first use. */
  #workerFor(id: number): Worker {
    const index = id % this.#threads;
    const running = this.#workers[index];
    if (running !== undefined) return running;
    const worker = startFrameWorker({
      workerData: { memory: this.#memory } satisfies FramePoolMemory,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
    worker.on('message', (response: WorkerResponse) => {
      this.#receive(response);
    });
    worker.on('error', (error) => {
      this.#broken = error;
      for (const { reject } of [...this.#waiting.values(), ...this.#slotWaiters]) reject(error);
      this.#waiting.clear();
      this.#slotWaiters.length = 0;
    });
    this.#workers[index] = worker;
    return worker;
  }

  #receive(response: WorkerResponse): void {
    if (response.type === 'free') {
      this.release(response.slot);
      return;
    }
    const waiting = this.#waiting.get(response.id);
    if (response.type === 'done') {
      this.#waiting.delete(response.id);
      waiting?.resolve(response.value);
      return;
    }
    const cause = Object.assign(
      new Error(response.message),
      response.code === undefined ? {} : { code: response.code },
    );
    const error = fileError('write the package', cause);
    this.#failures.set(response.id, error);
    if (response.slot !== undefined) {
      // A group could not be written: the next request for this id fails with this error.
      this.release(response.slot);
      return;
    }
    this.#waiting.delete(response.id);
    waiting?.reject(error);
  }

  release(slot: number): void {
    const next = this.#slotWaiters.shift();
    if (next === undefined) this.#free.push(slot);
    else next.resolve(slot);
  }

  take(): number | Promise<number> {
    const slot = this.#free.pop();
    if (slot !== undefined) return slot;
    return new Promise((resolve, reject) => {
      this.#slotWaiters.push({ resolve, reject });
    });
  }

  /** The part of the shared memory that is one slot. */
  slot(index: number): Uint8Array {
    return this.#view.subarray(index * GROUP_SIZE, (index + 1) * GROUP_SIZE);
  }

  post(request: WorkerRequest): void {
    this.#workerFor(request.id).postMessage(request);
  }

  failureOf(id: number): Error | undefined {
    return this.#broken ?? this.#failures.get(id);
  }

  async request(request: WorkerRequest): Promise<FrameValue> {
    const failure = this.failureOf(request.id);
    if (failure !== undefined) throw failure;
    return new Promise((resolve, reject) => {
      this.#waiting.set(request.id, { resolve, reject });
      this.post(request);
    });
  }

  /** Waits until all requests for this id have finished, successfully or not. */
  async drain(id: number): Promise<void> {
    if (this.#broken !== undefined) return;
    await new Promise<void>((resolve) => {
      const settle = (): void => {
        resolve();
      };
      this.#waiting.set(id, { resolve: settle, reject: settle });
      this.post({ type: 'drop', id });
    });
  }

  openSink(fd: number, offset: number, size: number): FrameSink {
    const id = this.nextId();
    this.post({ type: 'open', id, fd, offset, size });
    return createSink(this, id, size);
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }
}
