/** Payloads that lie in another file on this machine: an older version of what is being fetched. */
import type { PlacedEntry, RangeSource } from '../formats/archive/entry.ts';
import { isMemberHeader, MEMBER_HEADER } from '../formats/archive/member.ts';
import { headerMember, paddingMember } from '../formats/archive/place.ts';
import { openFileSource, readIndex, readRange } from '../formats/archive/read.ts';
import { CurlewError } from '../core/errors.ts';
import type { Brick } from './bricks.ts';
import { proveThere, type Filling, type FillOptions } from './fill.ts';

/** Equal for payloads whose bytes are equal. */
function payloadKey({ digest, packed, packedDigest }: PlacedEntry): string {
  return `${digest} ${packed} ${packedDigest ?? ''}`;
}

/** Takes what is still missing and stands whole in the file of this path. One that is absent or no archive is of no use. */
export async function takeFrom(
  path: string,
  filling: Filling,
  options: Pick<FillOptions, 'onBytes' | 'signal'>,
): Promise<void> {
  const { signal } = options;
  let source: (RangeSource & AsyncDisposable) | undefined;
  try {
    source = await openFileSource(path);
    const { entries } = await readIndex(source, { signal });
    const payloads = new Map(entries.filter(({ packed }) => packed > 0).map((entry) => [payloadKey(entry), entry]));
    for (const brick of filling.bricks) {
      if (filling.proved.has(brick)) continue;
      signal.throwIfAborted();
      if (await copyBrick(brick, payloads, source, filling, signal)) options.onBytes(filling.file.have.bytes());
    }
    await proveThere(filling, options);
    await filling.file.checkpoint();
  } catch (error) {
    if (!(error instanceof CurlewError) || !['NOT_FOUND', 'PACKAGE_INVALID', 'FILE_UNUSABLE'].includes(error.code)) {
      throw error;
    }
  } finally {
    await source?.[Symbol.asyncDispose]();
  }
}

/** Writes a brick whose bytes are at hand; proved are they later. */
async function copyBrick(
  { offset, entry }: Brick,
  payloads: ReadonlyMap<string, PlacedEntry>,
  source: RangeSource,
  { file }: Filling,
  signal: AbortSignal,
): Promise<boolean> {
  if (entry === undefined) return false;
  const old = payloads.get(payloadKey(entry));
  if (entry.packed > 0) {
    if (old === undefined) return false;
    // Where nothing was written yet there are zeros.
    if (!isMemberHeader(await readRange(source, old.offset, MEMBER_HEADER.byteLength, { signal }))) return false;
  }
  const header = headerMember(entry);
  await file.write(offset, header);
  if (old === undefined) return true;
  let at = offset + header.byteLength;
  for await (const chunk of source.read(old.offset, old.packed, { signal })) {
    await file.write(at, chunk);
    at += chunk.byteLength;
  }
  await file.write(at, paddingMember(entry.size));
  return true;
}
