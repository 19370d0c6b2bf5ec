/** The report of an asset's server when it was last fetched: enough to ask whether the asset is still the same. */
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

/** A note that is missing, damaged or another user's costs only a download. Its mtime is the time of its last use. */
export async function readSourceNote(path: string): Promise<SourceNote | undefined> {
  try {
    const text = await readLeft(path, NOTE_LIMIT);
    const now = new Date();
    await utimes(path, now, now).catch(() => undefined);
    return checkedNote(JSON.parse(text ?? ''));
  } catch {
    return undefined;
  }
}

/** Undefined for any other value. */
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

export async function writeSourceNote(path: string, note: SourceNote): Promise<void> {
  await writeStateFile(path, JSON.stringify(note), 0o644);
}

/**
 * Asks the server with a HEAD request. True only if it reports the same entity tag, or no tag, the same date and the same
 * length. If a server reports neither tag nor date, the asset is always fetched again.
 */
export async function isCurrent(
  step: AssetStep,
  note: SourceNote,
  http: Http,
  { signal }: { readonly signal: AbortSignal },
): Promise<boolean> {
  const request = { doing: `fetch asset ${step.fileName}`, url: step.source, method: 'HEAD' } as const;
  const { status, headers } = await http.small(request, { limit: 0, signal });
  if (status !== 200) return false;
  const etag = headers['etag'];
  if (etag !== undefined || note.etag !== undefined) return etag === note.etag;
  if (note.lastModified === undefined) return false;
  return headers['last-modified'] === note.lastModified && headers['content-length'] === String(note.size);
}
