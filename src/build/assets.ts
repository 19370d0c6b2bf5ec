/**
 * Fetches assets. Their sizes are seldom known beforehand, so they wait on disk until the package's layout is made; a
 * broken download resumes where it stopped, in this run or a later one.
 */
import { link, rename, rm, stat, writeFile } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { openFileSource, readPayload } from '../formats/archive/read.ts';
import { digestOf, hexOf, parseDigest, type Digest } from '../core/digest.ts';
import { CurlewError, errnoOf, fileError, redact } from '../core/errors.ts';
import { openGrowingFile } from '../platform/files/growing-file.ts';
import { hashFile } from '../platform/files/hash-file.ts';
import type { AssetStep } from '../manifest/step.ts';
import { download } from '../platform/http/download.ts';
import { isCurrent, readNote, writeNote, type SourceNote } from './asset-note.ts';
import { claim } from '../platform/files/claim.ts';
import { assetFolder, isWorthKeeping, makeOwn, placesOf, type AssetPlaces } from './cache.ts';
import type { BuildPorts } from './ports.ts';
import { requireWithin } from './within-repository.ts';

/** An asset whose bytes lie in a file. */
export interface FetchedAsset {
  readonly step: AssetStep;
  readonly path: string;
  readonly size: number;
  readonly digest: Digest;
}

export type AssetPorts = Pick<BuildPorts, 'http' | 'cache' | 'bodies' | 'donors'>;

/** What was learnt of an address when it was last fetched. */
export async function noteOf(cache: string, source: string): Promise<SourceNote | undefined> {
  return readNote(placesOf(assetFolder(cache), source).note);
}

/** The path of a local asset: absolute, or relative to the Manifest's folder (kurl.md 1.5). */
export function localPath(step: AssetStep, root: string): string {
  return isAbsolute(step.source) ? step.source : join(root, step.source);
}

/** No file is larger, and one whose length no server tells is cut here; the disk is full before, mostly. */
const ASSET_LIMIT = 2 ** 38;

/** Size and digest of a local file, read once. A missing one is `NOT_FOUND`, a folder `FILE_UNUSABLE`. */
export async function measureFile(
  path: string,
  doing: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<{ readonly size: number; readonly digest: Digest }> {
  try {
    const found = await stat(path);
    if (!found.isFile()) throw new CurlewError('FILE_UNUSABLE', `${doing}: ${path} is not a file`);
    if (found.size > ASSET_LIMIT) {
      throw new CurlewError('FILE_UNUSABLE', `${doing}: ${path} has ${found.size} bytes, more than ${ASSET_LIMIT}`);
    }
    return await hashFile(path, { signal });
  } catch (error) {
    if (signal.aborted) throw error;
    const isGone = errnoOf(error) === 'ENOENT' || (error instanceof CurlewError && error.code === 'NOT_FOUND');
    if (isGone) throw new CurlewError('NOT_FOUND', `${doing}: ${path} does not exist`);
    throw fileError(doing, error);
  }
}

export interface AssetOptions {
  /** The add-on's folder. */
  readonly root: string;
  /** Folder of the add-on's own, removed when its build ends. */
  readonly scratch: string;
  readonly onBytes: (bytes: number) => void;
  /** Told by how much more is to come than was known. */
  readonly onExpected: (bytes: number) => void;
}

/** Fetches one asset; a known digest is checked before anybody can use the file. */
export async function fetchAsset(
  step: AssetStep,
  { root, scratch, onBytes, onExpected }: AssetOptions,
  ports: AssetPorts,
  { signal }: { readonly signal: AbortSignal },
): Promise<FetchedAsset> {
  const doing = `asset ${step.fileName}`;
  if (step.local) {
    const path = localPath(step, root);
    await requireWithin(path, join(root, '../../..'), doing);
    const { size, digest } = await measureFile(path, doing, { signal });
    checkDigest(step, digest, doing);
    return { step, path, size, digest };
  }
  try {
    await makeOwn(assetFolder(ports.cache));
    const path = join(scratch, hexOf(digestOf(step.fileName)));
    await takeBody(step, path, { onBytes, onExpected, scratch, ports, signal });
    const { size, digest } = await measureFile(path, doing, { signal });
    checkDigest(step, digest, doing);
    return { step, path, size, digest };
  } catch (error) {
    if (error instanceof CurlewError || signal.aborted) throw error;
    throw fileError(doing, error);
  }
}

function checkDigest(step: AssetStep, digest: Digest, doing: string): void {
  if (step.digest === undefined || step.digest === digest) return;
  throw new CurlewError('DIGEST_MISMATCH', `${doing}: ${redact(step.source)} gave ${digest}, not ${step.digest}`, {
    hint: 'the file has changed at its source; if that is right, change the digest in the Manifest',
  });
}

interface Fetching {
  readonly onBytes: (bytes: number) => void;
  readonly onExpected: (bytes: number) => void;
  readonly scratch: string;
  readonly ports: AssetPorts;
  readonly signal: AbortSignal;
}

/** Links the body to a place of this add-on's own. Another build may have taken it from the cache: then once more. */
async function takeBody(step: AssetStep, to: string, fetching: Fetching): Promise<void> {
  const { bodies } = fetching.ports;
  const linkBody = async (): Promise<void> =>
    link(await bodies.get(step.source, async () => bringBody(step, fetching)), to);
  try {
    await linkBody();
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
    bodies.drop(step.source);
    await linkBody();
  }
}

/** The body of an address: from a package that holds it still, or downloaded. */
async function bringBody(step: AssetStep, fetching: Fetching): Promise<string> {
  const { ports, scratch, signal } = fetching;
  const places = placesOf(assetFolder(ports.cache), step.source);
  let held: AsyncDisposable;
  try {
    held = await claim(places.body);
  } catch (error) {
    if (!(error instanceof CurlewError && error.code === 'BUSY')) throw error;
    // Another process fetches the same address: then this one has a download of its own.
    const own = placesOf(scratch, step.source);
    await receive(step, own, fetching);
    return own.body;
  }
  await using _held = held;
  const note = await readNote(places.note);
  const known = step.digest === undefined ? note?.digest : parseDigest(step.digest, `asset ${step.fileName}`);
  const current =
    step.digest !== undefined || (note !== undefined && (await isCurrent(step, note, ports.http, { signal })));
  if (known !== undefined && current) {
    if (await isBody(places.body, known, signal)) return places.body;
    if (await takeFromPackage(known, places.body, fetching)) return places.body;
  }
  await receive(step, places, fetching);
  return places.body;
}

/** True if an earlier run that failed later has left the whole body behind. */
async function isBody(path: string, digest: Digest, signal: AbortSignal): Promise<boolean> {
  try {
    return (await measureFile(path, 'read an asset', { signal })).digest === digest;
  } catch (error) {
    if (error instanceof CurlewError && error.code === 'NOT_FOUND') return false;
    throw error;
  }
}

/** Unpacks an asset from a finished package that has it, verified. */
async function takeFromPackage(digest: Digest, to: string, { ports, signal }: Fetching): Promise<boolean> {
  const donor = (await ports.donors()).get(digest);
  if (donor === undefined) return false;
  try {
    await using source = await openFileSource(donor.path);
    // What lies there may be linked into another build's folder: it is replaced, not written over.
    await rm(to, { force: true });
    await writeFile(to, readPayload(source, donor.entry, { signal }), { flag: 'wx' });
    return true;
  } catch (error) {
    await rm(to, { force: true });
    if (error instanceof CurlewError && error.code !== 'NO_SPACE' && error.code !== 'CANCELLED') return false;
    throw error;
  }
}

async function receive(
  step: AssetStep,
  places: AssetPlaces,
  { ports, onBytes, onExpected, signal }: Fetching,
): Promise<void> {
  let expected = 0;
  const doing = `asset ${step.fileName}`;
  const begun = await readNote(places.begun);
  try {
    await using file = await openGrowingFile(places.partial, { signal });
    // Without an entity tag nobody can say that the rest belongs to what is there.
    if (begun?.etag === undefined) await file.restart();
    const from = file.size();
    const expectedEtag = begun?.etag ?? (await beginWith(step, places, ports, signal));
    onBytes(from);
    const request = {
      doing,
      url: step.source,
      from,
      expectedEtag,
      limit: ASSET_LIMIT,
      sized: (size: number): void => {
        onExpected(size - expected);
        expected = size;
      },
      write: async (chunk: Uint8Array): Promise<void> => {
        onBytes(chunk.byteLength);
        await file.append(chunk);
      },
      restart: async (): Promise<void> => {
        onBytes(-file.size());
        await file.restart();
      },
    };
    const { etag, lastModified } = await download(ports.http, request, { signal });
    const digest = await file.finish();
    await writeNote(places.note, { size: file.size(), digest, etag, lastModified });
    await rename(places.partial, places.body);
    await rm(places.begun, { force: true });
  } catch (error) {
    if (!isWorthKeeping(error, signal)) await clearPartial(places);
    throw error;
  }
}

async function clearPartial({ partial, begun }: AssetPlaces): Promise<void> {
  for (const path of [partial, begun]) await rm(path, { force: true });
}

/** Notes the entity tag of what is about to be fetched, so that a run after a crash can ask for the rest of it. */
async function beginWith(
  step: AssetStep,
  places: AssetPlaces,
  { http }: AssetPorts,
  signal: AbortSignal,
): Promise<string | undefined> {
  const request = { doing: `asset ${step.fileName}`, url: step.source, method: 'HEAD' } as const;
  const { status, headers } = await http.small(request, { limit: 0, signal });
  const etag = status === 200 ? headers['etag'] : undefined;
  const note = { size: 0, digest: digestOf(''), etag, lastModified: undefined };
  if (etag !== undefined) await writeNote(places.begun, note);
  return etag;
}

/** Takes the bodies of this run off the disk; what is unfinished stays, so that a later run can go on. */
export async function removeBodies({ bodies }: Pick<AssetPorts, 'bodies'>): Promise<void> {
  for (const path of await bodies.drain()) await rm(path, { force: true });
}
