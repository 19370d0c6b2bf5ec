/** `curlew reindex`: makes a damaged catalogue anew from the packages that are there. */
import { STORE_OPTIONS } from '../options.ts';
import { CurlewError } from '../../core/errors.ts';
import { checkedRelease } from '../../store/release/release-name.ts';
import { reindex, type ReindexResult } from '../../store/release/reindex.ts';
import { countOf } from '../values.ts';
import type { Command } from '../command.ts';
import { openStoreFor } from '../../app/ports/stores.ts';

/** Packages at once. */
const JOBS = 8;

const WAS = {
  sound: 'was sound',
  damaged: 'was damaged',
  missing: 'was not there',
  different: 'did not name what is there',
} as const;

export const reindexCommand: Command<ReindexResult> = {
  name: 'reindex',
  summary: 'Make the catalogue of a release again from its packages',
  operands: 'STORE',
  options: {
    release: { type: 'string', value: 'R', help: 'which release (default: the current one)' },
    'dry-run': { type: 'boolean', help: 'show what could be restored, and write nothing' },
    jobs: { type: 'string', value: 'N', help: `packages at once (default: ${JOBS})` },
    ...STORE_OPTIONS,
  },
  details:
    'Each package is asked for its addon.json by small ranges; only one without metadata is read whole. The order of\n' +
    'versions comes from the catalogue if that can be read, otherwise from supported-versions-gen.json.',
  examples: ['curlew reindex /srv/dist', 'curlew reindex s3://bucket/dist --release v2026.11.20-0 --dry-run'],
  run: async (args, context) => {
    const { signal } = context;
    const [address] = args.positionals;
    if (address === undefined) {
      throw new CurlewError('USAGE', 'curlew reindex: name one store', { hint: 'curlew reindex STORE' });
    }
    const given = args.text('release');
    const release = given === undefined ? undefined : checkedRelease(given, '--release');
    const store = await openStoreFor(address, args.options, context, { create: false });
    return reindex(store, { release, dryRun: args.flag('dry-run'), jobs: countOf(args, 'jobs', JOBS), signal });
  },
  render: ({ store, release, was, dryRun, packages, hashed, lost, order }) =>
    [
      `${store}: the catalogue of ${release} ${WAS[was]}`,
      `  ${dryRun ? 'would name' : 'names'} ${packages} ${packages === 1 ? 'package' : 'packages'}; order of versions: ${order}`,
      ...hashed.map((file) => `  ${file}: has no metadata, its bytes were hashed`),
      ...lost.map(({ file, why }) => `  ${file}: NOT restored: ${why}`),
    ].join('\n'),
};
