/** `curlew promote`: makes a release of one store a release of another, without its bytes passing through here. */
import { promote } from '../../app/promote.ts';
import { command } from '../command.ts';
import { KEY_OPTIONS, MAKE_CURRENT, SIGNER_OPTIONS, STORE_OPTIONS } from '../options.ts';
import { formatBytes } from '../render/units.ts';
import { wholeNumber } from '../values.ts';

const WHAT = { copied: 'copied by the store', streamed: 'copied through here', present: 'there already' } as const;
const WOULD = { copied: 'would be copied by the store', streamed: 'would be copied through here', present: 'there' };

export const promoteCommand = command({
  name: 'promote',
  operands: '',
  options: {
    from: {
      type: 'string',
      required: 'name a store with --from',
      value: 'STORE@R',
      help: 'where the release is (R: its current one)',
    },
    to: {
      type: 'string',
      required: 'name a store with --to',
      value: 'STORE@R',
      help: 'where it goes, made if need be (R: the same name)',
    },
    deep: { type: 'boolean', help: 'read every package in its new place and compare its digest' },
    stream: { type: 'boolean', help: 'let bytes pass through here where the stores cannot copy from each other' },
    ...MAKE_CURRENT,
    'dry-run': { type: 'boolean', help: 'check and show what would be done, and write nothing' },
    jobs: { type: 'string', read: wholeNumber, value: 'N', help: 'packages at once (default: 8)' },
    ...SIGNER_OPTIONS,
    ...KEY_OPTIONS,
    ...STORE_OPTIONS,
  },
  details:
    'The packages, their metadata and the order of versions stay as they are. Readers see the release whole or not at all:\n' +
    'VERSION is written last. Cut off anywhere, the same command again completes it.',
  examples: [
    'curlew promote --from /srv/staging --to /srv/dist@v2026.11.20-0',
    'curlew promote --from s3://bucket/staging@v1 --to s3://bucket/dist --deep',
    'curlew promote --from /srv/staging --to /srv/dist --sign release.key',
  ],
  run: async ({ options }, context) => promote(options, context),
  render: ({ from, store, release, previous, packages, dryRun, signedBy }) => {
    const what = dryRun ? WOULD : WHAT;
    const lines = packages.map(
      ({ name, version, size, outcome }) => `${name} ${version}: ${what[outcome]}, ${formatBytes(size)}`,
    );
    const before = previous === undefined || previous === release ? '' : ` (before: ${previous})`;
    const end = dryRun
      ? `${store}: ${release} would be the current release${before}; nothing was written`
      : `${store}: ${release} is the current release${before}, promoted from ${from.release} of ${from.store}`;
    const signature = signedBy === undefined ? [] : [`${from.release} of ${from.store} is signed with ${signedBy}`];
    return [...lines, ...signature, end].join('\n');
  },
});
