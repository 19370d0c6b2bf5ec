/**
 * Proof that an archive is what its TOC says, and nothing else: every tar header is made again from its entry and
 * compared, every payload is hashed, and the members tile the file. Only then does a signature over the TOC cover it.
 */
import { createHash } from 'node:crypto';
import { CurlewError } from '../../core/errors.ts';
import type { ArchiveIndex, PlacedEntry, RangeSource } from './entry.ts';
import { sameBytes } from './member.ts';
import { headerMember, paddingMember } from './place.ts';
import { readIndex, readPayload, readRange } from './read.ts';

export interface VerifyOptions {
  readonly signal: AbortSignal;
  /** Told how many bytes of the archive have been proved, now and then. */
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
  if (at !== index.tocOffset) throw altered(source, 'the end', 'there are bytes that belong to no entry');
  onBytes?.(index.size);
  return index;
}

/** Proves header, payload and padding of one entry, which begin at `at`; returns where they end. */
export async function verifyEntry(
  source: RangeSource,
  at: number,
  entry: PlacedEntry,
  { signal }: { readonly signal: AbortSignal },
): Promise<number> {
  const payloadAt = await verifyMember(source, at, headerMember(entry), entry.path, signal);
  if (entry.packed === 0) return payloadAt;
  if (entry.offset !== payloadAt) throw altered(source, entry.path, 'there are bytes that belong to no entry');
  await verifyPayload(source, entry, signal);
  return verifyMember(source, payloadAt + entry.packed, paddingMember(entry.size), entry.path, signal);
}

function altered(source: RangeSource, path: string, what: string): CurlewError {
  return new CurlewError('PACKAGE_INVALID', `${source.name}: ${path}: ${what}`, {
    hint: 'the file is damaged or was altered: fetch or build it again',
  });
}

/** The bytes at `at` must be exactly these; returns where they end. */
async function verifyMember(
  source: RangeSource,
  at: number,
  member: Uint8Array,
  path: string,
  signal: AbortSignal,
): Promise<number> {
  const found = await readRange(source, at, member.byteLength, { signal });
  if (!sameBytes(found, member)) throw altered(source, path, 'its tar header differs from the table of contents');
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
