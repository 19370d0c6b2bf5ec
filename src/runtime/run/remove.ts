/** The last phases of a run: what it removes in addition to calling hooks, and the records of what stays. */
import { hostname } from 'node:os';
import { CurlewError } from '../../core/errors.ts';
import { requireOwnLinks } from '../hooks/confine.ts';
import { pruneImages } from '../images/remove-images.ts';
import { FAILED } from '../journal/journal.ts';
import { removeAddonFiles } from '../node/remove-files.ts';
import { KUBERNETES } from '../plan/hooks.ts';
import { isRemoved } from '../plan/order.ts';
import type { HookAction } from '../plan/run-plan.ts';
import { unfinishedRemovals } from '../prepare/removal.ts';
import type { Run } from './run.ts';

/** Lets the run continue after a hook of a removed add-on failed if `keepGoing` is requested; throws otherwise. */
export async function survive(error: unknown, { id, addon, function: called }: HookAction, run: Run): Promise<string> {
  const { removal, place } = run.request;
  if (removal?.keepGoing !== true || !(error instanceof CurlewError) || error.code !== 'HOOK_FAILED') throw error;
  // Files are removed next: they must not be reached through a link that the hook created.
  if (place.confined) await requireOwnLinks(place.directory);
  await run.journal.append({ type: 'done', action: id, outcome: FAILED });
  run.failed.push({ addon, function: called, message: error.message });
  run.report({ type: 'note', level: 'warning', text: error.message });
  return '';
}

export async function removeImages(run: Run): Promise<void> {
  const { packages, removal, env } = run.request;
  if (removal?.pruneImages !== true) return;
  run.removedImages = await pruneImages({
    directory: run.directory,
    gone: removal.packages.map(({ source }) => source),
    required: packages.map(({ source }) => source),
    addons: run.plan.addons,
    records: run.changes.now,
    env,
    report: run.report,
    signal: run.signal,
  });
}

/** The add-ons that stay are finished, in the cluster and on the node. */
export async function recordFinished({ plan, request, cluster, changes }: Run): Promise<void> {
  const addons = plan.addons.filter((addon) => !isRemoved(addon));
  await cluster.finished(addons);
  await changes.finished(addons, request.keepsPrevious !== false);
}

/**
 * Removes the `applied` records, then the files, then the `extracted` records: if the run dies in between, `curlew status`
 * shows the remaining packages and the next run removes them.
 */
export async function removeFiles({ plan, request, last, records, changes, directory, messages }: Run): Promise<void> {
  const removed = plan.addons.filter(isRemoved);
  const stays = new Set(plan.addons.flatMap((addon) => (isRemoved(addon) ? [] : [addon.ref.name])));
  const names = new Set([
    ...removed.map(({ ref }) => ref.name),
    ...(request.removal?.forgotten ?? []),
    ...unfinishedRemovals(last, records).filter((name) => !stays.has(name)),
  ]);
  if (names.size === 0) return;
  await changes.removed(names);
  for (const name of names) await removeAddonFiles(directory, name);
  await changes.forgetPackages(names);
  if (!removed.some(({ ref, mode }) => ref.name === KUBERNETES && mode === 'leave')) return;
  // This node may have no right to remove its own Node.
  const command = `curlew node remove ${hostname().toLowerCase()} --yes`;
  const text = `If the cluster still has the Node of this machine, remove it on a control plane: ${command}`;
  messages.push({ addon: KUBERNETES, text });
}
