/** Warnings for readers of a new release: it may reuse a version of the one before, leave an add-on out, or have versions that no channel can have. */
import { leftOut } from '../../cluster/channel/published-channels.ts';
import type { Catalog } from '../../core/catalog.ts';
import type { Digest } from '../../core/digest.ts';
import type { Report } from '../../core/events.ts';
import { fileOf, type ListedPackage, type ReleasePackages } from './make-catalog.ts';

/**
 * Warns about packages whose content replaces that of the same version: returns its digests, by file name. `unbuilt`: file names
 * of packages whose content is not known yet.
 */
export function noteReplaced(
  packages: readonly ListedPackage[],
  before: ReleasePackages | undefined,
  report: Report,
  unbuilt: ReadonlySet<string> = new Set(),
): ReadonlyMap<string, Digest> {
  const earlier = new Map(before?.packages.map((listed) => [fileOf(listed), listed.entry.digest]));
  const replaced = new Map<string, Digest>();
  const names: string[] = [];
  for (const listed of packages) {
    const file = fileOf(listed);
    const digest = earlier.get(file);
    if (digest === undefined || digest === listed.entry.digest) continue;
    replaced.set(file, digest);
    names.push(`${listed.name} ${listed.version} (${listed.arch})`);
  }
  if (before !== undefined && names.length > 0) {
    const start = unbuilt.size === 0 ? '' : 'possibly ';
    const text =
      `${start}different content than in ${before.release} under the same version: ${names.join(', ')}; ` +
      'nodes that have it will install it again: use a new version to keep both';
    report({ type: 'note', level: 'warning', text });
  }
  return replaced;
}

/** Warns about add-ons of the release before that the new one does not have: they may be another team's. */
export function noteDropped(
  packages: readonly Pick<ListedPackage, 'name'>[],
  before: ReleasePackages | undefined,
  report: Report,
): void {
  const names = new Set(packages.map(({ name }) => name));
  const dropped = new Set(before?.packages.map(({ name }) => name).filter((name) => !names.has(name)));
  if (before === undefined || dropped.size === 0) return;
  const text =
    `no longer in the release: ${[...dropped].toSorted().join(', ')}, which ${before.release} has; ` +
    'curlew publish with the names of add-ons keeps all others';
  report({ type: 'note', level: 'warning', text });
}

/** Warns about versions that are not in the channels of the release. */
export function noteLeftOut(catalog: Catalog, report: Report): void {
  const missing = catalog.channels === undefined ? [] : leftOut(catalog);
  if (missing.length === 0) return;
  const text = `not in the channels, because their versions are not semantic: ${missing.join(', ')}`;
  report({ type: 'note', level: 'warning', text });
}
