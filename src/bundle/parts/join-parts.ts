/** Puts parts together again. */
import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import type { RangeSource } from '../../formats/archive/entry.ts';
import { fileSource, openFileSource, readIndex } from '../../formats/archive/read.ts';
import { counted } from '../../core/counted.ts';
import { CurlewError } from '../../core/errors.ts';
import { reportStep, type Report } from '../../core/events.ts';
import type { Part, PartsHead } from '../../core/parts.ts';
import { refuseExisting } from '../../platform/files/name-file.ts';
import { writeFully } from '../../platform/files/write-fully.ts';
import { requireFree, writeWhole } from '../../platform/files/write-whole.ts';
import { findParts, partsError, readHead, type FoundPart } from './parts-find.ts';
import { openFound, otherContents } from './parts-source.ts';
import { createWriteQueue, WRITES_AT_ONCE, type Write } from '../write/write-queue.ts';

export interface PartsPlace {
  /** Where the parts are looked for, in this order. */
  readonly folders: readonly string[];
  readonly report: Report;
  readonly signal: AbortSignal;
  /**
   * Throws for what is not to be joined: asked of the table of contents before anything is written, where all parts are there,
   * and of all bytes before the file has its name. A head file proves no more than that parts belong together.
   */
  readonly judge?: ((whole: RangeSource, head: PartsHead, what: 'contents' | 'all') => Promise<void>) | undefined;
}

export interface JoinOptions extends PartsPlace {
  /** Replace a file that is there; otherwise that is `FILE_EXISTS`. */
  readonly force: boolean;
  /**
   * Asks for the medium with the next parts; resolves when the folders are to be looked at again. `problem` says what was
   * wrong with those that were found last. Without it, parts that are missing are an error at once.
   */
  readonly next?: ((missing: readonly Part[], problem: string | undefined) => Promise<void>) | undefined;
}

/** Looks at every part, and reads every byte of those that are there. */
export async function checkParts(path: string, options: PartsPlace): Promise<readonly FoundPart[]> {
  const { folders, judge, report, signal } = options;
  const head = await readHead(path);
  const found = await proveParts(head, folders, { path, only: head.parts, report, signal });
  if (judge === undefined || found.some(({ problem }) => problem !== undefined)) return found;
  await judgeFound({ head, found }, path, 'all', options);
  return found;
}

/**
 * Joins the parts of a head file into a file, which appears under its name only whole, synced and with the table of contents
 * that the head file names. What is missing, damaged or of another bundle is told before anything is written.
 */
export async function joinParts(path: string, output: string, options: JoinOptions): Promise<PartsHead> {
  const { force, signal } = options;
  await refuseExisting(output, force);
  const head = await readHead(path);
  // To read all parts takes long, and would be in vain.
  await requireFree(output, { force, size: head.size });
  const first = await usable(head, path, options);
  if (first.length === head.parts.length) await judgeFound({ head, found: first }, path, 'contents', options);
  const write = async (file: FileHandle): Promise<void> => {
    await writeAll(head, first, file, { ...options, path });
    const whole = fileSource(file, output, head.size);
    const { tocDigest } = await readIndex(whole, { signal });
    if (tocDigest !== head.tocDigest) throw otherContents(`join ${path}`);
    await options.judge?.(whole, head, 'all');
  };
  await writeWhole(output, write, { force, size: head.size });
  return head;
}

/** All parts, as one; that their table of contents is the one of the head file is proved whether anybody judges or not. */
async function judgeFound(
  set: { readonly head: PartsHead; readonly found: readonly FoundPart[] },
  path: string,
  what: 'contents' | 'all',
  { judge, signal }: Pick<PartsPlace, 'judge' | 'signal'>,
): Promise<void> {
  await using whole = await openFound(path, set, { signal });
  await judge?.(whole, set.head, what);
}

/** The same as a stream: nothing comes before every part has been found and proved, and the table of contents that they make. */
export async function* joinedBytes(path: string, options: PartsPlace): AsyncGenerator<Uint8Array, void, undefined> {
  const { signal } = options;
  const head = await readHead(path);
  const found = await usable(head, path, options);
  await judgeFound({ head, found }, path, 'all', options);
  for (const part of found) yield* provedBytes(part, { signal });
}

/** The parts that are there, all of them right. Missing ones are an error where nobody can be asked for them. */
async function usable(
  head: PartsHead,
  path: string,
  { folders, next, report, signal }: PartsPlace & Pick<JoinOptions, 'next'>,
): Promise<readonly FoundPart[]> {
  const doing = `join ${path}`;
  const isThere = (found: FoundPart): boolean => next === undefined || found.path !== undefined;
  // Names and sizes first: whoever lacks a part need not wait until the others have been read.
  const seen = (await findParts(head, folders, { digests: false, signal })).filter(isThere);
  const wrong = partsError(doing, seen);
  if (wrong !== undefined) throw wrong;
  const only = seen.map(({ part }) => part);
  const found = await proveParts(head, folders, { path, only, report, signal });
  const damaged = partsError(doing, found);
  if (damaged !== undefined) throw damaged;
  return found;
}

async function proveParts(
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
  let bytes = 0;
  const onBytes = (more: number): void => {
    bytes += more;
    report({ type: 'step-progress', id, bytes });
  };
  const total = only.reduce((sum, { size }) => sum + size, 0);
  return reportStep(
    report,
    { id, title: `check ${head.name}`, bytes: total },
    async () => findParts(head, folders, { only, digests: true, onBytes, signal }),
    (found) => `${found.filter(({ problem }) => problem === undefined).length} of ${head.parts.length} parts are right`,
  );
}

/** Writes each part to its place, in the order in which they come. */
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
  let bytes = 0;
  const onBytes = (more: number): void => {
    bytes += more;
    report({ type: 'step-progress', id, bytes });
  };
  const step = { id, title: `join ${head.name}`, bytes: head.size };
  const write = async (): Promise<void> => {
    for (let found = first; ;) {
      for (const one of found) {
        await writePart(one, file, { offset: offsets.get(one.part.name) ?? 0, onBytes, signal });
        written.add(one.part.name);
      }
      const missing = head.parts.filter(({ name }) => !written.has(name));
      if (missing.length === 0) return;
      found = await nextParts(head, missing, { folders, next, signal });
    }
  };
  await reportStep(report, step, write, () => `${counted(head.parts.length, 'part')} joined`);
}

/** Asks until parts are there that can be used. */
async function nextParts(
  head: PartsHead,
  missing: readonly Part[],
  { folders, next, signal }: Pick<JoinOptions, 'folders' | 'next' | 'signal'>,
): Promise<readonly FoundPart[]> {
  for (let problem: string | undefined; ;) {
    await next?.(missing, problem);
    const found = await findParts(head, folders, { only: missing, digests: true, signal });
    const right = found.filter((one) => one.problem === undefined);
    if (right.length > 0) return right;
    const wrong = found.filter((one) => one.path !== undefined).map((one) => `${one.part.name} ${one.problem ?? ''}`);
    problem = wrong.length === 0 ? 'none of them is there' : wrong.join('; ');
  }
}

async function writePart(
  found: FoundPart,
  file: FileHandle,
  {
    offset,
    onBytes,
    signal,
  }: { readonly offset: number; readonly onBytes: (bytes: number) => void; readonly signal: AbortSignal },
): Promise<void> {
  const write: Write = async (piece, at) => writeFully(file, piece, offset + at);
  const writes = createWriteQueue(write, { atOnce: WRITES_AT_ONCE });
  try {
    for await (const chunk of provedBytes(found, { signal, allocate: writes.allocate })) {
      onBytes(chunk.byteLength);
      await writes.push(chunk);
    }
    await writes.finish();
  } finally {
    await writes.settle();
  }
}

/** The bytes of a part, hashed once more: a medium may give others the second time. */
async function* provedBytes(
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
  throw new CurlewError('DIGEST_MISMATCH', `read ${path}: it gives other bytes than a moment ago`, {
    hint: 'the medium is failing, or somebody writes to it: copy the part to a disk first',
  });
}
