/** Companion packages, which the spec does not name: upgrade steps, and packages that the machine itself needs. Pure. */
import { compareVersions, formatRef, type AddonRef } from '../../core/ref.ts';
import { type Records, recordOf } from './records.ts';

/** A label that no add-on of a plan has. */
export function companionLabel(ref: AddonRef): string {
  return formatRef(ref).toLowerCase().replaceAll('+', '-');
}

/** Rook's upgrade from 1.0 to 1.4 is a package with its own name. */
const STEP_OF: Readonly<Record<string, string>> = { rookupgrade: 'rook' };
const LEAPS_TO: Readonly<Record<string, string>> = { rookupgrade: '1.4' };

/**
 * The companions that a run needs: always those of the machine, and upgrade steps only between the version on the node and
 * the version of the spec.
 */
export function neededCompanions<
  Offered extends { readonly source: { readonly ref: AddonRef }; readonly role: 'step' | 'machine' },
>(
  offered: readonly Offered[],
  packages: readonly AddonRef[],
  records: Records,
): readonly (Offered & { readonly because: string })[] {
  return offered.flatMap((one) => {
    if (one.role === 'machine') return [{ ...one, because: 'needed by the machine itself' }];
    const { name, version } = one.source.ref;
    const addon = STEP_OF[name] ?? name;
    const [from, to] = [versionHere(addon, records), packages.find((ref) => ref.name === addon)?.version];
    if (from === undefined || to === undefined) return [];
    const reached = LEAPS_TO[name] ?? version;
    const isBetween = compareVersions(from, reached) < 0 && compareVersions(reached, to) < 0;
    return isBetween ? [{ ...one, because: `a step on the way from ${from} to ${to}` }] : [];
  });
}

/** The version that was applied last, or otherwise the oldest extracted one. */
function versionHere(name: string, { applied, extracted }: Records): string | undefined {
  const record = recordOf(applied, name);
  if (record !== undefined) return record.version;
  const versions = extracted.filter((one) => one.name === name).map(({ version }) => version);
  return versions.toSorted(compareVersions)[0];
}
