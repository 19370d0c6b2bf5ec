/** Host preflight specs from the packages of a run. */
import { wholeFile } from '../../core/bytes.ts';
import { formatRef } from '../../core/ref.ts';
import { SPEC_LIMIT, type AddonSpec } from '../preflight/assemble.ts';
import { settingText, type Situation } from '../preflight/situation.ts';
import { systemPackagesSpec } from '../preflight/system-packages-spec.ts';
import type { SourcePackage } from '../node/source.ts';
import { HOST_PREFLIGHT, MANIFEST } from '../../core/layout.ts';

/** Versions of packages by the name of their add-on. */
export function versionsOf(packages: readonly SourcePackage[]): ReadonlyMap<string, string> {
  return new Map(packages.map(({ ref }) => [ref.name, ref.version] as const));
}

/**
 * The specs of all packages that have one. With the setting `kurl.skipSystemPackageInstall`, also a spec for the host packages in
 * each Manifest.
 */
export async function addonSpecs(
  packages: readonly SourcePackage[],
  situation: Situation,
  { signal }: { readonly signal: AbortSignal },
): Promise<readonly AddonSpec[]> {
  const skipsPackages = settingText(situation, 'kurl', 'skipSystemPackageInstall') !== '';
  const specs: AddonSpec[] = [];
  for (const source of packages) {
    const addon = source.ref.name;
    const text = await fileOf(source, HOST_PREFLIGHT, signal);
    if (text !== undefined) specs.push({ addon, file: `${formatRef(source.ref)}: ${HOST_PREFLIGHT}`, text });
    const manifest = skipsPackages ? await fileOf(source, MANIFEST, signal) : undefined;
    const generated = manifest === undefined ? undefined : systemPackagesSpec(addon, manifest);
    if (generated !== undefined) specs.push(generated);
  }
  return specs;
}

async function fileOf(source: SourcePackage, path: string, signal: AbortSignal): Promise<string | undefined> {
  const file = source.files.find((one) => one.path === path);
  if (file === undefined) return undefined;
  const bytes = await wholeFile(formatRef(source.ref), file, SPEC_LIMIT, () => source.read(path, { signal }));
  return bytes.toString('utf8');
}
