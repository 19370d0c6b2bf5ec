import { writeFileSync } from 'node:fs';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { digestOf, type Digest } from '../../../src/core/digest.ts';
import type { ProgressEvent } from '../../../src/core/events.ts';
import type { FetchPlace } from '../../../src/ship/store/places.ts';
import { createWebStore } from '../../../src/ship/store/web.ts';
import { pathsBeside } from '../../../src/ship/transfer/partial-file.ts';
import { transfer } from '../../../src/ship/transfer/pull.ts';
import * as assert from '../../support/assert.ts';
import type { Http } from '../../../src/platform/http/http.ts';
import { quickHttp } from '../../support/client.ts';
import { answers, sendsOtherBytes } from '../../support/faults.ts';
import { noise } from '../../support/packages.ts';
import { askedRanges, largePackage, notedBytes } from '../../support/pulls.ts';
import { patterned } from '../../support/store-conformance.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';
import { serveFiles, serveFolder, type Fault, type Reply, type WebServer } from '../../support/web-server.ts';

const test = suite('transfer: a file whose digest is known');
const BODY = patterned(1_000_000);

function placesAt(http: Http, ...servers: readonly WebServer[]): readonly FetchPlace[] {
  return servers.map(({ url }) => ({ store: createWebStore(url, http), key: 'p.tar.gz' }));
}

interface Reported {
  readonly notes: string[];
  readonly bytes: number[];
  readonly onBytes: (bytes: number) => void;
  readonly report: (event: ProgressEvent) => void;
  readonly signal: AbortSignal;
}

/** Fetches the way a node does. */
async function fetchFile(
  places: readonly FetchPlace[],
  file: string,
  { onBytes, report, signal }: Reported,
): Promise<void> {
  const known = { sha256: digestOf(BODY), size: BODY.byteLength };
  const usual = { doing: 'fetch p-1', force: true, connections: 1, pace: undefined, elsewhere: 'name a mirror' };
  await transfer(places, file, { ...known, ...usual, onBytes, report, signal });
}

const notedIn = async (box: Tree): Promise<number> => notedBytes(pathsBeside(box.at('got')).note);

function listening(signal: AbortSignal): Reported {
  const notes: string[] = [];
  const bytes: number[] = [];
  const report = (event: ProgressEvent): void => {
    if (event.type === 'note') notes.push(event.text);
  };
  return { notes, bytes, onBytes: (count) => bytes.push(count), report, signal };
}

/** The request that looks for a table of contents. */
function isOfEnd(range: unknown): boolean {
  return /^bytes=9[0-9]{5}-999999$/.test(String(range));
}

async function hasBody(box: Tree): Promise<void> {
  assert.ok((await readFile(box.at('got'))).equals(BODY));
  assert.equal(
    (await readdir(box.path)).filter((name) => name.startsWith('got')),
    ['got'],
  );
}

/** Cuts the first GET of the whole file after so many bytes, and every later one at once; its end can be read. */
function cutsFirstAt(at: number): Fault {
  let cut = false;
  return ({ method, headers }, regular): Reply | undefined => {
    if (method !== 'GET' || isOfEnd(headers['range'])) return undefined;
    const resetAt = cut ? 0 : at;
    cut = true;
    return { ...regular, sending: { resetAt } };
  };
}

for (const at of [0, 1, 65_536, 500_001, 999_999]) {
  test(`cut off at byte ${at}, the next run asks for the rest alone`, async ({ signal }) => {
    await using box = await tree({ 'store/p.tar.gz': BODY });
    await using http = await quickHttp();
    {
      await using broken = await serveFolder(box.at('store'), { faults: [cutsFirstAt(at)] });
      const failed = fetchFile(placesAt(http, broken), box.at('got'), listening(signal));
      await assert.rejectsWith(failed, 'FETCH_FAILED', /p\.tar\.gz/);
    }
    const there = await notedIn(box);
    assert.ok(there <= at, String(there));
    assert.ok(there > 0 || at < 2, String(there));
    await using server = await serveFolder(box.at('store'));
    const told = listening(signal);
    await fetchFile(placesAt(http, server), box.at('got'), told);
    await hasBody(box);
    assert.is(told.bytes[0], there);
    assert.is(server.log.at(-1)?.headers['range'], `bytes=${there}-999999`);
  });
}

test('what another place has begun is gone on with, at another offset and without asking for its etag', async ({
  signal,
}) => {
  await using box = await tree({ 'store/p.tar.gz': BODY, 'got.partial': BODY.subarray(0, 400_000) });
  await using server = await serveFolder(box.at('store'));
  await using http = await quickHttp();
  await fetchFile(placesAt(http, server), box.at('got'), listening(signal));
  await hasBody(box);
  assert.is(server.log.at(-1)?.headers['range'], 'bytes=400000-999999');
});

test('a file that an older version had completed when it was killed gets its name without a request', async ({
  signal,
}) => {
  await using box = await tree({ 'got.partial': BODY });
  await using server = await serveFolder(box.at('store'));
  await using http = await quickHttp();
  await fetchFile(placesAt(http, server), box.at('got'), listening(signal));
  await hasBody(box);
  assert.is(server.log.length, 0);
});

test('what an older version left, with its note, is resumed', async ({ signal }) => {
  await using http = await quickHttp();
  await using box = await tree({ 'store/p.tar.gz': BODY, 'got.partial': BODY.subarray(0, 400_000) });
  await using server = await serveFolder(box.at('store'));
  for (const etag of ['"1"', '"another"']) {
    await writeFile(box.at('got.partial'), BODY.subarray(0, 400_000));
    await writeFile(box.at('got.partial.json'), JSON.stringify({ from: `${server.url}/p.tar.gz`, etag }));
    await fetchFile(placesAt(http, server), box.at('got'), listening(signal));
    await hasBody(box);
    assert.is(server.log.at(-1)?.headers['range'], 'bytes=400000-999999');
    await rm(box.at('got'));
  }
});

for (const [title, left] of [
  ['wrong bytes', Buffer.alloc(300_000, 'x')],
  ['as many wrong bytes as the file has', Buffer.alloc(1_000_000, 'x')],
  ['more bytes than the file has', Buffer.alloc(1_000_001, 'x')],
] as const) {
  test(`${title} of an earlier run are detected and fetched again`, async ({ signal }) => {
    await using box = await tree({ 'store/p.tar.gz': BODY, 'got.partial': left });
    await using server = await serveFolder(box.at('store'));
    await using http = await quickHttp();
    const told = listening(signal);
    await fetchFile(placesAt(http, server), box.at('got'), told);
    await hasBody(box);
    assert.equal(told.notes, []);
  });
}

test('an object that has changed since an earlier run is fetched from its first byte', async ({ signal }) => {
  await using box = await tree({ 'store/p.tar.gz': patterned(1_000_000, 7) });
  await using http = await quickHttp();
  await using server = await serveFolder(box.at('store'), { faults: [cutsFirstAt(600_000)] });
  await assert.rejectsWith(fetchFile(placesAt(http, server), box.at('got'), listening(signal)), 'FETCH_FAILED');
  await writeFile(box.at('store/p.tar.gz'), BODY);
  await using again = await serveFolder(box.at('store'));
  // The same address as before, behind another port.
  const note = await readFile(box.at('got.partial.json'), 'utf8');
  await writeFile(box.at('got.partial.json'), note.replaceAll(String(server.port), String(again.port)));
  await fetchFile(placesAt(http, again), box.at('got'), listening(signal));
  await hasBody(box);
  assert.is(again.log.at(-1)?.headers['range'], 'bytes=0-999999');
});

test('an object that changes while it is read is begun again, once', async ({ signal }) => {
  await using box = await tree({ 'store/p.tar.gz': patterned(1_000_000, 7) });
  await using http = await quickHttp();
  const swaps: Fault = ({ method }, regular) => {
    if (method !== 'GET') return undefined;
    writeFileSync(box.at('store/p.tar.gz'), BODY);
    return { ...regular, sending: { resetAt: 300_000 } };
  };
  let times = 0;
  const once: Fault = (asked, regular) => (asked.method === 'GET' && ++times > 1 ? undefined : swaps(asked, regular));
  await using server = await serveFolder(box.at('store'), { faults: [once] });
  await fetchFile(placesAt(http, server), box.at('got'), listening(signal));
  await hasBody(box);
});

test('mirrors are asked in turn: one is away, one has another file, one gives wrong bytes', async ({ signal }) => {
  await using box = await tree({ 'store/p.tar.gz': BODY, 'other/p.tar.gz': BODY.subarray(1), 'empty/x': '' });
  await using http = await quickHttp();
  await using away = await serveFolder(box.at('store'), { faults: [answers({ status: 503 })] });
  await using empty = await serveFolder(box.at('empty'));
  await using other = await serveFolder(box.at('other'));
  await using wrong = await serveFolder(box.at('store'), { faults: [sendsOtherBytes()] });
  await using good = await serveFolder(box.at('store'));
  const told = listening(signal);
  await fetchFile(placesAt(http, away, empty, other, wrong, good), box.at('got'), told);
  await hasBody(box);
  assert.is(told.notes.length, 4);
  for (const [at, said] of [
    /503/,
    /there is no p\.tar\.gz/,
    /has 999999 bytes, not 1000000/,
    /different bytes/,
  ].entries()) {
    assert.match(told.notes[at] ?? '', said);
    assert.match(told.notes[at] ?? '', 'trying the next place');
  }
  assert.is(wrong.log.filter(({ method, headers }) => method === 'GET' && !isOfEnd(headers['range'])).length, 1);
});

test('a place that breaks off is gone on with at the next one', async ({ signal }) => {
  await using box = await tree({ 'store/p.tar.gz': BODY });
  await using http = await quickHttp();
  await using broken = await serveFolder(box.at('store'), { faults: [cutsFirstAt(700_000)] });
  await using good = await serveFolder(box.at('store'));
  await fetchFile(placesAt(http, broken, good), box.at('got'), listening(signal));
  await hasBody(box);
  assert.match(String(good.log.at(-1)?.headers['range']), /^bytes=[1-9]\d*-999999$/);
});

test('wrong bytes everywhere: each place is named, and nothing is left to go on with', async ({ signal }) => {
  await using box = await tree({ 'store/p.tar.gz': BODY });
  await using http = await quickHttp();
  await using one = await serveFolder(box.at('store'), { faults: [sendsOtherBytes()] });
  await using two = await serveFolder(box.at('store'), { faults: [sendsOtherBytes()] });
  const failed = fetchFile(placesAt(http, one, two), box.at('got'), listening(signal));
  const error = await assert.rejectsWith(failed, 'DIGEST_MISMATCH');
  assert.match(error.message, one.url);
  assert.match(error.message, two.url);
  assert.is(await notedIn(box), 0);
});

const [RIGHT, WRONG] = [largePackage(), largePackage('1.0.0', { blob1: noise(2_500_001, 55) })];

/** The right package from a place that has another one of the same size, and from a good one. */
async function fromMirrors(
  known: { readonly contents?: Digest | undefined; readonly size?: number },
  { http, box, signal }: { readonly http: Http; readonly box: Tree; readonly signal: AbortSignal },
): Promise<{ readonly asked: readonly (readonly [number, number])[]; readonly notes: readonly string[] }> {
  await using wrong = await serveFiles({ 'p.tar.gz': WRONG.bytes });
  await using good = await serveFiles({ 'p.tar.gz': RIGHT.bytes });
  const told = listening(signal);
  const usual = { doing: 'fetch p-1', force: true, connections: 1, pace: undefined, elsewhere: 'name a mirror' };
  const given = { ...usual, ...known, sha256: digestOf(RIGHT.bytes) };
  const { fetched } = await transfer(placesAt(http, wrong, good), box.at('got'), { ...given, ...told });
  assert.ok((await readFile(box.at('got'))).equals(RIGHT.bytes));
  assert.equal(await readdir(box.path), ['got']);
  assert.ok(fetched > 0);
  return { asked: askedRanges(wrong), notes: told.notes };
}

test('another file at the first place is found out by its sha256 at the end, and the next place brings the rest', async ({
  signal,
}) => {
  assert.is(RIGHT.bytes.byteLength, WRONG.bytes.byteLength);
  await using box = await tree();
  await using http = await quickHttp();
  const { notes } = await fromMirrors({}, { http, box, signal });
  assert.match(notes.join('\n'), /has a different sha256 than requested; trying the next place/);
  assert.match(notes.join('\n'), /has a different file than .*data that both versions have in common is kept/);
});

test('with the digest of its table of contents, another file costs one small request', async ({ signal }) => {
  await using box = await tree();
  await using http = await quickHttp();
  const { asked, notes } = await fromMirrors({ contents: RIGHT.plan.index.tocDigest }, { http, box, signal });
  assert.is(asked.length, 1);
  assert.match(notes.join('\n'), /has the contents sha256:.*, not sha256:/);
});

test('a complete file of this sha256 needs no place', async ({ signal }) => {
  await using box = await tree({ got: BODY });
  await using http = await quickHttp();
  await using server = await serveFolder(box.path);
  await fetchFile(placesAt(http, server), box.at('got'), listening(signal));
  assert.is(server.log.length, 0);
});

test.run();
