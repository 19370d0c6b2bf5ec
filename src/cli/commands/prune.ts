/** `curlew prune`: removes old releases from a store. */
import { prune } from '../../app/prune.ts';
import { counted } from '../../core/counted.ts';
import { command } from '../command.ts';
import { STORE_OPTIONS } from '../options.ts';
import { formatBytes } from '../render/units.ts';
import { age, wholeNumber } from '../values.ts';

export const pruneCommand = command({
  name: 'prune',
  operands: '',
  options: {
    from: { type: 'string', required: 'name a store with --from', value: 'STORE', help: 'the store to remove from' },
    keep: { type: 'string', read: wholeNumber, value: 'N', help: 'keep the N newest releases' },
    'older-than': { type: 'string', read: age, value: 'AGE', help: 'keep what is younger, such as 30d, 12h or 8w' },
    'dry-run': { type: 'boolean', help: 'show what would be removed, and remove nothing' },
    jobs: { type: 'string', read: wholeNumber, value: 'N', help: 'objects at once (default: 8)' },
    ...STORE_OPTIONS,
  },
  details:
    'With both --keep and --older-than a release goes only when both let it go. The current release and its unversioned\n' +
    'copies always stay, and so does every release as new as the current one.',
  examples: ['curlew prune --from /srv/staging --keep 10 --older-than 30d --dry-run'],
  run: async ({ options }, context) => prune(options, context),
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
});
