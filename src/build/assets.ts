/**
 * Fetches assets. Most sizes are not known beforehand, so assets wait on disk until the layout of the package is known. A broken
 * download resumes where it stopped, in this run or a later one.
 */
import { link, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openFileSource, readPayload } from '../formats/archive/read.ts';
import { digestOf, hexOf, parseDigest, type Digest } from '../core/digest.ts';
import { CurlewError, errnoOf, fileError, redact, unless } from '../core/errors.ts';
import { hashFile } from '../platform/files/hash-file.ts';
import type { AssetStep } from '../manifest/step.ts';
import { localFile } from '../manifest/within-repository.ts';
import { BODY_LIMIT, fetchUrl } from '../ship/transfer/from-url.ts';
import { removePartial, type PartialPaths } from '../ship/transfer/partial-file.ts';
import { isCurrent, readSourceNote, writeSourceNote, type SourceNote } from './asset-note.ts';
import { claim } from '../platform/files/claim.ts';
import { assetFolder, isWorthKeeping, makeOwn, cachePaths } from './cache.ts';
import type { BuildPorts } from './ports.ts';

/** An asset whose bytes are in a file. */
export interface FetchedAsset {
  readonly step: AssetStep;
  readonly path: string;
  readonly size: number;
  readonly digest: Digest;
}

export type AssetPorts = Pick<BuildPorts, 'http' | 'cache' | 'bodies' | 'localPayloads' | 'outsideFiles'>;

/** The note from the last download of an address. */
export async function noteOf(cache: string, source: string): Promise<SourceNote | undefined> {
  return readSourceNote(cachePaths(assetFolder(cache), source).sourceNote);
}

/** Size and digest of a local file, read once. A missing file is `NOT_FOUND`, a folder `FILE_UNUSABLE`. */
export async function measureFile(
  path: string,
  doing: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<{ readonly size: number; readonly digest: Digest }> {
  try {
    const stats = await stat(path);
    if (stats.isDirectory()) {
      throw new CurlewError('FILE_UNUSABLE', `cannot ${doing}: ${path} is a folder`, {
        hint: 'name a file in it, or pack it into one, such as a tar archive',
      });
    }
    if (!stats.isFile()) throw new CurlewError('FILE_UNUSABLE', `cannot ${doing}: ${path} is not a file`);
    if (stats.size > BODY_LIMIT) {
      throw new CurlewError(
        'FILE_UNUSABLE',
        `cannot ${doing}: ${path} has ${stats.size} bytes, more than ${BODY_LIMIT}`,
      );
    }
    return await hashFile(path, { signal });
  } catch (error) {
    if (signal.aborted) throw error;
    const isGone = errnoOf(error) === 'ENOENT' || (error instanceof CurlewError && error.code === 'NOT_FOUND');
    if (isGone) throw new CurlewError('NOT_FOUND', `cannot ${doing}: ${path} does not exist`);
    throw fileError(doing, error);
  }
}

export interface AssetOptions {
  /** The add-on's folder. */
  readonly root: string;
  /** Folder of this build alone, removed when it ends. */
  readonly scratch: string;
  readonly onBytes: (bytes: number) => void;
  /** How many more bytes there are to fetch than were known before. */
  readonly onExpected: (bytes: number) => void;
}

/** Fetches one asset; a known digest is checked before the file can be used. */
export async function fetchAsset(
  step: AssetStep,
  { root, scratch, onBytes, onExpected }: AssetOptions,
  ports: AssetPorts,
  { signal }: { readonly signal: AbortSignal },
): Promise<FetchedAsset> {
  const doing = `fetch asset ${step.fileName}`;
  if (step.local) {
    const path = localFile(step.source, { root, doing, outsideFiles: ports.outsideFiles });
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

/** The digest that the Manifest gives. */
function digestIn({ digest, fileName }: AssetStep): Digest | undefined {
  return digest === undefined ? undefined : parseDigest(digest, `asset ${fileName}`);
}

function checkDigest(step: AssetStep, digest: Digest, doing: string): void {
  if (step.digest === undefined || step.digest === digest) return;
  throw new CurlewError(
    'DIGEST_MISMATCH',
    `cannot ${doing}: ${redact(step.source)} has the digest ${digest}, not ${step.digest}`,
    { hint: 'the file has changed at its source; if that is right, change the digest in the Manifest' },
  );
}

interface Fetching extends Omit<AssetOptions, 'root'> {
  readonly ports: AssetPorts;
  readonly signal: AbortSignal;
}

/** Links the body into the folder of this build. If another build has removed it from the cache, it is fetched again. */
async function takeBody(step: AssetStep, to: string, fetching: Fetching): Promise<void> {
  const { bodies } = fetching.ports;
  const linkBody = async (): Promise<void> =>
    link(await bodies.get(step.source, async () => bodyOf(step, fetching)), to);
  try {
    await linkBody();
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
    bodies.drop(step.source);
    await linkBody();
  }
}

/** The body of an address: reused from a package that has it, or downloaded. */
async function bodyOf(step: AssetStep, fetching: Fetching): Promise<string> {
  const { ports, scratch, signal } = fetching;
  const paths = cachePaths(assetFolder(ports.cache), step.source);
  let claimed: AsyncDisposable;
  try {
    claimed = await claim(paths.file);
  } catch (error) {
    if (!(error instanceof CurlewError && error.code === 'BUSY')) throw error;
    // Another process fetches the same address: this one downloads it separately.
    const own = cachePaths(scratch, step.source);
    await receive(step, own, fetching);
    return own.file;
  }
  await using _claimed = claimed;
  const note = await readSourceNote(paths.sourceNote);
  const published = digestIn(step);
  const known = published ?? note?.digest;
  const isSame =
    published !== undefined || (note !== undefined && (await isCurrent(step, note, ports.http, { signal })));
  if (known !== undefined && isSame) {
    // An earlier run, which failed later, may have left the complete body.
    const left = await unless(['NOT_FOUND'], measureFile(paths.file, 'read an asset', { signal }));
    if (left?.digest === known) return paths.file;
    if (await takeFromPackage(known, paths.file, fetching)) return paths.file;
  }
  await receive(step, paths, fetching);
  return paths.file;
}

/** Extracts and verifies an asset from a finished package that has it. */
async function takeFromPackage(digest: Digest, to: string, { ports, signal }: Fetching): Promise<boolean> {
  const local = (await ports.localPayloads()).get(digest);
  if (local === undefined) return false;
  try {
    await using source = await openFileSource(local.path);
    // The file may be linked into another build's folder: it is replaced, not written over.
    await rm(to, { force: true });
    await writeFile(to, readPayload(source, local.entry, { signal }), { flag: 'wx' });
    return true;
  } catch (error) {
    await rm(to, { force: true });
    if (error instanceof CurlewError && error.code !== 'NO_SPACE' && error.code !== 'CANCELLED') return false;
    throw error;
  }
}

async function receive(
  step: AssetStep,
  paths: PartialPaths & { readonly sourceNote: string },
  { ports, onBytes, onExpected, signal }: Fetching,
): Promise<void> {
  const doing = `fetch asset ${step.fileName}`;
  let expected = 0;
  const onSize = (size: number): void => {
    onExpected(size - expected);
    expected = size;
  };
  const check = (digest: Digest): void => checkDigest(step, digest, doing);
  const wanted = { doing, url: step.source, paths, digest: digestIn(step), check, force: true };
  try {
    await writeSourceNote(paths.sourceNote, await fetchUrl(ports.http, wanted, { onBytes, onSize, signal }));
  } catch (error) {
    if (!isWorthKeeping(error, signal)) await removePartial(paths);
    throw error;
  }
}

/** Removes the bodies of this run; unfinished downloads stay for a later run. */
export async function removeBodies({ bodies }: Pick<AssetPorts, 'bodies'>): Promise<void> {
  for (const path of await bodies.drain()) await rm(path, { force: true });
}
