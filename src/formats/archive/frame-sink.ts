/** Fills shared memory with framed blocks of one payload and passes it to the thread that writes them. */
import { CurlewError } from '../../core/errors.ts';
import { GROUP_SIZE, type WorkerRequest, type FrameValue } from './frame-protocol.ts';
import { BLOCK, writeBlockHeader } from './member.ts';

/** Receives the raw bytes of one payload, frames them, and writes them to their place in a file. */
export interface FrameSink {
  /** Accepts a chunk; if it returns a promise, await it before the next chunk. */
  write: (chunk: Uint8Array) => Promise<void> | undefined;
  /** Reuses bytes of another file, or of this file with `copy: false`; returns the number of raw bytes that exist now. */
  takeOver: (from: { readonly fd: number; readonly offset: number }, copy: boolean) => Promise<number>;
  /** Closes the member; returns the sha256 of all raw bytes in hex. */
  finish: () => Promise<string>;
  /**
   * Releases its memory after a failure, and resolves when no thread writes to the file any more: if the file were closed
   * earlier, its descriptor might then belong to another file. Never rejects.
   */
  abandon: () => Promise<void>;
}

/** The part of the pool that sinks use. */
export interface SinkPool {
  readonly take: () => number | Promise<number>;
  readonly slot: (index: number) => Uint8Array;
  readonly release: (slot: number) => void;
  readonly post: (request: WorkerRequest) => void;
  readonly request: (request: WorkerRequest) => Promise<FrameValue>;
  readonly drain: (id: number) => Promise<void>;
  readonly failureOf: (id: number) => Error | undefined;
}

/** Fills slots with framed blocks and passes them on when they are full. */
export function createSink(pool: SinkPool, id: number, size: number): FrameSink {
  let slot: number | undefined;
  let framed: Uint8Array = new Uint8Array(0);
  /** Raw bytes accepted so far, and the position of the next one in the slot. */
  let done = 0;
  let at = 0;
  let abandoned = false;

  const handOver = (): void => {
    if (slot === undefined) return;
    pool.post({ type: 'group', id, slot, length: at });
    slot = undefined;
  };
  const begin = (index: number): void => {
    slot = index;
    framed = pool.slot(index);
    at = 0;
  };
  /** Copies as much as fits into the slot; returns the number of bytes. */
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
            if (abandoned) {
              pool.release(index);
              return;
            }
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
      done = Number(await pool.request({ type: 'take-over', id, from, copy }));
      return done;
    },
    finish: async () => {
      if (done !== size) throw new CurlewError('FETCH_FAILED', `only ${done} of ${size} bytes arrived`);
      const hex = (await pool.request({ type: 'finish', id })) as string;
      const failure = pool.failureOf(id);
      if (failure !== undefined) throw failure;
      return hex;
    },
    abandon: async () => {
      abandoned = true;
      if (slot !== undefined) pool.release(slot);
      slot = undefined;
      await pool.drain(id);
    },
  };
}
