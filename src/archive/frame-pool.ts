/**
 * The threads that frame, hash and write payloads, and the memory between them and the receiving thread: a fixed
 * number of slots of 1 MiB, however large the payloads are. A receiver that finds no free slot waits.
 */
import { Worker } from 'node:worker_threads';
import type { Digest } from '../core/digest.ts';
import { CurlewError, fileError } from '../core/errors.ts';
import { BLOCK, FRAMED_BLOCK, writeBlockHeader } from './member.ts';

/** Slots beyond one per receiver: what the threads have on their desks. */
const SLOTS_IN_FLIGHT = 4;

/** Blocks that are written with one call. */
export const GROUP_BLOCKS = 16;
export const GROUP_SIZE: number = GROUP_BLOCKS * FRAMED_BLOCK;

/** The threads make little garbage, and large young generations would be most of their memory. */
const YOUNG_MB = 2;

export interface FramePoolMemory {
  readonly memory: SharedArrayBuffer;
}

export type Order =
  | { readonly type: 'open'; readonly id: number; readonly fd: number; readonly offset: number; readonly size: number }
  | {
      readonly type: 'take-over';
      readonly id: number;
      readonly from: { readonly fd: number; readonly offset: number };
      readonly copy: boolean;
    }
  | { readonly type: 'group'; readonly id: number; readonly slot: number; readonly length: number }
  | { readonly type: 'finish'; readonly id: number }
  | { readonly type: 'drop'; readonly id: number }
  | { readonly type: 'deflate'; readonly id: number; readonly input: string; readonly output: string };

/** A file that was deflated into one member. */
export interface Deflated {
  readonly packed: number;
  readonly packedDigest: Digest;
  /** Of the file's own bytes, as they were read for this. */
  readonly digest: Digest;
}

type Value = number | string | Deflated;

export type Answer =
  | { readonly type: 'free'; readonly slot: number }
  | { readonly type: 'done'; readonly id: number; readonly value: Value }
  | {
      readonly type: 'failed';
      readonly id: number;
      readonly slot: number | undefined;
      readonly message: string;
      readonly code: string | undefined;
    };

/** Receives the raw bytes of one payload and puts them, framed, to their place in a file. */
export interface FrameSink {
  /** Takes the chunk; a promise means: wait for it before the next one. */
  write: (chunk: Uint8Array) => Promise<void> | undefined;
  /** Takes over bytes that another file (or this one, `copy: false`) holds already; returns the raw bytes it has now. */
  takeOver: (from: { readonly fd: number; readonly offset: number }, copy: boolean) => Promise<number>;
  /** Closes the member; returns the sha256 of all raw bytes in hex. */
  finish: () => Promise<string>;
  /**
   * Gives its memory back after a failure, and resolves when no thread writes to the file any more: closed earlier,
   * its descriptor could be another file's by then. Never rejects.
   */
  abandon: () => Promise<void>;
}

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
    // Under a loader that runs the source directly the sibling is a .ts file too.
    const file = new URL(`./frame-worker${import.meta.url.slice(-3)}`, import.meta.url);
    const worker = new Worker(file, {
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

/** Fills slots with framed blocks and hands them over when they are full. */
function createSink(pool: Pool, id: number, size: number): FrameSink {
  let slot: number | undefined;
  let framed: Uint8Array = new Uint8Array(0);
  /** Raw bytes taken so far, and where in the slot the next one goes. */
  let done = 0;
  let at = 0;

  const handOver = (): void => {
    if (slot === undefined) return;
    pool.tell({ type: 'group', id, slot, length: at });
    slot = undefined;
  };
  const begin = (index: number): void => {
    slot = index;
    framed = pool.slot(index);
    at = 0;
  };
  /** Copies what fits into the slot; returns how much that was. */
  const fill = (chunk: Uint8Array): number => {
    let taken = 0;
    while (taken < chunk.byteLength && at < GROUP_SIZE) {
      const inBlock = done % BLOCK;
      if (inBlock === 0) {
        const length = Math.min(BLOCK, size - done);
        writeBlockHeader(framed, at, length, done + length === size);
        at += 5;
      }
      const length = Math.min(BLOCK - inBlock, chunk.byteLength - taken);
      framed.set(chunk.subarray(taken, taken + length), at);
      taken += length;
      done += length;
      at += length;
    }
    if (at === GROUP_SIZE || done === size) handOver();
    return taken;
  };
  const write = (chunk: Uint8Array): Promise<void> | undefined => {
    const failure = pool.failureOf(id);
    if (failure !== undefined) throw failure;
    if (done + chunk.byteLength > size) throw new CurlewError('FETCH_FAILED', 'more bytes arrived than announced');
    let rest = chunk;
    while (rest.byteLength > 0) {
      if (slot === undefined) {
        const free = pool.take();
        if (typeof free !== 'number') {
          const waitingFor = rest;
          return free.then(async (index) => {
            begin(index);
            await write(waitingFor.subarray(fill(waitingFor)));
          });
        }
        begin(free);
      }
      rest = rest.subarray(fill(rest));
    }
    return undefined;
  };
  return {
    write,
    takeOver: async (from, copy) => {
      done = Number(await pool.ask({ type: 'take-over', id, from, copy }));
      return done;
    },
    finish: async () => {
      if (done !== size) throw new CurlewError('FETCH_FAILED', `only ${done} of ${size} bytes arrived`);
      const hex = (await pool.ask({ type: 'finish', id })) as string;
      const failure = pool.failureOf(id);
      if (failure !== undefined) throw failure;
      return hex;
    },
    abandon: async () => {
      if (slot !== undefined) pool.release(slot);
      slot = undefined;
      await pool.drain(id);
    },
  };
}
