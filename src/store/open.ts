/** A store by its address. */
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { CurlewError, errnoOf, fileError } from '../core/errors.ts';
import { makeFolder } from '../files/make-folder.ts';
import { createFolderStore } from './folder.ts';
import type { Store } from './store.ts';

export interface OpenStoreOptions {
  /** Relative folders are meant from here. */
  readonly cwd: string;
  /** Make the folder when it is not there: for those who write. Otherwise that is `NOT_FOUND`. */
  readonly create: boolean;
  readonly signal: AbortSignal;
}

const SCHEME = /^([a-z][a-z0-9+.-]*):\/\//i;

/** Opens a folder. Addresses with a scheme are `UNSUPPORTED`. */
export async function openStore(address: string, { cwd, create, signal }: OpenStoreOptions): Promise<Store> {
  signal.throwIfAborted();
  if (address === '') throw new CurlewError('USAGE', 'the address of the store is empty');
  const [, scheme] = SCHEME.exec(address) ?? [];
  if (scheme !== undefined) {
    throw new CurlewError(
      'UNSUPPORTED',
      `open ${address}: stores of the kind ${scheme.toLowerCase()}:// are not supported`,
      {
        hint: 'name a folder; a copy of the store in a folder works as well',
      },
    );
  }
  const root = resolve(cwd, address);
  try {
    if (create) await makeFolder(root, `open store ${root}`);
    if (!(await stat(root)).isDirectory()) throw new CurlewError('FILE_UNUSABLE', `open store ${root}: not a folder`);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') {
      throw new CurlewError('NOT_FOUND', `open store ${root}: no such folder`, {
        hint: 'curlew publish --to makes one',
        cause: error,
      });
    }
    throw fileError(`open store ${root}`, error);
  }
  return createFolderStore(root);
}
