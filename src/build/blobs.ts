/** Writes a stored payload to its place: from an interrupted run, from a package that has it, or from its source. */
import { open } from 'node:fs/promises';
import type { PlacedEntry } from '../formats/archive/entry.ts';
import type { ArchiveWriter, Payload } from '../formats/archive/write.ts';
import { CurlewError, errnoOf, unless } from '../core/errors.ts';
import type { LocalPayload } from './local-payloads.ts';
import type { BlobFetchOptions, SendBlob } from '../formats/oci/image.ts';
import type { BuildPorts, Written } from './ports.ts';

export interface BlobRequest {
  readonly writer: ArchiveWriter;
  readonly entry: PlacedEntry;
  readonly send: SendBlob;
  /** Current path of the writer's file. */
  readonly path: () => string;
  readonly onBytes: (bytes: number) => void;
}

/** The error for wrong bytes if the alternative source fails too: it is more specific than that failure. */
export function failureElsewhere(wrong: CurlewError | undefined, error: unknown): unknown {
  if (wrong === undefined || !(error instanceof CurlewError)) return error;
  if (!['FETCH_FAILED', 'AUTH_FAILED', 'NOT_FOUND'].includes(error.code)) return error;
  const message = `${wrong.message} (alternative source: ${error.message})`;
  return wrong.with({ message, cause: error });
}

export type BlobOutcome = 'resumed' | 'copied' | 'fetched';

/** Writes one payload to its place and verifies its digest. */
export async function placeBlob(
  request: BlobRequest,
  ports: Pick<BuildPorts, 'ledger' | 'localPayloads' | 'transfers'>,
  { signal }: { readonly signal: AbortSignal },
): Promise<BlobOutcome> {
  const { entry, path } = request;
  const elsewhere = ports.ledger.get(entry.digest);
  if (elsewhere !== undefined) {
    const written = await elsewhere;
    signal.throwIfAborted();
    if (written !== undefined && (await copyWritten(request, written))) return 'copied';
    return ports.transfers.run(async () => fetchBlob(request, ports, { signal }), { signal });
  }
  const work = ports.transfers.run(async () => fetchBlob(request, ports, { signal }), { signal });
  const entered = work.then(
    (): Written => ({ path, offset: entry.offset }),
    () => undefined,
  );
  ports.ledger.set(entry.digest, entered);
  return work;
}

/** Copies from another package of this run, which may be renamed at the same time. */
async function copyWritten(request: BlobRequest, written: Written): Promise<boolean> {
  for (let attempt = 0; attempt < 3; attempt += 1) {
    try {
      return await copyStored(request, { path: written.path(), offset: written.offset });
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error;
    }
  }
  return false;
}

/** Copies a stored member; false, without side effects, if it is not the payload. */
async function copyStored(
  { writer, entry, onBytes }: BlobRequest,
  from: { readonly path: string; readonly offset: number },
): Promise<boolean> {
  const file = await open(from.path, 'r');
  try {
    const payload = await writer.openPayload(entry, { fresh: true });
    const copied = await payload.copyFrom(file.fd, from.offset);
    if (copied < entry.size) {
      await payload.abandon();
      return false;
    }
    await payload.finish();
    onBytes(entry.size);
    return true;
  } catch (error) {
    if (error instanceof CurlewError && error.code === 'DIGEST_MISMATCH') return false;
    throw error;
  } finally {
    // The copying thread reads from the file until then.
    await file.close();
  }
}

async function fetchBlob(
  request: BlobRequest,
  ports: Pick<BuildPorts, 'localPayloads'>,
  { signal }: { readonly signal: AbortSignal },
): Promise<BlobOutcome> {
  const { writer, entry } = request;
  const resumed = await writer.openPayload(entry, { fresh: false });
  if (resumed.from > 0) {
    // Bytes of a crashed run may be damaged (a power cut drops writes): then start again, once.
    const { wrong } = await receive(request, resumed, { skip: undefined, signal });
    if (wrong === undefined) return 'resumed';
  } else {
    await resumed.abandon();
  }
  const local = (await ports.localPayloads()).get(entry.digest);
  if (local?.entry.stored === true && local.entry.size === entry.size && (await copyLocal(request, local))) {
    return 'copied';
  }
  await fetchWhole(request, signal);
  return 'fetched';
}

/** Fetches a whole blob, from one source after the other until the bytes are correct. */
async function fetchWhole(request: BlobRequest, signal: AbortSignal): Promise<void> {
  const { writer, entry } = request;
  let skip: number | undefined;
  let before: CurlewError | undefined;
  for (;;) {
    try {
      const payload = await writer.openPayload(entry, { fresh: true });
      const { wrong, next } = await receive(request, payload, { skip, signal });
      if (wrong === undefined) return;
      if (next === undefined) throw wrong;
      skip = next;
      before = wrong;
    } catch (error) {
      throw failureElsewhere(before, error);
    }
  }
}

async function copyLocal(request: BlobRequest, { path, entry }: LocalPayload): Promise<boolean> {
  // The package may have been removed after the folder was scanned.
  return (await unless(['ENOENT'], copyStored(request, { path, offset: entry.offset }))) ?? false;
}

interface Received {
  /** Set if the bytes do not match the entry. */
  readonly wrong: CurlewError | undefined;
  /** The number of sources to skip to fetch it from another one. */
  readonly next: number | undefined;
}

async function receive(
  { entry, send, onBytes }: BlobRequest,
  payload: Payload,
  options: Pick<BlobFetchOptions, 'skip' | 'signal'>,
): Promise<Received> {
  const { from } = payload;
  let done = from;
  let next: number | undefined;
  onBytes(done);
  try {
    if (from < entry.size) {
      const write: Payload['write'] = (chunk) => {
        done += chunk.byteLength;
        onBytes(chunk.byteLength);
        return payload.write(chunk);
      };
      next = await send({ from, write, ...options });
    }
    await payload.finish();
    return { wrong: undefined, next: undefined };
  } catch (error) {
    onBytes(-done);
    await payload.abandon();
    if (error instanceof CurlewError && error.code === 'DIGEST_MISMATCH') return { wrong: error, next };
    throw error;
  }
}
