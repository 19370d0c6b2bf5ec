import { readdir, readFile, writeFile } from 'node:fs/promises';
import { digestOf } from '../../../src/core/digest.ts';
import { CurlewError } from '../../../src/core/errors.ts';
import * as assert from '../../support/assert.ts';
import { ignoresRange } from '../../support/faults.ts';
import { noise } from '../../support/packages.ts';
import { largePackage, pullTo } from '../../support/pulls.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';
import { serveFiles } from '../../support/web-server.ts';

const test = suite('pull: a file that is there', { timeoutMs: 120_000 });
const WEB = largePackage();
const NAME = 'web.tar.gz';

test('another file of that name stays, unless it may be replaced', async ({ signal }) => {
  await using box = await tree({ [NAME]: 'mine' });
  await using server = await serveFiles({ [NAME]: WEB.bytes });
  await assert.rejectsWith(
    pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal }),
    'FILE_EXISTS',
    /a different file of this name already exists/,
  );
  assert.is(await readFile(box.at(NAME), 'utf8'), 'mine');
  assert.equal(await readdir(box.path), [NAME]);
  await pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal, force: true });
  assert.ok((await readFile(box.at(NAME))).equals(WEB.bytes));
  assert.equal(await readdir(box.path), [NAME]);
});

test('where no parts are given, a whole file of the same length is taken for the one, and that is told', async ({
  signal,
}) => {
  await using box = await tree({ [NAME]: WEB.bytes });
  await using server = await serveFiles({ [NAME]: WEB.bytes }, { faults: [ignoresRange(WEB.bytes)] });
  const address = `${server.url}/${NAME}`;
  const { fetched, contents, notes } = await pullTo(box.at(NAME), [address], { signal });
  assert.equal([fetched, contents], [0, WEB.plan.index.tocDigest]);
  assert.match(
    notes.join('\n'),
    /does not support range requests.* has the same length and is complete; --force fetches it again$/,
  );
  const sure = await pullTo(box.at(NAME), [address], { signal, sha256: digestOf(WEB.bytes) });
  assert.equal([sure.fetched, sure.notes], [0, []]);
  assert.is((await pullTo(box.at(NAME), [address], { signal, force: true })).fetched, WEB.bytes.byteLength);

  const damaged = Buffer.from(WEB.bytes);
  damaged[3_000_000] = (damaged[3_000_000] ?? 0) ^ 1;
  await writeFile(box.at(NAME), damaged);
  await assert.rejectsWith(pullTo(box.at(NAME), [address], { signal }), 'FILE_EXISTS', /already exists: it is damaged/);
  await writeFile(box.at(NAME), 'mine');
  const size = WEB.bytes.byteLength;
  const other = new RegExp(`already exists: it has 4 bytes, not ${size}$`);
  await assert.rejectsWith(pullTo(box.at(NAME), [address], { signal }), 'FILE_EXISTS', other);
});

test('the signature of a file that is there is looked at, whatever the place gives', async ({ signal }) => {
  await using box = await tree({ [NAME]: WEB.bytes });
  await using server = await serveFiles({ [NAME]: WEB.bytes }, { faults: [ignoresRange(WEB.bytes)] });
  const check = async (toc: Uint8Array): Promise<void> => {
    assert.is(digestOf(toc), WEB.plan.index.tocDigest);
    throw new CurlewError('SIGNATURE_INVALID', 'nobody signed it');
  };
  for (const sha256 of [undefined, digestOf(WEB.bytes)]) {
    const pulling = pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal, sha256, check });
    await assert.rejectsWith(pulling, 'SIGNATURE_INVALID');
  }
});

test('a file that the signature at the place is of has been compared', async ({ signal }) => {
  await using box = await tree({ [NAME]: WEB.bytes });
  await using server = await serveFiles({ [NAME]: WEB.bytes }, { faults: [ignoresRange(WEB.bytes)] });
  const check = async (toc: Uint8Array): Promise<void> => assert.is(digestOf(toc), WEB.plan.index.tocDigest);
  const { fetched, notes } = await pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal, check });
  assert.equal([fetched, notes], [0, []]);
});

test('what --force replaces needs no signature where nothing could be compared', async ({ signal }) => {
  const older = largePackage('1.0.0', { blob4: noise(2_500_004, 9) });
  assert.is(older.bytes.byteLength, WEB.bytes.byteLength);
  await using box = await tree({ [NAME]: older.bytes });
  await using server = await serveFiles({ [NAME]: WEB.bytes }, { faults: [ignoresRange(WEB.bytes)] });
  const check = async (toc: Uint8Array): Promise<void> => {
    if (digestOf(toc) !== WEB.plan.index.tocDigest) throw new CurlewError('SIGNATURE_INVALID', 'nobody signed it');
  };
  const address = `${server.url}/${NAME}`;
  await assert.rejectsWith(pullTo(box.at(NAME), [address], { signal, check }), 'SIGNATURE_INVALID');
  await pullTo(box.at(NAME), [address], { signal, check, force: true });
  assert.ok((await readFile(box.at(NAME))).equals(WEB.bytes));
});

test('a whole archive is no beginning of another one, even if it begins in the same way', async ({ signal }) => {
  const older = largePackage('1.0.0', { blob4: noise(1000, 3) });
  await using box = await tree({ [NAME]: older.bytes });
  await using server = await serveFiles({ [NAME]: WEB.bytes });
  await assert.rejectsWith(pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal }), 'FILE_EXISTS');
  assert.ok((await readFile(box.at(NAME))).equals(older.bytes));
});

test('what an older file of that name has in common is not fetched', async ({ signal }) => {
  const next = largePackage('2.0.0', { blob3: noise(400_000, 77) });
  await using box = await tree({ [NAME]: WEB.bytes });
  await using server = await serveFiles({ [NAME]: next.bytes });
  const { fetched } = await pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal, force: true });
  assert.ok((await readFile(box.at(NAME))).equals(next.bytes));
  assert.ok(fetched < 420_000, String(fetched));
});

test.run();
