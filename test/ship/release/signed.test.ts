import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import type { ProgressEvent } from '../../../src/core/events.ts';
import { storeKey } from '../../../src/core/layout.ts';
import { nextVersion } from '../../../src/ship/release/release-statement.ts';
import { readSigned, type NotCurrent } from '../../../src/ship/release/signed-release.ts';
import { noteUnsigned, signStore } from '../../../src/ship/release/sign-release.ts';
import type { Store } from '../../../src/ship/store/store.ts';
import * as assert from '../../support/assert.ts';
import { current, DAY, later, memory, NOW, our, refuses, signedStore, their } from '../../support/signing.ts';
import { suite } from '../../support/suite.ts';

const test = suite('release/signed', { timeoutMs: 120_000 });

/** Puts what a file holds in the place of an object, as somebody does who may write to the store. */
async function swap(store: Store, key: string, path: string, signal: AbortSignal): Promise<void> {
  await store.delete(key, { signal });
  await store.put(key, await readFile(path), { signal });
}

test('a signed release is read by whoever trusts one of its keys, and by name for ever', async ({ signal }) => {
  const { box, store } = await signedStore(signal);
  await using _ = box;
  assert.is(await current(store, our.trustedAt(later(2)), signal), 'v2');
  const both = { ...our.trustedAt(later(2)), keys: [...their.trustedAt(NOW).keys, ...our.trustedAt(NOW).keys] };
  assert.is(await current(store, both, signal), 'v2');
  const old = await readSigned(store, { release: 'v1', trust: our.trustedAt(later(4000)), signal });
  assert.equal([old.release, old.signedBy, old.parsed.addons.map(({ name }) => name)], ['v1', 'our.pub', ['a']]);
});

test('a release that is named is refused behind a newer one that was read, named or as the current one', async ({
  signal,
}) => {
  const { box, store } = await signedStore(signal);
  await using _ = box;
  for (const first of [undefined, 'v2']) {
    const trust = our.trustedAt(later(2), memory());
    await readSigned(store, { release: 'v1', trust, signal });
    await readSigned(store, { release: first, trust, signal });
    await readSigned(store, { release: 'v2', trust, signal });
    await assert.rejectsWith(
      readSigned(store, { release: 'v1', trust, signal }),
      'DOWNGRADE',
      /v1 is signed as version \d+, but version \d+, v2, was read/,
    );
    const { release } = await readSigned(store, { release: 'v1', trust: { ...trust, allowOlder: true }, signal });
    assert.is(release, 'v1');
    await assert.rejectsWith(readSigned(store, { release: 'v1', trust, signal }), 'DOWNGRADE');
  }
});

test('whoever names a release is told of a newer current one, and of one that is over, and may name it again', async ({
  signal,
}) => {
  const { box, store } = await signedStore(signal);
  await using _ = box;
  const seen = memory();
  const said = async (release: string, day: number): Promise<NotCurrent | undefined> => {
    let found: NotCurrent | undefined;
    const onNotCurrent = (one: NotCurrent): void => {
      found = one;
    };
    await readSigned(store, { release, trust: our.trustedAt(later(day), seen), onNotCurrent, signal });
    return found;
  };
  for (const _again of [1, 2]) {
    const { text, ...rest } = (await said('v1', 2)) ?? { text: '' };
    assert.equal(rest, { named: 'v1', current: 'v2', since: '2026-11-21T12:00:00Z' });
    assert.match(text, 'v1 was requested, but v2 is the current release since 2026-11-21T12:00:00Z');
  }
  assert.is(await said('v2', 2), undefined);
  assert.match((await said('v2', 40))?.text ?? '', /v2 was signed as the current release until .*: ask the publisher/);
});

test('a publisher without a key is told what is wrong with the signature: none, over, or of another catalog', async ({
  signal,
}) => {
  const { box, store } = await signedStore(signal);
  await using _ = box;
  const said = async (release: string, day: number, planned = false): Promise<string> => {
    const notes: string[] = [];
    const report = (event: ProgressEvent): void => {
      if (event.type === 'note') notes.push(event.text);
    };
    await noteUnsigned(store, { release, signer: undefined, planned, now: later(day) }, { report, signal });
    return notes.join();
  };
  const cure = (release: string): string => `curlew sign --store ${store.address} --release ${release} --key FILE`;
  const sign = `${cure('v2')} signs it`;
  assert.is(await said('v2', 2), '');
  assert.is(
    await said('v3', 2),
    `${store.address}: v3 is not signed as the current release: readers that require signatures use the one before; ${cure('v3')} signs it`,
  );
  assert.match(await said('v3', 2, true), `v3 would not be signed as the current release: `);
  for (const [planned, end] of [
    [false, sign],
    [true, `add --sign FILE, or sign it afterwards with ${cure('v2')}`],
  ] as const) {
    assert.is(
      await said('v2', 40, planned),
      `${store.address}: v2 was signed as the current release until 2026-12-21T12:00:00Z: readers that require signatures refuse it; ${end}`,
    );
  }
  await refuses(current(store, our.trustedAt(later(40)), signal), /v2 was signed as the current release until/);
  const { data } = (await store.read(storeKey.catalog('v2'), { limit: 1 << 20, signal })) ?? { data: '' };
  await store.put(storeKey.catalog('v2'), Buffer.from(`${Buffer.from(data).toString()} `), { signal });
  assert.is(
    await said('v2', 2),
    `${store.address}: v2 has another catalog than was signed: readers that require signatures refuse it; ${sign}`,
  );
  await refuses(current(store, our.trustedAt(later(2)), signal), /is not the signed catalog/);
});

test('no signature and one by another key are refused', async ({ signal }) => {
  const { box, store } = await signedStore(signal);
  await using _ = box;
  const trust = our.trustedAt(later(2));
  await refuses(current(store, their.trustedAt(later(2)), signal), /was not made with their\.pub/);
  await refuses(readSigned(store, { release: 'v2', trust: their.trustedAt(NOW), signal }), /was not made with/);
  await store.delete(storeKey.versionSignature, { signal });
  await refuses(current(store, trust, signal), /the current release v2 is not signed: the signature VERSION\.sig/);
  await rm(box.at('store', storeKey.catalogSignature('v1')));
  await refuses(
    readSigned(store, { release: 'v1', trust, signal }),
    /the signature v1\/index\.json\.sigstore\.json does not exist/,
  );
  // A store on a web server cannot be signed at its address.
  const address = 'https://dl.example/dist';
  const served = readSigned({ ...store, address }, { release: 'v1', trust, signal });
  const { hint = '' } = await assert.rejectsWith(served, 'SIGNATURE_INVALID');
  assert.match(
    hint,
    'curlew sign --store STORE --release v1 --key FILE, where STORE is the folder or the S3 address that',
  );
});

test('VERSION put back changes nothing for whoever asks for signatures', async ({ signal }) => {
  const { box, store } = await signedStore(signal);
  await using _ = box;
  await writeFile(box.at('store/VERSION'), 'v1');
  assert.is(await current(store, our.trustedAt(later(2)), signal), 'v2');
});

test('a store put back as it was is refused by whoever has seen it later', async ({ signal }) => {
  const { box, store } = await signedStore(signal);
  await using _ = box;
  const seen = memory();
  assert.is(await current(store, our.trustedAt(later(2), seen), signal), 'v2');
  for (const key of ['VERSION', storeKey.versionSignature]) await swap(store, key, box.at('copy', key), signal);
  await refuses(
    current(store, our.trustedAt(later(2), seen), signal),
    /v1 is signed as version \d+, and version \d+ was seen/,
  );
  // Nobody else can know.
  assert.is(await current(store, our.trustedAt(later(2)), signal), 'v1');
});

test('a store that nobody signs any more is refused when its time is over, and not after it was signed again', async ({
  signal,
}) => {
  const { box, store } = await signedStore(signal);
  await using _ = box;
  const seen = memory();
  assert.is(await current(store, our.trustedAt(later(30.9), seen), signal), 'v2');
  await refuses(
    current(store, our.trustedAt(later(31), seen), signal),
    /v2 was signed as the current release until 2026-12-21T12:00:00Z, and the clock of this machine says 2026-12-21T12:00:00Z/,
  );
  const again = { release: undefined, signal };
  await refuses(signStore(store, { ...again, signer: our.at(later(32)) }), /until 2026-12-21/);
  const named = await signStore(store, { ...again, release: 'v2', signer: our.at(later(32), { lifetime: DAY }) });
  assert.is(named.expires, '2026-12-23T12:00:00Z');
  assert.is(await current(store, our.trustedAt(later(32.5), seen), signal), 'v2');
  await signStore(store, { ...again, signer: our.at(later(32.5)) });
  assert.is(await current(store, our.trustedAt(later(62), seen), signal), 'v2');
});

test('a clock that stands before the signature is told, and so is one that has jumped ahead', async ({ signal }) => {
  const { box, store } = await signedStore(signal);
  await using _ = box;
  const told = /v2 was signed at 2026-11-21T12:00:00Z, and the clock of this machine says 1970-01-01T00:00:00Z/;
  await refuses(current(store, our.trustedAt(new Date(0)), signal), told);
  assert.is(await current(store, our.trustedAt(later(0.5)), signal), 'v2', 'clocks differ a little');
  await refuses(current(store, our.trustedAt(new Date('2037-01-01T00:00:00Z')), signal), /clock .* says 2037-/);
});

test('a catalog that is not the signed one is refused, and so is one of another release', async ({ signal }) => {
  const { box, store } = await signedStore(signal);
  await using _ = box;
  const trust = our.trustedAt(later(2));
  const path = box.at('store/v2/index.json');
  const text = await readFile(path, 'utf8');
  await writeFile(path, text.replace('"size":', '"size" :'));
  await refuses(current(store, trust, signal), /v2\/index\.json is not the signed catalog/);
  await cp(box.at('store/v1/index.json'), path);
  await refuses(current(store, trust, signal), /is not the signed catalog/);
  await cp(box.at('store', storeKey.catalogSignature('v1')), box.at('store', storeKey.catalogSignature('v2')));
  await refuses(
    readSigned(store, { release: 'v2', trust, signal }),
    /v2\/index\.json\.sigstore\.json is the signature of v1/,
  );
  await swap(store, storeKey.versionSignature, box.at('store', storeKey.catalogSignature('v1')), signal);
  await refuses(current(store, trust, signal), /has a valid signature, but is not a statement about it/);
});

test('signing an old release by its name makes no current one of it', async ({ signal }) => {
  const { box, store } = await signedStore(signal);
  await using _ = box;
  const { expires } = await signStore(store, { release: 'v1', signer: our.at(later(3)), signal });
  assert.is(expires, undefined);
  assert.is(await current(store, our.trustedAt(later(4)), signal), 'v2');
});

test('versions grow whatever the clock does, and nobody without a key can drive them up', () => {
  const clock = Math.floor(NOW.getTime() / 1000);
  assert.is(nextVersion(undefined, NOW), clock);
  assert.is(nextVersion({ version: 5, trusted: true }, NOW), clock);
  assert.is(nextVersion({ version: clock, trusted: false }, NOW), clock + 1);
  assert.is(nextVersion({ version: clock + 1000, trusted: false }, new Date(0)), 0);
  assert.is(nextVersion({ version: clock + 9_000_000, trusted: true }, NOW), clock + 9_000_001);
  assert.is(nextVersion({ version: Number.MAX_SAFE_INTEGER, trusted: false }, NOW), clock);
});

test('another key takes over: both are trusted for a while, and the old one is left out', async ({ signal }) => {
  const { box, store } = await signedStore(signal);
  await using _ = box;
  await refuses(signStore(store, { release: undefined, signer: their.at(later(2)), signal }), /was not made with/);
  await signStore(store, { release: 'v2', signer: their.at(later(2)), signal });
  const both = [...our.trustedAt(NOW).keys, ...their.trustedAt(NOW).keys];
  assert.is(await current(store, { ...our.trustedAt(later(3)), keys: both }, signal), 'v2');
  await refuses(current(store, our.trustedAt(later(3)), signal), /was not made with our\.pub/);
  assert.is(await current(store, their.trustedAt(later(3)), signal), 'v2');
});

test.run();
