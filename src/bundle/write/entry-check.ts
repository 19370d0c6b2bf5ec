/** Proves the entries of an archive while its bytes pass by from the first to the last: the same as `verify` does later. */
import { createHash } from 'node:crypto';
import type { ArchiveIndex, PlacedEntry } from '../../formats/archive/entry.ts';
import { sameBytes } from '../../formats/archive/member.ts';
import { headerMember, paddingMember } from '../../formats/archive/place.ts';
import { readPayload } from '../../formats/archive/read.ts';
import { CurlewError } from '../../core/errors.ts';

export interface EntryCheck {
  /**
   * The next bytes of the archive. When it resolves the chunk is not needed any more. A damaged payload is
   * `DIGEST_MISMATCH`, a damaged header or padding `PACKAGE_INVALID`.
   */
  readonly push: (chunk: Uint8Array) => Promise<void>;
  /** After the last byte; everything has been checked when it resolves. */
  readonly finish: () => Promise<void>;
  /** Gives up without a verdict. */
  readonly abandon: () => void;
}

/** `name` is the archive's, for messages. */
export function createEntryCheck(
  index: ArchiveIndex,
  name: string,
  { signal }: { readonly signal: AbortSignal },
): EntryCheck {
  const bricks = bricksOf(index, name, signal);
  let brick = bricks.next();
  let at = 0;
  let running: Reader | undefined;
  return {
    push: async (chunk) => {
      const end = at + chunk.byteLength;
      while (brick.done !== true && brick.value.offset < end) {
        const { offset, length, start } = brick.value;
        running ??= start();
        const until = offset + length;
        await running.push(chunk.subarray(Math.max(0, offset - at), Math.min(end, until) - at));
        if (until > end) break;
        await running.finish();
        running = undefined;
        brick = bricks.next();
      }
      at = end;
    },
    finish: async () => {
      await running?.finish();
      if (brick.done !== true) throw new Error(`${name}: ended before its last entry`);
    },
    abandon: () => running?.abandon(),
  };
}

/** A header, a payload or a padding: see docs/format.md. */
interface Brick {
  readonly offset: number;
  readonly length: number;
  readonly start: () => Reader;
}

function* bricksOf({ entries }: ArchiveIndex, name: string, signal: AbortSignal): Generator<Brick, void, undefined> {
  let at = 0;
  const exact = ({ path }: PlacedEntry, data: Uint8Array): Brick => {
    const brick = { offset: at, length: data.byteLength, start: () => startComparing(data, `${name}: ${path}`) };
    at += data.byteLength;
    return brick;
  };
  for (const entry of entries) {
    yield exact(entry, headerMember(entry));
    if (entry.packed === 0) continue;
    yield { offset: at, length: entry.packed, start: () => startReader(entry, name, signal) };
    at += entry.packed;
    const padding = paddingMember(entry.size);
    if (padding.byteLength > 0) yield exact(entry, padding);
  }
}

interface Reader {
  readonly push: (chunk: Uint8Array) => Promise<void>;
  readonly finish: () => Promise<void>;
  readonly abandon: () => void;
}

/** For bytes that are known beforehand. */
function startComparing(expected: Uint8Array, where: string): Reader {
  let done = 0;
  return {
    push: async (chunk) => {
      if (!sameBytes(chunk, expected.subarray(done, done + chunk.byteLength))) {
        throw new CurlewError('PACKAGE_INVALID', `${where}: its tar header differs from the table of contents`, {
          hint: 'the object in the store is damaged: publish the add-on again in a new release',
        });
      }
      done += chunk.byteLength;
    },
    finish: async () => undefined,
    abandon: () => undefined,
  };
}

/** Turns a reader that pulls into one that is pushed: each chunk is handed over and taken before the next. */
function startReader(entry: PlacedEntry, name: string, signal: AbortSignal): Reader {
  let deliver: ((chunk: Uint8Array | undefined) => void) | undefined;
  let wanted: (() => void) | undefined;
  let asked = new Promise<void>((resolve) => (wanted = resolve));
  const source = {
    name,
    size: Number.MAX_SAFE_INTEGER,
    async *read() {
      for (;;) {
        const chunk = await new Promise<Uint8Array | undefined>((resolve) => {
          deliver = resolve;
          wanted?.();
        });
        if (chunk === undefined) return;
        yield chunk;
      }
    },
  };
  const reading = (async () => {
    for await (const chunk of readPayload(source, entry, { signal })) void chunk;
  })();
  // Its failure is told by the next push or finish.
  const over = reading.then(
    () => undefined,
    () => undefined,
  );
  const packed = entry.packedDigest === undefined ? undefined : createHash('sha256');
  const hand = async (chunk: Uint8Array | undefined): Promise<void> => {
    await Promise.race([asked, over]);
    asked = new Promise<void>((resolve) => (wanted = resolve));
    deliver?.(chunk);
    deliver = undefined;
  };
  return {
    push: async (chunk) => {
      packed?.update(chunk);
      // The reader of a deflated member keeps its chunks.
      await hand(entry.stored ? chunk : Uint8Array.from(chunk));
      await Promise.race([asked, reading]);
    },
    finish: async () => {
      await hand(undefined);
      await reading;
      if (packed === undefined || `sha256:${packed.digest('hex')}` === entry.packedDigest) return;
      throw new CurlewError(
        'PACKAGE_INVALID',
        `${name}: ${entry.path}: its packed bytes differ from the table of contents`,
        {
          hint: 'the object in the store is damaged: publish the add-on again in a new release',
        },
      );
    },
    abandon: () => {
      deliver?.(undefined);
    },
  };
}
