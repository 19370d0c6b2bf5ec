/** `curlew prune`: removes old releases from a store. */
import { counted } from '../../core/counted.ts';
import { command, useCase } from '../command.ts';
import { STORE_OPTIONS } from '../options.ts';
import { formatBytes } from '../render/units.ts';
import { age, wholeNumber } from '../values.ts';

const prune = useCase(async () => (await import('../../app/prune.ts')).prune);

export const pruneCommand = command({
  name: 'prune',
  operands: '',
  options: {
    from: { type: 'string', required: 'add --from with a store', value: 'STORE', help: 'the store to prune' },
    keep: { type: 'string', read: wholeNumber, value: 'N', help: 'keep the N newest releases' },
    'older-than': {
      type: 'string',
      read: age,
      value: 'AGE',
      help: 'keep releases younger than this, such as 30d, 12h or 8w',
    },
    'dry-run': { type: 'boolean', help: 'show what would be removed, and remove nothing' },
    jobs: { type: 'string', read: wholeNumber, value: 'N', help: 'concurrent deletions (default: 8)' },
    ...STORE_OPTIONS,
  },
  details:
    'With both --keep and --older-than, removes only releases that neither keeps. Always keeps the current release and its\n' +
    'unversioned copies, and every release at least as new as the current one.',
  examples: ['curlew prune --from /srv/staging --keep 10 --older-than 30d --dry-run'],
  run: async ({ options }, context) => prune(options, context),
  render: ({ store, current, dryRun, pruned, latest, uploads, kept, left }) => {
    const would = dryRun ? 'would be removed' : 'removed';
    return [
      ...pruned.map(
        ({ release, because, objects, bytes }) =>
          `${release}: ${would}, ${counted(objects, 'object')}, ${formatBytes(bytes)} (${because})`,
      ),
      ...latest.map((file) => `${file}: ${would} (in no release)`),
      ...(uploads === 0 ? [] : [`unfinished uploads: ${uploads} ${dryRun ? 'would be aborted' : 'aborted'}`]),
      ...left.map(({ release, why }) => `${release}: NOT removed: ${why}`),
      `${store}: ${counted(kept.length, 'release')} kept; current is ${current}`,
    ].join('\n');
  },
});
