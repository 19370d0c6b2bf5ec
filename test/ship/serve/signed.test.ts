import { cp, readFile, writeFile } from 'node:fs/promises';
import { storeKey } from '../../../src/core/layout.ts';
import { readSigned } from '../../../src/ship/release/signed-release.ts';
import type { VerifyRelease } from '../../../src/ship/serve/catalogs.ts';
import type { Store } from '../../../src/ship/store/store.ts';
import * as assert from '../../support/assert.ts';
import { specOf } from '../../support/bundles.ts';
import { never } from '../../support/context.ts';
import { keepSpec, serveStore, type Served } from '../../support/served.ts';
import { later, memory, our, signedStore, their } from '../../support/signing.ts';
import { suite } from '../../support/suite.ts';
import type { Tree } from '../../support/tree.ts';

const test = suite('ship/serve/signed');

/** A server that trusts `hand`, on a day after the first signature. */
async function serveSigned(store: Store, signal: AbortSignal, day = 2, hand = our): Promise<Served> {
  const seen = memory();
  const verify: VerifyRelease = async (release) =>
    readSigned(store, { release, trust: { ...hand.trustedAt(later(day), seen), allowOlder: true }, signal });
  return serveStore(store, { site: { verify } });
}

async function scene(signal: AbortSignal): Promise<{ readonly box: Tree; readonly store: Store }> {
  const made = await signedStore(signal);
  await keepSpec(made.box, 'two', specOf({ b: '1.0' }));
  return made;
}

async function statusOf(server: Served, path: string): Promise<number> {
  const { status, body } = await fetch(server.url + path, { redirect: 'manual' });
  // The connection of an answer that is not read stays open.
  await body?.cancel();
  return status;
}

test('what is signed is served, whatever VERSION says, and what no signature speaks of is not', async ({ signal }) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  await store.put(storeKey.version, Buffer.from('v1'), { signal });
  await using server = await serveSigned(store, signal);
  assert.is(await (await fetch(`${server.url}/dist/VERSION`)).text(), 'v2');
  for (const path of [
    '/bundle/two.tar.gz',
    '/bundle/two/packages/b.tar.gz',
    '/installer/two?resolve',
    '/dist/v1/a-1.0.tar.gz',
    '/dist/v2/b-1.0.tar.gz',
    `/dist/${storeKey.versionSignature}`,
    `/dist/${storeKey.catalogSignature('v2')}`,
    '/v2/_catalog',
  ]) {
    assert.is(await statusOf(server, path), 200, path);
  }
  const catalog = await fetch(`${server.url}/dist/v2/index.json`);
  assert.is(await catalog.text(), await readFile(box.at('store/v2/index.json'), 'utf8'));
  for (const path of [
    '/dist/supported-versions-gen.json',
    '/dist/v2/supported-versions-gen.json',
    '/dist/v2/c-1.0.tar.gz',
    '/dist/v3/index.json',
    '/bundle/version/v3/two.tar.gz',
  ]) {
    assert.is(await statusOf(server, path), 404, path);
  }
});

test('the scripts ask the node for keys of its own, but for those that run any command', async ({ signal }) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  await using server = await serveSigned(store, signal);
  const text = async (path: string): Promise<string> => (await fetch(server.url + path)).text();
  for (const script of ['install.sh', 'join.sh', 'upgrade.sh']) {
    assert.match(await text(`/two/${script}`), / --require-signed "\$@"\n$/);
  }
  assert.not.match(await text('/two/tasks.sh'), /require-signed/);
  await using plain = await serveStore(store);
  assert.not.match(await (await fetch(`${plain.url}/two/install.sh`)).text(), /require-signed/);
});

const ONCE = { signal: never };
const CURRENT = ['/bundle/two.tar.gz', '/dist/VERSION', '/two/install.sh', '/v2/_catalog', '/dist/b-1.0.tar.gz'];

for (const [what, harm, paths] of [
  ['has no signature', async (_, store) => store.delete(storeKey.versionSignature, ONCE), CURRENT],
  [
    'has another catalog than the signed one',
    async (box) =>
      writeFile(box.at('store/v2/index.json'), `${await readFile(box.at('store/v2/index.json'), 'utf8')} `),
    [...CURRENT, '/dist/v2/index.json', '/dist/v2/b-1.0.tar.gz'],
  ],
  [
    'has another package than the signed one',
    async (box) => cp(box.at('store/v1/a-1.0.tar.gz'), box.at('store/v2/b-1.0.tar.gz')),
    ['/bundle/two.tar.gz', '/bundle/two/packages/b.tar.gz', '/dist/v2/b-1.0.tar.gz'],
  ],
] as const satisfies readonly (readonly [string, (box: Tree, store: Store) => Promise<unknown>, readonly string[]])[]) {
  test(`a store that ${what} is answered with 502, and the log says why`, async ({ signal }) => {
    const { box, store } = await scene(signal);
    await using _ = box;
    await harm(box, store);
    await using server = await serveSigned(store, signal);
    for (const path of paths) assert.is(await statusOf(server, path), 502, path);
    for (const { error } of server.log)
      assert.match(error ?? '', /^(?:SIGNATURE_INVALID|DIGEST_MISMATCH|PACKAGE_INVALID) /);
  });
}

test('a package that is replaced while it is looked at is not handed out', async ({ signal }) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  const key = 'v2/b-1.0.tar.gz';
  const other = await readFile(box.at('store/v1/a-1.0.tar.gz'));
  const replaced: Store = {
    ...store,
    get: async (...args) => {
      const found = await store.get(...args);
      if (args[0] !== key) return found;
      async function* thenReplaced(): AsyncGenerator<Uint8Array> {
        yield* found.body;
        await writeFile(box.at('store', key), other);
      }
      return { ...found, body: thenReplaced() };
    },
  };
  await using server = await serveSigned(replaced, signal);
  assert.is(await statusOf(server, `/dist/${key}`), 503);
  assert.is(await statusOf(server, `/dist/${key}`), 502);
});

test('a signature of others, one that is over, and a store that is put back while it is served are refused', async ({
  signal,
}) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  for (const [day, hand] of [
    [2, their],
    [40, our],
  ] as const) {
    await using server = await serveSigned(store, signal, day, hand);
    for (const path of CURRENT) assert.is(await statusOf(server, path), 502, path);
  }
  await using server = await serveSigned(store, signal);
  assert.is(await statusOf(server, '/bundle/two.tar.gz'), 200);
  await store.put(storeKey.versionSignature, await readFile(box.at('copy', storeKey.versionSignature)), { signal });
  assert.is(await statusOf(server, '/bundle/two.tar.gz'), 502);
});

test.run();
