/** Versions whose content a new release replaces: a release never changes, but the next one may reuse a version. */
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
