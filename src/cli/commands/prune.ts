/** `curlew prune`: removes old releases from a store. */
import { PRUNE } from '../../app/requests/release.ts';
import { counted } from '../../core/counted.ts';
import { commandFor } from '../command.ts';
import { formatBytes } from '../render/units.ts';

export const command = commandFor(PRUNE, {
  details:
    'With both --keep and --older-than, removes only releases that neither keeps. Always keeps the current release and its\n' +
    'unversioned copies, and every release at least as new as the current one.',
  examples: ['curlew prune --from /srv/staging --keep 10 --older-than 30d --dry-run'],
  run: async ({ request }, context) => (await import('../../app/prune.ts')).prune(request, context),
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
