/** A release that was published before the current one becomes current only when that is asked for. */
import { mkdir } from 'node:fs/promises';
import { promote } from '../../../src/ship/release/promote.ts';
import { readCatalog } from '../../../src/ship/store/read-catalog.ts';
import { createFolderStore } from '../../../src/ship/store/folder.ts';
import type { Store } from '../../../src/ship/store/store.ts';
import * as assert from '../../support/assert.ts';
import { addon } from '../../support/builds.ts';
import { noReport } from '../../support/context.ts';
import { createFaultyStore, thrownBy } from '../../support/faulty-store.ts';
import { madePackage, publishAs, readableRelease } from '../../support/releases.ts';
import { runCommand } from '../../support/run-command.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('release, older ones');

/** A store with r1, and r2, which is current. */
async function stored(box: Tree, name: string, signal: AbortSignal): Promise<Store> {
  await mkdir(box.at(name));
  const store = createFolderStore(box.at(name));
  const [one, two] = [await madePackage(box, 'a', '1', 'one'), await madePackage(box, 'a', '2', 'two')];
  await publishAs(store, 'r1', [one], signal, { carry: false });
  await publishAs(store, 'r2', [two], signal, { carry: false });
  return store;
}

test('an older release is not published again, unless it is to become current', async ({ signal }) => {
  await using box = await tree();
  const store = await stored(box, 'store', signal);
  const one = [await madePackage(box, 'a', '1', 'one')];
  const again = publishAs(store, 'r1', one, signal, { carry: false });
  await assert.rejectsWith(again, 'DOWNGRADE', /r1 is older than the current release r2/);
  assert.is(await readableRelease(store, signal), 'r2');
  await publishAs(store, 'r1', one, signal, { carry: false, makeCurrent: true });
  assert.is(await readableRelease(store, signal), 'r1');
});

test('a release that was stopped before it became current is completed', async ({ signal }) => {
  await using box = await tree();
  const store = await stored(box, 'store', signal);
  const three = [await madePackage(box, 'a', '3', 'three')];
  let calls = 0;
  while ((await store.head('r3/index.json', { signal })) === undefined) {
    calls += 1;
    const broken = createFaultyStore(store, { at: calls, when: 'after' });
    await thrownBy(publishAs(broken, 'r3', three, signal, { carry: false, jobs: 1 }));
  }
  assert.is(await readableRelease(store, signal), 'r2');
  await publishAs(store, 'r3', three, signal, { carry: false });
  assert.is(await readableRelease(store, signal), 'r3');
});

test('an older release is not promoted again, nor planned to be, unless it is to become current', async ({
  signal,
}) => {
  await using box = await tree();
  const [staging, dist] = [await stored(box, 'staging', signal), await stored(box, 'dist', signal)];
  const source = { store: staging, catalog: await readCatalog(staging, { release: 'r1', signal }) };
  const options = { release: undefined, deep: false, stream: false, jobs: 2, report: noReport, signal };
  for (const dryRun of [true, false]) {
    const promoted = promote(source, { to: dist, dryRun, ...options });
    await assert.rejectsWith(promoted, 'DOWNGRADE', /dist: r1 is older than the current release r2/);
  }
  await promote(source, { to: dist, dryRun: false, makeCurrent: true, ...options });
  assert.is(await readableRelease(dist, signal), 'r1');
});

test('curlew publish says so before it builds anything', async ({ signal }) => {
  await using box = await tree(addon('web', ''));
  await stored(box, 'store', signal);
  for (const more of [[], ['--dry-run']]) {
    const words = ['publish', '--to', 'store', '--release', 'r1', ...more];
    const { exitCode, stderr } = await runCommand(words, box.path, { HOME: box.at('home') });
    assert.is(exitCode, 34);
    assert.match(stderr, '--make-current to make r1 current again');
    assert.not.match(stderr, 'web 1.0');
  }
});

test.run();
