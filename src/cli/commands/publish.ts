/** `curlew publish`: builds what has changed and makes a release of it in a store. */
import { planPublish, publish, type PublishPlan } from '../../app/publish.ts';
import type { PublishResult } from '../../store/release/publish.ts';
import { command } from '../command.ts';
import { BUILD_OPTIONS, KEY_OPTIONS, MAKE_CURRENT, SIGNER_OPTIONS, STORE_OPTIONS } from '../options.ts';
import { formatBytes } from '../render/units.ts';

const WHAT = {
  uploaded: 'uploaded',
  copied: 'unchanged, copied inside the store',
  present: 'there already',
} as const;

export const publishCommand = command({
  name: 'publish',
  operands: '[addon…]',
  options: {
    to: {
      type: 'string',
      required: 'say with --to where to publish',
      value: 'STORE',
      help: 'folder, made if need be, or s3://bucket/prefix',
    },
    release: { type: 'string', value: 'R', help: 'release string (default: vYYYY.MM.DD-N, the next N of today)' },
    ...MAKE_CURRENT,
    commit: { type: 'string', value: 'SHA', help: 'git commit to note beside the packages (default: $GITHUB_SHA)' },
    'dry-run': { type: 'boolean', help: 'say what would be built, uploaded and copied, and why; change nothing' },
    ...SIGNER_OPTIONS,
    key: KEY_OPTIONS.key,
    ...STORE_OPTIONS,
    ...BUILD_OPTIONS,
  },
  details:
    'Without names, the release holds all add-ons below ./addons and ./packages and nothing else. With names, it holds\n' +
    'these, and from the previous release all that is not named.\n\n' +
    'What has not changed since the previous release is neither built nor uploaded but copied inside the store: its own\n' +
    'files, what its tags and addresses stand for now, and what its container builds are made from are compared with\n' +
    'what was recorded then. Stopped at any moment, the same command goes on with what is there.',
  examples: [
    'curlew publish --to /srv/dist',
    'curlew publish --to /srv/dist --release v1.4.0 --dry-run',
    'curlew publish --to /srv/dist --sign release.key',
  ],
  run: async ({ operands, options: { dryRun, ...options } }, context): Promise<PublishResult | PublishPlan> =>
    (dryRun ? planPublish : publish)({ addons: operands, ...options }, context),
  render: (result) => ('plan' in result ? planText(result) : resultText(result)),
});

function planText({ store, release, plan, bytesUp, bytesCopied }: PublishPlan): string {
  const lines = plan.map(({ name, version, change, because, since, size }) => {
    const reason = change === 'unchanged' ? `unchanged since ${since}` : `${change}: ${because}`;
    return `${name} ${version}: ${reason}, ${size === undefined ? 'size not known yet' : formatBytes(size)}`;
  });
  const isGuess = plan.some(({ change }) => change !== 'unchanged');
  const up = `${isGuess ? 'about ' : ''}${formatBytes(bytesUp)} to be uploaded`;
  return [...lines, `${store}: ${release} would be made; ${up}, ${formatBytes(bytesCopied)} copied`].join('\n');
}

function resultText({ store, release, previous, packages, bytesUp, bytesCopied, bytesPresent }: PublishResult): string {
  const lines = packages.map(({ name, version, size, outcome, sent }) => {
    const rest = outcome === 'uploaded' && sent < size ? `${formatBytes(sent)} of ` : '';
    const why = rest === '' ? '' : ' (an upload that was cut off had left the rest there)';
    return `${name} ${version}: ${WHAT[outcome]}, ${rest}${formatBytes(size)}${why}`;
  });
  const before = previous === undefined || previous === release ? '' : ` (before: ${previous})`;
  const there = bytesPresent === 0 ? '' : `, ${formatBytes(bytesPresent)} there already`;
  const moved = `${formatBytes(bytesUp)} uploaded, ${formatBytes(bytesCopied)} copied${there}`;
  return [...lines, `${store}: ${release} is the current release${before}; ${moved}`].join('\n');
}
