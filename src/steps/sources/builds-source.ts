/** A folder of builds, which `curlew build` writes: package files without a release. */
import { readdir } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { CurlewError } from '../../core/errors.ts';
import { storeKey } from '../../core/layout.ts';
import { compareVersions, type AddonRef } from '../../core/ref.ts';
import { archivePackages, type SourcePackage } from '../../runtime/node/source.ts';
import { openArchive } from '../../ship/bundle/open-archive.ts';
import { checkedIndex, chooseAll, type Common, type InstallSource } from './install-source.ts';

/** More packages than this belong into a store, which has a catalog of them. */
const MAX_BUILDS = 256;

/** Paths of the package files in a folder; undefined for a store, and for anything else that a store can be in. */
export async function buildsIn(place: string, cwd: string): Promise<readonly string[] | undefined> {
  const folder = resolve(cwd, place);
  // A store reports what is wrong with its address.
  const names = await readdir(folder).catch((): readonly string[] => []);
  const files = names.filter((name) => name.endsWith('.tar.gz')).toSorted();
  if (files.length === 0 || names.includes(storeKey.version)) return undefined;
  return files.map((name) => join(folder, name));
}

/** Reads the packages that a spec names; without one, all of them, and their newest versions are the spec. */
export async function buildsSource(
  files: readonly string[],
  { from, hasSpec, arch, trust, report, signal }: Common & { readonly from: string; readonly hasSpec: boolean },
): Promise<InstallSource> {
  const opened: AsyncDisposable[] = [];
  const close = async (): Promise<void> => {
    for (const one of opened) await one[Symbol.asyncDispose]();
  };
  const known = new Map<string, readonly SourcePackage[]>();
  const load = async (paths: readonly string[]): Promise<readonly SourcePackage[]> => {
    if (paths.length > MAX_BUILDS) {
      throw new CurlewError('UNSUPPORTED', `${from} has ${paths.length} packages; the limit is ${MAX_BUILDS}`, {
        hint: 'publish them to a store, and install from that: curlew publish --to STORE',
      });
    }
    for (const path of paths) {
      if (known.has(path)) continue;
      const source = await openArchive(path, { signal });
      opened.push(source);
      const index = await checkedIndex(source, source.whole, { trust, signal });
      known.set(path, await archivePackages(source, index, { signal }));
    }
    return paths.flatMap((path) => known.get(path) ?? []);
  };
  const wholeSpec = async (): Promise<string> => {
    const packages = await load(files);
    return specOfBuilds(packages.filter(({ addon }) => addon.arch === arch).map(({ ref }) => ref));
  };
  try {
    return {
      installerText: hasSpec ? undefined : await wholeSpec(),
      airgap: false,
      release: undefined,
      choose: async (installer) => {
        const isNamed = (path: string): boolean =>
          installer.addons.some(({ name }) => basename(path).startsWith(`${name}-`));
        return chooseAll(installer, await load(files.filter(isNamed)), { bundle: undefined, arch, from, report });
      },
      offered: async () => Promise.resolve([]),
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** A spec with the newest of these versions of each add-on, without settings. JSON is YAML. */
export function specOfBuilds(refs: readonly Pick<AddonRef, 'name' | 'version'>[]): string {
  const sorted = refs.toSorted((a, b) => compareVersions(a.version, b.version));
  const spec = Object.fromEntries(sorted.map(({ name, version }) => [name, { version }]));
  const head = { apiVersion: 'cluster.kurl.sh/v1beta1', kind: 'Installer', metadata: { name: 'builds' } };
  return `${JSON.stringify({ ...head, spec })}\n`;
}
