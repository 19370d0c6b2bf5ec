/** Transfers the body of one URL, whose size and digest need not be known beforehand, in one stream. */
import { digestOfAll } from '../../formats/archive/digest-all.ts';
import type { Digest } from '../../core/digest.ts';
import { redact } from '../../core/errors.ts';
import { download, isStrong, type DownloadRequest } from '../../platform/http/download.ts';
import type { Http } from '../../platform/http/http.ts';
import { openPartial, type FinishOptions, type PartialFile, type PartialPaths } from './partial-file.ts';

export interface UrlFile extends FinishOptions {
  /** Beginning of messages. */
  readonly doing: string;
  readonly url: string;
  readonly paths: PartialPaths;
  /** Digest of the whole body, if it is known. */
  readonly digest: Digest | undefined;
  /** Throws if the body must not have this digest. */
  readonly check: (digest: Digest) => void;
  /** Most bytes of the body; default: {@link BODY_LIMIT}. */
  readonly limit?: number | undefined;
}

/** Most bytes of a file, whatever length a server reports; most disks are full before. */
export const BODY_LIMIT: number = 2 ** 38;

export interface UrlOptions {
  /** How many more bytes the file has; negative if some are forgotten. */
  readonly onBytes: (bytes: number) => void;
  /** The size of the body, whenever the server reports it. */
  readonly onSize: (bytes: number) => void;
  /** Called with the bytes that have arrived; the next ones are read when it has returned. */
  readonly onFetched?: ((bytes: number) => Promise<void>) | undefined;
  readonly signal: AbortSignal;
}

export interface UrlBody {
  readonly size: number;
  readonly digest: Digest;
  readonly etag: string | undefined;
  readonly lastModified: string | undefined;
}

/**
 * Fetches to `paths.file`. What an earlier run left is resumed if the server still has the same version by its strong entity
 * tag (`If-Range`), or if the digest is known; wrong bytes are then fetched again, once. Throws as {@link download} and `check`
 * do, and `FILE_EXISTS`; the partial file stays, unless all of its bytes are wrong.
 */
export async function fetchUrl(
  http: Http,
  { doing, url, paths, digest, check, limit = BODY_LIMIT, ...finish }: UrlFile,
  { onBytes, onSize, onFetched, signal }: UrlOptions,
): Promise<UrlBody> {
  const identity = { size: undefined, contents: digest, from: redact(url), etag: undefined };
  await using file = await openPartial(paths, identity, digest === undefined ? 'noted' : 'all');
  const isResumable = digest !== undefined || file.identity().etag !== undefined;
  if (!isResumable && file.have.bytes() > 0) await file.restart();
  // One stream: what follows the first gap comes again.
  file.have.remove({ offset: firstGap(file), end: Number.MAX_SAFE_INTEGER });
  const request = { doing, url, limit, unverified: digest === undefined };
  for (;;) {
    const resumed = file.have.bytes() > 0;
    onBytes(file.have.bytes());
    const { size, etag, lastModified } = await receive(http, request, file, { onBytes, onSize, onFetched, signal });
    file.identify({ ...file.identity(), size });
    const actual = await digestOfAll(file.source, { signal });
    try {
      check(actual);
    } catch (error) {
      // Wrong bytes are not resumed.
      await file.restart();
      if (!resumed) throw error;
      onBytes(-size);
      continue;
    }
    await file.finish(finish);
    return { size, digest: actual, etag, lastModified };
  }
}

function firstGap({ have }: PartialFile): number {
  return have.gap(Number.MAX_SAFE_INTEGER)?.offset ?? 0;
}

async function receive(
  http: Http,
  request: Pick<DownloadRequest, 'doing' | 'url' | 'limit' | 'unverified'>,
  file: PartialFile,
  { onBytes, onSize, onFetched, signal }: UrlOptions,
): Promise<Pick<UrlBody, 'size' | 'etag' | 'lastModified'>> {
  let write = file.writer();
  let at = firstGap(file);
  return download(
    http,
    {
      ...request,
      from: at,
      // A digest also verifies what another address has sent, which may have another tag.
      expectedEtag: request.unverified === true ? file.identity().etag : undefined,
      onFacts: ({ etag, size }) => {
        file.identify({ ...file.identity(), size: undefined, etag: isStrong(etag) ? etag : undefined });
        if (size !== undefined) onSize(size);
      },
      write: async (chunk) => {
        await write(at, chunk);
        at += chunk.byteLength;
        onBytes(chunk.byteLength);
        await onFetched?.(chunk.byteLength);
      },
      restart: async () => {
        onBytes(-at);
        await file.restart();
        write = file.writer();
        at = 0;
      },
    },
    { signal },
  );
}
