/** `curlew reindex`: makes a damaged catalogue anew from the packages that are there. */
import { reindex } from '../../app/reindex.ts';
import { CurlewError } from '../../core/errors.ts';
import { command } from '../command.ts';
import { STORE_OPTIONS } from '../options.ts';
import { wholeNumber } from '../values.ts';

const WAS = {
  sound: 'was sound',
  damaged: 'was damaged',
  missing: 'was not there',
  different: 'did not name what is there',
} as const;

export const reindexCommand = command({
  name: 'reindex',
  operands: 'STORE',
  options: {
    release: { type: 'string', value: 'R', help: 'which release (default: the current one)' },
    'dry-run': { type: 'boolean', help: 'show what could be restored, and write nothing' },
    jobs: { type: 'string', read: wholeNumber, value: 'N', help: 'packages at once (default: 8)' },
    ...STORE_OPTIONS,
  },
  details:
    'Each package is asked for its addon.json by small ranges; only one without metadata is read whole. The order of\n' +
    'versions comes from the catalogue if that can be read, otherwise from supported-versions-gen.json.',
  examples: ['curlew reindex /srv/dist', 'curlew reindex s3://bucket/dist --release v2026.11.20-0 --dry-run'],
  run: async ({ operands: [store], options }, context) => {
    if (store === undefined) {
      throw new CurlewError('USAGE', 'curlew reindex: name one store', { hint: 'curlew reindex STORE' });
    }
    return reindex({ store, ...options }, context);
  },
  render: ({ store, release, was, dryRun, packages, hashed, lost, order }) =>
    [
      `${store}: the catalogue of ${release} ${WAS[was]}`,
      `  ${dryRun ? 'would name' : 'names'} ${packages} ${packages === 1 ? 'package' : 'packages'}; order of versions: ${order}`,
      ...hashed.map((file) => `  ${file}: has no metadata, its bytes were hashed`),
      ...lost.map(({ file, why }) => `  ${file}: NOT restored: ${why}`),
    ].join('\n'),
});
