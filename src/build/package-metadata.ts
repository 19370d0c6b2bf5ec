/** The metadata in `addon.json` apart from files: from the source of a new package, and from an existing package. */
import { posix } from 'node:path';
import { canonicalJson } from '../core/digest.ts';
import { MANIFEST_LOCK } from '../core/layout.ts';
import type { AddonJson, PackageFile } from '../core/package.ts';
import type { AddonSource } from '../manifest/read-addon.ts';

/**
 * The files of the folder that are packed unchanged. The build's lock replaces a committed lock, and `images/` has what is in
 * the archives of `image` lines.
 */
export function ownFiles({ files, manifest }: AddonSource): readonly PackageFile[] {
  const replaced = new Set([MANIFEST_LOCK]);
  for (const request of manifest.requests) {
    if (request.kind === 'image' && request.archive !== undefined) replaced.add(posix.normalize(request.archive));
  }
  return files.filter(({ path }) => !replaced.has(path));
}

/** The part of `addon.json` that depends on the source, as text: from the source, or from an existing `addon.json`. */
export function aboutAddon({ hooks, requires, fulfills, settings, ...rest }: AddonSource | AddonJson): string {
  return canonicalJson({ hooks, requires, fulfills, settings, ...unlessEmpty(rest) });
}

type Optional = Pick<AddonJson, 'recommends' | 'kubernetesVersion'>;

/** Omits what is empty, so that packages without it do not change. */
export function unlessEmpty({ recommends = [], kubernetesVersion = '' }: Optional): Optional {
  return {
    ...(recommends.length === 0 ? {} : { recommends }),
    ...(kubernetesVersion === '' ? {} : { kubernetesVersion }),
  };
}
