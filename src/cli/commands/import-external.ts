/** `curlew import-external`: takes add-ons that others publish into a store, for kURL's readers. */
import { BUILD_OPTIONS, NETWORK_OPTIONS, STORE_OPTIONS } from '../options.ts';
import { readFile, rm, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { clearShelf, fetchAsset } from '../../build/assets.ts';
import { makeScratch } from '../../build/cache.ts';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import { importExternal, type ImportResult } from '../../store/release/import-external.ts';
import { externalFile, parseOffers, type OfferedVersion } from '../../store/release/external.ts';
import { openBuildPorts } from '../../app/ports/build-ports.ts';
import { countOf } from '../values.ts';
import type { Command } from '../command.ts';
import { openStoreFor } from '../../app/ports/stores.ts';

const JOBS = 4;
const LIMIT = 4 << 20;

export const importExternalCommand: Command<ImportResult> = {
  name: 'import-external',
  summary: 'Take packages that others publish into a store',
  operands: 'versions.json',
  options: {
    to: {
      type: 'string',
      value: 'STORE',
      help: 'folder, made if need be, or s3://bucket/prefix, to put external/ into',
    },
    name: { type: 'string', value: 'NAME', help: 'the add-on whose versions the file lists' },
    jobs: { type: 'string', short: 'j', value: 'N', help: 'packages at once (default: 4)' },
    cache: BUILD_OPTIONS.cache,
    ...STORE_OPTIONS,
    ...NETWORK_OPTIONS,
  },
  details:
    'The file is a list of {version, url, kurlVersionCompatibilityRange, isPrerelease, sha256Sum}, or an object of such\n' +
    'lists by add-on. Packages become external/<name>-<version>.tar.gz, and external/addon-registry.json names them with\n' +
    'the sha256 that their bytes were found to have. A version that was imported never changes, except that a\n' +
    'prerelease may be released.',
  examples: [
    'curlew import-external versions.json --name acme --to /srv/bucket',
    'curlew import-external versions.json --to s3://bucket',
  ],
  run: async (args, context) => {
    const { cwd, report, signal } = context;
    const [path] = args.positionals;
    if (path === undefined) {
      throw new CurlewError('USAGE', 'curlew import-external: name one versions.json');
    }
    const to = args.text('to');
    if (to === undefined) throw new CurlewError('USAGE', 'curlew import-external: say with --to where to import');
    const offers = parseOffers(await readOffers(resolve(cwd, path)), path, args.text('name'));
    const store = await openStoreFor(to, args.options, context, { create: true });
    await using ports = await openBuildPorts([], args.options, context);
    const scratch = await makeScratch(ports.cache, 'external');
    const none = async (): Promise<ReadonlyMap<never, never>> => new Map<never, never>();
    const fetch = async (offer: OfferedVersion, within: { readonly signal: AbortSignal }) => {
      const { url: source, digest } = offer;
      const step = { kind: 'asset', fileName: externalFile(offer), source, local: false, digest } as const;
      const silent = { onBytes: () => undefined, onExpected: () => undefined };
      return fetchAsset(step, { root: cwd, scratch, ...silent }, { ...ports, donors: none }, within);
    };
    try {
      return await importExternal(offers, { store, fetch, jobs: countOf(args, 'jobs', JOBS), report, signal });
    } finally {
      await clearShelf(ports.shelf);
      await rm(scratch, { recursive: true, force: true });
    }
  },
  render: ({ store, versions }) => {
    const lines = versions.map(({ name, version, outcome }) => `${name} ${version}: ${outcome}`);
    return [...lines, `${store}: external/addon-registry.json names ${versions.length} of them`].join('\n');
  },
};

async function readOffers(path: string): Promise<string> {
  try {
    if ((await stat(path)).size > LIMIT) throw new CurlewError('SPEC_INVALID', `${path} is larger than ${LIMIT} bytes`);
    return await readFile(path, 'utf8');
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') throw new CurlewError('NOT_FOUND', `${path} does not exist`);
    throw fileError(`read ${path}`, error);
  }
}
