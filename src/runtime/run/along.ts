/** Packages that come to a node beside those of its spec: steps of upgrades, and what the machine itself needs. Pure. */
import { compareVersions, formatRef, type AddonRef } from '../../core/ref.ts';
import type { Records } from '../node/records.ts';
import type { SourcePackage } from '../node/source.ts';

/** A package beside the spec that a source offers. */
export interface OfferedPackage {
  readonly source: SourcePackage;
  readonly role: 'step' | 'machine';
}

/** Not a name that anything else of a plan has. */
export function alongLabel(ref: AddonRef): string {
  return formatRef(ref).toLowerCase().replaceAll('+', '-');
}

/** Rook's way from 1.0 to 1.4 has a name of its own. */
const STEP_OF: Readonly<Record<string, string>> = { rookupgrade: 'rook' };
const LEAPS_TO: Readonly<Record<string, string>> = { rookupgrade: '1.4' };

/**
 * Those that a run wants: what the machine needs always, steps only between the version that the node has and
 * the one of the spec.
 */
export function wantedAlong(
  offered: readonly OfferedPackage[],
  packages: readonly AddonRef[],
  records: Records,
): readonly (OfferedPackage & { readonly because: string })[] {
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

/** What was applied last, or else the oldest whose files lie here. */
function versionHere(name: string, { applied, extracted }: Records): string | undefined {
  if (Object.hasOwn(applied, name)) return applied[name]?.version;
  const versions = extracted.filter((one) => one.name === name).map(({ version }) => version);
  return versions.toSorted(compareVersions)[0];
}
