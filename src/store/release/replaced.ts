/** What a new release changes for readers of the one before: a release never changes, but the next one may reuse a version or leave an add-on out. */
import type { Digest } from '../../core/digest.ts';
import type { Report } from '../../core/events.ts';
import { fileOf, type ListedPackage, type ReleasePackages } from './make-catalog.ts';

/** Warns about packages whose content replaces that of the same version: returns its digests, by file name. */
export function noteReplaced(
  packages: readonly ListedPackage[],
  before: ReleasePackages | undefined,
  report: Report,
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
    const text =
      `different content than in ${before.release} under the same version: ${names.join(', ')}; ` +
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
