import { execa } from 'execa';
import { readFile, writeFile } from 'node:fs/promises';
import { extractEntries } from '../../../src/formats/archive/extract.ts';
import { memorySource } from '../../../src/formats/archive/read.ts';
import { planSplice, type SplicePlan } from '../../../src/formats/archive/splice.ts';
import { verifyArchive } from '../../../src/formats/archive/verify.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { archiveOf, noise } from '../../support/packages.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('archive/splice');

function perform(plan: SplicePlan, sources: readonly Buffer[]): Buffer {
  const parts = plan.segments.map((segment) =>
    segment.kind === 'bytes'
      ? segment.data
      : (sources[segment.source] ?? Buffer.alloc(0)).subarray(segment.offset, segment.offset + segment.length),
  );
  return Buffer.concat(parts);
}

const shared = noise(200_000, 5);
const one = archiveOf([
  { path: 'addons/a/1/install.sh', data: 'a() { :; }\n', mode: 0o755 },
  { path: 'addons/a/1/empty', data: '' },
  { path: 'addons/a/1/images/blob', data: shared },
]);
const two = archiveOf([
  { path: 'addons/b/2/install.sh', data: 'b() { :; }\n', mode: 0o755 },
  { path: 'addons/b/2/images/blob', data: shared },
  { path: 'addons/b/2/images/other', data: noise(70_000, 6) },
  { path: 'addons/b/2/small', data: 'tiny' },
  { path: 'addons/b/2/small-too', data: 'tiny' },
]);
const root = { kind: 'file', path: 'install.sh', mode: 0o755, data: Buffer.from('#!/bin/sh\n') } as const;

test('packages without common payload are copied as one range each', async () => {
  const plan = planSplice([root, { kind: 'archive', source: 0, index: one.plan.index }]);
  const ranges = plan.segments.filter(({ kind }) => kind === 'range').map(({ at: _at, ...range }) => range);
  assert.equal(ranges, [{ kind: 'range', source: 0, offset: 0, length: one.plan.index.tocOffset }]);
  const bytes = perform(plan, [one.bytes]);
  assert.is(bytes.byteLength, plan.size);
  assert.equal(await verifyArchive(memorySource('m', bytes), { signal: never }), plan.index);
});

test('a repeated payload is stored once, and the second name is a hard link', async () => {
  await using box = await tree();
  const plan = planSplice([
    root,
    { kind: 'archive', source: 0, index: one.plan.index },
    { kind: 'archive', source: 1, index: two.plan.index },
  ]);
  const bytes = perform(plan, [one.bytes, two.bytes]);
  assert.ok(bytes.byteLength < one.bytes.byteLength + two.bytes.byteLength - 190_000);
  assert.equal(await verifyArchive(memorySource('m', bytes), { signal: never }), plan.index);
  await writeFile(box.at('b.tar.gz'), bytes);
  const { stdout } = await execa('tar', ['-tvzf', box.at('b.tar.gz')]);
  assert.match(stdout, /^h.*addons\/b\/2\/images\/blob link to addons\/a\/1\/images\/blob$/m);
  await execa('tar', ['-xzf', box.at('b.tar.gz'), '-C', box.path]);
  assert.ok((await readFile(box.at('addons/b/2/images/blob'))).equals(shared));
  assert.is(await readFile(box.at('addons/b/2/small-too'), 'utf8'), 'tiny');
});

test('one add-on alone comes out of a bundle, its links as files of their own', async () => {
  await using box = await tree();
  const plan = planSplice([
    { kind: 'archive', source: 0, index: one.plan.index },
    { kind: 'archive', source: 1, index: two.plan.index },
  ]);
  const source = memorySource('m', perform(plan, [one.bytes, two.bytes]));
  await extractEntries(source, plan.index, {
    into: box.at('out'),
    select: ({ path }) => (path.startsWith('addons/b/') ? path : undefined),
    signal: never,
  });
  assert.ok((await readFile(box.at('out/addons/b/2/images/blob'))).equals(shared));
});

test('a bundle can be spliced from a bundle, and entries can be left out', async () => {
  const both = planSplice([
    { kind: 'archive', source: 0, index: one.plan.index },
    { kind: 'archive', source: 1, index: two.plan.index },
  ]);
  const bundle = perform(both, [one.bytes, two.bytes]);
  const again = planSplice([{ kind: 'archive', source: 0, index: both.index }]);
  assert.ok(perform(again, [bundle]).equals(bundle));
  const less = planSplice([
    { kind: 'archive', source: 0, index: both.index, select: ({ path }) => !path.endsWith('install.sh') },
  ]);
  const bytes = perform(less, [bundle]);
  assert.equal(await verifyArchive(memorySource('m', bytes), { signal: never }), less.index);
  assert.not.ok(less.index.entries.some(({ path }) => path.endsWith('install.sh')));
});

test('a payload that another entry links to cannot be left out', () => {
  const both = planSplice([
    { kind: 'archive', source: 0, index: one.plan.index },
    { kind: 'archive', source: 1, index: two.plan.index },
  ]);
  const select = ({ path }: { readonly path: string }): boolean => path !== 'addons/a/1/images/blob';
  assert.throwsWith(() => planSplice([{ kind: 'archive', source: 0, index: both.index, select }]), 'PACKAGE_INVALID');
});

test('two packages of one name cannot be in one bundle', () => {
  const part = { kind: 'archive', source: 0, index: one.plan.index } as const;
  assert.throwsWith(() => planSplice([part, part]), 'PACKAGE_INVALID', /two entries have this name/);
});

test.run();
