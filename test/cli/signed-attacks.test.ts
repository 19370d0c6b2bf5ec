/** Archives that were altered after their contents were signed: what is proven before anything of them is used. */
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PlacedEntry, RangeSource } from '../../src/formats/archive/entry.ts';
import { headerMember } from '../../src/formats/archive/place.ts';
import { memorySource, readIndex, readTocText } from '../../src/formats/archive/read.ts';
import { formatFooter, formatToc } from '../../src/formats/archive/toc.ts';
import { verifyArchive } from '../../src/formats/archive/verify.ts';
import { checkedIndex } from '../../src/steps/sources/install-source.ts';
import type { Trust } from '../../src/steps/open/trust.ts';
import { archivePackages } from '../../src/runtime/node/source.ts';
import { makeKeyPair, publicPart, readPrivateKey } from '../../src/formats/signing/keys.ts';
import { signText, verifyText } from '../../src/formats/signing/signature.ts';
import * as assert from '../support/assert.ts';
import { bundleOf } from '../support/node-bundles.ts';
import { noise } from '../support/packages.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('cli: archives altered after they were signed');

const RIGHT = 'aaa() { echo right; }\n';
const SCRIPT = 'addons/aaa/1.0.0/install.sh';
const key = readPrivateKey(makeKeyPair(undefined).privateKey, 'our.key', undefined);
const keys = [publicPart(key, 'our.pub')];

function bundle(script: string): Buffer {
  const files = { 'install.sh': script, 'assets/blob': noise(100_000) };
  return bundleOf([{ name: 'aaa', version: '1.0.0', files }]);
}

/** Trusts the one signature that was made of these contents. */
async function trustIn(bytes: Uint8Array, signal: AbortSignal): Promise<Trust> {
  const signature = signText(await readTocText(memorySource('b', bytes), { signal }), key);
  const check: Trust['check'] = async (name, text) => {
    const { name: by } = verifyText({ name, text, signature, from: 's' }, keys);
    return { by, statement: undefined, remember: async () => undefined };
  };
  return { keys, check };
}

/** What a run does: the signature, then what the index says, then the files of the package. */
async function install(source: RangeSource, trust: Trust, into: string, signal: AbortSignal): Promise<void> {
  const index = await checkedIndex(source, source.name, { trust, signal });
  const [found] = await archivePackages(source, index, { signal });
  await found?.extract(into, { signal });
}

async function entryOf(bytes: Uint8Array, path: string, signal: AbortSignal): Promise<PlacedEntry> {
  const { entries } = await readIndex(memorySource('b', bytes), { signal });
  const found = entries.find((entry) => entry.path === path);
  if (found === undefined) throw new Error(path);
  return found;
}

/** Nothing lies under the name of the script but, at most, the right one. */
async function isRightOrAbsent(box: Tree): Promise<void> {
  assert.match(await readFile(box.at('into/install.sh'), 'utf8').catch(() => RIGHT), RIGHT);
}

test('a tar header with another name is not looked at by a run, and told by verify', async ({ signal }) => {
  await using box = await tree();
  const bytes = bundle(RIGHT);
  const trust = await trustIn(bytes, signal);
  const entry = await entryOf(bytes, SCRIPT, signal);
  const header = headerMember(entry);
  const other = headerMember({ ...entry, path: 'addons/aaa/1.0.0/intrude.sh' });
  assert.is(other.byteLength, header.byteLength);
  Buffer.from(other).copy(bytes, entry.offset - header.byteLength);
  const source = memorySource('b', bytes);
  await install(source, trust, box.at('into'), signal);
  assert.is(await readFile(box.at('into/install.sh'), 'utf8'), RIGHT);
  assert.is(await stat(box.at('into/intrude.sh')).catch(() => 'absent'), 'absent');
  await assert.rejectsWith(verifyArchive(source, { signal }), 'PACKAGE_INVALID', /tar header differs/);
});

test('a payload of another archive in the place of the signed one is refused', async ({ signal }) => {
  await using box = await tree();
  const bytes = bundle(RIGHT);
  const trust = await trustIn(bytes, signal);
  const wrong = bundle(RIGHT.replace('right', 'wrong'));
  const [mine, theirs] = [await entryOf(bytes, SCRIPT, signal), await entryOf(wrong, SCRIPT, signal)];
  assert.is(theirs.packed, mine.packed);
  wrong.copy(bytes, mine.offset, theirs.offset, theirs.offset + theirs.packed);
  const source = memorySource('b', bytes);
  await assert.rejectsWith(install(source, trust, box.at('into'), signal), 'DIGEST_MISMATCH');
  await assert.rejectsWith(verifyArchive(source, { signal }), 'DIGEST_MISMATCH');
});

test('another archive under the signed name is refused before anything is written', async ({ signal }) => {
  await using box = await tree();
  const trust = await trustIn(bundle(RIGHT), signal);
  const source = memorySource('b', bundle(RIGHT.replace('right', 'wrong')));
  await assert.rejectsWith(
    install(source, trust, box.at('into'), signal),
    'SIGNATURE_INVALID',
    /belongs to another file/,
  );
  assert.is(await stat(box.at('into')).catch(() => 'absent'), 'absent');
});

/** Another bundle, of so many bytes. */
function ofSameLength({ byteLength }: Buffer): Buffer {
  for (let n = 10_000; n < 10_400; n += 1) {
    const other = bundle(RIGHT.replace('right', String(n)));
    if (other.byteLength === byteLength) return other;
  }
  throw new Error('none has the same length');
}

/** Answers from one archive until so many reads have begun, and from another one of its length after that. */
function switching(first: Buffer, second: Buffer, after: number): RangeSource {
  let reads = 0;
  const [before, behind] = [memorySource('b', first), memorySource('b', second)];
  return { ...before, read: (...args) => ((reads += 1) > after ? behind : before).read(...args) };
}

test('an archive that is exchanged at any moment gives the signed files or none', async ({ signal }) => {
  const right = bundle(RIGHT);
  const wrong = ofSameLength(right);
  const trust = await trustIn(right, signal);
  let installed = 0;
  for (let after = 0; after < 12; after += 1) {
    await using box = await tree();
    try {
      await install(switching(right, wrong, after), trust, box.at('into'), signal);
      installed += 1;
      assert.is(await readFile(box.at('into/install.sh'), 'utf8'), RIGHT, `after read ${after}`);
    } catch (error) {
      if (error instanceof Error && error.name === 'Assertion') throw error;
      assert.match(String(error), /belongs to another file|changed while it was being read|digest|checksum|not those/);
      assert.ok(installed === 0, 'a run that went through later did not go through');
    }
  }
  assert.ok(installed > 0);
});

test('bytes between the members, which no entry names, keep a file from being signed or verified', async ({
  signal,
}) => {
  await using box = await tree();
  const bytes = bundle(RIGHT);
  const { entries, tocOffset } = await readIndex(memorySource('b', bytes), { signal });
  const entry = await entryOf(bytes, SCRIPT, signal);
  // A whole file of its own, which tar would unpack over the first one.
  const at = entry.offset - headerMember(entry).byteLength;
  const hidden = bytes.subarray(at, entry.offset + entry.packed);
  const moved = entries.map((one) => (one.offset > at ? { ...one, offset: one.offset + hidden.byteLength } : one));
  const toc = formatToc(moved);
  const end = tocOffset + hidden.byteLength;
  const parts = [bytes.subarray(0, at), hidden, bytes.subarray(at, tocOffset), toc.member, formatFooter(end)];
  const crafted = Buffer.concat(parts);
  const source = memorySource('b', crafted);
  await assert.rejectsWith(verifyArchive(source, { signal }), 'PACKAGE_INVALID');
  // Signed all the same, by somebody who did not look: only what the contents name is unpacked.
  await install(source, await trustIn(crafted, signal), box.at('into'), signal);
  await isRightOrAbsent(box);
});

test('bytes behind the contents or behind the end are refused by every reader', async ({ signal }) => {
  await using box = await tree();
  const bytes = bundle(RIGHT);
  const trust = await trustIn(bytes, signal);
  const { tocOffset } = await readIndex(memorySource('b', bytes), { signal });
  const footer = formatFooter(tocOffset);
  const body = bytes.subarray(0, bytes.byteLength - footer.byteLength);
  for (const parts of [
    [bytes, Buffer.alloc(512)],
    [body, bytes.subarray(0, 64), footer],
  ]) {
    const path = join(box.path, 'b.tar.gz');
    await writeFile(path, Buffer.concat(parts));
    const source = memorySource('b', await readFile(path));
    await assert.rejectsWith(install(source, trust, box.at('into'), signal), 'PACKAGE_INVALID');
  }
});

test.run();
