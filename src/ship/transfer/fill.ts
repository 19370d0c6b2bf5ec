/** Fetches the missing bytes of a file from one place, over several connections, and verifies each section once it is complete. */
import { setTimeout as delay } from 'node:timers/promises';
import { placeVersion, type ArchiveEnd, type OpenPlace } from './open-place.ts';
import { archiveSections, sectionsIn, wholeSection, type Section } from './sections.ts';
import type { PartialFile } from './partial-file.ts';
import { createRanges, type Range, type Ranges } from './ranges.ts';
import type { Digest } from '../../core/digest.ts';
import { eachLimited } from '../../platform/limit/each.ts';
import { CurlewError } from '../../core/errors.ts';

/** A file that is being fetched. */
export interface FileFilling {
  readonly file: PartialFile;
  readonly sections: readonly Section[];
  readonly verified: Set<Section>;
  /** Sections that are being verified. */
  readonly verifying: Set<Section>;
  /** Undefined for a file that is not an archive, or not yet known to be one. */
  readonly end: ArchiveEnd | undefined;
}

export interface FillOptions {
  readonly connections: number;
  /** Milliseconds to wait after this many bytes. */
  readonly pace: ((bytes: number) => number) | undefined;
  /** How many bytes the file has now; fewer than before if some were wrong. */
  readonly onBytes: (bytes: number) => void;
  /** How many more bytes have arrived. */
  readonly onFetched: (bytes: number) => void;
  /** Ends the hint of a {@link CurlewError} about a damaged file: where to get a good one. */
  readonly elsewhere: string;
  readonly signal: AbortSignal;
}

/** Most bytes of one request, so that connections share the work to the end. */
const SPAN = 32 << 20;
const SMALLEST_SPAN = 1 << 20;
const CHUNK = 1 << 19;

/** Sections of the archive if its end is known; otherwise the file is verified as a whole. */
export function fillingOf(file: PartialFile, end: ArchiveEnd | undefined, digest: Digest | undefined): FileFilling {
  const { size, name } = file.source;
  const sections = end === undefined ? [wholeSection(size, digest)] : archiveSections(end.index, name);
  return { file, sections, verified: new Set(), verifying: new Set(), end };
}

/** Verifies the sections that are complete; wrong ones are forgotten. */
export async function verifyComplete(
  filling: FileFilling,
  {
    onVerified,
    ...options
  }: Pick<FillOptions, 'onBytes' | 'signal'> & { readonly onVerified?: (bytes: number) => void },
): Promise<void> {
  for (const section of filling.sections) {
    if (filling.verified.has(section) || !filling.file.have.has(section)) continue;
    await verifySection(filling, section, options);
    onVerified?.(section.end - section.offset);
  }
}

/** True if the bytes are right. Wrong ones are forgotten. */
async function verifySection(
  { file, verified, verifying }: FileFilling,
  section: Section,
  { onBytes, signal }: Pick<FillOptions, 'onBytes' | 'signal'>,
): Promise<boolean> {
  signal.throwIfAborted();
  verifying.add(section);
  try {
    await section.verify(file.source, { signal });
    verified.add(section);
    return true;
  } catch (error) {
    if (!(error instanceof CurlewError) || !['PACKAGE_INVALID', 'DIGEST_MISMATCH'].includes(error.code)) throw error;
    file.have.remove(section);
    onBytes(file.have.bytes());
    return false;
  } finally {
    verifying.delete(section);
  }
}

/**
 * When this returns, the file is complete and verified. A section that arrives damaged is requested once more, unless this
 * place has just sent the whole file; then the place fails with `DIGEST_MISMATCH`. Any failure stops all connections; what they
 * have written stays.
 */
export async function fillFile(filling: FileFilling, from: OpenPlace, options: FillOptions): Promise<void> {
  const { file } = filling;
  const { size } = file.source;
  await verifyComplete(filling, options);
  const width = from.ranged ? options.connections : 1;
  const requested = createRanges(file.have.list());
  const span = spanFor(size - file.have.bytes(), from.ranged ? width : undefined);
  const damaged = new Set<Section>(
    filling.sections.filter(({ entry }) => entry === undefined && file.have.bytes() === 0),
  );
  const connections = Array.from({ length: width });
  await eachLimited(
    connections,
    async (_, { signal }) => {
      const own = { ...options, signal };
      for (let gap = requested.gap(size); gap !== undefined; gap = requested.gap(size)) {
        const range = from.ranged
          ? { offset: gap.offset, end: Math.min(gap.end, gap.offset + span) }
          : { offset: gap.offset, end: lastGap(requested, size).end };
        requested.add(range);
        await fetchRange(filling, from, range, own);
        await verifyIn(filling, range, { requested, damaged, from: from.name, ...own });
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

/** A place that sends no parts gets one request, from the first gap to the last. */
function lastGap(requested: Ranges, size: number): Range {
  const last = requested.list().at(-1);
  if (last === undefined || last.end < size) return { offset: last?.end ?? 0, end: size };
  return { offset: 0, end: last.offset };
}

async function fetchRange(
  { file }: FileFilling,
  { name, place, object, unpinned }: OpenPlace,
  { offset, end }: Range,
  { pace, onBytes, onFetched, signal }: FillOptions,
): Promise<void> {
  const range = { offset, length: end - offset };
  // Each chunk is written before the next one arrives.
  const memory = Buffer.allocUnsafeSlow(CHUNK);
  const allocate = (length: number): Uint8Array => memory.subarray(0, length);
  const { body } = await place.store.get(place.key, { ...placeVersion(object, unpinned), range, allocate, signal });
  const write = file.writer();
  let at = offset;
  for await (const chunk of body) {
    for (let done = 0; done < chunk.byteLength; done += CHUNK) {
      const part = chunk.subarray(done, done + CHUNK);
      // A single stream also brings the bytes between gaps: those are verified, or will be.
      for (const gap of file.have.missing({ offset: at, end: at + part.byteLength })) {
        await write(gap.offset, part.subarray(gap.offset - at, gap.end - at));
      }
      at += part.byteLength;
    }
    onFetched(chunk.byteLength);
    onBytes(file.have.bytes());
    const wait = pace?.(chunk.byteLength) ?? 0;
    if (wait > 0) await delay(wait, undefined, { signal });
  }
  if (at !== end) throw new CurlewError('FETCH_FAILED', `${name}: sent ${at - offset} bytes, not ${end - offset}`);
}

interface VerifyOptions extends FillOptions {
  readonly requested: Ranges;
  /** Sections that are not requested again. */
  readonly damaged: Set<Section>;
  readonly from: string;
}

/** Verifies the sections that a range has completed. */
async function verifyIn(
  filling: FileFilling,
  range: Range,
  { requested, damaged, from, ...options }: VerifyOptions,
): Promise<void> {
  for (const section of sectionsIn(filling.sections, range)) {
    // Another connection may have brought the rest of it.
    if (filling.verified.has(section) || filling.verifying.has(section) || !filling.file.have.has(section)) continue;
    if (await verifySection(filling, section, options)) continue;
    if (damaged.has(section)) throw damagedThere(from, section, options);
    damaged.add(section);
    requested.remove(section);
  }
}

function damagedThere(from: string, { entry }: Section, { elsewhere }: FillOptions): CurlewError {
  const what = entry === undefined ? 'sent different bytes than were published' : `${entry.path}: arrives damaged`;
  return new CurlewError('DIGEST_MISMATCH', `${from}: ${what}`, {
    hint: `the file was replaced or damaged there: ${elsewhere}`,
  });
}
