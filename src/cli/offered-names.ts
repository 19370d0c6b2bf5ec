/** Names for the completion of command lines: read from this machine only, never from the network. */
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { isRelease, parseCatalog } from '../core/catalog.ts';
import type { Offered } from '../core/field.ts';
import { INSTALL_DIRECTORY, storeKey } from '../core/layout.ts';
import { compareText, compareVersions, isAddonName, isVersion } from '../core/ref.ts';

export interface Where {
  readonly cwd: string;
  /** The values of the command line so far, by options and operands. */
  readonly values: ReadonlyMap<string, readonly string[]>;
}

/** The names that may follow `typed`, without any for what does not exist or cannot be read. `topic` is not among them. */
export async function offeredNames(
  kind: Exclude<Offered, 'topic'>,
  typed: string,
  where: Where,
): Promise<readonly string[]> {
  try {
    return await LOOKUPS[kind](typed, where);
  } catch {
    // Whatever is wrong, the command itself reports it.
    return [];
  }
}

type Lookup = (typed: string, where: Where) => Promise<readonly string[]>;

const LOOKUPS: Readonly<Record<Exclude<Offered, 'topic'>, Lookup>> = {
  addon: async (typed, { cwd, values }) => {
    const root = resolve(cwd, values.get('dir')?.at(-1) ?? '.');
    const [name = '', version] = typed.split('/');
    if (version !== undefined && !isAddonName(name)) return [];
    const trees = ['addons', 'packages'].map((tree) => join(root, tree));
    if (version === undefined) return (await Promise.all(trees.map(folders))).flat().filter(isAddonName);
    const versions = await Promise.all(trees.map(async (tree) => folders(join(tree, name))));
    return versions
      .flat()
      .filter(isVersion)
      .map((found) => `${name}/${found}`);
  },
  installed: async (_, { cwd, values }) => {
    const root = values.get('root')?.at(-1);
    const directory = values.get('install-dir')?.at(-1) ?? INSTALL_DIRECTORY;
    return folders(join(root === undefined ? resolve(cwd, directory) : join(resolve(cwd, root), directory), 'addons'));
  },
  release: async (_, where) => {
    const names = (await folders(storeOf(where))).filter(isRelease);
    return names.filter((name) => /\d/.test(name)).toSorted((a, b) => compareVersions(b, a));
  },
  published: async (typed, where) => {
    const store = storeOf(where);
    const current = async (): Promise<string> => (await readFile(join(store, storeKey.version), 'utf8')).trim();
    const release = where.values.get('release')?.at(-1) ?? (await current());
    const catalog = join(store, storeKey.catalog(release));
    const { addons } = parseCatalog(await readFile(catalog, 'utf8'), catalog);
    if (!typed.includes('@')) return addons.map(({ name }) => name);
    return addons.flatMap(({ name, versions }) => versions.map(({ version }) => `${name}@${version}`));
  },
};

/** The store that the command line names; a remote one is a folder that does not exist. */
function storeOf({ cwd, values }: Where): string {
  const [store = ''] = [values.get('from'), values.get('store'), values.get('to')].flatMap(
    (found) => found?.at(-1) ?? [],
  );
  return store.includes('://') ? '' : resolve(cwd, store);
}

/** None in a folder that cannot be read. */
async function folders(path: string): Promise<readonly string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .toSorted(compareText);
}
