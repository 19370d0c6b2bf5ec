/**
 * A publish of eight packages, three of them changed, that ends at every one of its calls: readers have a whole release at
 * any moment, and the next run completes what there is without moving a package twice.
 */
import { execa } from 'execa';
import { rm, writeFile } from 'node:fs/promises';
import { findPackage } from '../../../src/core/catalog.ts';
import { digestOf } from '../../../src/core/digest.ts';
import { packageFileName } from '../../../src/core/layout.ts';
import { publishPackages, type PublishResult } from '../../../src/ship/release/publish.ts';
import type { PackageFileToPublish } from '../../../src/ship/release/upload.ts';
import { currentRelease, readCatalog } from '../../../src/ship/store/read-catalog.ts';
import { createFolderStore } from '../../../src/ship/store/folder.ts';
import type { Store } from '../../../src/ship/store/store.ts';
import * as assert from '../../support/assert.ts';
import { compiledModule } from '../../support/compiled.ts';
import { collect } from '../../support/bytes.ts';
import { noReport } from '../../support/context.ts';
import { createFaultyStore, Cut, cutAtCalls, thrownBy } from '../../support/faulty-store.ts';
import { noise, writePackage } from '../../support/packages.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

// soak: cuts at each call
// not fast: starts the command again and again
const test = suite('release/interrupted', { timeoutMs: 240_000 });

const NOW = new Date('2026-11-21T12:00:00Z');
const NAMES = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'] as const;
const CHANGED: readonly string[] = ['b', 'e', 'h'];

type Sets = Readonly<Record<'first' | 'second', readonly PackageFileToPublish[]>>;

async function packages(box: Tree): Promise<Sets> {
  const made = async (name: string, content: string): Promise<PackageFileToPublish> => {
    const path = box.at(`${content}-${packageFileName({ name, version: '1' }, 'amd64')}`);
    const files = [
      { path: 'install.sh', data: content },
      { path: 'assets/blob', data: noise(3000, name.charCodeAt(0)) },
    ];
    return { path, addon: await writePackage(path, name, '1', files), inputs: { saw: content } };
  };
  const first = await Promise.all(NAMES.map(async (name) => made(name, 'old')));
  const second = await Promise.all(
    NAMES.map(async (name, at) => (CHANGED.includes(name) ? made(name, 'new') : (first[at] ?? made(name, 'old')))),
  );
  return { first, second };
}

interface Moved {
  readonly store: Store;
  /** Keys of packages of a release that were put or copied. */
  readonly keys: string[];
}

/** A store that notes what was moved into a release. */
function noting(inner: Store): Moved {
  const keys: string[] = [];
  const note = (key: string): void => {
    if (key.includes('/') && key.endsWith('.tar.gz')) keys.push(key);
  };
  const store: Store = {
    ...inner,
    put: async (key, ...rest) => {
      const result = await inner.put(key, ...rest);
      note(key);
      return result;
    },
    copy: async (from, key, options) => {
      const result = await inner.copy(from, key, options);
      note(key);
      return result;
    },
  };
  return { store, keys };
}

async function publish(
  store: Store,
  files: readonly PackageFileToPublish[],
  signal: AbortSignal,
  jobs = 4,
): Promise<PublishResult> {
  const options = { release: undefined, now: NOW, carry: true, commit: undefined, report: noReport };
  return publishPackages(files, { store, ...options, jobs, signal });
}

/** `VERSION`, its catalog, every package that it names, byte for byte, and the latest copies of the release before. */
async function readable(store: Store, signal: AbortSignal): Promise<string> {
  const current = await currentRelease(store, { signal });
  const catalog = await readCatalog(store, { release: undefined, signal });
  assert.is(catalog.addons.length, NAMES.length);
  for (const name of NAMES) {
    const { file = '', listed } = findPackage(catalog, { name, version: '1' }, 'amd64') ?? {};
    const { body } = await store.get(`${catalog.release}/${file}`, { signal });
    assert.is(digestOf(await collect(body)), listed?.sha256);
    const latest = await store.get(file, { signal });
    assert.is(digestOf(await collect(latest.body)), latest.metadata['sha256']);
  }
  return current?.release ?? '';
}

/** With times to the nanosecond, which is what a folder store knows its files by. */
async function copyStore(from: string, to: string): Promise<void> {
  await execa('cp', ['-a', from, to]);
}

const FIRST = 'v2026.11.21-0';
const SECOND = 'v2026.11.21-1';

/** What both kinds of cut are held to. */
async function completes(root: string, { second }: Sets, moved: readonly string[], signal: AbortSignal): Promise<void> {
  const plain = createFolderStore(root);
  const at = await readable(plain, signal);
  assert.ok(at === FIRST || at === SECOND, at);
  const again = noting(plain);
  const result = await publish(again.store, second, signal);
  assert.is(await readable(plain, signal), result.release);
  const twice = again.keys.filter((key) => moved.includes(key));
  assert.equal(twice, []);
  const uploaded = result.packages.filter(({ outcome }) => outcome === 'uploaded').map(({ name }) => name);
  assert.ok(uploaded.every((name) => CHANGED.includes(name)));
  for (const { addon } of second) {
    const key = packageFileName({ name: addon.name, version: '1' }, 'amd64');
    assert.is((await plain.head(key, { signal }))?.metadata['digest'], addon.digest);
    assert.is((await plain.head(`${result.release}/${key}`, { signal }))?.metadata['digest'], addon.digest);
  }
}

for (const [when, jobs] of [
  ['before', 1],
  ['after', 4],
] as const) {
  test(`cut off ${when} any call, ${jobs} packages at once`, async ({ signal }) => {
    await using box = await tree({ 'first/.keep': '' });
    const sets = await packages(box);
    await publish(createFolderStore(box.at('first')), sets.first, signal);
    await cutAtCalls({ when, least: 25 }, async (breaking) => {
      const root = box.at('store');
      await copyStore(box.at('first'), root);
      const { store, keys } = noting(createFolderStore(root));
      const error = await thrownBy(publish(breaking(store), sets.second, signal, jobs));
      await completes(root, sets, keys, signal);
      await rm(root, { recursive: true });
      return error;
    });
  });
}

test('killed by the system at a sample of its calls', async ({ signal }) => {
  await using box = await tree({ 'first/.keep': '' });
  const sets = await packages(box);
  await publish(createFolderStore(box.at('first')), sets.first, signal);
  await writeFile(box.at('files.json'), JSON.stringify(sets.second));
  const run = async (root: string, at: number, when: string) => {
    await copyStore(box.at('first'), root);
    const words = [compiledModule('test/support/killed-publish.ts'), root, box.at('files.json'), String(at), when];
    return execa('node', words, { reject: false, cancelSignal: signal });
  };
  const whole = await run(box.at('whole'), 0, 'never');
  const calls = Number(/^done (\d+)$/.exec(whole.stdout)?.[1]);
  assert.ok(calls > 25, whole.stderr);
  const places = Array.from({ length: 8 }, (_, index) => 1 + Math.floor(((index + 0.5) * calls) / 8));
  for (const [index, at] of places.entries()) {
    const root = box.at(`store-${at}`);
    const killed = await run(root, at, ['before', 'during', 'after'][index % 3] ?? 'during');
    assert.is(killed.signal, 'SIGKILL', `${at} of ${calls}: ${killed.stdout}`);
    const there: string[] = [];
    for await (const { key } of createFolderStore(root).list(`${SECOND}/`, { signal })) there.push(key);
    await completes(root, sets, there, signal);
  }
});

test('a release that was begun with other content is left, and its number is not used', async ({ signal }) => {
  await using box = await tree({ 'store/.keep': '' });
  const { first, second } = await packages(box);
  const store = createFolderStore(box.at('store'));
  await publish(store, first, signal);
  const begun = publish(createFaultyStore(store, { at: 18, when: 'after' }), second, signal, 1);
  assert.instance(await thrownBy(begun), Cut);
  assert.is((await publish(store, first, signal)).release, 'v2026.11.21-2');
  assert.is(await readable(store, signal), 'v2026.11.21-2');
});

test.run();
