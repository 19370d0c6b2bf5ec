import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { memorySource, readIndex } from '../../../src/formats/archive/read.ts';
import { digestOf, type Digest } from '../../../src/core/digest.ts';
import { CurlewError } from '../../../src/core/errors.ts';
import { storeKey } from '../../../src/core/layout.ts';
import type { OfferedVersion } from '../../../src/ship/release/external.ts';
import { importExternal } from '../../../src/ship/release/import-external.ts';
import { offeredCatalog } from '../../../src/ship/release/merged-catalog.ts';
import { createFolderStore } from '../../../src/ship/store/folder.ts';
import type { Store } from '../../../src/ship/store/store.ts';
import { createWebStore } from '../../../src/ship/store/web.ts';
import * as assert from '../../support/assert.ts';
import { specOf } from '../../support/bundles.ts';
import { quickHttp } from '../../support/client.ts';
import { noReport } from '../../support/context.ts';
import { publishImages } from '../../support/image-release.ts';
import { makeImage, makeLayer } from '../../support/images.ts';
import { writePackage } from '../../support/packages.ts';
import { keepSpec, serveStore } from '../../support/served.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('ship/serve/external');

const TOKEN = 'correct-horse-battery';
const IMAGES = { 'a.example/acme:2': makeImage([makeLayer({ 'bin/acme': 'acme' })]) };
const FILES = [{ path: 'install.sh', data: 'acme() { :; }\n' }];

/** Takes these packages of `acme` over; a version whose file is no package of curlew's counts, too. */
async function bring(store: Store, files: Readonly<Record<string, string>>, signal: AbortSignal): Promise<void> {
  const offers = Object.keys(files).map((version): OfferedVersion => {
    const url = `https://acme.example/${version}.tar.gz`;
    return { name: 'acme', version, url, range: '*', isPrerelease: false, digest: undefined };
  });
  const fetch = async ({ version }: OfferedVersion): Promise<{ path: string; digest: Digest }> => {
    const path = files[version] ?? '';
    return { path, digest: digestOf(await readFile(path)) };
  };
  await importExternal(offers, { store, fetch, dryRun: false, jobs: 1, report: noReport, signal });
}

/** A release of `alpha`, and `acme` 2.0.0 with an image beside it. */
async function scene(signal: AbortSignal): Promise<{ readonly box: Tree; readonly store: Store }> {
  const box = await tree();
  const made = { name: 'acme', version: '2.0.0', images: IMAGES };
  await mkdir(box.at('theirs'));
  await publishImages(box, [made], signal, createFolderStore(box.at('theirs')));
  await copyFile(box.at('acme-2.0.0.tar.gz'), box.at('two.tar.gz'));
  const store = await publishImages(box, [{ name: 'alpha', version: '1.0', images: {} }], signal);
  await keepSpec(box, 'both', specOf({ acme: 'latest', alpha: '1.0' }));
  await bring(store, { '2.0.0': box.at('two.tar.gz') }, signal);
  return { box, store };
}

async function namesIn(answer: Response, signal: AbortSignal): Promise<readonly string[]> {
  assert.is(answer.status, 200, answer.status === 200 ? '' : await answer.text());
  const source = memorySource('answer', Buffer.from(await answer.arrayBuffer()));
  return (await readIndex(source, { signal })).entries.map(({ path }) => path);
}

test('external add-ons are in bundles, packages by name, specs, validation and images, as others are', async ({
  signal,
}) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  await using server = await serveStore(store, { listen: { token: TOKEN } });
  for (const path of ['bundle/both', 'bundle/version/r1/both', 'bundle/both/packages/acme-2.0.0,alpha']) {
    const names = await namesIn(await fetch(`${server.url}/${path}.tar.gz`), signal);
    assert.ok(names.includes('addons/acme/2.0.0/addon.json') && names.includes('addons/alpha/1.0/addon.json'), path);
  }
  assert.match(await (await fetch(`${server.url}/installer/both?resolve`)).text(), /acme:\s+version: "?2\.0\.0/);
  const headers = { authorization: `Bearer ${TOKEN}` };
  const body = specOf({ acme: '2.0.0' });
  const judged = await fetch(`${server.url}/installer/validate`, { method: 'POST', headers, body });
  assert.is(judged.status, 200, await judged.text());
  const { config } = IMAGES['a.example/acme:2'];
  assert.is((await fetch(`${server.url}/v2/a.example/acme/manifests/2`)).status, 200);
  assert.is((await fetch(`${server.url}/v2/a.example/acme/blobs/${config.digest}`)).status, 200);
});

test('the packages lie below /dist/external, and a client of /dist finds them there', async ({ signal }) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  await using server = await serveStore(store);
  const answer = await fetch(`${server.url}/dist/external/acme-2.0.0.tar.gz`);
  assert.ok(Buffer.from(await answer.arrayBuffer()).equals(await readFile(box.at('two.tar.gz'))));
  await using http = await quickHttp();
  const theirs = createWebStore(`${server.url}/dist`, http);
  const { addons } = await offeredCatalog(theirs, { release: undefined, signal });
  assert.equal(
    addons.map(({ name, versions }) => `${name} ${versions[0]?.version}`),
    ['acme 2.0.0', 'alpha 1.0'],
  );
});

test('what is imported while the server runs counts from then on', async ({ signal }) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  await using server = await serveStore(store);
  const resolved = async (): Promise<string> => (await fetch(`${server.url}/installer/both?resolve`)).text();
  const bundle = async (): Promise<readonly string[]> =>
    namesIn(await fetch(`${server.url}/bundle/both.tar.gz`), signal);
  assert.match(await resolved(), /acme:\s+version: "?2\.0\.0/);
  assert.ok((await bundle()).includes('addons/acme/2.0.0/addon.json'));
  await writePackage(box.at('three.tar.gz'), 'acme', '3.0.0', FILES);
  await bring(store, { '3.0.0': box.at('three.tar.gz') }, signal);
  assert.match(await resolved(), /acme:\s+version: "?3\.0\.0/);
  assert.ok((await bundle()).includes('addons/acme/3.0.0/addon.json'));
});

test('a package that curlew did not make is refused with the reason, and the others are served', async ({ signal }) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  await writeFile(box.at('four.tar.gz'), gzipSync('theirs'));
  await bring(store, { '4.0.0': box.at('four.tar.gz') }, signal);
  await keepSpec(box, 'foreign', specOf({ acme: '4.0.0' }));
  await using server = await serveStore(store);
  const answer = await fetch(`${server.url}/bundle/foreign.tar.gz`);
  assert.is(answer.status, 422);
  assert.match(await answer.text(), 'the external package 4.0.0 was not built with curlew');
  assert.is((await fetch(`${server.url}/dist/external/acme-4.0.0.tar.gz`, { method: 'HEAD' })).status, 200);
  assert.is((await fetch(`${server.url}/bundle/both.tar.gz`, { method: 'HEAD' })).status, 200);
});

test('a store that nobody may list has no external add-ons, one with a damaged registry says so in the log', async ({
  signal,
}) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  const head: Store['head'] = async (key, options) => {
    if (key === storeKey.addonRegistry) throw new CurlewError('AUTH_FAILED', 'access was denied');
    return store.head(key, options);
  };
  await keepSpec(box, 'one', specOf({ alpha: 'latest' }));
  await using closed = await serveStore({ ...store, head });
  assert.is((await fetch(`${closed.url}/bundle/one.tar.gz`, { method: 'HEAD' })).status, 200);
  assert.is((await fetch(`${closed.url}/bundle/both.tar.gz`, { method: 'HEAD' })).status, 422);
  await store.put(storeKey.addonRegistry, Buffer.from('{"acme":[1]}'), { signal });
  await using server = await serveStore(store);
  assert.is((await fetch(`${server.url}/bundle/one.tar.gz`)).status, 502);
  assert.match(server.log.at(-1)?.error ?? '', 'not an add-on registry');
});

test.run();
