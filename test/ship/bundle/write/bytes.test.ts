import { assert as check, asyncProperty, constantFrom, nat, oneof } from 'fast-check';
import { planSplice, type SplicePart } from '../../../../src/formats/archive/splice.ts';
import { memorySource } from '../../../../src/formats/archive/read.ts';
import { bundleRange } from '../../../../src/ship/bundle/write/bytes.ts';
import * as assert from '../../../support/assert.ts';
import { planTestBundle, publishTestPackages, specOf } from '../../../support/bundles.ts';
import { collect } from '../../../support/bytes.ts';
import { archiveOf, noise } from '../../../support/packages.ts';
import { suite } from '../../../support/suite.ts';
import { cases } from '../../../support/sweep.ts';
import { tree } from '../../../support/tree.ts';

// soak: random cases
const test = suite('ship/bundle/bytes');

const shared = noise(9000, 3);
const archives = [1, 2, 3].map((seed) =>
  archiveOf([
    { path: `${seed}/install.sh`, data: `# ${seed}\n`.repeat(seed * 40) },
    { path: `${seed}/empty`, data: '' },
    { path: `${seed}/shared`, data: shared },
    { path: `${seed}/own`, data: noise(seed * 700, seed) },
  ]),
);
const sources = archives.map(({ bytes }, index) => memorySource(`package ${index}`, bytes));
const plan = planSplice([
  { kind: 'file', path: 'install.sh', mode: 0o755, data: Buffer.from('#!/bin/sh\n') },
  ...archives.map(({ plan: { index } }, source): SplicePart => ({ kind: 'archive', source, index })),
]);

test('any range of a planned bundle is that slice of the whole', async ({ signal }) => {
  const whole = await collect(bundleRange(plan, sources, { signal }));
  assert.is(whole.byteLength, plan.size);
  const borders = plan.segments.flatMap(({ at }) => [at - 1, at, at + 1]).filter((at) => at >= 0);
  const place = oneof(nat({ max: plan.size }), constantFrom(...borders, plan.size));
  await check(
    asyncProperty(place, place, async (one, other) => {
      const [offset, end] = [Math.min(one, other), Math.max(one, other)];
      const range = await collect(bundleRange(plan, sources, { offset, length: end - offset, signal }));
      assert.ok(range.equals(whole.subarray(offset, end)), `${offset}–${end}`);
    }),
    cases(300),
  );
});

test('segments join without a gap, and only what a range touches is read', async ({ signal }) => {
  let at = 0;
  for (const segment of plan.segments) {
    assert.is(segment.at, at);
    at += segment.kind === 'bytes' ? segment.data.byteLength : segment.length;
    if (segment.kind === 'bytes') continue;
    const broken = sources.map((source, index) => {
      if (index === segment.source) return source;
      return memorySource(source.name, new Uint8Array());
    });
    await collect(bundleRange(plan, broken, { offset: segment.at, length: segment.length, signal }));
  }
  assert.is(at, plan.size);
});

test('ranges that are none are refused', async ({ signal }) => {
  const ranges = [
    { offset: -1, length: 1 },
    { offset: 0, length: -1 },
    { offset: plan.size, length: 1 },
    { offset: 1, length: plan.size },
    { offset: Number.NaN },
  ];
  for (const range of ranges) {
    const error = await collect(bundleRange(plan, sources, { ...range, signal })).catch((thrown: unknown) => thrown);
    assert.instance(error, RangeError);
  }
});

test('a source that gives more or less than it was asked for is told', async ({ signal }) => {
  for (const off of [-1, 1]) {
    const wrong = sources.map((source) => ({
      name: source.name,
      async *read(_: number, length: number) {
        yield new Uint8Array(length + off);
      },
    }));
    await assert.rejectsWith(collect(bundleRange(plan, wrong, { signal })), 'FETCH_FAILED', /package 0: returned/);
  }
});

test('memory of the caller is read into, from a folder store too', async ({ signal }) => {
  await using box = await tree();
  const store = await publishTestPackages(
    box,
    [{ name: 'alpha', version: '1.0.0', files: [{ path: 'assets/a', data: noise(3_000_000, 5) }] }],
    signal,
  );
  const planned = await planTestBundle(store, specOf({ alpha: '1.0.0' }), signal);
  const given = new Set<ArrayBufferLike>();
  const allocate = (length: number): Uint8Array => {
    const memory = new Uint8Array(length);
    given.add(memory.buffer);
    return memory;
  };
  const { splice } = planned.plan;
  let used = 0;
  for await (const chunk of bundleRange(splice, planned.sources, { signal, allocate })) {
    if (given.has(chunk.buffer)) used += chunk.byteLength;
  }
  assert.ok(used > 3_000_000, `${used} bytes`);
});

test.run();
