import { memorySource } from '../../../../src/formats/archive/read.ts';
import { planSplice, type SplicePart } from '../../../../src/formats/archive/splice.ts';
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

test.run();
