/**
 * Deflates an executable part by part. A part ends at a byte border and refers to nothing before it, so parts that were
 * deflated at different times make one stream: by far the largest changes only with Node itself and is kept.
 */
import { Deflate } from 'fflate';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inflateRawSync } from 'node:zlib';
import { digestOf, hexOf } from '../../src/core/digest.ts';

/** Pushes of one size, since they may decide the bytes. */
const PUSH = 1 << 20;

/** An empty block that ends a stream. */
const END = Uint8Array.of(3, 0);

/** The level is that of every payload (docs/format.md). Only what is `final` ends the stream. */
export function deflatePart(raw: Uint8Array, { final }: { readonly final: boolean }): Buffer {
  const chunks: Uint8Array[] = [];
  const deflate = new Deflate({ level: 6 }, (chunk) => {
    chunks.push(chunk);
  });
  for (let at = 0; at < raw.byteLength; at += PUSH) {
    // Its own copy: the deflater keeps what it is given.
    deflate.push(Uint8Array.from(raw.subarray(at, at + PUSH)), final && at + PUSH >= raw.byteLength);
  }
  if (final) return Buffer.concat(chunks);
  deflate.flush(true);
  return atByteBorder(raw, chunks);
}

/**
 * What `flush` says last is an empty stored block up to a byte border: the bits left over, padding, and 00 00 ff ff. When
 * the bits left over are not zero, fflate 0.8.3 leaves the end out, and not how many bits they were. One of two ends is
 * the right one; only with that the part inflates.
 */
function atByteBorder(raw: Uint8Array, chunks: readonly Uint8Array[]): Buffer {
  const last = chunks.at(-1) ?? new Uint8Array(1);
  const before = chunks.slice(0, -1);
  const bits = last[0] ?? 0;
  for (const end of [last, Uint8Array.of(bits, 0, 0, 0xff, 0xff), Uint8Array.of(bits, 0, 0, 0, 0xff, 0xff)]) {
    const part = Buffer.concat([...before, end]);
    if (inflatesTo(Buffer.concat([part, END]), raw)) return part;
  }
  throw new Error('a part that was deflated does not inflate');
}

function inflatesTo(deflated: Uint8Array, raw: Uint8Array): boolean {
  try {
    return Buffer.compare(inflateRawSync(deflated, { maxOutputLength: raw.byteLength + 1 }), raw) === 0;
  } catch {
    return false;
  }
}

/**
 * A part that is not final, deflated, from `folder` if it was deflated before. A cached file counts only if it inflates to
 * the part: otherwise it is made again.
 */
export async function keptPart(raw: Uint8Array, folder: string): Promise<Buffer> {
  const path = join(folder, `${hexOf(digestOf(raw))}.deflate`);
  const kept = await readFile(path).catch(() => undefined);
  if (kept !== undefined && inflatesTo(Buffer.concat([kept, END]), raw)) return kept;
  const made = deflatePart(raw, { final: false });
  const partial = `${path}.${process.pid}`;
  await writeFile(partial, made);
  await rename(partial, path);
  return made;
}
