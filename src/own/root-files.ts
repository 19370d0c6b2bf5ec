/** curlew's own files in every bundle: the scripts at its root, and the executable for nodes. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Cancellable } from '../core/cancellable.ts';
import type { ArchiveIndex, RangeSource } from '../formats/archive/entry.ts';
import { openFileSource, readIndex } from '../formats/archive/read.ts';
import { CurlewError, fileError } from '../core/errors.ts';
import { parseDigest, type Digest } from '../core/digest.ts';
import { BUNDLE_SCRIPTS, EXECUTABLE_SUMS, executableIndexName, packedExecutableName } from '../core/layout.ts';
import type { FileMode } from '../core/package.ts';
import type { Arch } from '../core/ref.ts';
import { readStateFile } from '../platform/files/state-file.ts';

/** Source and compiled files are both two folders below the project. */
const PROJECT = new URL('../../', import.meta.url);
/** One file for all scripts; it uses its own name to select the command. */
const SCRIPT = 'scripts/bundle/start.sh';
const EXECUTABLES = 'dist/node/';
const SUMS_LIMIT = 4096;
const INDEX_LIMIT = 1 << 20;

/** A file at the bundle's root. */
export interface RootFile {
  readonly path: string;
  readonly mode: FileMode;
  readonly data: Uint8Array;
}

/** The executable of this build: an archive from which bundles copy ranges. */
export interface OpenExecutable extends AsyncDisposable {
  readonly source: RangeSource;
  readonly index: ArchiveIndex;
}

/** Reads the scripts. */
export async function readRootFiles(): Promise<readonly RootFile[]> {
  const path = own(SCRIPT);
  const data = await readFile(path).catch((error: unknown) => {
    throw fileError(`read ${path}`, error);
  });
  return BUNDLE_SCRIPTS.map((name) => ({ path: name, mode: 0o755, data }));
}

/** Opens the executable for nodes of an architecture; `NOT_FOUND` if `folder`, by default that of this build, has none. */
export async function openExecutable(
  arch: Arch,
  { folder = own(EXECUTABLES), signal }: { readonly folder?: string | undefined; readonly signal: AbortSignal },
): Promise<OpenExecutable> {
  const path = join(folder, packedExecutableName(arch));
  return openExecutableFile(path, { signal }).catch((error: unknown) => {
    if (!(error instanceof CurlewError) || error.code !== 'NOT_FOUND') throw error;
    throw new CurlewError(
      'NOT_FOUND',
      `cannot open ${path}: this build of curlew has no executable for ${arch} nodes`,
      { hint: 'in a checkout, run: npm run build', cause: error },
    );
  });
}

/** Opens a packed executable. `NOT_FOUND` if the file does not exist. */
export async function openExecutableFile(path: string, { signal }: Cancellable): Promise<OpenExecutable> {
  const source = await openFileSource(path);
  const close = async (): Promise<void> => source[Symbol.asyncDispose]();
  try {
    return { source, index: await readIndex(source, { signal }), [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * The index of the executable that this package has only the digest of: enough for a plan. To read a byte of it is `NOT_FOUND`, as is
 * a package without the index.
 */
export async function openExecutableIndex(arch: Arch): Promise<OpenExecutable> {
  const path = own(`${EXECUTABLES}${executableIndexName(arch)}`);
  const absent = new CurlewError('NOT_FOUND', `cannot plan for ${arch} nodes: this package does not have ${path}`);
  const text = await readStateFile(path, INDEX_LIMIT);
  if (text === undefined) throw absent;
  // The build wrote it, as it wrote this code.
  const index = JSON.parse(text) as ArchiveIndex;
  const read = (): never => {
    throw absent;
  };
  return { source: { name: path, size: index.size, read }, index, [Symbol.asyncDispose]: async () => undefined };
}

/** The digest of this build's packed executable, which also the npm package has; undefined if there was none. */
export async function executableDigest(arch: Arch): Promise<Digest | undefined> {
  const path = own(`${EXECUTABLES}${EXECUTABLE_SUMS}`);
  const text = (await readStateFile(path, SUMS_LIMIT)) ?? '';
  const line = text.split('\n').find((one) => one.endsWith(`  ${packedExecutableName(arch)}`));
  return line === undefined ? undefined : parseDigest(`sha256:${line.slice(0, 64)}`, path);
}

function own(path: string): string {
  return fileURLToPath(new URL(path, PROJECT));
}
