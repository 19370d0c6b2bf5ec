/** A package or bundle by a path, a URL or s3://bucket/key: read by range wherever it lies. */
import { basename, dirname, join, posix, resolve } from 'node:path';
import { CurlewError } from '../../core/errors.ts';
import { fileNameProblem } from '../../core/layout.ts';
import { isCommit } from '../../store/release/inputs.ts';
import { openStoreSource } from '../../store/source.ts';
import type { Context } from '../context.ts';
import { openArchive, type OpenArchive } from './open-archive.ts';
import { lazyHttp, objectOpener, type AddressRequest } from '../ports/store-source.ts';

export interface FoundArchive extends Omit<OpenArchive, 'files'> {
  /** The git commit that publishing has noted beside it. Of an address, `whole` is the name alone. */
  readonly commit: string | undefined;
}

/** True for words that {@link openAnywhere} looks for in no folder. */
export function isAddress(word: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(word);
}

export async function openAnywhere(word: string, request: AddressRequest, context: Context): Promise<FoundArchive> {
  const { cwd, signal } = context;
  if (!isAddress(word)) return { ...(await openArchive(resolve(cwd, word), { signal })), commit: undefined };
  const web = lazyHttp(request, context);
  try {
    const { store, key } = await objectOpener(request, context, web)(word);
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
 * Where a document about an archive goes, but for its ending: beside the whole file, also where only its parts are there;
 * of an address into the current folder. `whole` is that of the archive; a name that no file can have is `USAGE`.
 */
export function besideOf(word: string, whole: string): string {
  const name = basename(whole);
  if (!isAddress(word)) return join(dirname(word), name);
  const problem = fileNameProblem(name);
  if (problem === undefined) return name;
  throw new CurlewError('USAGE', `write a document beside ${word}: its file name ${problem}`, {
    hint: 'name the file to write with -o FILE',
  });
}

/** Addresses may name files of one name: the document of one (`written` has them) is not to take the place of another's. */
export function requireOther(file: string, written: readonly string[]): void {
  if (!written.includes(file)) return;
  throw new CurlewError('USAGE', `write ${file}: that is where the document of another file went just now`, {
    hint: 'name files of one name one by one, with -o FILE',
  });
}
