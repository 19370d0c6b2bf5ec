/** Replaced packages: those that a rollback needs are kept, all others are removed. */
import type { Digest } from '../../core/digest.ts';
import { prefixOf } from '../../core/layout.ts';
import type { AddonRef } from '../../core/ref.ts';
import { isRemoved } from '../plan/order.ts';
import { recordedDigest } from '../node/placed-package.ts';
import { clearStaging, dropPrevious, moveAside } from '../node/put-in-place.ts';
import { type AppliedRecord, type PreviousRecord, type Records, recordOf } from '../plan/records.ts';
import type { SourcePackage } from '../node/source.ts';
import type { PlannedAddon } from '../plan/run-plan.ts';
import type { Run } from './run.ts';

/** True if the package in this place is the one that its add-on would be rolled back to. */
export async function isRollbackTarget(
  { ref, addon }: SourcePackage,
  directory: string,
  records: Records,
): Promise<boolean> {
  const record = recordOf(records.applied, ref.name);
  const wanted: Digest | undefined = record?.finished === true ? record.digest : record?.previous?.digest;
  if (wanted === undefined || wanted === addon.digest) return false;
  return (await recordedDigest(directory, ref)) === wanted;
}

/**
 * A rollback now returns to the present version of each replaced add-on. Removes the version before that, which frees its
 * space before the new package is unpacked.
 */
export async function dropOlder(run: Run): Promise<void> {
  const { directory, plan, changes } = run;
  const older = plan.addons.flatMap((addon): readonly (readonly [AddonRef, PreviousRecord])[] => {
    const record = recordOf(changes.now.applied, addon.ref.name);
    if (isRemoved(addon) || record?.previous === undefined || !record.finished) return [];
    // The package that this run rolls back to is needed until its hooks begin.
    if (isSame(record, addon) || isSame(record.previous, addon)) return [];
    return [[addon.ref, record.previous]];
  });
  if (older.length === 0) return;
  await changes.forgetPrevious(new Set(older.map(([{ name }]) => name)));
  for (const [ref, { version }] of older) {
    const now = recordOf(changes.now.applied, ref.name)?.version;
    await dropPrevious(directory, ref);
    if (version === now || version === ref.version) continue;
    await takeOff({ ...ref, version }, run);
  }
  await clearStaging(directory);
}

function isSame(record: AppliedRecord | PreviousRecord, { ref, digest }: PlannedAddon): boolean {
  return record.version === ref.version && record.digest === digest;
}

async function takeOff(ref: AddonRef, { directory, folder, changes }: Run): Promise<void> {
  await moveAside(ref, { directory, run: folder.run });
  await changes.forgetExtracted(ref);
}

/** At the end of a run: removes packages that are neither applied nor kept for a rollback, and the upgrade steps it took. */
export async function dropFormer(run: Run): Promise<void> {
  const { directory, plan, request, companions, changes } = run;
  const steps = companions.flatMap(({ isStep, ref }) => (isStep ? [prefixOf(ref)] : []));
  const addons = plan.addons.filter((addon) => !isRemoved(addon));
  const previous = addons.map(({ ref }) => {
    const before = request.keepsPrevious === false ? undefined : recordOf(changes.now.applied, ref.name)?.previous;
    return { ref, before };
  });
  const prefixes = new Set([
    ...addons.map(({ ref }) => prefixOf(ref)),
    ...previous.flatMap(({ ref, before }) =>
      before === undefined ? [] : [prefixOf({ ...ref, version: before.version })],
    ),
  ]);
  for (const one of changes.now.extracted) {
    const isOther = addons.some(({ ref }) => ref.name === one.name) && !prefixes.has(prefixOf(one));
    if (isOther || steps.includes(prefixOf(one))) await takeOff(one, run);
  }
  // Only a package with the same version is kept in the folder `previous`.
  for (const { ref, before } of previous) if (before?.version !== ref.version) await dropPrevious(directory, ref);
  await clearStaging(directory);
}
