import { readdir, readFile, truncate, writeFile } from 'node:fs/promises';
import * as assert from '../../support/assert.ts';
import { ignoresRange } from '../../support/faults.ts';
import { largePackage, pullTo } from '../../support/pulls.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';
import { serveFiles, type Fault } from '../../support/web-server.ts';

const test = suite('pull/hostile', { timeoutMs: 60_000 });
const WEB = largePackage();
const NAME = 'web.tar.gz';

/** A place within the payload of this blob. */
function inBlob(name: string): number {
  const entry = WEB.plan.index.entries.find(({ path }) => path.endsWith(name));
  assert.ok(entry !== undefined);
  return entry.offset + 1_000_000;
}

/** The whole file at each request, with bits flipped: `damage[n]` says where in answer n. */
function streams(damage: readonly (readonly number[])[]): Fault {
  let count = 0;
  return ({ method }, regular) => {
    if (method !== 'GET') return undefined;
    const body = Buffer.from(WEB.bytes);
    for (const at of damage[count] ?? []) body[at] = (body[at] ?? 0) ^ 1;
    count += 1;
    const { 'content-range': _range, ...headers } = regular.headers ?? {};
    return { status: 200, headers, body };
  };
}

test('what is proved is not written over by a stream that brings what lacks around it', async ({ signal }) => {
  await using box = await tree();
  // The first answer only tells that parts are not to be had.
  const damage = [[], [inBlob('blob1'), inBlob('blob3')], [inBlob('blob2')]];
  await using server = await serveFiles({ [NAME]: WEB.bytes }, { faults: [streams(damage)] });
  await pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal });
  assert.ok((await readFile(box.at(NAME))).equals(WEB.bytes));
});

test('a server that says there is no more where it stopped does not leave holes', async ({ signal }) => {
  await using box = await tree();
  const ends: Fault = ({ method, headers }) => {
    const [, first] = /^bytes=(\d+)-/.exec(String(headers['range'] ?? '')) ?? [];
    if (method !== 'GET' || Number(first) === 0 || Number(first) > WEB.plan.index.tocOffset - 100_000) return undefined;
    return { status: 416, headers: { 'content-range': `bytes */${first}` } };
  };
  await using server = await serveFiles({ [NAME]: WEB.bytes }, { faults: [ends] });
  const pulling = pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal });
  await assert.rejectsWith(pulling, 'STORE_CONFLICT', /has changed/);
  assert.not.ok((await readdir(box.path)).includes(NAME));
});

test('a file of holes without a note does not stop a stream from bringing all of it', async ({ signal }) => {
  await using box = await tree();
  await writeFile(box.at(`${NAME}.partial`), '');
  await truncate(box.at(`${NAME}.partial`), WEB.bytes.byteLength);
  await using server = await serveFiles({ [NAME]: WEB.bytes }, { faults: [ignoresRange(WEB.bytes)] });
  await pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal });
  assert.ok((await readFile(box.at(NAME))).equals(WEB.bytes));
});

test.run();
