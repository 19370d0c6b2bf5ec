/** Opens a store by its address. */
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import { makeFolder } from '../../platform/files/make-folder.ts';
import type { Report } from '../../core/events.ts';
import { createFolderStore } from './folder.ts';
import type { Http } from '../../platform/http/http.ts';
import type { S3Options } from './s3-address.ts';
import type { Store } from './store.ts';
import { archiveHint, createWebStore, isArchiveName, isWebAddress } from './web.ts';

export interface OpenStoreOptions {
  /** Base of relative paths. */
  readonly cwd: string;
  /**
   * Create a missing folder, for writers. Otherwise it is `NOT_FOUND`, for readers or with `existing` for writers; with
   * `never`, for dry runs of writers, a store without objects.
   */
  readonly create: boolean | 'existing' | 'never';
  /** Connection settings of a store in S3; undefined means AWS, with its environment variables and profiles. */
  readonly s3?: S3Options | undefined;
  /** Opens the client for stores behind a web server, if it is one; without it they are `UNSUPPORTED`. */
  readonly http?: (() => Promise<Http>) | undefined;
  /** Receives one warning if the server does not support what publishing needs. */
  readonly report?: Report | undefined;
  readonly signal: AbortSignal;
}

/** What else gives a bundle, where a store on a web server is not read. */
const READ_HINT =
  ', such as a copy of the store; curlew serve makes bundles itself, which curlew pull downloads: curlew help serving';

const SCHEME = /^([a-z][a-z0-9+.-]*):\/\//i;

/**
 * Opens a folder, `s3://bucket/prefix` or, if `http` is given, the URL of a web server. Sends no request.
 * Other schemes are `UNSUPPORTED`.
 */
export async function openStore(address: string, options: OpenStoreOptions): Promise<Store> {
  const { cwd, create, http, signal } = options;
  signal.throwIfAborted();
  if (address === '') throw new CurlewError('USAGE', 'the address of the store is empty');
  if (http !== undefined && isWebAddress(address)) return createWebStore(address, await http());
  const [, scheme] = SCHEME.exec(address) ?? [];
  if (scheme?.toLowerCase() === 's3') {
    const { createS3Store } = await import('./s3.ts');
    return createS3Store(address, { ...options.s3, report: options.report ?? (() => undefined) });
  }
  if (isWebAddress(address)) {
    throw new CurlewError(
      'UNSUPPORTED',
      `cannot open ${address}: this command does not ${create === false ? 'read' : 'write'} stores of web servers`,
      {
        hint:
          create === false && isArchiveName(address)
            ? archiveHint(address)
            : `use a folder or s3://bucket/prefix${create === false ? READ_HINT : ''}`,
      },
    );
  }
  if (scheme !== undefined) {
    throw new CurlewError(
      'UNSUPPORTED',
      `cannot open ${address}: ${scheme.toLowerCase()}:// stores are not supported`,
      {
        hint: /^file:\/\/\//i.test(address)
          ? `write the path alone: ${address.slice('file://'.length)}`
          : `use a folder${http === undefined ? ' or s3://bucket/prefix' : ', s3://bucket/prefix or the URL of a web server'}`,
      },
    );
  }
  // Without this check a folder of that name would be created instead of using the bucket. The rest may contain a password.
  const [slip] = /^(?:s3|https?):\/?/i.exec(address) ?? [];
  if (slip !== undefined) {
    const right = `${slip.replace(/\/?$/, '').toLowerCase()}//`;
    throw new CurlewError('USAGE', `cannot open a store: an address cannot begin with "${slip}"`, {
      hint: `write ${right}, or ./${slip} for a folder of that name`,
    });
  }
  const root = resolve(cwd, address);
  try {
    if (create === true) await makeFolder(root, `open store ${root}`);
    if (!(await stat(root)).isDirectory())
      throw new CurlewError('FILE_UNUSABLE', `cannot open store ${root}: not a folder`, { hint: 'specify a folder' });
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') {
      if (create === 'never') return createFolderStore(root);
      throw new CurlewError('NOT_FOUND', `cannot open store ${root}: no such folder`, {
        hint: await hintFor(root, address),
        cause: error,
      });
    }
    throw fileError(`open store ${root}`, error);
  }
  return createFolderStore(root);
}

/** The hint for a folder that does not exist. */
async function hintFor(root: string, address: string): Promise<string> {
  const [host] = /^(?:localhost|[\w-]+(?:\.[\w-]+)+)(?::\d+)?(?=\/|$)/.exec(address) ?? [];
  if (host !== undefined) return `if ${host} is a web server, its address begins with a scheme: https://${host}`;
  const [, folder, release = ''] = /^(.+)@([^/]*)$/.exec(root) ?? [];
  const isStore = folder !== undefined && (await stat(folder).catch(() => undefined))?.isDirectory() === true;
  if (isStore) return `a release is specified with an option: use the store ${folder} with --release ${release}`;
  return `check the path, or create a store there with curlew publish --to ${root}`;
}
