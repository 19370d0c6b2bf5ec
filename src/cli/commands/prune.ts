/** `curlew prune`: removes old releases from a store. */
import { STORE_OPTIONS } from '../options.ts';
import { counted } from '../../core/counted.ts';
import { CurlewError } from '../../core/errors.ts';
import { prune, type PruneResult } from '../../store/release/prune.ts';
import { age as ageOf } from '../values.ts';
import { countOf } from '../values.ts';
import type { Command } from '../command.ts';
import { formatBytes } from '../render/units.ts';
import { openStoreFor } from '../../app/ports/stores.ts';

/** Objects at once. */
const JOBS = 8;

export const pruneCommand: Command<PruneResult> = {
  name: 'prune',
  summary: 'Remove old releases from a store',
  operands: '',
  options: {
    from: { type: 'string', value: 'STORE', help: 'the store to remove from' },
    keep: { type: 'string', value: 'N', help: 'keep the N newest releases' },
    'older-than': { type: 'string', value: 'AGE', help: 'keep what is younger, such as 30d, 12h or 8w' },
    'dry-run': { type: 'boolean', help: 'show what would be removed, and remove nothing' },
    jobs: { type: 'string', value: 'N', help: `objects at once (default: ${JOBS})` },
    ...STORE_OPTIONS,
  },
  details:
    'With both --keep and --older-than a release goes only when both let it go. The current release and its unversioned\n' +
    'copies always stay, and so does every release as new as the current one.',
  examples: ['curlew prune --from /srv/staging --keep 10 --older-than 30d --dry-run'],
  run: async (args, context) => {
    const { report, signal } = context;
    const from = args.text('from');
    if (from === undefined) throw new CurlewError('USAGE', 'curlew prune: name a store with --from');
    const age = args.text('older-than');
    const keep = args.text('keep') === undefined ? undefined : countOf(args, 'keep', 1);
    if (keep === undefined && age === undefined) {
      throw new CurlewError('USAGE', 'curlew prune: say what stays', { hint: '--keep 10, --older-than 30d, or both' });
    }
    const olderThan = age === undefined ? undefined : ageOf(age, '--older-than');
    const jobs = countOf(args, 'jobs', JOBS);
    const store = await openStoreFor(from, args.options, context, { create: false });
    return prune(store, { keep, olderThan, now: new Date(), dryRun: args.flag('dry-run'), jobs, report, signal });
  },
  render: ({ store, current, dryRun, pruned, latest, uploads, kept, left }) => {
    const would = dryRun ? 'would go' : 'removed';
    return [
      ...pruned.map(
        ({ release, because, objects, bytes }) =>
          `${release}: ${would}, ${counted(objects, 'object')}, ${formatBytes(bytes)} (${because})`,
      ),
      ...latest.map((file) => `${file}: ${would} (no release has it)`),
      ...(uploads === 0 ? [] : [`uploads that never ended: ${uploads} ${dryRun ? 'would be given up' : 'given up'}`]),
      ...left.map(({ release, why }) => `${release}: NOT removed: ${why}`),
      `${store}: ${kept.length} ${kept.length === 1 ? 'release stays' : 'releases stay'}; current is ${current}`,
    ].join('\n');
  },
};
