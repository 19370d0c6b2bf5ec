/** What is known of an asset's address from the last time: enough to ask whether it still holds the same bytes. */
import { utimes } from 'node:fs/promises';
import { isDigest, type Digest } from '../core/digest.ts';
import { isObject } from '../core/json.ts';
import { readLeft } from '../platform/files/left-file.ts';
import { writeStateFile } from '../platform/files/state-file.ts';
import type { AssetStep } from '../manifest/step.ts';
import type { Http } from '../platform/http/http.ts';

export interface SourceNote {
  readonly size: number;
  readonly digest: Digest;
  readonly etag: string | undefined;
  readonly lastModified: string | undefined;
}

const NOTE_LIMIT = 64 << 10;

/** A note that is damaged missing or of another user costs a download, no more. Its time says when it was last of use. */
export async function readNote(path: string): Promise<SourceNote | undefined> {
  try {
    const text = await readLeft(path, NOTE_LIMIT);
    const now = new Date();
    await utimes(path, now, now).catch(() => undefined);
    return checkedNote(JSON.parse(text ?? ''));
  } catch {
    return undefined;
  }
}

/** A note from outside, or undefined when it is none. */
export function checkedNote(note: unknown): SourceNote | undefined {
  if (!isObject(note)) return undefined;
  const { size, digest, etag, lastModified } = note;
  if (typeof size !== 'number' || typeof digest !== 'string' || !isDigest(digest)) return undefined;
  return {
    size,
    digest,
    etag: typeof etag === 'string' ? etag : undefined,
    lastModified: typeof lastModified === 'string' ? lastModified : undefined,
  };
}

export async function writeNote(path: string, note: SourceNote): Promise<void> {
  await writeStateFile(path, JSON.stringify(note), 0o644);
}

/**
 * Asks the server with a HEAD request. True only if it answers with the same entity tag, or with no tag, the same date
 * and the same length: a server that says neither is always asked for the whole file.
 */
export async function isCurrent(
  step: AssetStep,
  note: SourceNote,
  http: Http,
  { signal }: { readonly signal: AbortSignal },
): Promise<boolean> {
  const request = { doing: `asset ${step.fileName}`, url: step.source, method: 'HEAD' } as const;
  const { status, headers } = await http.small(request, { limit: 0, signal });
  if (status !== 200) return false;
  const etag = headers['etag'];
  if (etag !== undefined || note.etag !== undefined) return etag === note.etag;
  if (note.lastModified === undefined) return false;
  return headers['last-modified'] === note.lastModified && headers['content-length'] === String(note.size);
}
