/** `curlew reindex`: rebuilds a damaged catalog from the packages of a release. */
import { REINDEX } from '../../requests/release.ts';
import { commandFor } from '../command.ts';

const WAS = {
  sound: 'was valid',
  damaged: 'was damaged',
  missing: 'was missing',
  different: 'did not match the packages',
} as const;

export const command = commandFor(REINDEX, {
  details:
    "Reads each package's addon.json with small range requests; reads only packages without metadata completely. The version\n" +
    'order is that of the catalog if it is readable, otherwise that of supported-versions-gen.json.',
  examples: ['curlew reindex /srv/dist', 'curlew reindex s3://bucket/dist --release v2026.11.20-0 --dry-run'],
  left: 'the same command writes what is missing',
  run: async ({ request }, context) => (await import('../../app/reindex.ts')).reindex(request, context),
  render: ({ store, release, was, dryRun, packages, hashed, lost, order }) =>
    [
      `${store}: the catalog of ${release} ${WAS[was]}`,
      // JSON documents keep an older spelling.
      `  ${dryRun ? 'would list' : 'lists'} ${packages} ${packages === 1 ? 'package' : 'packages'}; version order: ${order.replace('catalogue', 'catalog')}`,
      ...hashed.map((file) => `  ${file}: no metadata; computed its SHA-256`),
      ...lost.map(({ file, why }) => `  ${file}: NOT restored: ${why}`),
    ].join('\n'),
});
