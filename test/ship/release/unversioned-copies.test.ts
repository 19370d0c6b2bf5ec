/** Unversioned copies: what is looked at, what is written, and what stops and overtakes do to them. */
import { CurlewError } from '../../../src/core/errors.ts';
import { createFolderStore } from '../../../src/ship/store/folder.ts';
import { reindex } from '../../../src/ship/release/reindex.ts';
import type { Store } from '../../../src/ship/store/store.ts';
import * as assert from '../../support/assert.ts';
import { Cut } from '../../support/faulty-store.ts';
import { madePackage, publishAs } from '../../support/releases.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('release/latest');

interface Noted {
  readonly store: Store;
  /** Unversioned packages that were looked at, and those that were written. */
  readonly looks: string[];
  readonly copies: string[];
}

/** `before` runs before each copy to an unversioned key. */
function noting(inner: Store, before: (key: string) => Promise<void> = async () => undefined): Noted {
  const [looks, copies]: [string[], string[]] = [[], []];
  const store: Store = {
    ...inner,
    head: async (key, options) => {
      if (!key.includes('/') && key.endsWith('.tar.gz')) looks.push(key);
      return inner.head(key, options);
    },
    copy: async (from, key, options) => {
      if (!key.includes('/')) {
        await before(key);
        copies.push(key);
      }
      return inner.copy(from, key, options);
    },
  };
  return { store, looks, copies };
}

async function stored(box: Tree, signal: AbortSignal): Promise<Store> {
  const store = createFolderStore(box.path);
  const files = await Promise.all(['a', 'b', 'c'].map(async (name) => madePackage(box, name, '1', `old ${name}`)));
  await publishAs(store, 'r1', files, signal);
  return store;
}

async function digestIn(store: Store, key: string, signal: AbortSignal): Promise<string | undefined> {
  return (await store.head(key, { signal }))?.metadata['digest'];
}

test('only what differs from the release before is looked at and copied', async ({ signal }) => {
  await using box = await tree();
  const { store, looks, copies } = noting(await stored(box, signal));
  const b = await madePackage(box, 'b', '1', 'new b');
  assert.is((await publishAs(store, 'r2', [b], signal)).latest, 1);
  assert.equal([looks, copies], [[], ['b-1.tar.gz']]);
  assert.is(await digestIn(store, 'b-1.tar.gz', signal), b.addon.digest);
});

test('a copy that a prune removes at once fails no publish, and a package that is gone does', async ({ signal }) => {
  await using box = await tree();
  const inner = await stored(box, signal);
  const b = await madePackage(box, 'b', '1', 'new b');
  const removing = (...more: readonly string[]): Store => ({
    ...inner,
    copy: async (from, key, options) => {
      const copied = await inner.copy(from, key, options);
      if (key !== 'b-1.tar.gz') return copied;
      for (const one of [key, ...more]) await inner.delete(one, { signal });
      throw new CurlewError('NOT_FOUND', `${key} does not exist`);
    },
  });
  assert.is((await publishAs(removing(), 'r2', [b], signal)).release, 'r2');
  const c = await madePackage(box, 'b', '1', 'newer b');
  await assert.rejectsWith(publishAs(removing('r3/b-1.tar.gz'), 'r3', [c], signal), 'NOT_FOUND', /b-1\.tar\.gz/);
});

test('what a publisher that was stopped has left out, the next one finds', async ({ signal }) => {
  await using box = await tree();
  const plain = await stored(box, signal);
  const [a, b] = [await madePackage(box, 'a', '1', 'new a'), await madePackage(box, 'b', '1', 'new b')];
  const cut = noting(plain, async () => {
    throw new Cut('stopped');
  });
  const failed = await publishAs(cut.store, 'r2', [a, b], signal).catch((error: unknown) => error);
  assert.instance(failed, Cut);
  assert.not.equal(await digestIn(plain, 'a-1.tar.gz', signal), a.addon.digest);
  const { store, looks, copies } = noting(plain);
  const c = await madePackage(box, 'c', '1', 'new c');
  assert.is((await publishAs(store, 'r3', [c], signal)).latest, 3);
  assert.is(looks.length, 3);
  assert.equal(copies.toSorted(), ['a-1.tar.gz', 'b-1.tar.gz', 'c-1.tar.gz']);
  for (const { addon } of [a, b, c]) assert.is(await digestIn(store, `${addon.name}-1.tar.gz`, signal), addon.digest);
});

test('a publisher that was overtaken puts right what it wrote over the newer copies', async ({ signal }) => {
  await using box = await tree();
  const plain = await stored(box, signal);
  const [slow, fast] = [await madePackage(box, 'a', '1', 'slow a'), await madePackage(box, 'a', '1', 'fast a')];
  let overtaken = false;
  const { store } = noting(plain, async () => {
    if (overtaken) return;
    overtaken = true;
    await publishAs(plain, 'r3', [fast], signal);
  });
  await publishAs(store, 'r2', [slow], signal);
  assert.is(await digestIn(plain, 'a-1.tar.gz', signal), fast.addon.digest);
  assert.is((await plain.head('addons-gen.json', { signal }))?.metadata['release'], 'r3');
  const next = noting(plain);
  await publishAs(next.store, 'r4', [await madePackage(box, 'b', '1', 'new b')], signal);
  assert.equal([next.looks, next.copies], [[], ['b-1.tar.gz']]);
});

for (const mend of ['the same release again', 'reindex'] as const) {
  test(`a copy that somebody removed comes back with ${mend}`, async ({ signal }) => {
    await using box = await tree();
    const store = await stored(box, signal);
    await store.delete('b-1.tar.gz', { signal });
    if (mend === 'reindex') await reindex(store, { release: undefined, dryRun: false, jobs: 2, signal });
    else await publishAs(store, 'r1', [await madePackage(box, 'a', '1', 'old a')], signal);
    assert.ok(await store.head('b-1.tar.gz', { signal }));
  });
}

test.run();
