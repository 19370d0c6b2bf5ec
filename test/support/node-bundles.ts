/** Bundles made in memory for tests of the node: an installer spec and packages with these files. */
import type { AddonJson } from '../../src/core/package.ts';
import { formatAddonJson } from '../../src/core/package.ts';
import { archiveOf, packageOf, type TestFile } from './packages.ts';
import { tree, type Tree } from './tree.ts';

export interface TestAddon {
  readonly name: string;
  readonly version: string;
  /** By path; `#!` at the start of a text makes a file executable. */
  readonly files: Readonly<Record<string, string | Buffer>>;
  readonly extra?: Partial<AddonJson>;
}

function entriesOf({ name, version, files, extra }: TestAddon): readonly TestFile[] {
  const list = Object.entries(files).map(([path, data]): TestFile => ({
    path,
    data,
    mode: typeof data === 'string' && data.startsWith('#!') ? 0o755 : 0o644,
  }));
  const { addon } = packageOf(name, version, list, extra);
  const prefix = `${addon.tree}/${name}/${version}/`;
  const all = [{ path: 'addon.json', data: formatAddonJson(addon) }, ...list];
  return all.map((file) => ({ ...file, path: prefix + file.path }));
}

/** A spec with these add-ons, in this order. */
export function specOf(addons: readonly Pick<TestAddon, 'name' | 'version'>[]): string {
  const rows = addons.map(({ name, version }) => `  ${name}:\n    version: "${version}"\n`);
  return `apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata:\n  name: test\nspec:\n${rows.join('')}`;
}

/** Bytes of a bundle. */
export function bundleOf(addons: readonly TestAddon[], spec: string = specOf(addons)): Buffer {
  return archiveOf([{ path: 'installer.yaml', data: spec }, ...addons.flatMap(entriesOf)]).bytes;
}

/** A folder with the bundle b.tar.gz of these add-ons. */
export async function boxWith(addons: readonly TestAddon[], spec?: string): Promise<Tree> {
  return tree({ 'b.tar.gz': bundleOf(addons, spec) });
}
