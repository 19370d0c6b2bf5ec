import { execa } from 'execa';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import * as fc from 'fast-check';
import type { PlacedEntry } from '../../../../src/formats/archive/entry.ts';
import { paddingSize } from '../../../../src/formats/archive/place.ts';
import { memorySource, readIndex } from '../../../../src/formats/archive/read.ts';
import { indexOfContents } from '../../../../src/formats/archive/recreate.ts';
import { endSize, tocJson } from '../../../../src/formats/archive/toc.ts';
import { verifyArchive } from '../../../../src/formats/archive/verify.ts';
import { applyDelta, findHolders } from '../../../../src/ship/bundle/delta/apply.ts';
import { folderBase, joinBases, openBase, type Base } from '../../../../src/ship/bundle/delta/base.ts';
import { readDelta, type Delta } from '../../../../src/ship/bundle/delta/delta-read.ts';
import { makeInventory, type Inventory } from '../../../../src/ship/bundle/delta/inventory.ts';
import { formatBundleJson, parseBundleJson } from '../../../../src/core/bundle.ts';
import { digestOf } from '../../../../src/core/digest.ts';
import * as assert from '../../../support/assert.ts';
import type { TestPackage } from '../../../support/bundles.ts';
import { never, noReport } from '../../../support/context.ts';
import { bundleOfPackages, deltaOf, type MadeBundle } from '../../../support/deltas.ts';
import { archiveOf, noise, type TestFile } from '../../../support/packages.ts';
import { suite } from '../../../support/suite.ts';
import { cases } from '../../../support/sweep.ts';
import { tree, type Tree } from '../../../support/tree.ts';

// soak: random cases
const test = suite('ship/bundle/delta', { timeoutMs: 120_000 });
const options = { report: noReport, signal: never };

async function inventoryOf(base: Base, least = 0): Promise<Inventory> {
  const payloads = [];
  for await (const one of base.payloads({ signal: never })) if (one.size >= least) payloads.push(one);
  return makeInventory({ payloads, packages: base.packages, tool: '1.2.3' });
}

async function basesOf(box: Tree, bundles: readonly MadeBundle[]): Promise<Base> {
  const bases = [];
  for (const [number, { bytes }] of bundles.entries()) {
    const path = box.at(`base-${number}.tar.gz`);
    await writeFile(path, bytes);
    bases.push(await openBase(path, options));
  }
  return joinBases(bases);
}

async function opened(bytes: Uint8Array): Promise<Delta> {
  const source = memorySource('d.tar.gz', bytes);
  const delta = await readDelta(source, await readIndex(source, { signal: never }), { signal: never });
  if (delta === undefined) throw new Error('no delta');
  return delta;
}

async function applied(box: Tree, delta: MadeBundle, base: Base): Promise<Buffer> {
  const open = await opened(delta.bytes);
  const holderOf = await findHolders(open, base, { doing: 'apply d.tar.gz', signal: never });
  await applyDelta(open, holderOf, box.at('full.tar.gz'), { force: true, ...options });
  return readFile(box.at('full.tar.gz'));
}

const LAYERS: readonly TestFile[] = [1, 2, 3].map((seed) => ({
  path: `images/blobs/sha256/${seed}`,
  data: noise(300_000, seed),
}));
const SCRIPT = { path: 'install.sh', data: 'alpha() { :; }\n' };
const ALPHA: TestPackage = { name: 'alpha', version: '1.0.0', files: [SCRIPT, ...LAYERS] };
const BETA: TestPackage = {
  name: 'beta',
  version: '1.0.0',
  files: [
    { path: 'install.sh', data: 'beta() { :; }\n' },
    { path: 'text', data: 'word '.repeat(20_000) },
  ],
};
const CHANGED: TestPackage = {
  name: 'alpha',
  version: '1.0.1',
  files: [SCRIPT, ...LAYERS.slice(0, 2), { path: 'images/blobs/sha256/4', data: noise(300_000, 4) }],
};

test('a delta holds one changed layer and little else, and makes the bundle bit for bit', async () => {
  await using box = await tree();
  const base = await basesOf(box, [await bundleOfPackages([ALPHA, BETA])]);
  const next = await bundleOfPackages([CHANGED, BETA]);
  const delta = await deltaOf(next, await inventoryOf(base));
  assert.ok(delta.bytes.byteLength < 300_000 + 15_000, `${delta.bytes.byteLength} bytes`);
  await verifyArchive(memorySource('d', delta.bytes), { signal: never });
  assert.ok((await applied(box, delta, base)).equals(next.bytes));
});

test('a delta is a plain tar whose table of contents for the bundle is the text that is signed', async () => {
  await using box = await tree({ 'out/.keep': '' });
  const next = await bundleOfPackages([CHANGED, BETA]);
  const delta = await deltaOf(next, await inventoryOf(await basesOf(box, [await bundleOfPackages([ALPHA, BETA])])));
  await writeFile(box.at('d.tar.gz'), delta.bytes);
  await execa('tar', ['xzf', box.at('d.tar.gz'), '-C', box.at('out')]);
  const text = await readFile(box.at('out/contents.json'));
  assert.is(digestOf(text), next.plan.splice.index.tocDigest);
  const bundle = parseBundleJson(await readFile(box.at('out/bundle.json'), 'utf8'), 'd');
  assert.equal(
    [bundle.delta?.contents, bundle.delta?.size, bundle.packages.length],
    [digestOf(text), next.bytes.byteLength, 2],
  );
});

test('nothing is missing from a delta since nothing, and hardly anything in one since everything', async () => {
  await using box = await tree();
  const next = await bundleOfPackages([ALPHA, BETA]);
  const nothing = makeInventory({ payloads: [], packages: [], tool: '1' });
  const nobody = joinBases([]);
  assert.ok((await applied(box, await deltaOf(next, nothing), nobody)).equals(next.bytes));
  const base = await basesOf(box, [next]);
  const delta = await deltaOf(next, await inventoryOf(base));
  assert.ok(delta.bytes.byteLength < 12_000, `${delta.bytes.byteLength} bytes`);
  assert.ok((await applied(box, delta, base)).equals(next.bytes));
});

test('the next delta is made since a bundle and a delta, and applied to both', async () => {
  await using box = await tree();
  const first = await bundleOfPackages([ALPHA]);
  const second = await bundleOfPackages([CHANGED, BETA]);
  const third = await bundleOfPackages([BETA, CHANGED]);
  const one = await deltaOf(second, await inventoryOf(await basesOf(box, [first])));
  const both = await basesOf(box, [first, one]);
  const two = await deltaOf(third, await inventoryOf(both));
  assert.ok(two.bytes.byteLength < 12_000, `${two.bytes.byteLength} bytes`);
  assert.ok((await applied(box, two, both)).equals(third.bytes));
});

test('an unpacked bundle is a base: what tar has unpacked is packed again', async () => {
  await using box = await tree({ 'out/.keep': '' });
  const first = await bundleOfPackages([ALPHA, BETA]);
  await writeFile(box.at('b.tar.gz'), first.bytes);
  await execa('tar', ['xzf', box.at('b.tar.gz'), '-C', box.at('out')]);
  const base = await openBase(box.at('out'), options);
  const next = await bundleOfPackages([CHANGED, BETA]);
  const inventory = await inventoryOf(base);
  assert.equal(inventory.packages, ['addons/alpha/1.0.0', 'addons/beta/1.0.0']);
  const delta = await deltaOf(next, inventory);
  assert.ok(delta.bytes.byteLength < next.bytes.byteLength - 600_000, `${delta.bytes.byteLength} bytes`);
  assert.ok((await applied(box, delta, base)).equals(next.bytes));
});

test('another base is refused with what it lacks, and nothing is written', async () => {
  await using box = await tree();
  const delta = await deltaOf(
    await bundleOfPackages([CHANGED, BETA]),
    await inventoryOf(await basesOf(box, [await bundleOfPackages([ALPHA, BETA])])),
  );
  const other = await basesOf(box, [await bundleOfPackages([BETA])]);
  const before = await readdir(box.path);
  const error = await assert.rejectsWith(
    applied(box, delta, other),
    'NOT_FOUND',
    /^cannot apply d\.tar\.gz: 3 files \(600015 bytes\) missing: addons\/alpha\/1\.0\.1\/install\.sh \(15 bytes\), addons/,
  );
  assert.match(error.hint ?? '', 'nothing has changed');
  assert.equal(await readdir(box.path), before);
});

test('a base that has changed since, and one that lies about what it has, leave nothing behind', async () => {
  await using box = await tree();
  const first = await bundleOfPackages([ALPHA, BETA]);
  const base = await basesOf(box, [first]);
  const delta = await deltaOf(await bundleOfPackages([CHANGED, BETA]), await inventoryOf(base));
  const layer = first.plan.splice.index.entries.find(({ path }) => path.endsWith('sha256/1'));
  const damaged = Buffer.from(first.bytes);
  damaged[(layer?.offset ?? 0) + 1000] = (damaged[(layer?.offset ?? 0) + 1000] ?? 0) ^ 1;
  await writeFile(box.at('base-0.tar.gz'), damaged);
  await assert.rejectsWith(applied(box, delta, base), 'DIGEST_MISMATCH', /base-0\.tar\.gz: addons\/alpha/);
  assert.equal(await readdir(box.path), ['base-0.tar.gz']);
});

test('a delta whose parts do not fit together is refused', async () => {
  await using box = await tree();
  const next = await bundleOfPackages([CHANGED, BETA]);
  const delta = await deltaOf(next, await inventoryOf(await basesOf(box, [await bundleOfPackages([ALPHA, BETA])])));
  const { bundle } = delta.plan;
  const contents = Buffer.from((await opened(delta.bytes)).full.entries.length.toString());
  const json = (change: object): string => formatBundleJson({ ...bundle, ...change });
  if (bundle.delta === undefined) throw new Error('no delta');
  const huge = Buffer.alloc(64 << 20);
  for (const [files, message] of [
    [[{ path: 'bundle.json', data: json({}) }], /a delta without contents\.json/],
    [
      [
        { path: 'bundle.json', data: json({}) },
        { path: 'contents.json', data: contents },
      ],
      /does not match bundle\.json/,
    ],
    [
      [
        { path: 'bundle.json', data: json({}) },
        { path: 'contents.json', data: huge, deflated: true },
      ],
      /far more/,
    ],
    [
      [
        { path: 'bundle.json', data: json({ delta: { ...bundle.delta, contents: digestOf('[]') } }) },
        { path: 'contents.json', data: '[]' },
      ],
      /version or entries are missing/,
    ],
    [[{ path: 'bundle.json', data: json({ delta: { ...bundle.delta, size: -1.5 } }) }], /delta/],
    [[{ path: 'bundle.json', data: json({ delta: { ...bundle.delta, since: 'sha256:x' } }) }], /delta/],
    [[{ path: 'bundle.json', data: json({ delta: [] }) }], /delta/],
  ] as const) {
    await assert.rejectsWith(opened(archiveOf(files).bytes), 'PACKAGE_INVALID', message);
  }
});

/** What a delta says that makes a bundle of one file, and brings that file's member. */
function deltaOfOne(claimed: PlacedEntry, member: Uint8Array): Pick<Delta, 'full' | 'included'> {
  const contents = tocJson([claimed]);
  const end = claimed.offset + claimed.packed + paddingSize(claimed.size);
  const full = indexOfContents(contents, end + endSize(contents.byteLength), 'full');
  const entry = { ...claimed, offset: 0, packed: member.byteLength };
  return { full, included: new Map([[entry.digest, { kind: 'entry', source: memorySource('d', member), entry }]]) };
}

for (const [what, change, code, message] of [
  ['another content than its digest', { digest: digestOf('other') }, 'DIGEST_MISMATCH', /the digest does not match/],
  ['another packed length', { packed: 64 }, 'PACKAGE_INVALID', /its packed size is \d+ bytes, not /],
] as const) {
  test(`a delta whose member has ${what} makes no bundle`, async () => {
    await using box = await tree();
    const { bytes, plan } = archiveOf([{ path: 'text', data: 'word '.repeat(20_000), deflated: true }]);
    const [entry] = plan.index.entries;
    if (entry === undefined) throw new Error('no entry');
    const member = bytes.subarray(entry.offset, entry.offset + entry.packed);
    const packed = 'packed' in change ? entry.packed + change.packed : entry.packed;
    const claimed: PlacedEntry = { ...entry, ...change, packed };
    const delta = deltaOfOne(claimed, member);
    const holderOf = await findHolders(delta, joinBases([]), { doing: 'apply', signal: never });
    const path = box.at('full.tar.gz');
    const applying = applyDelta(delta, holderOf, path, { force: true, ...options });
    await assert.rejectsWith(applying, code, message);
    assert.equal(await readdir(box.path), []);
  });
}

test('bundles and packages are no deltas', async () => {
  const { bytes } = await bundleOfPackages([BETA]);
  for (const one of [bytes, archiveOf([SCRIPT]).bytes]) {
    const source = memorySource('b', one);
    assert.is(await readDelta(source, await readIndex(source, { signal: never }), { signal: never }), undefined);
  }
});

test('an inventory that lies about sizes is refused', async () => {
  const next = await bundleOfPackages([CHANGED]);
  const digest = digestOf(noise(300_000, 1));
  const inventory = makeInventory({ payloads: [{ digest, size: 5 }], packages: [], tool: '1' });
  await assert.rejectsWith(deltaOf(next, inventory), 'FILE_UNUSABLE', /lists 5 bytes for sha256:\w+, but addons/);
});

test('a folder of bundles is a base; files in it that are none are left out with a word', async () => {
  await using box = await tree({ 'site/notes.tar.gz': 'x'.repeat(200), 'site/README': 'text', 'none/README': 'text' });
  await mkdir(box.at('site/deep'));
  const first = await bundleOfPackages([ALPHA]);
  await writeFile(box.at('site/deep/b.tar.gz'), first.bytes);
  const notes: unknown[] = [];
  const base = await openBase(box.at('site'), { report: (event) => notes.push(event), signal: never });
  assert.is(notes.length, 1);
  assert.match(
    JSON.stringify(notes),
    /notes\.tar\.gz: not a package or bundle of curlew, or its end is missing.*skipped/,
  );
  const next = await bundleOfPackages([ALPHA, BETA]);
  assert.ok((await applied(box, await deltaOf(next, await inventoryOf(base)), base)).equals(next.bytes));
  await assert.rejectsWith(openBase(box.at('none'), options), 'NOT_FOUND', /neither bundles nor packages/);
  await assert.rejectsWith(openBase(box.at('gone'), options), 'NOT_FOUND', /gone/);
  await assert.rejectsWith(openBase(box.at('site/README'), options), 'PACKAGE_INVALID');
});

/** Contents of every kind: empty, below and above the size of a link, deflated, stored. */
const CONTENTS: readonly (string | Buffer)[] = [
  '',
  'a',
  'b',
  'word '.repeat(2000),
  'line\n'.repeat(900),
  noise(5000, 11),
  noise(70_000, 12),
  noise(70_001, 13),
  Buffer.alloc(9000),
];
const FILE = fc.record({
  path: fc.constantFrom('install.sh', 'text', 'text.gz', 'assets/x.rpm', `images/blobs/sha256/${'a'.repeat(64)}`),
  data: fc.constantFrom(...CONTENTS),
  mode: fc.constantFrom(0o644 as const, 0o755 as const),
});
const FILES = fc.uniqueArray(FILE, { selector: ({ path }) => path, minLength: 1, maxLength: 4 });
const PACKAGE = fc.record({
  name: fc.constantFrom('aaa', 'bbb', 'ccc'),
  version: fc.constantFrom('1.0.0', '1.0.1'),
  files: FILES,
});
const RELEASE = fc.uniqueArray(PACKAGE, { selector: ({ name }) => name, minLength: 1, maxLength: 3 });

test('base and delta make the whole, bit for bit, whatever the history, by any chain of deltas', async () => {
  await using box = await tree();
  const releases = fc.array(fc.tuple(RELEASE, fc.boolean()), { minLength: 2, maxLength: 3 });
  const property = fc.asyncProperty(releases, fc.boolean(), async (history, isCompact) => {
    const bundles = [];
    for (const [release, kurl] of history) bundles.push(await bundleOfPackages(release, { kurl }));
    const [first, ...later] = bundles;
    if (first === undefined) return;
    // One site keeps every delta, one the last whole bundle, and one has that unpacked.
    const kept = [first];
    let whole = first;
    for (const next of later) {
      const site = await basesOf(box, kept);
      const delta = await deltaOf(next, await inventoryOf(site));
      assert.ok((await applied(box, delta, site)).equals(next.bytes));
      kept.push(delta);
      for (const base of [await basesOf(box, [whole]), await folderBase(await unpacked(box, whole), options)]) {
        const inventory = await inventoryOf(base, isCompact ? 4096 : 0);
        assert.ok((await applied(box, await deltaOf(next, inventory), base)).equals(next.bytes));
      }
      whole = next;
    }
  });
  await fc.assert(property, cases(20));
});

async function unpacked(box: Tree, { bytes }: MadeBundle): Promise<string> {
  await rm(box.at('unpacked'), { recursive: true, force: true });
  await mkdir(box.at('unpacked'));
  await execa('tar', ['xz', '-C', box.at('unpacked')], { input: bytes });
  return box.at('unpacked');
}

test.run();
