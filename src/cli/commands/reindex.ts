/** `curlew reindex`: rebuilds a damaged catalog from the packages of a release. */
import { CurlewError } from '../../core/errors.ts';
import { command, useCase } from '../command.ts';
import { STORE_OPTIONS } from '../options.ts';
import { wholeNumber } from '../values.ts';

const reindex = useCase(async () => (await import('../../app/reindex.ts')).reindex);

const WAS = {
  sound: 'was valid',
  damaged: 'was damaged',
  missing: 'was missing',
  different: 'did not match the packages',
} as const;

export const reindexCommand = command({
  name: 'reindex',
  operands: 'STORE',
  options: {
    release: { type: 'string', value: 'R', help: 'the release (default: the current one)' },
    'dry-run': { type: 'boolean', help: 'show what could be restored, and write nothing' },
    jobs: { type: 'string', read: wholeNumber, value: 'N', help: 'concurrent packages (default: 8)' },
    ...STORE_OPTIONS,
  },
  details:
    "Reads each package's addon.json with small range requests; reads only packages without metadata completely. The version\n" +
    'order is that of the catalog if it is readable, otherwise that of supported-versions-gen.json.',
  examples: ['curlew reindex /srv/dist', 'curlew reindex s3://bucket/dist --release v2026.11.20-0 --dry-run'],
  run: async ({ operands: [store], options }, context) => {
    if (store === undefined) {
      throw new CurlewError('USAGE', 'curlew reindex: specify one store', { hint: 'curlew reindex STORE' });
    }
    return reindex({ store, ...options }, context);
  },
  render: ({ store, release, was, dryRun, packages, hashed, lost, order }) =>
    [
      `${store}: the catalog of ${release} ${WAS[was]}`,
      // JSON documents keep an older spelling.
      `  ${dryRun ? 'would list' : 'lists'} ${packages} ${packages === 1 ? 'package' : 'packages'}; version order: ${order.replace('catalogue', 'catalog')}`,
      ...hashed.map((file) => `  ${file}: no metadata; computed its SHA-256`),
      ...lost.map(({ file, why }) => `  ${file}: NOT restored: ${why}`),
    ].join('\n'),
});
