import { readdir, readFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { FOLDERS, groupOf, IO, PACKAGES, usesRequests, withFolders } from '../../scripts/docs/folders.ts';
import { groupBy } from '../../src/core/group-by.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('folders of the source');
const ROOT = join(import.meta.dirname, '../..');
const SRC = join(ROOT, 'src');
/** Static ones, of types too, at the start of a line as the formatter puts them; and those of a running program. */
const IMPORT = /^(?:import|export)\b[^;'`]*?'([^']+)';$|\bimport\('([^']+)'\)/gm;

interface Import {
  readonly file: string;
  /** Folder of the file; empty for those of the public library, which are in `src` itself. */
  readonly folder: string;
  /** The line of a relative one. */
  readonly to: string | undefined;
  /** The path in the import. */
  readonly name: string;
  /** Loaded with the file. */
  readonly isLoaded: boolean;
}

/** The line of the table that a file belongs to; one of a folder within another comes before the other's. */
function folderOf(path: string): string {
  const lines = FOLDERS.map(({ name }) => name).filter((name) => path.startsWith(`${name}/`));
  return lines.toSorted((a, b) => b.length - a.length)[0] ?? dirname(path).replace(/^\.$/, '');
}

async function importsOf(file: string): Promise<readonly Import[]> {
  const text = await readFile(join(SRC, file), 'utf8');
  return [...text.matchAll(IMPORT)].map(([whole, fixed, running]) => {
    const name = fixed ?? running ?? '';
    const to = name.startsWith('.') ? folderOf(relative(SRC, join(SRC, dirname(file), name))) : undefined;
    const isLoaded = /^(?!\w+ type\b).*(?:^import|from) '[^']+';$/s.test(whole);
    return { file, folder: folderOf(file), to, name, isLoaded };
  });
}

const files = (await readdir(SRC, { recursive: true })).filter((path) => path.endsWith('.ts')).toSorted();
const imports = (await Promise.all(files.map(importsOf))).flat();
const folders = [...new Set(files.map(folderOf))].filter((name) => name !== '');

test('each is in the table, which has no other', () => {
  assert.equal(folders.toSorted(), FOLDERS.map(({ name }) => name).toSorted());
  assert.ok(imports.length > 1000);
});

/** The use case, command, output and request of a verb have one name. */
const VERBS = /^(?:app|cli|requests)\//;

test('at most three files have one name, so that a name says where to look', () => {
  const names = groupBy(
    files.filter((path) => !VERBS.test(path)),
    (path) => basename(path),
  );
  assert.equal(
    [...names.values()].filter((paths) => paths.length > 3),
    [],
  );
});

test('the folders of a group stand together, so that no group imports one after it', () => {
  const groups = FOLDERS.map(({ name }) => groupOf(name)).filter((group, index, all) => group !== all[index - 1]);
  assert.equal(groups, [...new Set(groups)]);
});

/** The given files, and all that are loaded with them. */
function loadedWith(first: readonly string[]): ReadonlySet<string> {
  const loaded = new Set(first);
  for (const file of loaded) {
    for (const { name } of imports.filter((one) => one.file === file && one.isLoaded)) {
      if (name.startsWith('.')) loaded.add(relative(SRC, join(SRC, dirname(file), name)));
    }
  }
  return loaded;
}

for (const [index, { name, imports: expected }] of FOLDERS.entries()) {
  const above = FOLDERS.slice(0, index).map((folder) => folder.name);
  test(`${name} imports what its line says, and nothing below it`, () => {
    const others = imports.filter(({ folder, to }) => folder === name && to !== undefined && to !== name);
    const found = above.filter((one) => others.some(({ to }) => to === one));
    const strange = others.filter(({ to }) => !above.includes(to ?? '')).map((one) => `${one.file} ${one.name}`);
    assert.equal(strange, []);
    assert.equal(
      found,
      above.filter((one) => (expected ?? found).includes(one)),
    );
  });
}

for (const [name, owners] of Object.entries(PACKAGES)) {
  test(`${name} is imported from: ${owners.join(', ') || 'tests only'}`, () => {
    const users = imports.filter((one) => one.name === name || one.name.startsWith(`${name}/`));
    assert.equal([...new Set(users.map(({ folder }) => folder))].toSorted(), owners);
  });
}

test('no file imports itself, by way of others and types counted', () => {
  const left = new Map<string, Set<string>>(files.map((file) => [file, new Set()]));
  for (const { file, name } of imports) {
    if (name.startsWith('.')) left.get(file)?.add(relative(SRC, join(SRC, dirname(file), name)));
  }
  // What imports nothing that is left goes, until only circles and what leads to them stay.
  for (let before = -1; before !== left.size;) {
    before = left.size;
    for (const [file, others] of left) if (![...others].some((other) => left.has(other))) left.delete(file);
  }
  assert.equal([...left.keys()], []);
});

test('a start, which is also the help of the program, loads no request and no npm package', () => {
  const loaded = loadedWith(['cli/main.ts', 'cli/start.ts']);
  assert.ok(loaded.has('cli/overview.ts') && loaded.has('core/errors.ts'));
  assert.equal(
    [...loaded].filter((file) => /^(?:requests\/|core\/(?:field|request|schema)\.ts)/.test(file)),
    [],
  );
  assert.equal(packagesOf(loaded), []);
});

test('the help of a command loads tables of requests, but no use case, and of npm packages only two small ones', () => {
  const loaded = loadedWith(files.filter((file) => file.startsWith('cli/commands/')));
  assert.ok(loaded.has('cli/command.ts') && loaded.has('core/errors.ts'));
  const users = FOLDERS.filter(usesRequests).flatMap(({ name }) => (name === 'cli' ? [] : [name]));
  assert.equal(
    [...loaded].filter((file) => users.includes(folderOf(file))),
    [],
  );
  assert.equal(packagesOf(loaded), ['canonicalize', 'valibot']);
});

/** The npm packages that are loaded with these files. */
function packagesOf(loaded: ReadonlySet<string>): readonly string[] {
  const used = imports.filter(({ file, isLoaded }) => loaded.has(file) && isLoaded).map(({ name }) => name);
  return [...new Set(used.filter((name) => !/^(?:\.|node:)/.test(name)))].toSorted();
}

test('status, which timers call, loads neither archives nor what asks a cluster, and no more of npm packages than the help', () => {
  const loaded = loadedWith(['cli/commands/status.ts', 'app/status.ts']);
  assert.equal(packagesOf(loaded), ['canonicalize', 'valibot']);
  assert.equal(
    [...loaded].filter((file) => /^(?:formats|cluster|machine|platform\/http)\//.test(file)),
    ['cluster/kube/kubeadm-made.ts'],
  );
});

test('an install loads nothing of other machines, channels and releases, and no validator of schemas', () => {
  const loaded = loadedWith(['cli/commands/install.ts', 'app/install.ts']);
  const others = /^(?:machine|cluster\/channel|ship\/release|ship\/transfer|formats\/go-template)\//;
  assert.equal(
    [...loaded].filter((file) => others.test(file)),
    [],
  );
  const packages = new Set(packagesOf(loaded).map((name) => name.replace(/\/.*/, '')));
  assert.equal([...packages], ['canonicalize', 'fflate', 'fzstd', 'tar', 'valibot', 'yaml']);
});

test('lint loads neither archives nor ranges of versions, which few add-ons have', () => {
  const loaded = loadedWith(['cli/commands/lint.ts', 'app/lint.ts']);
  assert.equal(
    [...loaded].filter((file) => /^(?:cluster|formats\/(?:archive|oci))\//.test(file)),
    [],
  );
  assert.equal(packagesOf(loaded), ['canonicalize', 'valibot', 'yaml']);
});

for (const name of ['core', 'runtime/plan', 'requests']) {
  test(`${name} does no I/O, nor do its imports`, () => {
    const loaded = loadedWith(files.filter((file) => folderOf(file) === name));
    const found = imports.filter((one) => loaded.has(one.file) && one.isLoaded && IO.includes(one.name));
    assert.equal(
      found.map((one) => `${one.file} ${one.name}`),
      [],
    );
  });
}

test('CONTRIBUTING has the tables as npm run docs makes them', async () => {
  const text = await readFile(join(ROOT, 'CONTRIBUTING.md'), 'utf8');
  assert.is(text, withFolders(text));
});

test.run();
