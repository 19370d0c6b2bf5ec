import { readdir, readFile, stat } from 'node:fs/promises';
import { formatEnd } from '../../../src/formats/archive/place.ts';
import { digestOf } from '../../../src/core/digest.ts';
import { CurlewError } from '../../../src/core/errors.ts';
import { claim } from '../../../src/platform/files/claim.ts';
import * as assert from '../../support/assert.ts';
import { answers, endsShort, ignoresRange, resetsAtHalf } from '../../support/faults.ts';
import { archiveOf, noise } from '../../support/packages.ts';
import { askedRanges, largePackage, pullTo } from '../../support/pulls.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';
import { bytesOf, serveFiles, startServer, type Fault } from '../../support/web-server.ts';

const test = suite('pull', { timeoutMs: 120_000 });
const WEB = largePackage();
const NAME = 'web.tar.gz';

/** Flips a bit wherever the byte at `at` of the whole file is sent, so many times. */
function flips(at: number, times: number): Fault {
  let left = times;
  return ({ method, headers }, regular) => {
    const [, first] = /^bytes=(\d+)-/.exec(String(headers['range'] ?? 'bytes=0-')) ?? [];
    const from = regular.status === 206 ? Number(first) : 0;
    const body = bytesOf(regular.body);
    if (method !== 'GET' || left <= 0 || at < from || at >= from + body.byteLength) return undefined;
    left -= 1;
    const other = Buffer.from(body);
    other[at - from] = (other[at - from] ?? 0) ^ 1;
    return { ...regular, body: other };
  };
}

test('a package comes over several connections, its end first, and nothing is left beside it', async ({ signal }) => {
  await using box = await tree();
  await using server = await serveFiles({ [NAME]: WEB.bytes });
  const { fetched, from, contents, size } = await pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal });
  assert.ok((await readFile(box.at(NAME))).equals(WEB.bytes));
  assert.is((await stat(box.at(NAME))).mode & 0o777, 0o644);
  assert.equal(await readdir(box.path), [NAME]);
  const [[first, last] = []] = askedRanges(server);
  assert.is(last, WEB.bytes.byteLength - 1);
  assert.ok((first ?? 0) > WEB.bytes.byteLength - 70_000);
  assert.ok(askedRanges(server).length > 3);
  assert.is(fetched, WEB.plan.index.tocOffset);
  assert.is(size, WEB.bytes.byteLength);
  assert.is(contents, WEB.plan.index.tocDigest);
  assert.equal(from, [`${server.url}/${NAME}`]);
  // The same again: it is looked at, and nothing is fetched.
  const again = await pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal });
  assert.is(again.fetched, 0);
});

test('a server that ignores Range is read in one stream', async ({ signal }) => {
  await using box = await tree();
  await using server = await serveFiles({ [NAME]: WEB.bytes }, { faults: [ignoresRange(WEB.bytes)] });
  const { fetched } = await pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal });
  assert.ok((await readFile(box.at(NAME))).equals(WEB.bytes));
  assert.is(fetched, WEB.bytes.byteLength);
  assert.equal(await readdir(box.path), [NAME]);
});

test('a server that does so and breaks off is read past what is there', async ({ signal }) => {
  await using box = await tree();
  const faults = [resetsAtHalf({ times: 2 }), endsShort({ times: 2 })];
  await using server = await serveFiles(
    { [NAME]: WEB.bytes },
    {
      faults: [
        ...faults.map(
          (fault): Fault =>
            (asked, regular) =>
              asked.method === 'HEAD' ? undefined : fault(asked, { ...regular, status: 200, body: WEB.bytes }),
        ),
        ignoresRange(WEB.bytes),
      ],
    },
  );
  await pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal });
  assert.ok((await readFile(box.at(NAME))).equals(WEB.bytes));
});

test('a server that resets, ends early, and is busy for a while brings the file all the same', async ({ signal }) => {
  await using box = await tree();
  const busy = answers({ status: 429, headers: { 'retry-after': '0' }, body: 'later' }, { times: 2 });
  const down = answers({ status: 503, body: 'down' }, { times: 2 });
  const faults = [busy, resetsAtHalf({ times: 3 }), down, endsShort({ times: 3 })];
  await using server = await serveFiles({ [NAME]: WEB.bytes }, { faults });
  const retry = { attempts: 12, baseMs: 1, capMs: 5 };
  await pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal, http: { retry } });
  assert.ok((await readFile(box.at(NAME))).equals(WEB.bytes));
});

test('a server that stands still is given up and asked again', async ({ signal }) => {
  await using box = await tree();
  let left = 2;
  const halts: Fault = (_, regular) => {
    if (regular.status !== 206 || bytesOf(regular.body).byteLength < 1_000_000 || left <= 0) return undefined;
    left -= 1;
    return { ...regular, sending: { haltAt: 300_000 } };
  };
  await using server = await serveFiles({ [NAME]: WEB.bytes }, { faults: [halts] });
  const timeouts = { connectMs: 5000, headersMs: 5000, idleMs: 300 };
  await pullTo(box.at(NAME), [`${server.url}/${NAME}`], {
    signal,
    http: { timeouts, retry: { attempts: 12, baseMs: 1, capMs: 5 } },
  });
  assert.ok((await readFile(box.at(NAME))).equals(WEB.bytes));
});

test('an entry that arrives damaged is asked for again, alone', async ({ signal }) => {
  const [blob] = WEB.plan.index.entries.filter(({ path }) => path.endsWith('blob2'));
  assert.ok(blob !== undefined);
  await using box = await tree();
  await using server = await serveFiles({ [NAME]: WEB.bytes }, { faults: [flips(blob.offset + 1_000_000, 1)] });
  const { fetched, notes } = await pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal });
  assert.ok((await readFile(box.at(NAME))).equals(WEB.bytes));
  const again = fetched - WEB.plan.index.tocOffset;
  assert.ok(again >= blob.packed && again < blob.packed + 3000, String(again));
  assert.equal(notes, []);
});

test('headers, padding and the table of contents are no better than payloads', async ({ signal }) => {
  const blob = WEB.plan.index.entries.at(-1);
  assert.ok(blob !== undefined);
  const { tocOffset, size } = WEB.plan.index;
  for (const at of [100, blob.offset - 20, blob.offset + blob.packed + 5, tocOffset + 300, size - 20]) {
    await using box = await tree();
    await using server = await serveFiles({ [NAME]: WEB.bytes }, { faults: [flips(at, 1)] });
    await pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal });
    assert.ok((await readFile(box.at(NAME))).equals(WEB.bytes), String(at));
  }
});

test('damage that stays is told by the name of the entry, and a mirror brings what is missing', async ({ signal }) => {
  const blob = WEB.plan.index.entries.find(({ path }) => path.endsWith('blob2'));
  assert.ok(blob !== undefined);
  await using box = await tree();
  const faults = [flips(blob.offset + 1_000_000, Infinity)];
  await using bad = await serveFiles({ [NAME]: WEB.bytes }, { faults });
  await assert.rejectsWith(
    pullTo(box.at(NAME), [`${bad.url}/${NAME}`], { signal }),
    'DIGEST_MISMATCH',
    /images\/blob2: arrives damaged/,
  );
  assert.ok(!(await readdir(box.path)).includes(NAME));
  await using good = await serveFiles({ [NAME]: WEB.bytes });
  const { notes, from } = await pullTo(box.at(NAME), [`${bad.url}/${NAME}`, `${good.url}/${NAME}`], { signal });
  assert.match(notes[0] ?? '', 'arrives damaged');
  assert.equal(from, [`${bad.url}/${NAME}`, `${good.url}/${NAME}`]);
  assert.ok((await readFile(box.at(NAME))).equals(WEB.bytes));
});

test('a file that is no archive is refused without its sha256, and taken with it', async ({ signal }) => {
  const data = noise(5_000_000, 9);
  await using box = await tree();
  await using server = await serveFiles({ 'disk.img': data });
  const address = [`${server.url}/disk.img`];
  await assert.rejectsWith(
    pullTo(box.at('disk.img'), address, { signal }),
    'PACKAGE_INVALID',
    /not a package or bundle of curlew, or its end is missing/,
  );
  assert.equal(await readdir(box.path), []);
  const wrong = digestOf('something else');
  await assert.rejectsWith(pullTo(box.at('disk.img'), address, { signal, sha256: wrong }), 'DIGEST_MISMATCH');
  const { contents } = await pullTo(box.at('disk.img'), address, { signal, sha256: digestOf(data) });
  assert.is(contents, undefined);
  assert.ok((await readFile(box.at('disk.img'))).equals(data));
  assert.is((await pullTo(box.at('disk.img'), address, { signal, sha256: digestOf(data) })).fetched, 0);
});

test('so is one from a server that ignores Range', async ({ signal }) => {
  const data = noise(3_000_000, 9);
  await using box = await tree();
  await using server = await serveFiles({ 'disk.img': data }, { faults: [ignoresRange(data)] });
  const address = [`${server.url}/disk.img`];
  await assert.rejectsWith(pullTo(box.at('disk.img'), address, { signal }), 'PACKAGE_INVALID');
  await pullTo(box.at('disk.img'), address, { signal, sha256: digestOf(data) });
  assert.ok((await readFile(box.at('disk.img'))).equals(data));
});

test('a sha256 is held against an archive, too', async ({ signal }) => {
  await using box = await tree();
  await using server = await serveFiles({ [NAME]: WEB.bytes });
  const pulling = pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal, sha256: digestOf('another') });
  await assert.rejectsWith(pulling, 'DIGEST_MISMATCH', /a different sha256/);
  const { fetched } = await pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal, sha256: digestOf(WEB.bytes) });
  assert.is(fetched, 0);
  assert.ok((await readFile(box.at(NAME))).equals(WEB.bytes));
});

test('a second one to the same file is refused while the first is at work', async ({ signal }) => {
  await using box = await tree();
  await using server = await serveFiles({ [NAME]: WEB.bytes });
  await using _held = await claim(box.at(NAME));
  await assert.rejectsWith(pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal }), 'BUSY');
});

test('more than the disk has room for is refused before anything is fetched, with the name of the folder', async ({
  signal,
}) => {
  await using box = await tree();
  const total = 2 ** 49;
  await using server = await startServer(({ method, headers }) => {
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(String(headers['range'] ?? '')) ?? [];
    if (method === 'HEAD') return { status: 200, headers: { 'content-length': String(total) } };
    const body = Buffer.alloc(Number(last) - Number(first) + 1);
    return { status: 206, headers: { 'content-range': `bytes ${first}-${last}/${total}` }, body };
  });
  const pulling = pullTo(box.at('disk.img'), [`${server.url}/${NAME}`], { signal, sha256: digestOf('x') });
  const error = await assert.rejectsWith(pulling, 'NO_SPACE', new RegExp(`into ${box.path}: `));
  assert.match(error.hint ?? '', 'run the same command again');
  assert.equal(await readdir(box.path), []);
});

test('an archive whose members do not tile the file is refused before its payloads are fetched', async ({ signal }) => {
  const { plan, bytes } = archiveOf([
    { path: 'a', data: noise(2_000_000, 3) },
    { path: 'b', data: noise(2_000_000, 4) },
  ]);
  const [a, b] = plan.index.entries;
  assert.ok(a !== undefined && b !== undefined);
  const end = formatEnd(plan.index.tocOffset + 1000, [a, { ...b, offset: b.offset + 1000 }]);
  const hostile = Buffer.concat([
    bytes.subarray(0, b.offset),
    Buffer.alloc(1000),
    bytes.subarray(b.offset, plan.index.tocOffset),
    ...end.members,
  ]);
  await using box = await tree();
  await using server = await serveFiles({ [NAME]: hostile });
  const pulling = pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal });
  await assert.rejectsWith(pulling, 'PACKAGE_INVALID', /b: some bytes belong to no entry/);
  assert.ok(askedRanges(server).every(([first, last]) => last - first < 70_000));
});

test('an address that was signed for GET alone is asked with GET', async ({ signal }) => {
  await using box = await tree();
  const refusesHead: Fault = ({ method, path }) =>
    method === 'HEAD' || !path.endsWith('?sig=abcd') ? { status: 403, body: 'signature' } : undefined;
  await using server = await serveFiles({ [NAME]: WEB.bytes }, { faults: [refusesHead] });
  await pullTo(box.at(NAME), [`${server.url}/${NAME}?sig=abcd`], { signal });
  assert.ok((await readFile(box.at(NAME))).equals(WEB.bytes));
});

test('the signature is looked at before anything large is fetched', async ({ signal }) => {
  await using box = await tree();
  await using server = await serveFiles({ [NAME]: WEB.bytes });
  const check = async (toc: Uint8Array): Promise<void> => {
    assert.is(digestOf(toc), WEB.plan.index.tocDigest);
    throw new CurlewError('SIGNATURE_INVALID', 'not signed by anybody');
  };
  const pulling = pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal, check });
  await assert.rejectsWith(pulling, 'SIGNATURE_INVALID');
  assert.is(askedRanges(server).length, 1);
  assert.equal(await readdir(box.path), []);
});

test.run();
