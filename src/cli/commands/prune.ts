/** `curlew prune`: removes old releases from a store. */
import { PRUNE } from '../../requests/release.ts';
import { counted } from '../../core/counted.ts';
import type { PruneResult } from '../../ship/release/prune.ts';
import { canAsk, confirm } from '../ask-line.ts';
import { type CommandContext, commandFor, REMOVED_STAYS } from '../command.ts';
import { formatBytes } from '../render/units.ts';

export const command = commandFor(PRUNE, {
  details:
    'With both --keep and --older-than, removes only releases that neither keeps. Always keeps the current release and its\n' +
    'unversioned copies, and every release at least as new as the current one.\n\n' +
    'Asks on a terminal, unless --yes is given. Scripts should give --yes: a later version will require it.',
  examples: [
    'curlew prune --from /srv/staging --keep 10 --older-than 30d --dry-run',
    'curlew prune --from /srv/staging --keep 10 --yes',
  ],
  left: REMOVED_STAYS,
  run: async ({ request, options: { yes } }, context) => {
    const { prune } = await import('../../app/prune.ts');
    // Without a limit, nothing would be removed: that is an error.
    const hasLimit = (request.keep ?? request.olderThan) !== undefined;
    if (hasLimit && !yes && !request.dryRun)
      await requireConsent(async () => prune({ ...request, dryRun: true }, context), context);
    return prune(request, context);
  },
  listsSteps: true,
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
      ...kept.map(({ release, because }) => `${release}: kept (${because})`),
      `${store}: ${counted(kept.length, 'release')} kept; current is ${current}`,
    ].join('\n');
  },
});

/** Asks on a terminal; a script that does not answer yet gets a warning. */
async function requireConsent(plan: () => Promise<PruneResult>, context: CommandContext): Promise<void> {
  const { pruned, store } = await plan();
  if (!canAsk()) {
    const text = 'removing without --yes: a later version of curlew will refuse this without a terminal';
    context.report({ type: 'note', level: 'warning', text });
    return;
  }
  const names = pruned.map(({ release }) => release);
  if (names.length > 0) await confirm(`Remove ${names.join(', ')} from ${store}?`, context);
}
