/** Bytes that a download pushes, as bytes that a reader pulls. */
import type { CurlewError } from '../core/errors.ts';
import { download } from '../platform/http/download.ts';
import type { Http } from '../platform/http/http.ts';

export interface WebRange {
  readonly doing: string;
  readonly url: string;
  readonly offset: number;
  readonly length: number;
  /** Of the whole body. */
  readonly size: number;
  /** The body must have this one; undefined when nothing is known of it. */
  readonly etag: string | undefined;
  readonly partsOnly: boolean;
}

interface WebReadOptions {
  /** The error for a body that is another one by now. */
  readonly changed: () => CurlewError;
  readonly allocate?: ((length: number) => Uint8Array) | undefined;
  readonly signal: AbortSignal;
}

/** A chunk that waits for its reader; `taken` lets the download go on. */
interface Offer {
  readonly chunk: Uint8Array;
  readonly taken: () => void;
}

/** Goes on where a connection breaks. Nothing is asked for before the first chunk is, and nothing after the last. */
export async function* readWebRange(
  http: Http,
  { doing, url, offset, length, size, etag, partsOnly }: WebRange,
  { changed, allocate = (bytes) => Buffer.allocUnsafeSlow(bytes), signal }: WebReadOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (length === 0) return;
  const left = new AbortController();
  let offered: (offer: Offer | undefined) => void = () => undefined;
  const write = async (chunk: Uint8Array): Promise<void> =>
    new Promise((taken) => {
      offered({ chunk, taken });
    });
  const next = async (): Promise<Offer | undefined> =>
    new Promise((resolve) => {
      offered = resolve;
    });
  let waiting = next();
  const restart = async (): Promise<void> => {
    throw changed();
  };
  const request = {
    doing,
    url,
    from: offset,
    until: offset + length,
    expectedSize: size,
    expectedEtag: etag,
    partsOnly,
  };
  const finished = download(
    http,
    { ...request, write, restart },
    { signal: AbortSignal.any([signal, left.signal]) },
  ).then(
    () => undefined,
    (error: unknown) => ({ error }),
  );
  void finished.then(() => offered(undefined));
  let offer: Offer | undefined;
  try {
    for (offer = await waiting; offer !== undefined; offer = await waiting) {
      for (let done = 0; done < offer.chunk.byteLength;) {
        const copy = allocate(offer.chunk.byteLength - done);
        copy.set(offer.chunk.subarray(done, done + copy.byteLength));
        done += copy.byteLength;
        yield copy;
      }
      waiting = next();
      offer.taken();
    }
    const failure = await finished;
    if (failure !== undefined) throw failure.error;
  } finally {
    left.abort();
    offer?.taken();
  }
}
