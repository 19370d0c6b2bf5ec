/** What a layer unpacks to. Runs in a thread (layer-worker.ts). */
import { createHash } from 'node:crypto';
import type { Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { beginsTar, TAR_BLOCK } from '../archive/header.ts';
import { OTHER_PACKINGS, unpacked, type UnpackWork } from './unpacked.ts';

/** The digest of the tar in a layer, or why no container runtime can read it. */
export type LayerContent = { readonly digest: Digest } | { readonly problem: string };

/** Files of zeros compress well, and belong to images of databases: a layer may have so many bytes whatever its ratio. */
const ALWAYS_ALLOWED = 2 ** 30;

class Unreadable extends CurlewError {}

const unreadable = (what: string, cause?: unknown): Unreadable => new Unreadable('IMAGE_INVALID', what, { cause });

/** Reads a layer of `size` bytes to its end; `work` is that of all layers. Errors of the source are thrown. */
export async function layerContent(
  packed: AsyncIterable<Uint8Array>,
  { size, work }: { readonly size: number; readonly work: UnpackWork },
): Promise<LayerContent> {
  const hash = createHash('sha256');
  let start = Buffer.alloc(0);
  try {
    for await (const chunk of unpacked(packed, { size, allowed: ALWAYS_ALLOWED, isStrict: true, work }, unreadable)) {
      hash.update(chunk);
      if (start.byteLength === TAR_BLOCK) continue;
      start = Buffer.concat([start, chunk.subarray(0, TAR_BLOCK - start.byteLength)]);
      if (start.byteLength === TAR_BLOCK) requireTar(start);
    }
    if (start.byteLength < TAR_BLOCK) requireTar(start);
  } catch (error) {
    if (error instanceof Unreadable) return { problem: error.message };
    throw error;
  }
  return { digest: `sha256:${hash.digest('hex')}` };
}

/** What tools write into layers by mistake, by the first bytes in hex. */
const KNOWN: readonly (readonly [string, string])[] = [
  ['504b0304', 'a zip file'],
  ...OTHER_PACKINGS,
  ['1f8b', 'gzip in gzip'],
  ['28b52ffd', 'zstd in another compression'],
];

function requireTar(start: Buffer): void {
  if (beginsTar(start)) return;
  const magic = start.subarray(0, 8).toString('hex');
  const [, name] = KNOWN.find(([bytes]) => magic.startsWith(bytes)) ?? [];
  throw unreadable(name === undefined ? 'it is not a tar' : `it is ${name}, not a tar`);
}
