/** Brings a stored payload to its place: from an interrupted run, from a package that has it, or from its source. */
import { open } from 'node:fs/promises';
import type { PlacedEntry } from '../archive/entry.ts';
import type { ArchiveWriter, Payload } from '../archive/write.ts';
import type { Digest } from '../core/digest.ts';
import { CurlewError, errnoOf } from '../core/errors.ts';
import type { Donor } from './donors.ts';
import type { BuildPorts } from './ports.ts';

/** Sends the raw bytes from `from` on. */
export type SendBytes = (
  from: number,
  write: Payload['write'],
  options: { readonly signal: AbortSignal },
) => Promise<void>;

/** Where a payload lies that this run has written; the path changes when its package gets its name. */
export interface Written {
  readonly path: () => string;
  readonly offset: number;
}

/** What is being fetched, or has been, by this run: each blob comes over the wire once. */
export type BlobLedger = Map<Digest, Promise<Written | undefined>>;

export interface BlobRequest {
  readonly writer: ArchiveWriter;
  readonly entry: PlacedEntry;
  readonly send: SendBytes;
  /** Path under which the writer's file can be read now. */
  readonly path: () => string;
  readonly onBytes: (bytes: number) => void;
}

export type BlobOutcome = 'resumed' | 'copied' | 'fetched';

/** Puts one payload to its place and proves its digest. */
export async function placeBlob(
  request: BlobRequest,
  ports: Pick<BuildPorts, 'ledger' | 'donors' | 'lanes'>,
  { signal }: { readonly signal: AbortSignal },
): Promise<BlobOutcome> {
  const { entry, path } = request;
  const elsewhere = ports.ledger.get(entry.digest);
  if (elsewhere !== undefined) {
    const written = await elsewhere;
    signal.throwIfAborted();
    if (written !== undefined && (await copyWritten(request, written))) return 'copied';
    return ports.lanes.run(async () => fetchBlob(request, ports, { signal }), signal);
  }
  const work = ports.lanes.run(async () => fetchBlob(request, ports, { signal }), signal);
  const entered = work.then(
    (): Written => ({ path, offset: entry.offset }),
    () => undefined,
  );
  ports.ledger.set(entry.digest, entered);
  return work;
}

/** Copies from another package of this run, which may get its final name just now. */
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

/** Copies a stored member; false, and nothing lost, when what lies there is not the payload. */
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
    // The copying thread reads from it until it has answered.
    await file.close();
  }
}

async function fetchBlob(
  request: BlobRequest,
  ports: Pick<BuildPorts, 'donors'>,
  { signal }: { readonly signal: AbortSignal },
): Promise<BlobOutcome> {
  const { writer, entry } = request;
  const resumed = await writer.openPayload(entry, { fresh: false });
  if (resumed.from > 0) {
    try {
      await receive(request, resumed, signal);
      return 'resumed';
    } catch (error) {
      // What a crash left behind may be damaged (a power cut drops writes): then it starts again, once.
      if (!(error instanceof CurlewError && error.code === 'DIGEST_MISMATCH')) throw error;
    }
  } else {
    await resumed.abandon();
  }
  const donor = (await ports.donors()).get(entry.digest);
  if (donor?.entry.stored === true && donor.entry.size === entry.size && (await copyDonated(request, donor))) {
    return 'copied';
  }
  await receive(request, await writer.openPayload(entry, { fresh: true }), signal);
  return 'fetched';
}

async function copyDonated(request: BlobRequest, { path, entry }: Donor): Promise<boolean> {
  try {
    return await copyStored(request, { path, offset: entry.offset });
  } catch (error) {
    // The package was removed since the folder was looked through.
    if (errnoOf(error) === 'ENOENT') return false;
    throw error;
  }
}

async function receive({ entry, send, onBytes }: BlobRequest, payload: Payload, signal: AbortSignal): Promise<void> {
  let done = payload.from;
  onBytes(done);
  try {
    if (payload.from < entry.size) {
      const write: Payload['write'] = (chunk) => {
        done += chunk.byteLength;
        onBytes(chunk.byteLength);
        return payload.write(chunk);
      };
      await send(payload.from, write, { signal });
    }
    await payload.finish();
  } catch (error) {
    onBytes(-done);
    await payload.abandon();
    throw error;
  }
}
