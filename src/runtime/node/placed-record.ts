/**
 * The record of a package in place: its index, and the metadata of each file when its bytes were verified. It is written
 * only after that, with access for its owner only.
 */
import { rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isDigest, type Digest } from '../../core/digest.ts';
import { CurlewError, errnoOf } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { nodePath, pathProblem } from '../../core/layout.ts';
import type { PackageFile } from '../../core/package.ts';
import { readOwnFile, writeStateFile } from '../../platform/files/state-file.ts';
import { syncFolder } from '../../platform/files/sync-folder.ts';
import { makeMissing } from '../../platform/files/make-folder.ts';

const FORMAT = 1;
/** A record of a million files fits. */
const LIMIT = 384 << 20;

export interface PlacedFile extends PackageFile {
  /** The `fileMark` of its verified bytes; undefined if the bytes must be read each time. */
  readonly mark: string | undefined;
}

export interface PlacedRecord {
  /** Digest of the package. */
  readonly digest: Digest;
  readonly files: readonly PlacedFile[];
}

/** `path` is the package's folder, relative to the install folder. Undefined if there is no valid record. */
export async function readPlacedRecord(directory: string, path: string): Promise<PlacedRecord | undefined> {
  let value: unknown;
  try {
    value = JSON.parse((await readOwnFile(join(directory, nodePath.placed(path)), LIMIT)) ?? 'null');
  } catch (error) {
    // Without a record all files are read again.
    if (error instanceof CurlewError || error instanceof SyntaxError) return undefined;
    throw error;
  }
  if (!isObject(value) || value['format'] !== FORMAT || !isDigestText(value['digest'])) return undefined;
  const { digest, files } = value;
  if (!Array.isArray(files)) return undefined;
  const rows = files.map(fileOf);
  return rows.includes(undefined) ? undefined : { digest, files: rows as readonly PlacedFile[] };
}

export async function writePlacedRecord(
  directory: string,
  path: string,
  { digest, files }: PlacedRecord,
): Promise<void> {
  const file = join(directory, nodePath.placed(path));
  // One line per file: people read this, too.
  const rows = files.map(({ path: name, mode, size, digest: own, mark }) =>
    JSON.stringify(mark === undefined ? [name, mode, size, own] : [name, mode, size, own, mark]),
  );
  await makeMissing(dirname(file), 0o700);
  await writeStateFile(file, `{"format":${FORMAT},"digest":"${digest}","files":[\n${rows.join(',\n')}\n]}\n`);
}

/** Moves the record of a package that was moved. Without one, removes the record of the target. */
export async function movePlacedRecord(directory: string, from: string, to: string): Promise<void> {
  const target = join(directory, nodePath.placed(to));
  await makeMissing(dirname(target), 0o700);
  await rename(join(directory, nodePath.placed(from)), target).catch(async (error: unknown) => {
    if (errnoOf(error) !== 'ENOENT') throw error;
    await rm(target, { force: true });
  });
}

export async function dropPlacedRecord(directory: string, path: string): Promise<void> {
  const file = join(directory, nodePath.placed(path));
  try {
    await rm(file);
    await syncFolder(dirname(file));
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
  }
}

function fileOf(row: unknown): PlacedFile | undefined {
  if (!Array.isArray(row)) return undefined;
  const [path, mode, size, digest, mark] = row as readonly unknown[];
  if (typeof path !== 'string' || pathProblem(path) !== undefined || !isDigestText(digest)) return undefined;
  if ((mode !== 0o644 && mode !== 0o755) || typeof size !== 'number' || !Number.isSafeInteger(size)) return undefined;
  if (mark !== undefined && typeof mark !== 'string') return undefined;
  return { path, mode, size, digest, mark };
}

function isDigestText(value: unknown): value is Digest {
  return typeof value === 'string' && isDigest(value);
}
