/** What an add-on can be rolled back to: proved by a rollback, and by everything that promises one. */
import { CurlewError } from '../../core/errors.ts';
import { formatRef } from '../../core/ref.ts';
import { readAsked, type Asked } from './asked.ts';
import { keptPackage } from '../node/kept-package.ts';
import { isFinal, NO_DOWNGRADE, type PreviousRecord, type Records } from '../node/records.ts';
import { previousOf } from './run-records.ts';
import type { SourcePackage } from '../node/source.ts';
import type { RunView } from './request.ts';

type KeptOptions = Pick<Records, 'extracted'> & { readonly signal: AbortSignal };

/** The package and the settings of a former state of an add-on, proved. `NOT_FOUND` when one of them is gone or was changed. */
export async function openKept(
  directory: string,
  name: string,
  { version, digest, run }: PreviousRecord,
  { extracted, signal }: KeptOptions,
): Promise<{ readonly source: SourcePackage; readonly asked: Asked }> {
  const known = extracted.find((one) => one.name === name && one.version === version);
  const ref = { tree: known?.tree ?? 'addons', name, version } as const;
  const asked = await readAsked(directory, run);
  if (asked === undefined) {
    throw new CurlewError('NOT_FOUND', `the settings of ${formatRef(ref)} are not on this node any more`, {
      hint: 'install it again',
    });
  }
  return { asked, source: await keptPackage(directory, ref, digest, { signal }) };
}

/** Why {@link openKept} would fail; undefined if it would not. */
export async function whyLost(
  ...[directory, name, previous, options]: Parameters<typeof openKept>
): Promise<string | undefined> {
  try {
    await openKept(directory, name, previous, options);
    return undefined;
  } catch (error) {
    options.signal.throwIfAborted();
    if (!(error instanceof CurlewError)) throw error;
    return error.message;
  }
}

/** Where a run of an add-on leads back to when it has finished. */
export interface BackOutlook {
  readonly name: string;
  readonly version: string;
  /** Why it does not; undefined if it does. */
  readonly lost: string | undefined;
}

/** Of each add-on of a plan that was something before, unless the run is to keep nothing. Nothing is changed. */
export async function backOutlooks(
  { request, records, plan }: RunView,
  { signal }: { readonly signal: AbortSignal },
): Promise<readonly BackOutlook[]> {
  if (request.keepsPrevious === false) return [];
  const outlooks: BackOutlook[] = [];
  for (const planned of plan.addons) {
    const { name } = planned.ref;
    const previous = previousOf(records, planned);
    if (previous === undefined) continue;
    const lost = isFinal(name, { finished: true })
      ? NO_DOWNGRADE
      : await whyLost(request.place.directory, name, previous, { ...records, signal });
    outlooks.push({ name, version: previous.version, lost });
  }
  return outlooks;
}

/** Warnings for the operator before a run: each add-on that it changes, and that cannot be rolled back after it. */
export async function backNotes(view: RunView, options: { readonly signal: AbortSignal }): Promise<readonly string[]> {
  const isChanged = (name: string): boolean =>
    view.plan.addons.some(({ ref, mode }) => ref.name === name && mode !== 'already applied');
  return (await backOutlooks(view, options)).flatMap(({ name, version, lost }) =>
    lost === undefined || !isChanged(name)
      ? []
      : [`${name} cannot be rolled back to ${version} after this run: ${lost}`],
  );
}
