/** `curlew promote`: copies a release to another store, server-side where possible. */
import { PROMOTE } from '../../requests/release.ts';
import { NOTHING_WRITTEN } from '../../core/errors.ts';
import { commandFor } from '../command.ts';
import { formatBytes } from '../render/units.ts';

const OUTCOMES = {
  copied: 'copied by the store',
  streamed: 'copied through this machine',
  present: 'already present',
} as const;
const PLANNED_OUTCOMES = {
  copied: 'would be copied by the store',
  streamed: 'would be copied through this machine',
  present: 'already present',
} as const;

export const command = commandFor(PROMOTE, {
  details:
    'The packages, their metadata and the version order are unchanged. Readers see the complete release or none:\n' +
    'VERSION is written last. After an interruption, run the same command again to resume.',
  examples: [
    'curlew promote --from /srv/staging --to /srv/dist@v2026.11.20-0',
    'curlew promote --from s3://bucket/staging@v1 --to s3://bucket/dist --deep',
    'curlew promote --from /srv/staging --to /srv/dist --sign release.key',
  ],
  left: NOTHING_WRITTEN,
  run: async ({ request }, context) => (await import('../../app/promote.ts')).promote(request, context),
  listsSteps: true,
  render: ({ from, store, release, previous, packages, dryRun, signedBy }) => {
    const outcomes = dryRun ? PLANNED_OUTCOMES : OUTCOMES;
    const lines = packages.map(
      ({ name, version, size, outcome }) => `${name} ${version}: ${outcomes[outcome]}, ${formatBytes(size)}`,
    );
    const before = previous === undefined || previous === release ? '' : ` (before: ${previous})`;
    const end = dryRun
      ? `${store}: ${release} would become the current release${before}; nothing was written`
      : `${store}: ${release} is the current release${before}, promoted from ${from.release} of ${from.store}`;
    const signature = signedBy === undefined ? [] : [`${from.release} of ${from.store} is signed with ${signedBy}`];
    return [...lines, ...signature, end].join('\n');
  },
});
