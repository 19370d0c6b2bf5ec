/** Opens a package or bundle by a path, a URL or s3://bucket/key, for reads by range. */
import { basename, dirname, join, posix, resolve } from 'node:path';
import { CurlewError } from '../../core/errors.ts';
import { fileNameProblem } from '../../core/layout.ts';
import { isCommit } from '../../ship/release/release-inputs.ts';
import { openStoreSource } from '../../ship/store/source.ts';
import type { Context } from '../../core/context.ts';
import { openArchive, type OpenArchive } from '../../ship/bundle/open-archive.ts';
import { objectOpener } from '../open/stores.ts';
import { lazyHttp } from '../open/network.ts';
import type { AddressRequest } from '../../requests/connection.ts';

export interface FoundArchive extends Omit<OpenArchive, 'files'> {
  /** The git commit that publishing has recorded with it. For an address, `whole` is only the name. */
  readonly commit: string | undefined;
}

/** True for a URL or `s3://` address, false for a path. */
export function isAddress(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
}

export async function openAnywhere(place: string, request: AddressRequest, context: Context): Promise<FoundArchive> {
  const { cwd, signal } = context;
  if (!isAddress(place))
    return { ...(await openArchive(resolve(cwd, place), { signal, shown: place })), commit: undefined };
  const web = lazyHttp(request, context);
  try {
    const { store, key } = await objectOpener(request, context, web)(place);
    const source = await openStoreSource(store, key, { signal });
    const { gitsha } = source.object.metadata;
    const commit = gitsha !== undefined && isCommit(gitsha) ? gitsha : undefined;
    return { ...source, whole: posix.basename(key), commit, [Symbol.asyncDispose]: web.close };
  } catch (error) {
    await web.close();
    throw error;
  }
}

/**
 * Path without extension for a document about an archive: next to the whole file, even if only its parts exist; for an address,
 * in the current folder. `whole` is that of the archive. `USAGE` if its name is not a valid file name.
 */
export function documentPath(place: string, whole: string): string {
  const name = basename(whole);
  if (!isAddress(place)) return join(dirname(place), name);
  const problem = fileNameProblem(name);
  if (problem === undefined) return name;
  throw new CurlewError('USAGE', `cannot write a document about ${place}: its file name ${problem}`, {
    hint: 'specify the file to write with -o FILE',
  });
}

/** Throws `USAGE` if `file` is in `written`: addresses can have the same file name, and documents must not replace each other. */
export function requireUnwritten(file: string, written: readonly string[]): void {
  if (!written.includes(file)) return;
  throw new CurlewError('USAGE', `cannot write ${file}: this command has already written it for another file`, {
    hint: 'run the command separately for files with the same name, with -o FILE',
  });
}
