/** `curlew promote`: makes a release of one store a release of another, without its bytes passing through here. */
import { KEY_OPTIONS, MAKE_CURRENT, SIGNER_OPTIONS, STORE_OPTIONS } from '../options.ts';
import { CurlewError } from '../../core/errors.ts';
import { promote, sourceRelease, type PromoteResult } from '../../store/release/promote.ts';
import { countOf } from '../values.ts';
import type { Command } from '../command.ts';
import { noteUnsigned, trustOfStore, signerOf } from '../../app/ports/release-trust.ts';
import { openStoreFor } from '../../app/ports/stores.ts';
import { formatBytes } from '../render/units.ts';
import { parseStoreRelease } from '../store-release.ts';

/** Packages on their way at once. */
const JOBS = 8;

const WHAT = { copied: 'copied by the store', streamed: 'copied through here', present: 'there already' } as const;
const WOULD = { copied: 'would be copied by the store', streamed: 'would be copied through here', present: 'there' };

export const promoteCommand: Command<PromoteResult> = {
  name: 'promote',
  summary: 'Make a release of one store a release of another',
  operands: '',
  options: {
    from: { type: 'string', value: 'STORE@R', help: 'where the release is (R: its current one)' },
    to: { type: 'string', value: 'STORE@R', help: 'where it goes, made if need be (R: the same name)' },
    deep: { type: 'boolean', help: 'read every package in its new place and compare its digest' },
    stream: { type: 'boolean', help: 'let bytes pass through here where the stores cannot copy from each other' },
    ...MAKE_CURRENT,
    'dry-run': { type: 'boolean', help: 'check and show what would be done, and write nothing' },
    jobs: { type: 'string', value: 'N', help: `packages at once (default: ${JOBS})` },
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
  run: async (args, context) => {
    const { report, signal } = context;
    const [from, to] = ['from', 'to'].map((option) => {
      const text = args.text(option);
      if (text !== undefined) return parseStoreRelease(text, `--${option}`);
      throw new CurlewError('USAGE', `curlew promote: name a store with --${option}`);
    });
    if (from === undefined || to === undefined) throw new CurlewError('USAGE', 'curlew promote: name both stores');
    const jobs = countOf(args, 'jobs', JOBS);
    const store = await openStoreFor(from.store, args.options, context, { create: false });
    // Which release may become current is asked of the store that it goes to.
    const trust = await trustOfStore(args.options, context, { address: store.address, allowOlder: true });
    const source = await sourceRelease(store, { release: from.release, trust, signal });
    const dryRun = args.flag('dry-run');
    const target = await openStoreFor(to.store, args.options, context, { create: !dryRun });
    const flags = {
      deep: args.flag('deep'),
      stream: args.flag('stream'),
      dryRun,
      makeCurrent: args.flag('make-current'),
    };
    const signer = await signerOf(args.options, context, [target.address]);
    const promoted = await promote(source, { to: target, release: to.release, signer, ...flags, jobs, report, signal });
    if (!dryRun) await noteUnsigned(target, { release: promoted.release, signer }, context);
    return promoted;
  },
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
};
