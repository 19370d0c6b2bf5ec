/** The digest of all bytes of a file, read once. */
import { createHash } from 'node:crypto';
import type { Digest } from '../../core/digest.ts';
import { countBytes, reportStep, type Report } from '../../core/events.ts';
import type { RangeSource } from './entry.ts';

interface DigestOptions {
  readonly onChunk?: ((chunk: Uint8Array) => unknown) | undefined;
  readonly signal: AbortSignal;
}

export async function digestOfAll(source: RangeSource, { onChunk, signal }: DigestOptions): Promise<Digest> {
  const hash = createHash('sha256');
  for await (const chunk of source.read(0, source.size, { signal })) {
    hash.update(chunk);
    onChunk?.(chunk);
  }
  return `sha256:${hash.digest('hex')}`;
}

/** {@link digestOfAll} as a step that reports progress, for large files. */
export async function digestAsStep(
  source: RangeSource,
  { onChunk, report, signal }: DigestOptions & { readonly report: Report },
): Promise<Digest> {
  const id = `hash ${source.name}`;
  const onBytes = countBytes(report, id);
  const count = (chunk: Uint8Array): void => {
    onChunk?.(chunk);
    onBytes(chunk.byteLength);
  };
  return reportStep(
    report,
    { id, title: id, bytes: source.size },
    async () => digestOfAll(source, { onChunk: count, signal }),
    (digest) => digest,
  );
}
