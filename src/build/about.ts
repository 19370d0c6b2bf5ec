/** What `addon.json` says of an add-on beside its files: from the source for a new package, and back from an old one. */
import { canonicalJson } from '../core/digest.ts';
import { MANIFEST_LOCK } from '../core/layout.ts';
import type { AddonJson, PackageFile } from '../core/package.ts';
import type { AddonSource } from '../manifest/read-addon.ts';

/** The files of the folder that go into the package as they are: a committed lock is replaced by the build's own. */
export function ownFiles({ files }: AddonSource): readonly PackageFile[] {
  return files.filter(({ path }) => path !== MANIFEST_LOCK);
}

/** The part of `addon.json` that the source decides, as one text. */
export function aboutWanted({ hooks, requires, fulfills, settings, recommends }: AddonSource): string {
  return canonicalJson({ hooks, requires, fulfills, settings, ...unlessEmpty(recommends) });
}

/** The same part of an `addon.json` that was read. */
export function aboutOf({ hooks, requires, fulfills, settings, recommends = [] }: AddonJson): string {
  return canonicalJson({ hooks, requires, fulfills, settings, ...unlessEmpty(recommends) });
}

/** Nothing is written of what an add-on does not recommend, so packages that recommend nothing stay as they were. */
export function unlessEmpty(recommends: readonly string[]): { readonly recommends?: readonly string[] } {
  return recommends.length === 0 ? {} : { recommends };
}
