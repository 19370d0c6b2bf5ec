import { memorySource, readPayload } from '../../../../src/formats/archive/read.ts';
import { planSplice, type SplicePart } from '../../../../src/formats/archive/splice.ts';
import { digestOf } from '../../../../src/core/digest.ts';
import { planSource } from '../../../../src/ship/bundle/write/plan-source.ts';
import * as assert from '../../../support/assert.ts';
import { collect } from '../../../support/bytes.ts';
import { archiveOf, noise } from '../../../support/packages.ts';
import { suite } from '../../../support/suite.ts';

const test = suite('ship/bundle/plan-source');

const MIB = 1 << 20;
const archives = [1, 2].map((seed) => archiveOf([{ path: `${seed}/a.gz`, data: noise(9 * MIB + seed, seed) }]));
const plan = planSplice(
  archives.map(({ plan: { index } }, source): SplicePart => ({ kind: 'archive', source, index })),
);

for (const place of [undefined, { server: 's3', base: 'bucket' }]) {
  test(`a planned bundle gives any range, its packages being ${place === undefined ? 'here' : 'elsewhere'}`, async ({
    signal,
  }) => {
    const sources = archives.map(({ bytes }, n) => ({ ...memorySource(`package ${n}`, bytes), place }));
    const source = planSource('b.tar.gz', plan, sources);
    const whole = await collect(source.read(0, plan.size, { signal }));
    assert.is(whole.byteLength, plan.size);
    for (const [offset, length] of [
      [0, 1],
      [MIB - 1, 5 * MIB],
      [plan.size - 1, 1],
      [9 * MIB - 7, 9 * MIB],
      [3, 0],
    ] as const) {
      const range = await collect(source.read(offset, length, { signal }));
      assert.ok(range.equals(whole.subarray(offset, offset + length)), `${offset}+${length}`);
    }
  });
}

test('bytes that do not match are those of a package, which is named, and of the bundle only where it has its own', async ({
  signal,
}) => {
  const file = { kind: 'file', path: 'own', mode: 0o644, data: Buffer.from('own') } as const;
  const parts = archives.map(({ plan: { index } }, source): SplicePart => ({ kind: 'archive', source, index }));
  const splice = planSplice([file, ...parts]);
  const sources = archives.map(({ bytes }, n) => memorySource(`package ${n}`, bytes));
  const source = planSource('b.tar.gz', splice, sources);
  const failures = [];
  for (const entry of splice.index.entries) {
    const other = { ...entry, digest: digestOf('other') };
    const { message } = await assert.rejectsWith(collect(readPayload(source, other, { signal })), 'DIGEST_MISMATCH');
    failures.push(message.split(':', 2).join());
  }
  assert.equal(failures, ['b.tar.gz, own', 'package 0, 1/a.gz', 'package 1, 2/a.gz']);
});

test.run();
