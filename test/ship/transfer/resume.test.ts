import { assert as check, asyncProperty, integer, record } from 'fast-check';
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { link, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CurlewError } from '../../../src/core/errors.ts';
import { pathsBeside } from '../../../src/ship/transfer/partial-file.ts';
import * as assert from '../../support/assert.ts';
import { answers, ignoresRange } from '../../support/faults.ts';
import { noise } from '../../support/packages.ts';
import { largePackage, pullTo } from '../../support/pulls.ts';
import { suite } from '../../support/suite.ts';
import { cases } from '../../support/sweep.ts';
import { tree } from '../../support/tree.ts';
import { bytesOf, serveFiles, type Fault, type WebServer } from '../../support/web-server.ts';

// soak: random cases
// not fast: starts the command again and again
const test = suite('pull: going on', { timeoutMs: 240_000 });
const WEB = largePackage();
const NAME = 'web.tar.gz';
const MIB = 1 << 20;

interface Cut {
  /** What a process would leave that is killed after so many bytes have been written. */
  readonly file: string;
  readonly written: number;
}

/** Pulls until `at` bytes have come, and copies what lies on the disk at this moment. */
async function cutAt(folder: string, server: WebServer, at: number, connections: number): Promise<Cut> {
  const file = join(folder, 'first', NAME);
  const copy = join(folder, 'killed', NAME);
  mkdirSync(join(folder, 'first'));
  mkdirSync(join(folder, 'killed'));
  const stop = new AbortController();
  let written = 0;
  const pace = (bytes: number): number => {
    if (stop.signal.aborted) return 0;
    written += bytes;
    if (written < at) return 0;
    const [from, to] = [pathsBeside(file), pathsBeside(copy)];
    copyFileSync(from.partial, to.partial);
    if (existsSync(from.note)) copyFileSync(from.note, to.note);
    stop.abort(new CurlewError('CANCELLED', 'killed'));
    return 0;
  };
  const pulling = pullTo(file, [`${server.url}/${NAME}`], { connections, pace, signal: stop.signal });
  await pulling.catch((error: unknown) => {
    if (!stop.signal.aborted) throw error;
  });
  return { file: copy, written };
}

test('killed anywhere, it asks for no more than 4 MiB a connection again', async ({ signal }) => {
  await using server = await serveFiles({ [NAME]: WEB.bytes });
  const size = WEB.plan.index.tocOffset;
  const point = record({ at: integer({ min: 1, max: size - MIB }), connections: integer({ min: 1, max: 4 }) });
  await check(
    asyncProperty(point, async ({ at, connections }) => {
      await using box = await tree();
      const { file, written } = await cutAt(box.path, server, at, connections);
      const { fetched } = await pullTo(file, [`${server.url}/${NAME}`], { connections, signal });
      assert.ok((await readFile(file)).equals(WEB.bytes));
      const again = fetched - (size - written);
      assert.ok(again <= connections * 4 * MIB, `${again} bytes came again`);
      assert.equal(await readdir(join(file, '..')), [NAME]);
    }),
    cases(12),
  );
});

test('after a power cut what was not on disk yet is fetched again, and nothing else', async ({ signal }) => {
  await using server = await serveFiles({ [NAME]: WEB.bytes });
  await using box = await tree();
  const { file } = await cutAt(box.path, server, 8 * MIB, 2);
  const { note, partial } = pathsBeside(file);
  const [last = ''] = readFileSync(note, 'utf8').trim().split('\n').slice(-1);
  const { have } = JSON.parse(last) as { have: [number, number][] };
  const noted = have.reduce((sum, [offset, end]) => sum + end - offset, 0);
  assert.ok(noted > 2 * MIB, String(noted));
  const bytes = await readFile(partial);
  const lost = Buffer.alloc(bytes.byteLength);
  for (const [offset, end] of have) lost.set(bytes.subarray(offset, end), offset);
  await writeFile(partial, lost);
  const { fetched } = await pullTo(file, [`${server.url}/${NAME}`], { signal });
  assert.is(fetched, WEB.bytes.byteLength - noted);
  assert.ok((await readFile(file)).equals(WEB.bytes));
});

test('what was damaged on this disk meanwhile is found, and fetched again alone', async ({ signal }) => {
  await using server = await serveFiles({ [NAME]: WEB.bytes });
  await using box = await tree();
  const { file } = await cutAt(box.path, server, 9 * MIB, 1);
  const [blob] = WEB.plan.index.entries.filter(({ path }) => path.endsWith('blob1'));
  assert.ok(blob !== undefined);
  const handle = await open(pathsBeside(file).partial, 'r+');
  await handle.write(Buffer.from('damage'), 0, 6, blob.offset + 1_000_000);
  await handle.close();
  const { fetched } = await pullTo(file, [`${server.url}/${NAME}`], { signal });
  assert.ok(fetched >= blob.packed && fetched < blob.packed + 5 * MIB, String(fetched));
  assert.ok((await readFile(file)).equals(WEB.bytes));
});

test('without its note, or with one that is none, every byte that is there must prove itself', async ({ signal }) => {
  await using server = await serveFiles({ [NAME]: WEB.bytes });
  const bad = [
    '',
    '{',
    '[]',
    '{"format":1}',
    '{"format":2}',
    `{"format":1,"size":9,"from":"x","etag":"y","have":[[0,99]]}`,
  ];
  for (const text of [undefined, ...bad]) {
    await using box = await tree();
    const { file } = await cutAt(box.path, server, 8 * MIB, 1);
    const { note } = pathsBeside(file);
    if (text === undefined) await rm(note);
    else await writeFile(note, text);
    const { fetched } = await pullTo(file, [`${server.url}/${NAME}`], { signal });
    assert.ok(fetched < 6 * MIB, `${text}: ${fetched}`);
    assert.ok((await readFile(file)).equals(WEB.bytes));
  }
});

test('a note that promises what is not there is not believed', async ({ signal }) => {
  await using server = await serveFiles({ [NAME]: WEB.bytes });
  const { tocDigest: contents, size } = WEB.plan.index;
  await using box = await tree();
  const { note, partial } = pathsBeside(box.at(NAME));
  await writeFile(partial, Buffer.alloc(size - 1));
  await writeFile(note, JSON.stringify({ format: 1, size, contents, from: 'x', etag: 'y', have: [[0, size]] }));
  await pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal });
  assert.ok((await readFile(box.at(NAME))).equals(WEB.bytes));
});

test('the partial file and note of an older version are resumed, whatever a power cut did to the last line', async ({
  signal,
}) => {
  await using server = await serveFiles({ [NAME]: WEB.bytes });
  await using box = await tree();
  const { note, partial } = pathsBeside(box.at(NAME));
  const { size, tocDigest } = WEB.plan.index;
  const line = (end: number): string =>
    `{"format":1,"size":${size},"contents":"${tocDigest}","from":"http://old.example/${NAME}","etag":"\\"old\\"","have":[[0,${end}]]}\n`;
  await writeFile(partial, Buffer.concat([WEB.bytes.subarray(0, 6_000_000), Buffer.alloc(size - 6_000_000)]));
  await writeFile(note, `${line(3_000_000)}${line(6_000_000)}${line(9_000_000).slice(0, 80)}`);
  const { fetched } = await pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal });
  assert.ok((await readFile(box.at(NAME))).equals(WEB.bytes));
  assert.is(fetched, WEB.plan.index.tocOffset - 6_000_000);
  assert.equal(await readdir(box.path), [NAME]);
});

test('what another program has begun is gone on with, under its name or beside it', async ({ signal }) => {
  await using server = await serveFiles({ [NAME]: WEB.bytes });
  for (const name of [NAME, `${NAME}.partial`]) {
    await using box = await tree({ [name]: WEB.bytes.subarray(0, 6_000_000) });
    const { fetched } = await pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal });
    assert.ok((await readFile(box.at(NAME))).equals(WEB.bytes));
    assert.ok(fetched < WEB.bytes.byteLength - 2_500_000, String(fetched));
    assert.equal(await readdir(box.path), [NAME]);
  }
});

test('killed between the last byte and the name, it fetches nothing', async ({ signal }) => {
  await using server = await serveFiles({ [NAME]: WEB.bytes });
  await using box = await tree();
  await pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal });
  await rename(box.at(NAME), pathsBeside(box.at(NAME)).partial);
  const { fetched } = await pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal });
  assert.is(fetched, 0);
  assert.equal(await readdir(box.path), [NAME]);
});

test('killed between the name and the end, it removes what is left, and the file can be replaced', async ({
  signal,
}) => {
  const next = largePackage('1.0.1', { blob4: noise(300_000, 98) });
  await using server = await serveFiles({ [NAME]: WEB.bytes, 'next.tar.gz': next.bytes });
  for (const [name, bytes, force] of [
    [NAME, WEB.bytes, false],
    ['next.tar.gz', next.bytes, true],
  ] as const) {
    await using box = await tree({ [NAME]: WEB.bytes });
    const { partial, note } = pathsBeside(box.at(NAME));
    await link(box.at(NAME), partial);
    await writeFile(note, '{"format":1}\n');
    await pullTo(box.at(NAME), [`${server.url}/${name}`], { force, signal });
    assert.ok((await readFile(box.at(NAME))).equals(bytes));
    assert.equal(await readdir(box.path), [NAME]);
  }
});

test('a server that goes away leaves what came; the same command goes on, at another address too', async ({
  signal,
}) => {
  await using box = await tree();
  let sent = 0;
  const dies: Fault = ({ method }, regular) => {
    sent += method === 'GET' ? bytesOf(regular.body).byteLength : 0;
    return sent > 7_000_000 ? { ...regular, sending: { resetAt: 0 } } : undefined;
  };
  await using first = await serveFiles({ [NAME]: WEB.bytes }, { faults: [dies] });
  await assert.rejectsWith(pullTo(box.at(NAME), [`${first.url}/${NAME}`], { signal }), 'FETCH_FAILED');
  await using second = await serveFiles({ [NAME]: WEB.bytes });
  const { fetched } = await pullTo(box.at(NAME), [`${second.url}/${NAME}`], { signal });
  assert.ok(fetched < WEB.bytes.byteLength - 2_000_000, String(fetched));
  assert.ok((await readFile(box.at(NAME))).equals(WEB.bytes));
});

test('so it does when the server has forgotten to give parts meanwhile', async ({ signal }) => {
  await using parts = await serveFiles({ [NAME]: WEB.bytes });
  await using stream = await serveFiles({ [NAME]: WEB.bytes }, { faults: [ignoresRange(WEB.bytes)] });
  for (const [before, after] of [
    [parts, stream],
    [stream, parts],
    [stream, stream],
  ] as const) {
    await using box = await tree();
    const { file, written } = await cutAt(box.path, before, 6 * MIB, 1);
    const { fetched } = await pullTo(file, [`${after.url}/${NAME}`], { signal });
    assert.ok((await readFile(file)).equals(WEB.bytes));
    assert.ok(fetched <= WEB.bytes.byteLength - written + 4 * MIB, String(fetched));
  }
});

test('a file that was replaced between two runs starts over; what both have in common is kept', async ({ signal }) => {
  const next = largePackage('1.0.1', { blob4: noise(300_000, 98) });
  await using server = await serveFiles({ [NAME]: WEB.bytes });
  await using other = await serveFiles({ [NAME]: next.bytes });
  await using box = await tree();
  const { file } = await cutAt(box.path, server, 9 * MIB, 1);
  const { fetched, notes } = await pullTo(file, [`${other.url}/${NAME}`], { signal });
  assert.ok((await readFile(file)).equals(next.bytes));
  assert.ok(fetched < 3_500_000, String(fetched));
  assert.match(
    notes.join('\n'),
    /had a different file when .*\.partial was started: starting over with data that both versions/,
  );
  assert.equal(await readdir(join(file, '..')), [NAME]);
});

test('mirrors with a file of another length or other contents are told, and left out', async ({ signal }) => {
  const longer = largePackage('1.0.1');
  const same = largePackage('1.0.0', { blob1: noise(2_500_001, 55) });
  assert.is(same.bytes.byteLength, WEB.bytes.byteLength);
  await using dying = await serveFiles(
    { [NAME]: WEB.bytes },
    {
      faults: [
        (asked, regular) =>
          asked.method === 'HEAD' || bytesOf(regular.body).byteLength < 100_000
            ? undefined
            : answers({ status: 500 })(asked, regular),
      ],
    },
  );
  await using wrongLength = await serveFiles({ [NAME]: Buffer.concat([longer.bytes, Buffer.alloc(9)]) });
  await using otherLength = await serveFiles({ [NAME]: largePackage('1.0.0', { blob1: noise(9, 9) }).bytes });
  await using wrongContents = await serveFiles({ [NAME]: same.bytes });
  await using good = await serveFiles({ [NAME]: WEB.bytes });
  await using box = await tree();
  const servers = [dying, wrongLength, otherLength, wrongContents, good];
  const addresses = servers.map(({ url }) => `${url}/${NAME}`);
  const { notes, from } = await pullTo(box.at(NAME), addresses, { signal });
  assert.equal(from, [`${good.url}/${NAME}`]);
  assert.match(notes[0] ?? '', 'returned 500');
  assert.match(notes[1] ?? '', 'not a package or bundle of curlew, or its end is missing');
  assert.match(notes[2] ?? '', /it has \d+ bytes, not/);
  assert.match(notes[3] ?? '', 'its contents are sha256:');
  assert.is(notes.length, 4);
  assert.ok((await readFile(box.at(NAME))).equals(WEB.bytes));
});

test('when no place has it, all that they say is told', async ({ signal }) => {
  await using empty = await serveFiles({});
  await using refusing = await serveFiles({}, { faults: [answers({ status: 401 })] });
  await using box = await tree();
  const addresses = [empty, refusing].map(({ url }) => `${url}/${NAME}`);
  const error = await assert.rejectsWith(pullTo(box.at(NAME), addresses, { signal }), 'AUTH_FAILED', /there is no web/);
  assert.match(error.message, 'returned 401');
  assert.equal(await readdir(box.path), []);
});

test.run();
