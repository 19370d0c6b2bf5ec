/** Writes a support bundle: what can be collected, and as its last file what is there and what is missing. */
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Reporting } from '../../core/cancellable.ts';
import { CurlewError, NOTHING_WRITTEN } from '../../core/errors.ts';
import { printableJson } from '../../core/json.ts';
import { writeWhole } from '../../platform/files/write-whole.ts';
import { isNoRoom, openSupportArchive } from './archive.ts';
import { collectItems, type CollectOptions, type Item } from './collect.ts';
import type { Redactor } from './redact.ts';
import {
  INDEX_PATH,
  supportIndex,
  VERSION_PATH,
  indexVersionText,
  type SupportIndex,
  type Verdicts,
} from './support-index.ts';

export interface WrittenBundle {
  /** Absolute path. */
  readonly file: string;
  readonly bytes: number;
  readonly index: SupportIndex;
  /** Something is missing because the command was stopped, or the disk is full. */
  readonly cut?: 'stopped' | 'disk full';
}

export interface BundleParts {
  readonly items: readonly Item[];
  readonly verdicts: () => Promise<Verdicts>;
  readonly redactor: Redactor;
}

interface WriteOptions extends Pick<CollectOptions, 'limit' | 'limitOfAll' | 'maxBytes'>, Reporting {
  readonly about: string;
  /** Version of curlew. */
  readonly tool: string;
}

/** The reserved space of the archive must hold the index. */
const MAX_FILES = 20_000;

/**
 * When `signal` aborts, the bundle is completed with what is there; without anything, nothing gets its name. `FILE_EXISTS` for a file that
 * exists, `NO_SPACE` without any space.
 */
export async function writeSupportBundle(
  file: string,
  { items, verdicts, redactor }: BundleParts,
  { about, tool, ...options }: WriteOptions,
): Promise<WrittenBundle> {
  const folder = folderIn(file);
  let index: SupportIndex | undefined;
  const write: Parameters<typeof writeWhole>[1] = async (handle) => {
    const archive = await openSupportArchive(handle, folder);
    await archive.add(VERSION_PATH, Buffer.from(indexVersionText(tool)));
    const files = await collectItems(withoutRepeated(items), { ...options, archive, redactor });
    if (!files.some(({ bytes }) => bytes !== undefined)) throw nothingIn(files, about, options);
    const found = {
      tool,
      time: new Date().toISOString(),
      about,
      files: files.slice(0, MAX_FILES),
      ...(await verdicts()),
    };
    index = redactor.value(supportIndex(found)) as SupportIndex;
    await archive.end(INDEX_PATH, Buffer.from(`${printableJson(index, 2)}\n`));
  };
  await writeWhole(file, write, { force: false, size: 0, mode: 0o600 });
  if (index === undefined) throw new TypeError('the bundle has no index');
  const isFull = index.files.some(({ problem }) => isNoRoom(problem));
  const cut = !index.complete && options.signal.aborted ? 'stopped' : isFull ? 'disk full' : undefined;
  return { file, bytes: (await stat(file)).size, index, ...(cut && { cut }) };
}

/** A bundle that says only what is missing is of no use: what it would say is said. */
function nothingIn(files: SupportIndex['files'], about: string, { signal }: Pick<WriteOptions, 'signal'>): CurlewError {
  if (signal.aborted) return new CurlewError('CANCELLED', `canceled; ${NOTHING_WRITTEN}`);
  const why = files.flatMap(({ path, problem }) => (problem === undefined ? [] : [`${path}: ${problem}`]));
  const isFull = files.some(({ problem }) => isNoRoom(problem));
  return new CurlewError(
    isFull ? 'NO_SPACE' : 'FETCH_FAILED',
    `cannot collect a support bundle of ${about}: nothing could be read; ${NOTHING_WRITTEN}\n${why.slice(0, MAX_SHOWN).join('\n')}`,
    {
      hint: isFull
        ? 'use a folder with more space, with -o FILE'
        : 'check the reasons, then run the same command again',
    },
  );
}

const MAX_SHOWN = 20;

/** The folder in an archive has the name of its file. */
function folderIn(file: string): string {
  return basename(file).replace(/\.(?:tar\.gz|tgz)$/, '');
}

/** The first of items with the same path. */
export function withoutRepeated(items: readonly Item[]): readonly Item[] {
  return [...new Map(items.toReversed().map((item) => [item.path, item])).values()].toReversed();
}
