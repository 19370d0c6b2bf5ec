/** Former states of add-ons: a rollback opens and verifies them, as does everything that announces a rollback. */
import type { Cancellable } from '../../core/cancellable.ts';
import { CurlewError, requireRefusal } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { formatRef, type AddonVersion } from '../../core/ref.ts';
import { readSavedRequest, type SavedRequest } from './saved-request.ts';
import { keptPackage } from '../node/kept-package.ts';
import { isFinal, NO_DOWNGRADE, type PreviousRecord, type Records, recordedRef } from '../plan/records.ts';
import { previousOf } from '../node/run-records.ts';
import type { SourcePackage } from '../node/source.ts';
import type { RunView } from './request.ts';

type KeptOptions = Pick<Records, 'extracted'> & { readonly report?: Report | undefined; readonly signal: AbortSignal };

/** The verified package and the settings of a former state. `NOT_FOUND` if one of them is missing or was changed. */
export async function openPrevious(
  directory: string,
  name: string,
  { version, digest, run }: PreviousRecord,
  { extracted, report, signal }: KeptOptions,
): Promise<{ readonly source: SourcePackage; readonly asked: SavedRequest }> {
  const ref = recordedRef({ extracted }, name, version);
  const asked = await readSavedRequest(directory, run);
  if (asked === undefined) {
    throw new CurlewError('NOT_FOUND', `the settings of ${formatRef(ref)} are no longer on this node`, {
      hint: 'install it again',
    });
  }
  return { asked, source: await keptPackage(directory, ref, digest, { report, signal }) };
}

/** The error message of {@link openPrevious}; undefined if it succeeds. */
export async function whyUnavailable(
  ...[directory, name, previous, options]: Parameters<typeof openPrevious>
): Promise<string | undefined> {
  try {
    await openPrevious(directory, name, previous, options);
    return undefined;
  } catch (error) {
    requireRefusal(error, options.signal);
    return error.message;
  }
}

/** The rollback target of an add-on after a run. */
export interface RollbackOutlook extends AddonVersion {
  /** Why a rollback will not be possible; undefined if it will be. */
  readonly lost: string | undefined;
}

/** Rollback targets of the installed add-ons of a plan; none if the run keeps no former packages. Changes nothing. */
export async function rollbackOutlooks(
  { request, records, plan }: RunView,
  { signal }: Cancellable,
): Promise<readonly RollbackOutlook[]> {
  if (request.keepsPrevious === false) return [];
  const outlooks: RollbackOutlook[] = [];
  for (const planned of plan.addons) {
    const { name } = planned.ref;
    const previous = previousOf(records, planned);
    if (previous === undefined) continue;
    const lost = isFinal(name, { finished: true })
      ? NO_DOWNGRADE
      : await whyUnavailable(request.place.directory, name, previous, { ...records, signal });
    outlooks.push({ name, version: previous.version, lost });
  }
  return outlooks;
}

/** Warnings before a run: each changed add-on that cannot be rolled back after it. */
export async function rollbackWarnings(view: RunView, options: Cancellable): Promise<readonly string[]> {
  const isChanged = (name: string): boolean =>
    view.plan.addons.some(({ ref, mode }) => ref.name === name && mode !== 'already applied');
  return (await rollbackOutlooks(view, options)).flatMap(({ name, version, lost }) =>
    lost === undefined || !isChanged(name)
      ? []
      : [`${name} cannot be rolled back to ${version} after this run: ${lost}`],
  );
}
