/** `curlew promote`: copies a release to another store, server-side where possible. */
import { command, useCase } from '../command.ts';
import { KEY_OPTIONS, MAKE_CURRENT, SIGNER_OPTIONS, STORE_OPTIONS } from '../options.ts';
import { formatBytes } from '../render/units.ts';
import { wholeNumber } from '../values.ts';

const promote = useCase(async () => (await import('../../app/promote.ts')).promote);

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

export const promoteCommand = command({
  name: 'promote',
  operands: '',
  options: {
    from: {
      type: 'string',
      required: 'add --from with a store',
      value: 'STORE@R',
      help: 'source store (R: default is its current release)',
    },
    to: {
      type: 'string',
      required: 'add --to with a store',
      value: 'STORE@R',
      help: 'target store, created if missing (R: default is the same release string)',
    },
    deep: { type: 'boolean', help: 'read every copied package and compare its digest' },
    stream: { type: 'boolean', help: 'copy through this machine if the stores cannot copy from each other' },
    ...MAKE_CURRENT,
    'dry-run': { type: 'boolean', help: 'check and show the plan, and write nothing' },
    jobs: { type: 'string', read: wholeNumber, value: 'N', help: 'concurrent packages (default: 8)' },
    ...SIGNER_OPTIONS,
    ...KEY_OPTIONS,
    ...STORE_OPTIONS,
  },
  details:
    'The packages, their metadata and the version order are unchanged. Readers see the complete release or none:\n' +
    'VERSION is written last. After an interruption, run the same command again to resume.',
  examples: [
    'curlew promote --from /srv/staging --to /srv/dist@v2026.11.20-0',
    'curlew promote --from s3://bucket/staging@v1 --to s3://bucket/dist --deep',
    'curlew promote --from /srv/staging --to /srv/dist --sign release.key',
  ],
  run: async ({ options }, context) => promote(options, context),
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
