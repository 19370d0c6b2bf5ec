/** `curlew import-external`: imports add-ons of other publishers to a store, for kURL's readers. */
import { counted } from '../../core/counted.ts';
import { CurlewError } from '../../core/errors.ts';
import { command, useCase } from '../command.ts';
import { BUILD_OPTIONS, NETWORK_OPTIONS, STORE_OPTIONS } from '../options.ts';
import { wholeNumber } from '../values.ts';

const importExternal = useCase(async () => (await import('../../app/import-external.ts')).importExternal);

export const importExternalCommand = command({
  name: 'import-external',
  operands: 'versions.json',
  options: {
    to: {
      type: 'string',
      required: 'add --to with the target store',
      value: 'STORE',
      help: 'store for external/: s3://bucket/prefix, or a folder, created if missing',
    },
    name: { type: 'string', value: 'NAME', help: 'the add-on, if the file contains a list' },
    jobs: { type: 'string', read: wholeNumber, short: 'j', value: 'N', help: 'concurrent packages (default: 4)' },
    cache: BUILD_OPTIONS.cache,
    ...STORE_OPTIONS,
    ...NETWORK_OPTIONS,
  },
  details:
    'The file is a list of {version, url, kurlVersionCompatibilityRange, isPrerelease, sha256Sum}, or an object of such\n' +
    'lists by add-on. Packages become external/<name>-<version>.tar.gz, and external/addon-registry.json names them with\n' +
    'the computed SHA-256. An imported version never changes, except that a prerelease\n' +
    'may be released.',
  examples: [
    'curlew import-external versions.json --name acme --to /srv/bucket',
    'curlew import-external versions.json --to s3://bucket',
  ],
  run: async ({ operands: [file], options }, context) => {
    if (file === undefined) throw new CurlewError('USAGE', 'curlew import-external: specify one versions.json');
    return importExternal({ file, ...options }, context);
  },
  render: ({ store, versions }) => {
    const lines = versions.map(({ name, version, outcome }) => `${name} ${version}: ${outcome}`);
    return [...lines, `${store}: ${counted(versions.length, 'version')} in external/addon-registry.json`].join('\n');
  },
});
