/** `curlew import-external`: takes add-ons that others publish into a store, for kURL's readers. */
import { importExternal } from '../../app/import-external.ts';
import { CurlewError } from '../../core/errors.ts';
import { command } from '../command.ts';
import { BUILD_OPTIONS, NETWORK_OPTIONS, STORE_OPTIONS } from '../options.ts';
import { wholeNumber } from '../values.ts';

export const importExternalCommand = command({
  name: 'import-external',
  operands: 'versions.json',
  options: {
    to: {
      type: 'string',
      required: 'say with --to where to import',
      value: 'STORE',
      help: 'folder, made if need be, or s3://bucket/prefix, to put external/ into',
    },
    name: { type: 'string', value: 'NAME', help: 'the add-on whose versions the file lists' },
    jobs: { type: 'string', read: wholeNumber, short: 'j', value: 'N', help: 'packages at once (default: 4)' },
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
  run: async ({ operands: [file], options }, context) => {
    if (file === undefined) throw new CurlewError('USAGE', 'curlew import-external: name one versions.json');
    return importExternal({ file, ...options }, context);
  },
  render: ({ store, versions }) => {
    const lines = versions.map(({ name, version, outcome }) => `${name} ${version}: ${outcome}`);
    return [...lines, `${store}: external/addon-registry.json names ${versions.length} of them`].join('\n');
  },
});
