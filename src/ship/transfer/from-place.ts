/** The part of one place in a transfer: checks that it has the same file, verifies the bytes on disk, fetches the missing ones. */
import { basename, dirname } from 'node:path';
import { digestAsStep } from '../../formats/archive/digest-all.ts';
import type { Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { countBytes, reportStep } from '../../core/events.ts';
import { requireSpace } from '../../platform/files/space.ts';
import type { FetchPlace } from '../store/places.ts';
import { checkExisting, type ExistingOptions } from './existing-file.ts';
import { fillFile, type FileFilling, fillingOf, type FillOptions, verifyComplete } from './fill.ts';
import { type ArchiveEnd, type OpenPlace, readArchiveEnd } from './open-place.ts';
import { type FileIdentity, inspectPartial, isSameFile, openPartial, pathsBeside } from './partial-file.ts';
import type { PlacedEntry, RangeSource } from '../../formats/archive/entry.ts';
import { isMemberHeader, MEMBER_HEADER } from '../../formats/archive/member.ts';
import { headerMember, paddingMember } from '../../formats/archive/place.ts';
import { openFileSource, readIndex, readRange } from '../../formats/archive/read.ts';
import type { Section } from './sections.ts';

export interface TransferOptions
  extends Pick<FillOptions, 'connections' | 'pace' | 'elsewhere' | 'signal'>, ExistingOptions {
  /** Beginning of messages, such as `pull web.tar.gz`. */
  readonly doing: string;
  /** Bytes of the whole file, if they are known: a place that has another size is skipped. */
  readonly size?: number | undefined;
  /** Digest of the table of contents, if it is known: a place that has another one is skipped. */
  readonly contents?: Digest | undefined;
  /** How many bytes the file has now, and of how many. */
  readonly onBytes: (bytes: number, total?: number) => void;
}

export interface Pulled {
  readonly file: string;
  /** Bytes of the file. */
  readonly size: number;
  /** Digest of the table of contents; undefined for a file that has none. */
  readonly contents: Digest | undefined;
  /** Bytes that came over the network. */
  readonly fetched: number;
  /** The places that sent bytes, in their order. */
  readonly from: readonly string[];
}

/** A transfer, from all of its places. */
export interface Transfer {
  readonly file: string;
  readonly options: TransferOptions;
  filling: FileFilling | undefined;
  fetched: number;
  readonly from: Set<string>;
  /** Places whose file was replaced during the transfer. */
  readonly changed: Set<FetchPlace>;
}

/** True if the file need not be an archive. */
export function acceptsAnyFile({ options: { sha256, contents, check } }: Transfer): boolean {
  return sha256 !== undefined && contents === undefined && check === undefined;
}

/** Fetches the missing bytes from one place, and gives the file its name. Another place may not have the failures that it throws. */
export async function fromPlace(run: Transfer, place: OpenPlace): Promise<Pulled> {
  const { file, options } = run;
  // A file that was really replaced is fetched in one version.
  const isSame = run.filling !== undefined && isSameFile(run.filling.file.identity(), placeIdentity(place));
  const opened = { ...place, unpinned: place.unpinned && isSame };
  requireExpected(run, opened, opened.end);
  const existing = run.filling === undefined ? await checkExisting(file, opened, options) : undefined;
  if (existing !== undefined) {
    if (!existing.compared) warnUncompared(run, opened);
    return { file, size: opened.object.size, contents: existing.contents, fetched: 0, from: [] };
  }
  let filling = await fillingFor(run, opened);
  await fillFrom(run, filling, opened);
  if (filling.end === undefined) {
    const end = await endOf(run, filling, opened);
    if (end !== undefined) {
      requireExpected(run, opened, end);
      filling = await withEnd(run, filling, end, opened);
      await fillFrom(run, filling, opened);
    }
  }
  const { source } = filling.file;
  const { sha256 } = options;
  const contents = filling.end?.index.tocDigest;
  // The table of contents describes every byte, so with the expected one the sha256 is right, too.
  const isHashed = sha256 !== undefined && contents !== undefined && contents !== options.contents;
  if (isHashed && (await digestAsStep(source, options)) !== sha256) {
    throw new CurlewError(
      'DIGEST_MISMATCH',
      `${opened.name}: it is complete, but has a different sha256 than requested`,
      { hint: 'check the sha256 and the address' },
    );
  }
  await filling.file.finish(options);
  return { file, size: source.size, contents, fetched: run.fetched, from: [...run.from] };
}

/** The place must have the size and the contents that the caller knows. */
function requireExpected({ options }: Transfer, { name, object }: OpenPlace, end: ArchiveEnd | undefined): void {
  const { doing, size, contents, elsewhere } = options;
  const actual = end?.index.tocDigest;
  let what: string | undefined;
  if (size !== undefined && object.size !== size) what = `has ${object.size} bytes, not ${size}`;
  else if (contents !== undefined && actual !== undefined && actual !== contents) {
    what = `has the contents ${actual}, not ${contents}`;
  }
  if (what === undefined) return;
  throw new CurlewError('DIGEST_MISMATCH', `cannot ${doing}: ${name} ${what}`, {
    hint: `the file was replaced or damaged there: ${elsewhere}`,
  });
}

async function fillFrom(run: Transfer, filling: FileFilling, opened: OpenPlace): Promise<void> {
  const { onBytes } = run.options;
  onBytes(filling.file.have.bytes(), filling.file.source.size);
  const onFetched = (bytes: number): void => {
    run.fetched += bytes;
    run.from.add(opened.name);
  };
  await fillFile(filling, opened, { ...run.options, onFetched });
}

export function placeIdentity({ name, object: { size, etag }, unpinned, end }: OpenPlace): FileIdentity {
  return { size, contents: end?.index.tocDigest, from: name, etag: unpinned ? undefined : etag };
}

/** The file that is being fetched, if this place has the same one. */
async function fillingFor(run: Transfer, opened: OpenPlace): Promise<FileFilling> {
  const current = run.filling;
  const { sha256, check, report } = run.options;
  const offered = placeIdentity(opened);
  if (current !== undefined && isSameFile(current.file.identity(), offered)) {
    const isArchive = opened.end !== undefined;
    if (current.end === undefined && isArchive) return withEnd(run, current, opened.end, opened);
    if (!opened.ranged || (current.end !== undefined) === isArchive) return current;
  }
  if (current !== undefined) {
    const { from } = current.file.identity();
    // If it was replaced between two requests, neither was refused for it.
    if (from === opened.name) run.changed.add(opened.place);
    const isReplaced = run.changed.has(opened.place);
    // Without a digest the file of the first place is the right one.
    if (!isReplaced && sha256 === undefined) throw another(opened, current.file.identity());
    await current.file[Symbol.asyncDispose]();
    run.filling = undefined;
    const what = isReplaced ? 'has been replaced' : `has a different file than ${from}`;
    const text = `${opened.name} ${what}: data that both versions have in common is kept`;
    report({ type: 'note', level: 'warning', text });
  }
  if (opened.end !== undefined) await check?.(opened.end.toc, opened);
  await prepareDisk(run, opened, current === undefined);
  const file = await openPartial(pathsBeside(run.file), offered, 'all');
  run.filling = fillingOf(file, undefined, sha256);
  return opened.end === undefined ? run.filling : withEnd(run, run.filling, opened.end, undefined);
}

/** Requires free space, and warns if an earlier run has begun another file. */
async function prepareDisk({ file, options }: Transfer, opened: OpenPlace, isFirst: boolean): Promise<void> {
  const [folder, paths] = [dirname(file), pathsBeside(file)];
  const { otherFrom, aside, bytes } = await inspectPartial(paths, placeIdentity(opened));
  const hint = aside
    ? `${paths.partial} is of another version: remove it, or free some space, and run the same command again`
    : undefined;
  await requireSpace(folder, opened.object.size - bytes, `${options.doing} into ${folder}`, hint);
  if (otherFrom === undefined || !isFirst) return;
  const why = otherFrom === opened.name ? `${otherFrom} has been replaced` : `${otherFrom} had a different file`;
  const what = aside ? 'starting over with data that both versions have in common' : 'starting over';
  options.report({
    type: 'note',
    level: 'warning',
    text: `${why} when ${basename(paths.partial)} was started: ${what}`,
  });
}

function warnUncompared({ file, options }: Transfer, { name }: OpenPlace): void {
  const text = `${name} does not support range requests and sends nothing to compare: ${basename(file)} has the same length and is complete; --force fetches it again`;
  options.report({ type: 'note', level: 'warning', text });
}

function another({ name, object, end }: OpenPlace, { size, contents, from }: FileIdentity): CurlewError {
  const what =
    object.size === size
      ? `its contents are ${end?.index.tocDigest ?? 'unknown'}, not ${contents ?? 'those'}`
      : `it has ${object.size} bytes, not ${size}`;
  return new CurlewError('DIGEST_MISMATCH', `${name}: not the file that ${from} has: ${what}`, {
    hint: 'specify addresses that have the same file',
  });
}

/**
 * From here on each entry is verified by itself. `unchecked` is the place whose signature has to be checked first; undefined
 * if that has been done.
 */
async function withEnd(
  run: Transfer,
  { file }: FileFilling,
  end: ArchiveEnd,
  unchecked: OpenPlace | undefined,
): Promise<FileFilling> {
  const { options } = run;
  if (unchecked !== undefined) await options.check?.(end.toc, unchecked);
  const filling = fillingOf(file, end, undefined);
  file.identify({ ...file.identity(), contents: end.index.tocDigest });
  await file.write(end.index.tocOffset, end.bytes);
  run.filling = filling;
  options.onBytes(file.have.bytes(), file.source.size);
  await verifyPartial(run, filling);
  for (const path of [pathsBeside(run.file).older, ...(options.force ? [run.file] : [])]) {
    await reusePayloads(path, filling, options);
  }
  return filling;
}

/** Reports progress: for a large file that is almost complete, this takes a while. */
async function verifyPartial({ file, options }: Transfer, filling: FileFilling): Promise<void> {
  const { report, onBytes, signal } = options;
  const bytes = filling.file.have.bytes() - (filling.end?.bytes.byteLength ?? 0);
  if (bytes === 0) return;
  const id = 'check';
  const onVerified = countBytes(report, id);
  await reportStep(
    report,
    { id, title: `check partial ${basename(file)}`, bytes },
    async () => verifyComplete(filling, { onBytes, onVerified, signal }),
    () => 'done',
  );
}

/** The end of a file that came in one stream. Without one, and without a digest, none of its bytes can be verified. */
async function endOf(run: Transfer, filling: FileFilling, opened: OpenPlace): Promise<ArchiveEnd | undefined> {
  const { file } = filling;
  const { size } = file.source;
  try {
    return await readArchiveEnd({ ...file.source, name: opened.name }, { signal: run.options.signal });
  } catch (error) {
    if (!(error instanceof CurlewError) || error.code !== 'PACKAGE_INVALID') throw error;
    if (acceptsAnyFile(run)) return undefined;
    file.have.remove({ offset: 0, end: size });
    if (run.fetched >= size) throw error;
  }
  // Bytes of an earlier run do not fit: fetch all of it, once.
  await fillFrom(run, filling, opened);
  return endOf(run, filling, opened);
}

/** Equal for payloads whose bytes are equal. */
function payloadKey({ digest, packed, packedDigest }: PlacedEntry): string {
  return `${digest} ${packed} ${packedDigest ?? ''}`;
}

/** Copies missing entries whose payloads are in the archive at this path, if it is one. */
async function reusePayloads(
  path: string,
  filling: FileFilling,
  options: Pick<FillOptions, 'onBytes' | 'signal'>,
): Promise<void> {
  const { signal } = options;
  let source: (RangeSource & AsyncDisposable) | undefined;
  try {
    source = await openFileSource(path);
    const { entries } = await readIndex(source, { signal });
    const payloads = new Map(entries.filter(({ packed }) => packed > 0).map((entry) => [payloadKey(entry), entry]));
    for (const section of filling.sections) {
      if (filling.verified.has(section)) continue;
      signal.throwIfAborted();
      if (await copySection(section, payloads, source, filling, signal)) options.onBytes(filling.file.have.bytes());
    }
    await verifyComplete(filling, options);
    await filling.file.checkpoint();
  } catch (error) {
    if (!(error instanceof CurlewError) || !['NOT_FOUND', 'PACKAGE_INVALID', 'FILE_UNUSABLE'].includes(error.code)) {
      throw error;
    }
  } finally {
    await source?.[Symbol.asyncDispose]();
  }
}

/** Writes a section whose bytes are known or in `source`; it is verified later. */
async function copySection(
  { offset, entry }: Section,
  payloads: ReadonlyMap<string, PlacedEntry>,
  source: RangeSource,
  { file }: FileFilling,
  signal: AbortSignal,
): Promise<boolean> {
  if (entry === undefined) return false;
  const old = payloads.get(payloadKey(entry));
  if (entry.packed > 0) {
    if (old === undefined) return false;
    // A range that was never written is zeros.
    if (!isMemberHeader(await readRange(source, old.offset, MEMBER_HEADER.byteLength, { signal }))) return false;
  }
  const header = headerMember(entry);
  await file.write(offset, header);
  if (old === undefined) return true;
  let at = offset + header.byteLength;
  for await (const chunk of source.read(old.offset, old.packed, { signal })) {
    await file.write(at, chunk);
    at += chunk.byteLength;
  }
  await file.write(at, paddingMember(entry.size));
  return true;
}
