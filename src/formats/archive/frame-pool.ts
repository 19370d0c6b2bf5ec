/**
 * The threads that frame, hash and write payloads, and the memory between them and the receiving thread: a fixed
 * number of slots of 1 MiB, however large the payloads are. A receiver that finds no free slot waits.
 */
import type { Worker } from 'node:worker_threads';
import { fileError } from '../../core/errors.ts';
import {
  GROUP_SIZE,
  type Answer,
  type Deflated,
  type FramePoolMemory,
  type Order,
  type Value,
} from './frame-protocol.ts';
import { createSink, type FrameSink } from './frame-sink.ts';
import { startFrameWorker } from './start-frame-worker.ts';

/** Slots beyond one per receiver: what the threads have on their desks. */
const SLOTS_IN_FLIGHT = 4;

/** The threads make little garbage, and large young generations would be most of their memory. */
const YOUNG_MB = 2;

export interface FramePool extends AsyncDisposable {
  /** A sink for `size` raw bytes whose member begins at `offset` of the open file. */
  openSink: (fd: number, offset: number, size: number) => FrameSink;
  /** Deflates a file into a new file that holds one member. */
  deflate: (input: string, output: string) => Promise<Deflated>;
}

interface SlotWaiter {
  readonly resolve: (slot: number) => void;
  readonly reject: (error: Error) => void;
}

interface Waiting {
  readonly resolve: (value: Value) => void;
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
      (await pool.ask({ type: 'deflate', id: pool.nextId(), input, output })) as Deflated,
    [Symbol.asyncDispose]: async () => {
      await pool.close();
    },
  };
}

class Pool {
  readonly #view: Uint8Array;
  readonly #free: number[];
  readonly #wanted: SlotWaiter[] = [];
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

  /** The worker that serves this id; threads start when they are first needed. */
  #workerFor(id: number): Worker {
    const index = id % this.#threads;
    const running = this.#workers[index];
    if (running !== undefined) return running;
    const worker = startFrameWorker({
      workerData: { memory: this.#memory } satisfies FramePoolMemory,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
    worker.on('message', (answer: Answer) => {
      this.#receive(answer);
    });
    worker.on('error', (error) => {
      this.#broken = error;
      for (const { reject } of [...this.#waiting.values(), ...this.#wanted]) reject(error);
      this.#waiting.clear();
      this.#wanted.length = 0;
    });
    this.#workers[index] = worker;
    return worker;
  }

  #receive(answer: Answer): void {
    if (answer.type === 'free') {
      this.release(answer.slot);
      return;
    }
    const waiting = this.#waiting.get(answer.id);
    if (answer.type === 'done') {
      this.#waiting.delete(answer.id);
      waiting?.resolve(answer.value);
      return;
    }
    const cause = Object.assign(new Error(answer.message), answer.code === undefined ? {} : { code: answer.code });
    const error = fileError('write the package', cause);
    this.#failures.set(answer.id, error);
    if (answer.slot !== undefined) {
      // A group that could not be written: whoever asks next, or waits for more, learns of it.
      this.release(answer.slot);
      return;
    }
    this.#waiting.delete(answer.id);
    waiting?.reject(error);
  }

  release(slot: number): void {
    const next = this.#wanted.shift();
    if (next === undefined) this.#free.push(slot);
    else next.resolve(slot);
  }

  take(): number | Promise<number> {
    const slot = this.#free.pop();
    if (slot !== undefined) return slot;
    return new Promise((resolve, reject) => {
      this.#wanted.push({ resolve, reject });
    });
  }

  /** The part of the shared memory that is one slot. */
  slot(index: number): Uint8Array {
    return this.#view.subarray(index * GROUP_SIZE, (index + 1) * GROUP_SIZE);
  }

  tell(order: Order): void {
    this.#workerFor(order.id).postMessage(order);
  }

  failureOf(id: number): Error | undefined {
    return this.#broken ?? this.#failures.get(id);
  }

  async ask(order: Order): Promise<Value> {
    const failure = this.failureOf(order.id);
    if (failure !== undefined) throw failure;
    return new Promise((resolve, reject) => {
      this.#waiting.set(order.id, { resolve, reject });
      this.tell(order);
    });
  }

  /** Waits until everything that was ordered for this id is done; whether it went well does not matter any more. */
  async drain(id: number): Promise<void> {
    if (this.#broken !== undefined) return;
    await new Promise<void>((resolve) => {
      const settle = (): void => {
        resolve();
      };
      this.#waiting.set(id, { resolve: settle, reject: settle });
      this.tell({ type: 'drop', id });
    });
  }

  openSink(fd: number, offset: number, size: number): FrameSink {
    const id = this.nextId();
    this.tell({ type: 'open', id, fd, offset, size });
    return createSink(this, id, size);
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }
}
