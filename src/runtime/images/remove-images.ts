/** Removes images of removed add-ons from the container runtime. */
import { CurlewError, requireRefusal } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { formatRef } from '../../core/ref.ts';
import { describedPackage } from '../node/placed-package.ts';
import type { Records } from '../plan/records.ts';
import type { SourcePackage } from '../node/source.ts';
import { findImageRuntime, runtimeOrder } from './find-runtime.ts';
import { sourceFiles } from './folder-files.ts';
import type { Cancellable } from '../../core/cancellable.ts';
import { packageImages } from './required-images.ts';
import type { PlannedAddon } from '../plan/run-plan.ts';

export interface PruneParts extends Cancellable {
  /** The install folder. */
  readonly directory: string;
  /** Packages that are removed, and those that the spec has. */
  readonly gone: readonly SourcePackage[];
  readonly required: readonly SourcePackage[];
  /** The add-ons of the plan, which name the container runtime. */
  readonly addons: readonly PlannedAddon[];
  readonly records: Records;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly report: Report;
}

/**
 * Removes the images of removed packages that no other package on this node has, and returns their names. Images in use stay and
 * are reported, as is a failure: it must not keep an add-on from being removed.
 */
export async function pruneImages({
  directory,
  gone,
  required,
  addons,
  records,
  env,
  report,
  signal,
}: PruneParts): Promise<readonly string[]> {
  const note = (text: string): void => report({ type: 'note', level: 'warning', text });
  try {
    const stay = [...required, ...(await otherPackages(directory, records, gone, signal))];
    const needed = new Set(stay.flatMap(imageNamesOf));
    const names = [...new Set(gone.flatMap(imageNamesOf))].filter((name) => !needed.has(name));
    if (names.length === 0) return [];
    const runtime = await findImageRuntime({ env, order: runtimeOrder(addons), signal });
    if (runtime === undefined) {
      note('images were not removed: neither containerd nor docker responds');
      return [];
    }
    const { removed, used } = await runtime.remove(names, { signal });
    for (const name of used)
      note(`image ${name} is kept: a container uses it; kubelet removes it when it needs the space`);
    return removed;
  } catch (error) {
    requireRefusal(error, signal);
    note(`images were not removed: ${error.message}`);
    return [];
  }
}

function imageNamesOf(source: Pick<SourcePackage, 'ref' | 'addon' | 'files' | 'read'>): readonly string[] {
  return packageImages(sourceFiles(source), source.addon).flatMap(({ names }) => names);
}

async function otherPackages(
  directory: string,
  records: Records,
  gone: readonly SourcePackage[],
  signal: AbortSignal,
): Promise<readonly Pick<SourcePackage, 'ref' | 'addon' | 'files' | 'read'>[]> {
  const names = new Set(gone.map(({ ref }) => ref.name));
  const others = records.extracted.filter(({ name }) => !names.has(name));
  return Promise.all(
    others.map(async ({ digest, omitted: _omitted, ...ref }) => {
      const described = await describedPackage(directory, ref, digest, { signal });
      if (described !== undefined) return described;
      throw new CurlewError(
        'NOT_FOUND',
        `the images of ${formatRef(ref)} are unknown: its record is missing or damaged`,
      );
    }),
  );
}
