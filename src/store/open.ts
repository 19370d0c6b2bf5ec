/** A store by its address. */
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { CurlewError, errnoOf, fileError } from '../core/errors.ts';
import { makeFolder } from '../platform/files/make-folder.ts';
import type { Report } from '../core/events.ts';
import { createFolderStore } from './folder.ts';
import type { Http } from '../platform/http/http.ts';
import type { S3Options } from './s3-address.ts';
import type { Store } from './store.ts';
import { createWebStore, isWebAddress } from './web.ts';

export interface OpenStoreOptions {
  /** Relative folders are meant from here. */
  readonly cwd: string;
  /** Make the folder when it is not there: for those who write. Otherwise that is `NOT_FOUND`. */
  readonly create: boolean;
  /** How to reach a store in S3; undefined asks AWS, with what its variables and profiles say. */
  readonly s3?: S3Options | undefined;
  /** For stores behind a web server; without it they are not supported. */
  readonly http?: Http | undefined;
  /** Is told once when the server does less than publishing wants. */
  readonly report?: Report | undefined;
  readonly signal: AbortSignal;
}

const SCHEME = /^([a-z][a-z0-9+.-]*):\/\//i;

/**
 * Opens a folder, `s3://bucket/prefix`, or with a client for it the URL of a web server, to which nothing is sent yet.
 * Other schemes are `UNSUPPORTED`.
 */
export async function openStore(address: string, options: OpenStoreOptions): Promise<Store> {
  const { cwd, create, http, signal } = options;
  signal.throwIfAborted();
  if (address === '') throw new CurlewError('USAGE', 'the address of the store is empty');
  if (http !== undefined && isWebAddress(address)) return createWebStore(address, http);
  const [, scheme] = SCHEME.exec(address) ?? [];
  if (scheme?.toLowerCase() === 's3') {
    const { createS3Store } = await import('./s3.ts');
    return createS3Store(address, { ...options.s3, report: options.report ?? (() => undefined) });
  }
  if (scheme !== undefined) {
    throw new CurlewError(
      'UNSUPPORTED',
      `open ${address}: stores of the kind ${scheme.toLowerCase()}:// are not supported`,
      {
        hint: `name a folder${http === undefined ? ' or s3://bucket/prefix' : ', s3://bucket/prefix or the URL of a web server'}`,
      },
    );
  }
  // A folder of that name would be made, and published into, in the place of the bucket. What follows may be a password.
  const [slip] = /^(?:s3|https?):\/?/i.exec(address) ?? [];
  if (slip !== undefined) {
    const right = `${slip.replace(/\/?$/, '').toLowerCase()}//`;
    throw new CurlewError('USAGE', `open a store: an address cannot begin with "${slip}"`, {
      hint: `write ${right}, or ./${slip} for a folder of that name`,
    });
  }
  const root = resolve(cwd, address);
  try {
    if (create) await makeFolder(root, `open store ${root}`);
    if (!(await stat(root)).isDirectory()) throw new CurlewError('FILE_UNUSABLE', `open store ${root}: not a folder`);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') {
      throw new CurlewError('NOT_FOUND', `open store ${root}: no such folder`, {
        hint: await hintFor(root),
        cause: error,
      });
    }
    throw fileError(`open store ${root}`, error);
  }
  return createFolderStore(root);
}

/** What to do about a folder that does not exist. */
async function hintFor(root: string): Promise<string> {
  const [, folder, release = ''] = /^(.+)@([^/]*)$/.exec(root) ?? [];
  const isStore = folder !== undefined && (await stat(folder).catch(() => undefined))?.isDirectory() === true;
  if (isStore) return `a release is named by an option: the store ${folder} and --release ${release}`;
  return `check the path; curlew publish --to ${root} makes a store there`;
}
