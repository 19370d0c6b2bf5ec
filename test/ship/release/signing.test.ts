import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { storeKey } from '../../../src/core/layout.ts';
import { readPrevious } from '../../../src/ship/release/previous-release.ts';
import { promote, sourceRelease } from '../../../src/ship/release/promote.ts';
import { prune } from '../../../src/ship/release/prune.ts';
import { readSigned } from '../../../src/ship/release/signed-release.ts';
import { signStore } from '../../../src/ship/release/sign-release.ts';
import { createFolderStore } from '../../../src/ship/store/folder.ts';
import type { Store } from '../../../src/ship/store/store.ts';
import * as assert from '../../support/assert.ts';
import { noReport } from '../../support/context.ts';
import { cutAtCalls, thrownBy } from '../../support/faulty-store.ts';
import { madePackage, publishAs } from '../../support/releases.ts';
import { current, later, NOW, our, refuses, signedStore, their } from '../../support/signing.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

// soak: cuts at each call
const test = suite('release/signing', { timeoutMs: 120_000 });

test('nothing is published on top of what was put back, altered or never signed', async ({ signal }) => {
  const { box, store } = await signedStore(signal);
  await using _ = box;
  const trust = our.trustedAt(later(2));
  assert.is((await readPrevious(store, { trust, signal })).packages.size, 2);
  await writeFile(box.at('store/VERSION'), 'v1');
  await refuses(
    readPrevious(store, { trust, signal }),
    /VERSION names v1, but v2 was signed as the current release later/,
  );
  await writeFile(box.at('store/VERSION'), 'v2');
  const path = box.at('store/v2/index.json');
  await writeFile(path, (await readFile(path, 'utf8')).replace(/"digest":"sha256:./, '"digest":"sha256:0'));
  await refuses(readPrevious(store, { trust, signal }), /is not the signed catalog/);
  await mkdir(box.at('plain'));
  const plain = createFolderStore(box.at('plain'));
  await publishAs(plain, 'p1', [await madePackage(box, 'c', '1.0', 'c')], signal);
  const { hint } = await assert.rejectsWith(
    readPrevious(plain, { trust, signal }),
    'SIGNATURE_INVALID',
    /p1, on which the next release is based, is not signed: the signature VERSION\.sigstore\.json does not exist/,
  );
  assert.is(hint, `sign p1 first, with curlew sign --store ${plain.address} --release p1 --key FILE`);
  await signStore(plain, { release: 'p1', signer: our.at(later(2)), signal });
  assert.is((await readPrevious(plain, { trust, signal })).packages.size, 1);
});

test('what builds are said to have seen counts only as it was signed', async ({ signal }) => {
  await using box = await tree();
  await mkdir(box.at('store'));
  const store = createFolderStore(box.at('store'));
  const file = { ...(await madePackage(box, 'a', '1.0', 'one')), inputs: { seen: 1 } };
  await publishAs(store, 'v1', [file], signal, { signer: our.at(NOW) });
  const trust = our.trustedAt(later(1));
  const recorded = async () => (await readPrevious(store, { trust, signal })).packages.get('a-1.0.tar.gz')?.recorded;
  assert.equal((await recorded())?.inputs, { seen: 1 });
  const path = box.at('store/v1/inputs.json');
  await writeFile(path, (await readFile(path, 'utf8')).replace('"seen":1', '"seen":2'));
  assert.is(await recorded(), undefined);
});

test('a publisher that is stopped anywhere completes the signed release with the next run', async ({ signal }) => {
  await using box = await tree();
  const file = await madePackage(box, 'b', '1.0', 'two');
  const first = await madePackage(box, 'a', '1.0', 'one');
  const open = async (name: string): Promise<Store> => {
    await mkdir(box.at(name));
    const store = createFolderStore(box.at(name));
    await publishAs(store, 'v1', [first], signal, { signer: our.at(NOW) });
    return store;
  };
  const publish = async (store: Store): Promise<void> => {
    const signer = our.at(later(1));
    const previous = await readPrevious(store, { trust: signer.trust, signal });
    await publishAs(store, 'v2', [file], signal, { signer, previous });
  };
  await cutAtCalls({ when: 'after', least: 10 }, async (breaking) => {
    const store = await open('cut');
    const error = await thrownBy(publish(breaking(store)));
    assert.ok(['v1', 'v2'].includes(await current(store, our.trustedAt(later(1)), signal)));
    await publish(store);
    assert.is(await current(store, our.trustedAt(later(1)), signal), 'v2');
    await rm(box.at('cut'), { recursive: true });
    return error;
  });
});

test('of two who sign at once, what VERSION says is what is signed at the end', async ({ signal }) => {
  const { box, store } = await signedStore(signal);
  await using _ = box;
  const signer = our.at(later(2));
  const files = await Promise.all(
    ['x', 'y', 'z'].map(async (name) => ({ name, file: await madePackage(box, name, '1.0', name) })),
  );
  const done = await Promise.allSettled(
    files.map(async ({ name, file }) => publishAs(store, `v3-${name}`, [file], signal, { signer })),
  );
  assert.ok(done.some(({ status }) => status === 'fulfilled'));
  for (const one of done) {
    if (one.status === 'rejected') assert.match(String(one.reason), /current/);
  }
  assert.is(await current(store, our.trustedAt(later(2)), signal), await readFile(box.at('store/VERSION'), 'utf8'));
});

test('a signature is not renewed for a release that a publish without a key has left behind', async ({ signal }) => {
  const { box, store } = await signedStore(signal);
  await using _ = box;
  await publishAs(store, 'v3', [await madePackage(box, 'c', '1.0', 'c')], signal);
  const before = await readFile(box.at('store/v2/index.json.sigstore.json'), 'utf8');
  await assert.rejectsWith(
    signStore(store, { release: undefined, signer: our.at(later(2)), signal }),
    'STORE_CONFLICT',
    /renew the signature of v2: v3 is current, but not signed as current/,
  );
  assert.is(await readFile(box.at('store/v2/index.json.sigstore.json'), 'utf8'), before);
  await signStore(store, { release: 'v3', signer: our.at(later(2)), signal });
  assert.is(await current(store, our.trustedAt(later(2)), signal), 'v3');
});

test('what is written between reading and signing is signed by nobody', async ({ signal }) => {
  const { box, store } = await signedStore(signal);
  await using _ = box;
  const signer = our.at(later(2));
  // Somebody else publishes just before the signature is put: its condition does not hold any more.
  let others = 0;
  const raced: Store = {
    ...store,
    put: async (key, body, options) => {
      if (key === storeKey.versionSignature && others === 0) {
        others += 1;
        await publishAs(store, 'v4', [await madePackage(box, 'd', '1.0', 'd')], signal, { signer: our.at(later(2)) });
      }
      return store.put(key, body, options);
    },
  };
  await assert.rejectsWith(
    publishAs(raced, 'v3', [await madePackage(box, 'c', '1.0', 'c')], signal, { signer }),
    'STORE_CONFLICT',
    /the current release is v4/,
  );
  assert.is(await current(store, our.trustedAt(later(2)), signal), 'v4');
});

test('a store that says wrong things of a package gets them signed by nobody', async ({ signal }) => {
  await using box = await tree();
  await mkdir(box.at('store/v1'), { recursive: true });
  const store = createFolderStore(box.at('store'));
  const file = await madePackage(box, 'a', '1.0', 'one');
  const bad = await madePackage(box, 'a', '1.0', 'two');
  // It lies there already, under the identity of the right one.
  await store.put('v1/a-1.0.tar.gz', await readFile(bad.path), {
    metadata: { digest: file.addon.digest, sha256: `sha256:${'1'.repeat(64)}` },
    signal,
  });
  await assert.rejectsWith(
    publishAs(store, 'v1', [file], signal, { signer: our.at(NOW) }),
    'STORE_CONFLICT',
    /with different content/,
  );
});

test('promotion takes a signed release, signs it in its new place, and hands on what stays true', async ({
  signal,
}) => {
  const { box, store } = await signedStore(signal);
  await using _ = box;
  await mkdir(box.at('dist'));
  const dist = createFolderStore(box.at('dist'));
  const options = { deep: true, stream: false, dryRun: false, jobs: 2, report: noReport, signal };
  await refuses(sourceRelease(store, { release: 'v2', trust: their.trustedAt(NOW), signal }), /was not made with/);
  const source = await sourceRelease(store, { release: undefined, trust: our.trustedAt(later(2)), signal });
  const result = await promote(source, { to: dist, release: undefined, ...options });
  assert.is(result.signedBy, 'our.pub');
  assert.is((await readSigned(dist, { release: 'v2', trust: our.trustedAt(NOW), signal })).release, 'v2');
  await refuses(current(dist, our.trustedAt(later(2)), signal), /the signature VERSION/);
  await promote(source, { to: dist, release: 'r1', signer: their.at(later(2)), ...options });
  assert.is(await current(dist, their.trustedAt(later(2)), signal), 'r1');
});

test('prune keeps the release that is signed as the current one', async ({ signal }) => {
  const { box, store } = await signedStore(signal);
  await using _ = box;
  for (const name of ['v3', 'v4']) await publishAs(store, name, [await madePackage(box, name, '1', name)], signal);
  const rule = { keep: 1, olderThan: undefined, now: later(2), dryRun: false, jobs: 2, report: noReport };
  const { pruned } = await prune(store, { ...rule, signal });
  assert.equal(
    pruned.map(({ release }) => release),
    ['v1', 'v3'],
  );
  assert.is(await current(store, our.trustedAt(later(2)), signal), 'v2');
});

test('a catalog that does not tell the contents of its packages is not signed', async ({ signal }) => {
  const { box, store } = await signedStore(signal);
  await using _ = box;
  const path = box.at('store/v2/index.json');
  await writeFile(box.at('new'), (await readFile(path, 'utf8')).replaceAll(/,"toc":"[^"]+"/g, ''));
  await rename(box.at('new'), path);
  await assert.rejectsWith(
    signStore(store, { release: 'v2', signer: our.at(later(2)), signal }),
    'UNSUPPORTED',
    /does not contain the table of contents of a 1\.0/,
  );
});

test.run();
