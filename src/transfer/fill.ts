/** Fetches what a file lacks from one place, over several connections; what is whole is proved at once. */
import { setTimeout as delay } from 'node:timers/promises';
import type { ArchiveEnd, OpenPlace } from './open-place.ts';
import { archiveBricks, bricksIn, wholeBrick, type Brick } from './bricks.ts';
import type { PartialFile } from './partial-file.ts';
import { createRanges, type Range, type Ranges } from './ranges.ts';
import type { Digest } from '../core/digest.ts';
import { eachLimited } from '../platform/limit/each.ts';
import { CurlewError } from '../core/errors.ts';

/** A file on its way. */
export interface Filling {
  readonly file: PartialFile;
  readonly bricks: readonly Brick[];
  readonly proved: Set<Brick>;
  /** Those that are being proved. */
  readonly proving: Set<Brick>;
  /** Undefined for a file that is no archive, or of which that is not known yet. */
  readonly end: ArchiveEnd | undefined;
}

export interface FillOptions {
  readonly connections: number;
  /** Milliseconds to wait after so many bytes. */
  readonly pace: ((bytes: number) => number) | undefined;
  /** So many bytes are there by now; fewer than before when some were wrong. */
  readonly onBytes: (bytes: number) => void;
  /** So many more bytes have come. */
  readonly onFetched: (bytes: number) => void;
  readonly signal: AbortSignal;
}

/** One request asks for at most so much, so that connections share the work to the end. */
const SPAN = 32 << 20;
const SMALLEST_SPAN = 1 << 20;
/**
 * After so many bytes a connection has what it wrote put on disk and noted; the same again at most is written meanwhile. So
 * what a killed run has written in vain stays below 4 MiB a connection.
 */
const STEP = 3 << 19;
const PIECE = 1 << 19;

/** The bricks of a file whose end is known, or of one that is proved as a whole. */
export function fillingOf(file: PartialFile, end: ArchiveEnd | undefined, digest: Digest | undefined): Filling {
  const { size } = file.source;
  const bricks = end === undefined ? [wholeBrick(size, digest)] : archiveBricks(end.index, file.source.name);
  return { file, bricks, proved: new Set(), proving: new Set(), end };
}

/** Proves what is there; wrong bytes are forgotten. */
export async function proveThere(
  filling: Filling,
  { onProved, ...options }: Pick<FillOptions, 'onBytes' | 'signal'> & { readonly onProved?: (bytes: number) => void },
): Promise<void> {
  for (const brick of filling.bricks) {
    if (filling.proved.has(brick) || !filling.file.have.has(brick)) continue;
    await prove(filling, brick, options);
    onProved?.(brick.end - brick.offset);
  }
}

/** True when the bytes are right. Wrong ones are forgotten. */
async function prove(
  { file, proved, proving }: Filling,
  brick: Brick,
  { onBytes, signal }: Pick<FillOptions, 'onBytes' | 'signal'>,
): Promise<boolean> {
  signal.throwIfAborted();
  proving.add(brick);
  try {
    await brick.prove(file.source, { signal });
    proved.add(brick);
    return true;
  } catch (error) {
    if (!(error instanceof CurlewError) || !['PACKAGE_INVALID', 'DIGEST_MISMATCH'].includes(error.code)) throw error;
    file.have.remove(brick);
    onBytes(file.have.bytes());
    return false;
  } finally {
    proving.delete(brick);
  }
}

/**
 * When this returns, all bytes are there and proved. A brick that arrives damaged is asked for once more; then the place
 * has failed with `DIGEST_MISMATCH`. Whatever fails stops all connections; what they have written stays.
 */
export async function fill(filling: Filling, from: OpenPlace, options: FillOptions): Promise<void> {
  const { file } = filling;
  const { size } = file.source;
  await proveThere(filling, options);
  const width = from.ranged ? options.connections : 1;
  const taken = createRanges(file.have.list());
  const span = spanFor(size - file.have.bytes(), from.ranged ? width : undefined);
  const damaged = new Map<Brick, number>();
  const connections = Array.from({ length: width });
  await eachLimited(
    connections,
    async (_, { signal }) => {
      const own = { ...options, signal };
      for (let gap = taken.gap(size); gap !== undefined; gap = taken.gap(size)) {
        const range = from.ranged
          ? { offset: gap.offset, end: Math.min(gap.end, gap.offset + span) }
          : { offset: gap.offset, end: lastGap(taken, size).end };
        taken.add(range);
        await fetchRange(filling, from, range, own);
        await proveIn(filling, range, { taken, damaged, from: from.name, ...own });
      }
    },
    { width, signal: options.signal },
  );
  await file.checkpoint();
}

function spanFor(missing: number, connections: number | undefined): number {
  if (connections === undefined) return missing;
  return Math.max(SMALLEST_SPAN, Math.min(SPAN, Math.ceil(missing / (connections * 2))));
}

/** Where no part can be asked for, one stream brings everything from the first gap to the last. */
function lastGap(taken: Ranges, size: number): Range {
  const last = taken.list().at(-1);
  if (last === undefined || last.end < size) return { offset: last?.end ?? 0, end: size };
  return { offset: 0, end: last.offset };
}

async function fetchRange(
  { file }: Filling,
  { name, place, object }: OpenPlace,
  { offset, end }: Range,
  { pace, onBytes, onFetched, signal }: FillOptions,
): Promise<void> {
  const range = { offset, length: end - offset };
  // Each chunk is written before the next one comes.
  const memory = Buffer.allocUnsafeSlow(PIECE);
  const allocate = (length: number): Uint8Array => memory.subarray(0, length);
  const { body } = await place.store.get(place.key, { range, ifMatch: object.etag, allocate, signal });
  let at = offset;
  let unnoted = 0;
  let noting: Promise<void> = Promise.resolve();
  for await (const chunk of body) {
    for (let done = 0; done < chunk.byteLength; done += PIECE) {
      const piece = chunk.subarray(done, done + PIECE);
      // One stream brings also what lies between gaps: that is proved, or will be.
      for (const gap of file.have.missing({ offset: at, end: at + piece.byteLength })) {
        await file.write(gap.offset, piece.subarray(gap.offset - at, gap.end - at));
      }
      at += piece.byteLength;
      unnoted += piece.byteLength;
      if (unnoted < STEP) continue;
      await noting;
      noting = file.checkpoint();
      // It is waited for above; a failure must not go unheard until then.
      noting.catch(() => undefined);
      unnoted = 0;
    }
    onFetched(chunk.byteLength);
    onBytes(file.have.bytes());
    const wait = pace?.(chunk.byteLength) ?? 0;
    if (wait > 0) await delay(wait, undefined, { signal });
  }
  await noting;
  if (at !== end) throw new CurlewError('FETCH_FAILED', `${name}: gave ${at - offset} bytes, not ${end - offset}`);
}

interface ProveOptions extends FillOptions {
  readonly taken: Ranges;
  readonly damaged: Map<Brick, number>;
  readonly from: string;
}

/** Proves what has become whole with a range. */
async function proveIn(
  filling: Filling,
  range: Range,
  { taken, damaged, from, ...options }: ProveOptions,
): Promise<void> {
  for (const brick of bricksIn(filling.bricks, range)) {
    // Another connection may have brought the rest of it.
    if (filling.proved.has(brick) || filling.proving.has(brick) || !filling.file.have.has(brick)) continue;
    if (await prove(filling, brick, options)) continue;
    const times = (damaged.get(brick) ?? 0) + 1;
    if (times > 1) throw damagedThere(from, brick);
    damaged.set(brick, times);
    taken.remove(brick);
  }
}

function damagedThere(from: string, { entry }: Brick): CurlewError {
  const what = entry === undefined ? 'gives other bytes than were promised' : `${entry.path}: arrives damaged`;
  return new CurlewError('DIGEST_MISMATCH', `${from}: ${what}`, {
    hint: 'the file was replaced or damaged there: fetch it from somewhere else',
  });
}
