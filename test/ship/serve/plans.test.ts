/** How many plans of bundles a server makes for whom. */
import type { Worker } from 'node:worker_threads';
import { signStore } from '../../../src/ship/release/sign-release.ts';
import { readSigned } from '../../../src/ship/release/signed-release.ts';
import type { VerifyRelease } from '../../../src/ship/serve/catalogs.ts';
import { startPlanWorker } from '../../../src/ship/serve/start-plan-worker.ts';
import type { Store } from '../../../src/ship/store/store.ts';
import { memorySource } from '../../../src/formats/archive/read.ts';
import { verifyArchive } from '../../../src/formats/archive/verify.ts';
import { until } from '../../support/appears.ts';
import * as assert from '../../support/assert.ts';
import { publishTestPackages, specOf, type TestPackage } from '../../support/bundles.ts';
import { publishImages } from '../../support/image-release.ts';
import { makeImage, makeLayer } from '../../support/images.ts';
import { keepSpec, serveStore, type Served } from '../../support/served.ts';
import { later, NOW, our } from '../../support/signing.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

// not fast: plans of large packages, beside a client that waits
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

/** Thirty packages, of which none is read yet, and what asks for them one by one. */
async function thirty(
  signal: AbortSignal,
  site: Parameters<typeof serveStore>[1] = {},
): Promise<{
  readonly held: ReturnType<typeof heldStore>;
  readonly server: Served;
  readonly paths: readonly string[];
}> {
  const box = await tree();
  const names = Array.from({ length: 30 }, (_, at) => `p${at}`);
  const packages = names.map((name) => ({ name, version: '1', files: [{ path: 'x', data: name }] }));
  const held = heldStore(await publishTestPackages(box, packages, signal));
  await keepSpec(box, ID, specOf({ p0: 'latest' }));
  const server = await serveStore(held.store, site);
  const close = async (): Promise<void> => {
    await server[Symbol.asyncDispose]();
    await box[Symbol.asyncDispose]();
  };
  const paths = names.map((name) => `/bundle/${ID}/packages/${name}.tar.gz`);
  return { held, server: { ...server, [Symbol.asyncDispose]: close }, paths };
}

test('more plans than a few at once wait, and those that nobody waits for are given up', async ({ signal }) => {
  const { held, server, paths } = await thirty(signal);
  await using _ = server;
  const client = new AbortController();
  const asked = paths.map(async (path) =>
    fetch(server.url + path, { method: 'HEAD', signal: client.signal }).catch(() => undefined),
  );
  const isAsked = async (): Promise<boolean> => {
    const health = await fetch(`${server.url}/healthz`);
    return ((await health.json()) as { active_streams: number }).active_streams === paths.length;
  };
  await until(async () => held.reads() >= 2 && (await isAsked()));
  assert.is(held.reads(), 2);
  client.abort();
  await Promise.all(asked);
  await until(() => server.log.filter(({ route }) => route === 'packages').length === paths.length);
  const before = held.reads();
  held.letGo();
  assert.is((await fetch(server.url + (paths[29] ?? ''))).status, 200);
  // What one package takes; those that were given up would be as many each.
  assert.ok(held.reads() - before < 6, `${held.reads() - before} readings`);
});

test('connections that all ask for plans leave none to be refused', async ({ signal }) => {
  const { held, server, paths } = await thirty(signal);
  await using _ = server;
  const asked = paths.map(async (path) => fetch(server.url + path, { method: 'HEAD' }));
  await until(() => held.reads() >= 2);
  held.letGo();
  assert.equal(new Set((await Promise.all(asked)).map(({ status }) => status)), new Set([200]));
});

test('who has waited too long for a plan is told to ask again', async ({ signal }) => {
  const { held, server, paths } = await thirty(signal, { site: { patienceMs: 300 } });
  await using _ = server;
  const asked = paths.map(async (path) => fetch(server.url + path, { method: 'HEAD' }));
  const isRefused = ({ status, headers }: Response): boolean => status === 503 && headers.get('retry-after') === '1';
  let refused = 0;
  for (const answer of asked) void answer.then((response) => (refused += isRefused(response) ? 1 : 0));
  await until(() => refused === paths.length - 2);
  held.letGo();
  const good = (await Promise.all(asked)).filter(({ status }) => status === 200);
  assert.is(good.length, 2);
});

/** A package whose table of contents is long. */
function longPackage(name: string, entries: number): TestPackage {
  const files = Array.from({ length: entries }, (_, at) => ({
    path: `a-folder-with-a-long-name/file-${at}`,
    data: '',
  }));
  return { name, version: '1', files };
}

async function metric(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(new RegExp(`^curlew_serve_${name} (\\d+)$`, 'm').exec(text)?.[1]);
}

test('plans are kept up to so many bytes, whichever of them were asked for last', async ({ signal }) => {
  const box = await tree();
  await using _ = box;
  const names = ['a', 'b', 'c', 'd'];
  const store = await publishTestPackages(
    box,
    names.map((name) => longPackage(name, 500)),
    signal,
  );
  await keepSpec(box, ID, specOf({ a: 'latest' }));
  const planBytes = 300_000;
  await using server = await serveStore(store, { site: { planBytes } });
  const url = `${server.url}/bundle/${ID}/packages`;
  const sizes: number[] = [];
  for (const name of names) {
    assert.is((await fetch(`${url}/${name}.tar.gz`, { method: 'HEAD' })).status, 200);
    sizes.push(await metric(server.url, 'plan_bytes'));
  }
  // The table of contents has a row of some 200 bytes for each entry, and is kept nowhere else.
  assert.ok((sizes[0] ?? 0) > 500 * 150 && (sizes[0] ?? 0) < 500 * 300, `${sizes[0]} bytes`);
  assert.ok(Math.max(...sizes) <= planBytes, sizes.join(' '));
  assert.is(await metric(server.url, 'plans'), Math.floor(planBytes / (sizes[0] ?? 0)));
  const all = await fetch(`${url}/${names.join(',')}.tar.gz`);
  await verifyArchive(memorySource('all', Buffer.from(await all.arrayBuffer())), { signal });
  assert.is(await metric(server.url, 'plans'), 1);
});

test('what a thread was at when it ended is 503, and other plans are made by another thread', async ({ signal }) => {
  const { box, store } = await two(signal);
  await using _ = box;
  const held = heldStore(store);
  const threads: Worker[] = [];
  const startPlanning: typeof startPlanWorker = (options) => {
    const thread = startPlanWorker(options);
    threads.push(thread);
    return thread;
  };
  await using server = await serveStore(held.store, { site: { startPlanning } });
  const ask = async (name: string): Promise<Response> =>
    fetch(`${server.url}/bundle/${ID}/packages/${name}.tar.gz`, { method: 'HEAD' });
  const asked = [ask('alpha'), ask('beta')];
  await until(() => held.reads() >= 2);
  await threads[0]?.terminate();
  for (const answer of await Promise.all(asked)) {
    assert.equal([answer.status, answer.headers.get('retry-after')], [503, '1']);
  }
  held.letGo();
  for (const name of ['alpha', 'beta', 'alpha,beta']) assert.is((await ask(name)).status, 200);
  assert.is(threads.length, 2);
  assert.match(server.log[0]?.error ?? '', /^BUSY cannot plan a bundle: the planner thread has ended/);
});

test('a plan that would read too much is refused, and what is smaller is planned', async ({ signal }) => {
  const box = await tree();
  await using _ = box;
  const store = await publishTestPackages(box, [longPackage('a', 400), longPackage('b', 400)], signal);
  await keepSpec(box, ID, specOf({ a: 'latest', b: 'latest' }));
  await using server = await serveStore(store, { site: { maxTocBytes: 150_000 } });
  const url = `${server.url}/bundle/${ID}`;
  for (const path of ['.tar.gz', '/packages/a,b.tar.gz']) {
    const answer = await fetch(url + path);
    assert.is(answer.status, 422);
    assert.match(await answer.text(), /tables of contents exceed 150000 bytes.*\nhint: request fewer packages/);
  }
  for (const name of ['a', 'b']) assert.is((await fetch(`${url}/packages/${name}.tar.gz`)).status, 200);
});

/** A store, and how many turns the event loop has from when the last long range has been read. */
function countTurns(store: Store): { readonly store: Store; readonly turns: () => number } {
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  const counted = async function* (body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    yield* body;
    setImmediate(count);
  };
  const get: Store['get'] = async (key, options) => {
    const found = await store.get(key, options);
    return (options.range?.length ?? 0) > 1 << 20 ? { ...found, body: counted(found.body) } : found;
  };
  const over = (): number => {
    isOver = true;
    return turns;
  };
  return { store: { ...store, get }, turns: over };
}

test('while a long table of contents is read, the server has its processor for others', async ({ signal }) => {
  const box = await tree();
  await using _ = box;
  const store = await publishTestPackages(box, [longPackage('large', 30_000)], signal);
  await keepSpec(box, ID, specOf({ large: 'latest' }));
  const counted = countTurns(store);
  await using server = await serveStore(counted.store);
  const answer = await fetch(`${server.url}/bundle/${ID}/packages/large.tar.gz`, { method: 'HEAD' });
  const turns = counted.turns();
  assert.is(answer.status, 200);
  assert.ok(turns > 500, `${turns} turns`);
});

test('a long table of contents holds nobody up for an image, nor for the proof of a package', async ({ signal }) => {
  const box = await tree();
  await using _ = box;
  const web = makeImage([makeLayer({ 'bin/a': 'a' })], 'oci', 'web');
  const { files } = longPackage('web', 30_000);
  const images = { 'docker.io/library/web:1.2': web };
  const store = await publishImages(box, [{ name: 'web', version: '1.0', images, files }], signal);
  await signStore(store, { release: 'r1', signer: our.at(NOW), signal });
  const verify: VerifyRelease = async (release) =>
    readSigned(store, { release, trust: { ...our.trustedAt(later(2)), allowOlder: true }, signal });
  for (const path of ['/v2/library/web/manifests/1.2', '/dist/r1/web-1.0.tar.gz']) {
    const counted = countTurns(store);
    await using server = await serveStore(counted.store, { site: { verify } });
    const answer = await fetch(server.url + path, { method: 'HEAD' });
    const turns = counted.turns();
    assert.is(answer.status, 200, path);
    assert.ok(turns > 200, `${path}: ${turns} turns`);
  }
});

test.run();
