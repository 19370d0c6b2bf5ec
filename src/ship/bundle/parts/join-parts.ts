/** Joins parts. */
import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import type { Reporting } from '../../../core/cancellable.ts';
import type { RangeSource } from '../../../formats/archive/entry.ts';
import { fileSource, openFileSource, readIndex } from '../../../formats/archive/read.ts';
import { counted } from '../../../core/counted.ts';
import { CurlewError } from '../../../core/errors.ts';
import { countBytes, reportStep } from '../../../core/events.ts';
import type { Part, PartsHead } from '../../../core/parts.ts';
import { refuseExisting } from '../../../platform/files/name-file.ts';
import { writeFully } from '../../../platform/files/write-fully.ts';
import { modeLike, requireFree, writeWhole } from '../../../platform/files/write-whole.ts';
import { findParts, partsError, readHead, type FoundPart } from './parts-find.ts';
import { openFound, wrongContents } from './parts-source.ts';
import { writeChunks, type Write } from '../write/write-queue.ts';

export interface PartsPlace extends Reporting {
  /** Folders to search for parts, in this order. */
  readonly folders: readonly string[];
  /**
   * Throws if the bundle must not be joined. Called for the table of contents before anything is written, if all parts
   * exist, and for all bytes before the file gets its name. A head file only proves that parts belong together.
   */
  readonly verify?: ((whole: RangeSource, head: PartsHead, what: 'contents' | 'all') => Promise<void>) | undefined;
}

export interface JoinOptions extends PartsPlace {
  /** Replace an existing file; otherwise it is `FILE_EXISTS`. */
  readonly force: boolean;
  /**
   * Asks for the medium with the next parts; resolves when the folders can be searched again. `problem` describes the unusable
   * parts that were found last. If absent, missing parts are an error at once.
   */
  readonly next?: ((missing: readonly Part[], problem: string | undefined) => Promise<void>) | undefined;
}

/** Checks every part, and verifies every byte of those that exist. */
export async function checkParts(path: string, options: PartsPlace): Promise<readonly FoundPart[]> {
  const { folders, verify, report, signal } = options;
  const head = await readHead(path);
  const parts = await verifyDigests(head, folders, { path, only: head.parts, report, signal });
  if (verify === undefined || parts.some(({ problem }) => problem !== undefined)) return parts;
  await verifyFound({ head, parts }, path, 'all', options);
  return parts;
}

/**
 * Joins the parts of a head file to a file, which appears only when complete, synced and with the table of contents
 * in the head file. Reports missing, damaged and foreign parts before anything is written.
 */
export async function joinParts(path: string, output: string, options: JoinOptions): Promise<PartsHead> {
  const { force, signal } = options;
  await refuseExisting(output, force);
  const head = await readHead(path);
  // Checks free space first, because reading all parts takes long.
  await requireFree(output, { force, size: head.size });
  const first = await usableParts(head, path, options);
  if (first.length === head.parts.length) await verifyFound({ head, parts: first }, path, 'contents', options);
  const write = async (file: FileHandle): Promise<void> => {
    await writeAll(head, first, file, { ...options, path });
    const whole = fileSource(file, output, head.size);
    const { tocDigest } = await readIndex(whole, { signal });
    if (tocDigest !== head.tocDigest) throw wrongContents(`join ${path}`);
    await options.verify?.(whole, head, 'all');
  };
  await writeWhole(output, write, {
    force,
    size: head.size,
    mode: await modeLike(first.flatMap(({ path: part }) => part ?? [])),
  });
  return head;
}

/** Verifies the joined parts. Always checks their table of contents against the head file. */
async function verifyFound(
  set: { readonly head: PartsHead; readonly parts: readonly FoundPart[] },
  path: string,
  what: 'contents' | 'all',
  { verify, signal }: Pick<PartsPlace, 'verify' | 'signal'>,
): Promise<void> {
  await using whole = await openFound(path, set, { signal });
  await verify?.(whole, set.head, what);
}

/** The joined bytes as a stream, which begins after all parts and their table of contents are verified. */
export async function* joinedBytes(path: string, options: PartsPlace): AsyncGenerator<Uint8Array, void, undefined> {
  const { signal } = options;
  const head = await readHead(path);
  const parts = await usableParts(head, path, options);
  await verifyFound({ head, parts }, path, 'all', options);
  for (const part of parts) yield* verifiedBytes(part, { signal });
}

/** The existing parts, all verified. Missing parts are an error if `next` is absent. */
async function usableParts(
  head: PartsHead,
  path: string,
  { folders, next, report, signal }: PartsPlace & Pick<JoinOptions, 'next'>,
): Promise<readonly FoundPart[]> {
  const doing = `join ${path}`;
  const isRequired = (one: FoundPart): boolean => next === undefined || one.path !== undefined;
  // Checks names and sizes first, so that a missing part is reported before the others are read.
  const seen = (await findParts(head, folders, { digests: false, signal })).filter(isRequired);
  const wrong = partsError(doing, seen);
  if (wrong !== undefined) throw wrong;
  const only = seen.map(({ part }) => part);
  const parts = await verifyDigests(head, folders, { path, only, report, signal });
  const damaged = partsError(doing, parts);
  if (damaged !== undefined) throw damaged;
  return parts;
}

async function verifyDigests(
  head: PartsHead,
  folders: readonly string[],
  {
    path,
    only,
    report,
    signal,
  }: Omit<PartsPlace, 'folders'> & { readonly path: string; readonly only: readonly Part[] },
): Promise<readonly FoundPart[]> {
  const id = `check ${path}`;
  const onBytes = countBytes(report, id);
  const total = only.reduce((sum, { size }) => sum + size, 0);
  return reportStep(
    report,
    { id, title: `check ${head.name}`, bytes: total },
    async () => findParts(head, folders, { only, digests: true, onBytes, signal }),
    (parts) => `${parts.filter(({ problem }) => problem === undefined).length} of ${head.parts.length} parts are valid`,
  );
}

/** Writes each part at its offset, in the order in which parts are found. */
async function writeAll(
  head: PartsHead,
  first: readonly FoundPart[],
  file: FileHandle,
  { path, folders, next, report, signal }: JoinOptions & { readonly path: string },
): Promise<void> {
  const offsets = new Map<string, number>();
  let end = 0;
  for (const { name, size } of head.parts) {
    offsets.set(name, end);
    end += size;
  }
  const written = new Set<string>();
  const id = `join ${path}`;
  const onBytes = countBytes(report, id);
  const step = { id, title: `join ${head.name}`, bytes: head.size };
  const write = async (): Promise<void> => {
    for (let parts = first; ;) {
      for (const one of parts) {
        await writePart(one, file, { offset: offsets.get(one.part.name) ?? 0, onBytes, signal });
        written.add(one.part.name);
      }
      const missing = head.parts.filter(({ name }) => !written.has(name));
      if (missing.length === 0) return;
      parts = await nextParts(head, missing, { folders, next, signal });
    }
  };
  await reportStep(report, step, write, () => `${counted(head.parts.length, 'part')} joined`);
}

/** Asks until usable parts are found. */
async function nextParts(
  head: PartsHead,
  missing: readonly Part[],
  { folders, next, signal }: Pick<JoinOptions, 'folders' | 'next' | 'signal'>,
): Promise<readonly FoundPart[]> {
  for (let problem: string | undefined; ;) {
    await next?.(missing, problem);
    const candidates = await findParts(head, folders, { only: missing, digests: true, signal });
    const valid = candidates.filter((one) => one.problem === undefined);
    if (valid.length > 0) return valid;
    const wrong = candidates
      .filter((one) => one.path !== undefined)
      .map((one) => `${one.part.name} ${one.problem ?? ''}`);
    problem = wrong.length === 0 ? 'no part was found' : wrong.join('; ');
  }
}

async function writePart(
  one: FoundPart,
  file: FileHandle,
  {
    offset,
    onBytes,
    signal,
  }: { readonly offset: number; readonly onBytes: (bytes: number) => void; readonly signal: AbortSignal },
): Promise<void> {
  const write: Write = async (piece, at) => writeFully(file, piece, offset + at);
  await writeChunks((allocate) => verifiedBytes(one, { signal, allocate }), write, { onBytes });
}

/** The bytes of a part, verified again: a failing medium may return different bytes the second time. */
async function* verifiedBytes(
  { part, path = '' }: FoundPart,
  { signal, allocate }: { readonly signal: AbortSignal; readonly allocate?: (length: number) => Uint8Array },
): AsyncGenerator<Uint8Array, void, undefined> {
  await using source = await openFileSource(path);
  const hash = createHash('sha256');
  for await (const chunk of source.read(0, part.size, { signal, allocate })) {
    hash.update(chunk);
    yield chunk;
  }
  if (`sha256:${hash.digest('hex')}` === part.digest) return;
  throw new CurlewError('DIGEST_MISMATCH', `cannot read ${path}: it returns different bytes than a moment ago`, {
    hint: 'the medium is failing, or another process writes to it: copy the part to a disk first',
  });
}
