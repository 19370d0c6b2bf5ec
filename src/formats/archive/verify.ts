/**
 * Proves that an archive contains exactly what its TOC lists: recreates and compares every tar header, hashes every payload,
 * and checks that the members cover the file. Only then does a signature over the TOC cover the archive.
 */
import { createHash } from 'node:crypto';
import { CurlewError } from '../../core/errors.ts';
import type { ArchiveIndex, PlacedEntry, RangeSource } from './entry.ts';
import { sameBytes } from './member.ts';
import { headerMember, paddingMember } from './place.ts';
import { readIndex, readPayload, readRange } from './read.ts';

export interface VerifyOptions {
  readonly signal: AbortSignal;
  /** Called from time to time with the number of verified bytes. */
  readonly onBytes?: (done: number) => void;
}

/** Verifies a whole archive; damage anywhere is `PACKAGE_INVALID` or `DIGEST_MISMATCH`, with the entry's name. */
export async function verifyArchive(source: RangeSource, { signal, onBytes }: VerifyOptions): Promise<ArchiveIndex> {
  const index = await readIndex(source, { signal });
  let at = 0;
  for (const entry of index.entries) {
    signal.throwIfAborted();
    at = await verifyEntry(source, at, entry, { signal });
    onBytes?.(at);
  }
  if (at !== index.tocOffset) throw altered(source, 'the end', 'some bytes belong to no entry');
  onBytes?.(index.size);
  return index;
}

/** Verifies header, payload and padding of one entry, which begin at `at`; returns their end. */
export async function verifyEntry(
  source: RangeSource,
  at: number,
  entry: PlacedEntry,
  { signal }: { readonly signal: AbortSignal },
): Promise<number> {
  const payloadAt = await verifyMember(source, at, headerMember(entry), entry.path, signal);
  if (entry.packed === 0) return payloadAt;
  if (entry.offset !== payloadAt) throw altered(source, entry.path, 'some bytes belong to no entry');
  await verifyPayload(source, entry, signal);
  return verifyMember(source, payloadAt + entry.packed, paddingMember(entry.size), entry.path, signal);
}

function altered(source: RangeSource, path: string, what: string): CurlewError {
  return new CurlewError('PACKAGE_INVALID', `${source.name}: ${path}: ${what}`, {
    hint: 'the file is damaged or was modified: fetch or build it again',
  });
}

/** Requires exactly these bytes at `at`; returns their end. */
async function verifyMember(
  source: RangeSource,
  at: number,
  member: Uint8Array,
  path: string,
  signal: AbortSignal,
): Promise<number> {
  const header = await readRange(source, at, member.byteLength, { signal });
  if (!sameBytes(header, member)) throw altered(source, path, 'its tar header differs from the table of contents');
  return at + member.byteLength;
}

async function verifyPayload(source: RangeSource, entry: PlacedEntry, signal: AbortSignal): Promise<void> {
  const hash = createHash('sha256');
  const counted: RangeSource = {
    ...source,
    async *read(...range) {
      for await (const chunk of source.read(...range)) {
        hash.update(chunk);
        yield chunk;
      }
    },
  };
  const hashed = entry.packedDigest === undefined ? source : counted;
  const payload = readPayload(hashed, entry, { signal });
  while ((await payload.next()).done !== true) signal.throwIfAborted();
  if (entry.packedDigest !== undefined && entry.packedDigest !== `sha256:${hash.digest('hex')}`) {
    throw altered(source, entry.path, 'its packed bytes differ from the table of contents');
  }
}
