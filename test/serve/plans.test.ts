/** How many plans of bundles a server makes for whom. */
import type { Store } from '../../src/store/store.ts';
import * as assert from '../support/assert.ts';
import { publishTestPackages, specOf } from '../support/bundles.ts';
import { keepSpec, serveStore } from '../support/served.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('serve, plans');

const ID = 'my-app';

async function two(signal: AbortSignal): Promise<{ readonly box: Tree; readonly store: Store }> {
  const box = await tree();
  const packages = [
    { name: 'alpha', version: '1.0', files: [{ path: 'x', data: 'alpha' }] },
    { name: 'beta', version: '2.0', files: [{ path: 'x', data: 'beta' }] },
  ];
  const store = await publishTestPackages(box, packages, signal);
  await keepSpec(box, ID, specOf({ alpha: 'latest', beta: '2.0' }));
  return { box, store };
}

test('packages that are named in another order are the same bytes, planned once', async ({ signal }) => {
  const { box, store } = await two(signal);
  await using _ = box;
  let reads = 0;
  const counted: Store = {
    ...store,
    get: async (...args) => {
      reads += 1;
      return store.get(...args);
    },
  };
  await using server = await serveStore(counted);
  const etagOf = async (names: string): Promise<string | null> => {
    const answer = await fetch(`${server.url}/bundle/${ID}/packages/${names}.tar.gz`, { method: 'HEAD' });
    return answer.headers.get('etag');
  };
  const first = await etagOf('alpha,beta');
  const after = reads;
  for (const names of ['beta,alpha', 'beta-2.0,alpha-1.0,beta']) assert.is(await etagOf(names), first);
  assert.is(reads, after);
});

/** A store whose packages are not read before it is let go. */
function heldStore(store: Store): { readonly store: Store; readonly letGo: () => void; readonly reads: () => number } {
  let letGo = (): void => undefined;
  let reads = 0;
  const gate = new Promise<void>((resolve) => (letGo = resolve));
  const get: Store['get'] = async (key, options) => {
    if (!key.endsWith('.tar.gz')) return store.get(key, options);
    reads += 1;
    await Promise.race([gate, new Promise((_, reject) => options.signal.addEventListener('abort', reject))]);
    return store.get(key, options);
  };
  return { store: { ...store, get }, letGo: () => letGo(), reads: () => reads };
}

test('more plans than a few at once wait, many more are 503, and those that nobody waits for are given up', async ({
  signal,
}) => {
  const box = await tree();
  await using _ = box;
  const names = Array.from({ length: 30 }, (_, at) => `p${at}`);
  const packages = names.map((name) => ({ name, version: '1', files: [{ path: 'x', data: name }] }));
  const held = heldStore(await publishTestPackages(box, packages, signal));
  await keepSpec(box, ID, specOf({ p0: 'latest' }));
  await using server = await serveStore(held.store);
  const client = new AbortController();
  const asked = names.map(async (name) => {
    const url = `${server.url}/bundle/${ID}/packages/${name}.tar.gz`;
    return fetch(url, { method: 'HEAD', signal: client.signal }).catch(() => undefined);
  });
  const refused: Response[] = [];
  for (const answer of asked) {
    void answer.then((response) => {
      if (response !== undefined) refused.push(response);
    });
  }
  while (refused.length < names.length - 18 || held.reads() < 2) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(
    [...new Set(refused.map(({ status, headers }) => `${status} ${headers.get('retry-after')}`))],
    ['503 1'],
  );
  assert.is(held.reads(), 2);
  assert.is((await fetch(`${server.url}/healthz`)).status, 200);
  client.abort();
  await Promise.all(asked);
  while (server.log.length < names.length + 1) await new Promise((resolve) => setImmediate(resolve));
  const before = held.reads();
  held.letGo();
  assert.is((await fetch(`${server.url}/bundle/${ID}/packages/p29.tar.gz`)).status, 200);
  // What one package takes; those that were given up would be as many each.
  assert.ok(held.reads() - before < 6, `${held.reads() - before} readings`);
});

test.run();
