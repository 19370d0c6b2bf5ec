/** Replaced packages: those that a rollback needs are kept, all others are removed. */
import type { Digest } from '../../core/digest.ts';
import { prefixOf } from '../../core/layout.ts';
import type { AddonRef } from '../../core/ref.ts';
import { isRemoved } from '../plan/order.ts';
import { recordedDigest } from './placed-package.ts';
import { clearStaging, dropPrevious, moveAside } from './put-in-place.ts';
import type { AppliedRecord, PreviousRecord, Records } from '../plan/records.ts';
import type { RunRecords } from './run-records.ts';
import type { SourcePackage } from './source.ts';
import type { RunPlan } from '../plan/run-plan.ts';

export interface FormerParts {
  readonly directory: string;
  readonly plan: RunPlan;
  /** Id of the run. */
  readonly run: string;
  /** Packages that were only needed on the way to a later version. */
  readonly steps: readonly AddonRef[];
  /** Replaced packages are kept for a rollback. */
  readonly keepsPrevious: boolean;
  readonly records: RunRecords;
}

function recordOf({ applied }: Pick<Records, 'applied'>, name: string): AppliedRecord | undefined {
  return Object.hasOwn(applied, name) ? applied[name] : undefined;
}

/** True if the package in this place is the one that its add-on would be rolled back to. */
export async function isRollbackTarget(
  { ref, addon }: SourcePackage,
  directory: string,
  records: Records,
): Promise<boolean> {
  const record = recordOf(records, ref.name);
  const wanted: Digest | undefined = record?.finished === true ? record.digest : record?.previous?.digest;
  if (wanted === undefined || wanted === addon.digest) return false;
  return (await recordedDigest(directory, ref)) === wanted;
}

/**
 * A rollback now returns to the present version of each replaced add-on. Removes the version before that, which frees its
 * space before the new package is unpacked.
 */
export async function dropOlder({ directory, plan, run, records }: FormerParts): Promise<void> {
  const older = plan.addons.flatMap((addon): readonly (readonly [AddonRef, PreviousRecord])[] => {
    const record = recordOf(records.now, addon.ref.name);
    if (isRemoved(addon) || record?.previous === undefined || !record.finished) return [];
    // The package that this run rolls back to is needed until its hooks begin.
    if (isSame(record, addon) || isSame(record.previous, addon)) return [];
    return [[addon.ref, record.previous]];
  });
  if (older.length === 0) return;
  await records.forgetPrevious(new Set(older.map(([{ name }]) => name)));
  for (const [ref, { version }] of older) {
    const now = recordOf(records.now, ref.name)?.version;
    await dropPrevious(directory, ref);
    if (version === now || version === ref.version) continue;
    await takeOff({ ...ref, version }, { directory, run, records });
  }
  await clearStaging(directory);
}

function isSame(record: AppliedRecord | PreviousRecord, { ref, digest }: RunPlan['addons'][number]): boolean {
  return record.version === ref.version && record.digest === digest;
}

async function takeOff(
  ref: AddonRef,
  { directory, run, records }: Pick<FormerParts, 'directory' | 'run' | 'records'>,
): Promise<void> {
  await moveAside(ref, { directory, run });
  await records.forgetExtracted(ref);
}

/** At the end of a run: removes packages that are neither applied nor kept for a rollback, and the upgrade steps it took. */
export async function dropFormer({ directory, plan, run, steps, keepsPrevious, records }: FormerParts): Promise<void> {
  const addons = plan.addons.filter((addon) => !isRemoved(addon));
  const previous = addons.map(({ ref }) => {
    const before = keepsPrevious ? recordOf(records.now, ref.name)?.previous : undefined;
    return { ref, before };
  });
  const kept = new Set([
    ...addons.map(({ ref }) => prefixOf(ref)),
    ...previous.flatMap(({ ref, before }) =>
      before === undefined ? [] : [prefixOf({ ...ref, version: before.version })],
    ),
  ]);
  for (const one of records.now.extracted) {
    const isOther = addons.some(({ ref }) => ref.name === one.name) && !kept.has(prefixOf(one));
    if (isOther || steps.some((ref) => prefixOf(ref) === prefixOf(one)))
      await takeOff(one, { directory, run, records });
  }
  // Only a package with the same version is kept in the folder `previous`.
  for (const { ref, before } of previous) if (before?.version !== ref.version) await dropPrevious(directory, ref);
  await clearStaging(directory);
}
