/**
 * The executables for nodes. A checkout has them in its build. The npm package has only their digests: they are many
 * times as large as everything else in it, and machines that only build and publish do not need them.
 */
import { basename, dirname, join, resolve } from 'node:path';
import {
  executableDigest,
  openExecutable,
  openExecutableFile,
  openExecutableIndex,
  type OpenExecutable,
} from '../../own/root-files.ts';
import type { Context } from '../../core/context.ts';
import { hexOf, type Digest } from '../../core/digest.ts';
import { CurlewError, redact, unless } from '../../core/errors.ts';
import { packedExecutableName, releasedExecutableName } from '../../core/layout.ts';
import { ARCHES, type Arch } from '../../core/ref.ts';
import { toolVersion } from '../../own/version.ts';
import { hashFile } from '../../platform/files/hash-file.ts';
import { makeFolder } from '../../platform/files/make-folder.ts';
import { isWebAddress } from '../../ship/store/web.ts';
import { pathsBeside } from '../../ship/transfer/partial-file.ts';
import { fetchUrl } from '../../ship/transfer/from-url.ts';
import { readConfig, cacheFolder } from './config.ts';
import { lazyHttp } from './network.ts';
import type { WebRequest } from '../../requests/connection.ts';

/** Most bytes of a packed executable, which has about 50 MB. */
const LIMIT = 256 << 20;

/** Where an executable that the package does not contain comes from. */
interface ExecutablePlace {
  /** The file in the configured folder, or in the cache if it is fetched from `url`. */
  readonly path: string;
  readonly url: string | undefined;
  readonly digest: Digest;
}

type ExecutableRequest = WebRequest & { readonly dryRun?: boolean | undefined };

/**
 * Opens the executable of this build, else the one of the configured place, which is fetched once if that is an address. Its
 * digest must be the one in the package, otherwise `DIGEST_MISMATCH`. `NOT_FOUND` without a place, or a file in it. A dry run
 * needs neither: it gets an executable whose bytes cannot be read.
 */
export function executableOpener(request: ExecutableRequest, context: Context): typeof openExecutable {
  return async (arch, { signal }) => {
    const own = await ownExecutable(arch, signal);
    if (own !== undefined) return own;
    if (request.dryRun === true) return openExecutableIndex(arch);
    return openFrom(await executablePlace(arch, request, context), arch, request, context);
  };
}

/**
 * Path or address that the executable for an architecture comes from; undefined if it is in this build. Fails as
 * {@link executableOpener} does, but fetches nothing.
 */
export async function findExecutable(arch: Arch, request: WebRequest, context: Context): Promise<string | undefined> {
  const own = await ownExecutable(arch, context.signal);
  await own?.[Symbol.asyncDispose]();
  if (own !== undefined) return undefined;
  const { url, path, digest } = await executablePlace(arch, request, context);
  if (url !== undefined) return redact(url);
  requireDigest(path, await digestOfGiven(path, context.signal), digest);
  return path;
}

/** The architectures that a machine can bundle for. */
export interface BundleArches {
  /** One line with each architecture. */
  readonly message: string;
  /** The hint if bundles cannot be made for the machine's own nodes, or without `--arch`. */
  readonly hint: string | undefined;
}

/**
 * The architectures whose executables are there, on a machine of architecture `host`. Fails as `find` does if there is none:
 * no bundle can be made.
 */
export async function bundleArches(
  host: Arch | undefined,
  find: (arch: Arch) => Promise<string | undefined>,
): Promise<BundleArches> {
  const able: string[] = [];
  const missing = new Map<Arch, CurlewError>();
  for (const arch of ARCHES) {
    try {
      const from = await find(arch);
      able.push(`${arch} nodes${from === undefined ? '' : ` with ${from}`}`);
    } catch (error) {
      if (!(error instanceof CurlewError && error.code === 'NOT_FOUND')) throw error;
      missing.set(arch, error);
    }
  }
  const [first] = missing.values();
  if (able.length === 0 && first !== undefined) throw first;
  const not = [...missing.keys()].map((arch) => `, not for ${arch} nodes`);
  // bundle without --arch is for amd64 on every machine.
  const wanted = missing.get('amd64') ?? (host === undefined ? undefined : missing.get(host));
  return {
    message: `bundles can be made for ${able.join(' and ')}${not.join('')}`,
    hint: wanted === undefined ? undefined : [wanted.message, wanted.hint ?? []].flat().join('; '),
  };
}

/** The executable of this build; undefined if it has only the digest of one. */
async function ownExecutable(arch: Arch, signal: AbortSignal): Promise<OpenExecutable | undefined> {
  return openExecutable(arch, { signal }).catch(async (error: unknown) => {
    if (error instanceof CurlewError && error.code === 'NOT_FOUND' && (await executableDigest(arch)) !== undefined)
      return undefined;
    throw error;
  });
}

/** The place by the variable or the configuration. `NOT_FOUND` if neither names one. */
async function executablePlace(arch: Arch, request: WebRequest, context: Context): Promise<ExecutablePlace> {
  const { env, cwd } = context;
  const digest = await executableDigest(arch);
  const file = releasedExecutableName(toolVersion(), arch);
  const setting = env['CURLEW_EXECUTABLES'];
  const place =
    setting === undefined || setting === '' ? (await readConfig(request.config, { env, cwd })).executables : setting;
  if (place === undefined || digest === undefined) {
    throw new CurlewError(
      'NOT_FOUND',
      `no executable for ${arch} nodes, which bundles for them need: this package of curlew does not contain it`,
      {
        hint: `download ${file} of this release, and set CURLEW_EXECUTABLES=FOLDER, or {"executables": "FOLDER"} in ~/.config/curlew/config.json; an https address is a folder too: curlew help install.md`,
      },
    );
  }
  if (!isWebAddress(place)) return { path: resolve(cwd, place, file), url: undefined, digest };
  const folder = join(cacheFolder(env), 'executables', hexOf(digest));
  const url = `${place.replace(/\/+$/, '')}/${file}`;
  return { path: join(folder, packedExecutableName(arch)), url, digest };
}

async function openFrom(
  { path, url, digest }: ExecutablePlace,
  arch: Arch,
  request: WebRequest,
  context: Context,
): Promise<OpenExecutable> {
  const { signal } = context;
  if (url === undefined) requireDigest(path, await digestOfGiven(path, signal), digest);
  if (url === undefined || (await isKept(path, digest, signal))) return openExecutableFile(path, { signal });
  await using web = lazyHttp(request, context);
  context.report({
    type: 'note',
    level: 'info',
    text: `fetching the curlew for ${arch} nodes once, from ${redact(url)}`,
  });
  await makeFolder(dirname(path));
  const doing = `fetch the executable for ${arch} nodes`;
  const check = (actual: Digest): void => requireDigest(redact(url), actual, digest);
  const wanted = { doing, url, paths: pathsBeside(path), digest, check, limit: LIMIT, force: true };
  await fetchUrl(await web.get(), wanted, { onBytes: () => undefined, onSize: () => undefined, signal });
  return await openExecutableFile(path, { signal });
}

async function digestOfGiven(path: string, signal: AbortSignal): Promise<Digest> {
  try {
    return (await hashFile(path, { signal })).digest;
  } catch (error) {
    if (!(error instanceof CurlewError) || error.code !== 'NOT_FOUND') throw error;
    const hint = `set CURLEW_EXECUTABLES, or executables in the configuration, to the folder that has ${basename(path)}`;
    throw new CurlewError(error.code, error.message, { hint, cause: error });
  }
}

/** True for a file of an earlier run with this digest; another one is fetched again. */
async function isKept(path: string, digest: Digest, signal: AbortSignal): Promise<boolean> {
  return (await unless(['NOT_FOUND'], hashFile(path, { signal })))?.digest === digest;
}

function requireDigest(from: string, actual: Digest, wanted: Digest): void {
  if (actual === wanted) return;
  throw new CurlewError('DIGEST_MISMATCH', `${from}: has the sha256 ${actual}, not ${wanted}`, {
    hint: `use the file of the release of curlew ${toolVersion()}, the version of this package`,
  });
}
