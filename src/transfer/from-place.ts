/** One place's part in fetching a file: is it the same file, what is there already, what lacks, is it right. */
import { basename, dirname } from 'node:path';
import { digestAsStep } from '../formats/archive/digest-all.ts';
import type { Digest } from '../core/digest.ts';
import { CurlewError } from '../core/errors.ts';
import { type Report, reportStep } from '../core/events.ts';
import { requireSpace } from '../platform/files/space.ts';
import type { FetchPlace } from '../store/places.ts';
import { settleExisting } from './existing.ts';
import { fill, type Filling, fillingOf, type FillOptions, proveThere } from './fill.ts';
import { type ArchiveEnd, type OpenPlace, readArchiveEnd } from './open-place.ts';
import { type Identity, isSameFile, lookAtLeft, openPartial, pathsBeside } from './partial-file.ts';
import type { PlacedEntry, RangeSource } from '../formats/archive/entry.ts';
import { isMemberHeader, MEMBER_HEADER } from '../formats/archive/member.ts';
import { headerMember, paddingMember } from '../formats/archive/place.ts';
import { openFileSource, readIndex, readRange } from '../formats/archive/read.ts';
import type { Brick } from './bricks.ts';

export interface PullOptions {
  /** Of the whole file; then it need not be an archive. */
  readonly sha256: Digest | undefined;
  /** Holds the signature of a table of contents against trusted keys; throws when it does not stand. */
  readonly check: ((toc: Uint8Array, from: OpenPlace) => Promise<void>) | undefined;
  /** Replace the file if it is there. */
  readonly force: boolean;
  /** Requests at once. */
  readonly connections: number;
  readonly pace: FillOptions['pace'];
  readonly report: Report;
  readonly signal: AbortSignal;
}

export interface Pulled {
  readonly file: string;
  /** Bytes of the file. */
  readonly size: number;
  /** Digest of the table of contents; undefined for a file that has none. */
  readonly contents: Digest | undefined;
  /** Bytes that came over the network. */
  readonly fetched: number;
  /** The places that gave bytes, in their order. */
  readonly from: readonly string[];
}

/** A file on its way, whichever places are asked for it. */
export interface Pull {
  readonly file: string;
  readonly options: PullOptions;
  readonly onBytes: (bytes: number, total?: number) => void;
  filling: Filling | undefined;
  fetched: number;
  readonly from: Set<string>;
  /** Places whose file was replaced while it was being read. */
  readonly changed: Set<FetchPlace>;
}

/** A file that is no archive will do. */
export function mayBeAny({ options: { sha256, check } }: Pull): boolean {
  return sha256 !== undefined && check === undefined;
}

/** Brings what lacks from one place, and gives the file its name. What it throws may be better elsewhere. */
export async function fromPlace(run: Pull, opened: OpenPlace): Promise<Pulled> {
  const { file, options } = run;
  const found = run.filling === undefined ? await settleExisting(file, opened, options) : undefined;
  if (found !== undefined) {
    if (!found.compared) tellUncompared(run, opened);
    return { file, size: opened.object.size, contents: found.contents, fetched: 0, from: [] };
  }
  let filling = await fillingFor(run, opened);
  await fillFrom(run, filling, opened);
  if (filling.end === undefined) {
    const end = await endOf(run, filling, opened);
    if (end !== undefined) {
      filling = await withEnd(run, filling, end, opened);
      await fillFrom(run, filling, opened);
    }
  }
  const { source } = filling.file;
  const { sha256 } = options;
  if (sha256 !== undefined && filling.end !== undefined && (await digestAsStep(source, options)) !== sha256) {
    throw new CurlewError('DIGEST_MISMATCH', `${opened.name}: it is whole, but has another sha256 than was asked for`, {
      hint: 'check the sha256 and the address',
    });
  }
  await filling.file.finish(options);
  const contents = filling.end?.index.tocDigest;
  return { file, size: source.size, contents, fetched: run.fetched, from: [...run.from] };
}

async function fillFrom(run: Pull, filling: Filling, opened: OpenPlace): Promise<void> {
  const { size } = filling.file.source;
  const { connections, pace, signal } = run.options;
  run.onBytes(filling.file.have.bytes(), size);
  const onFetched = (bytes: number): void => {
    run.fetched += bytes;
    run.from.add(opened.name);
  };
  await fill(filling, opened, { connections, pace, onBytes: run.onBytes, onFetched, signal });
}

function identityOf({ name, object: { size, etag }, end }: OpenPlace): Identity {
  return { size, contents: end?.index.tocDigest, from: name, etag };
}

/** The file that is being fetched, once it is sure that this place has the same one. */
async function fillingFor(run: Pull, opened: OpenPlace): Promise<Filling> {
  const current = run.filling;
  const wanted = identityOf(opened);
  if (current !== undefined && isSameFile(current.file.identity(), wanted)) {
    const isArchive = opened.end !== undefined;
    if (current.end === undefined && isArchive) return withEnd(run, current, opened.end, opened);
    if (!opened.ranged || (current.end !== undefined) === isArchive) return current;
  }
  if (current !== undefined) {
    // It may have been replaced while nobody answered: then no request was refused for it.
    if (current.file.identity().from === opened.name) run.changed.add(opened.place);
    if (!run.changed.has(opened.place)) throw another(opened, current.file.identity());
    await current.file.checkpoint();
    await current.file[Symbol.asyncDispose]();
    run.filling = undefined;
    const text = `${opened.name} has been replaced: what both versions have in common is kept`;
    run.options.report({ type: 'note', level: 'warning', text });
  }
  if (opened.end !== undefined) await run.options.check?.(opened.end.toc, opened);
  await prepareDisk(run, wanted, current === undefined);
  const file = await openPartial(run.file, wanted);
  run.filling = fillingOf(file, undefined, run.options.sha256);
  return opened.end === undefined ? run.filling : withEnd(run, run.filling, opened.end, undefined);
}

/** Asks for room, and tells when an earlier run has begun something else. */
async function prepareDisk({ file, options }: Pull, wanted: Identity, isFirst: boolean): Promise<void> {
  const [folder, { partial }] = [dirname(file), pathsBeside(file)];
  const { otherFrom, aside, bytes } = await lookAtLeft(file, wanted);
  const hint = aside
    ? `${partial} is of another version: remove it, or free some space, and run the same command again`
    : undefined;
  await requireSpace(folder, wanted.size - bytes, `pull ${basename(file)} into ${folder}`, hint);
  if (otherFrom === undefined || !isFirst) return;
  const why = otherFrom === wanted.from ? `${otherFrom} has been replaced` : `${otherFrom} had something else`;
  const what = aside ? 'begun anew with what both versions have in common' : 'begun anew';
  options.report({ type: 'note', level: 'warning', text: `${why} since ${basename(partial)} was begun: ${what}` });
}

function tellUncompared({ file, options }: Pull, { name }: OpenPlace): void {
  const text = `${name} gives no parts of files, and nothing to compare: ${basename(file)} has the same length and is whole; --force fetches it again`;
  options.report({ type: 'note', level: 'warning', text });
}

function another({ name, object, end }: OpenPlace, { size, contents, from }: Identity): CurlewError {
  const what =
    object.size === size
      ? `its contents are ${end?.index.tocDigest ?? 'unknown'}, not ${contents ?? 'those'}`
      : `it has ${object.size} bytes, not ${size}`;
  return new CurlewError('DIGEST_MISMATCH', `${name}: not the file that ${from} has: ${what}`, {
    hint: 'name places that have the same file',
  });
}

/**
 * From here on every entry is proved by itself. `unchecked` is the place whose signature is to be looked at first;
 * undefined when that has been done.
 */
async function withEnd(
  run: Pull,
  { file }: Filling,
  end: ArchiveEnd,
  unchecked: OpenPlace | undefined,
): Promise<Filling> {
  const { options } = run;
  if (unchecked !== undefined) await options.check?.(end.toc, unchecked);
  const filling = fillingOf(file, end, undefined);
  file.identify({ ...file.identity(), contents: end.index.tocDigest });
  await file.write(end.index.tocOffset, end.bytes);
  run.filling = filling;
  run.onBytes(file.have.bytes(), file.source.size);
  await checkThere(run, filling);
  for (const path of [pathsBeside(run.file).older, ...(options.force ? [run.file] : [])]) {
    await takeFrom(path, filling, { onBytes: run.onBytes, signal: options.signal });
  }
  return filling;
}

/** Tells how far it is: of a large file that was there nearly whole this takes a while. */
async function checkThere({ file, onBytes, options: { report, signal } }: Pull, filling: Filling): Promise<void> {
  const { have } = filling.file;
  const bytes = have.bytes() - (filling.end?.bytes.byteLength ?? 0);
  if (bytes === 0) return;
  const id = 'check';
  let proved = 0;
  const onProved = (more: number): void => {
    proved += more;
    report({ type: 'step-progress', id, bytes: proved });
  };
  await reportStep(
    report,
    { id, title: `check what is there of ${basename(file)}`, bytes },
    async () => proveThere(filling, { onBytes, onProved, signal }),
    () => 'done',
  );
}

/** The end of a file that came in one stream. Without one, and without a digest, nothing of it can be believed. */
async function endOf(run: Pull, filling: Filling, opened: OpenPlace): Promise<ArchiveEnd | undefined> {
  const { file } = filling;
  try {
    return await readArchiveEnd(file.source, { signal: run.options.signal });
  } catch (error) {
    if (!(error instanceof CurlewError) || error.code !== 'PACKAGE_INVALID') throw error;
    if (mayBeAny(run)) return undefined;
    const { size } = file.source;
    file.have.remove({ offset: 0, end: size });
    if (run.fetched >= size) throw error;
  }
  // Some of it lay here before, and does not fit: all of it gets one fair try.
  await fillFrom(run, filling, opened);
  return endOf(run, filling, opened);
}

/** Equal for payloads whose bytes are equal. */
function payloadKey({ digest, packed, packedDigest }: PlacedEntry): string {
  return `${digest} ${packed} ${packedDigest ?? ''}`;
}

/** Takes what is still missing and stands whole in the file of this path. One that is absent or no archive is of no use. */
async function takeFrom(
  path: string,
  filling: Filling,
  options: Pick<FillOptions, 'onBytes' | 'signal'>,
): Promise<void> {
  const { signal } = options;
  let source: (RangeSource & AsyncDisposable) | undefined;
  try {
    source = await openFileSource(path);
    const { entries } = await readIndex(source, { signal });
    const payloads = new Map(entries.filter(({ packed }) => packed > 0).map((entry) => [payloadKey(entry), entry]));
    for (const brick of filling.bricks) {
      if (filling.proved.has(brick)) continue;
      signal.throwIfAborted();
      if (await copyBrick(brick, payloads, source, filling, signal)) options.onBytes(filling.file.have.bytes());
    }
    await proveThere(filling, options);
    await filling.file.checkpoint();
  } catch (error) {
    if (!(error instanceof CurlewError) || !['NOT_FOUND', 'PACKAGE_INVALID', 'FILE_UNUSABLE'].includes(error.code)) {
      throw error;
    }
  } finally {
    await source?.[Symbol.asyncDispose]();
  }
}

/** Writes a brick whose bytes are at hand; proved are they later. */
async function copyBrick(
  { offset, entry }: Brick,
  payloads: ReadonlyMap<string, PlacedEntry>,
  source: RangeSource,
  { file }: Filling,
  signal: AbortSignal,
): Promise<boolean> {
  if (entry === undefined) return false;
  const old = payloads.get(payloadKey(entry));
  if (entry.packed > 0) {
    if (old === undefined) return false;
    // Where nothing was written yet there are zeros.
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
