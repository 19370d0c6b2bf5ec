import * as fc from 'fast-check';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { rollout } from '../../../src/conformance/conformance.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { cases } from '../../support/sweep.ts';
import { type Answer, type Fleet, simulate } from './second-simulator.ts';

// soak: random fleets
const test = suite('rollout, two simulators');

interface Vector {
  readonly id: string;
  readonly in: Fleet;
  readonly out: Answer;
}

const vectors = await readFile(join(import.meta.dirname, '../../fixtures/rollout/ocm-rollout.yaml'), 'utf8');
for (const vector of (parse(vectors) as { readonly vectors: readonly Vector[] }).vectors) {
  test(`${vector.id}: the second simulator gives upstream's answer`, () => {
    assert.equal(simulate(vector.in), vector.out);
  });
}

/** More than nine, so that `c10` comes before `c2`. */
const CLUSTERS = Array.from({ length: 14 }, (_, at) => `c${at + 1}`);

const size = fc.oneof(
  fc.integer({ min: -1, max: 15 }),
  fc.integer({ min: 0, max: 120 }).map((percent) => `${percent}%`),
);
const seconds = fc.constantFrom('0s', '30s', '1m', '90s', '2m', '1h');
const mandatory = fc.oneof(
  fc.record({ groupName: fc.constantFrom('group1', 'group2', 'group3', 'nope') }),
  fc.record({ groupIndex: fc.nat(6) }),
  fc.record({ groupName: fc.constantFrom('group1', 'group2'), groupIndex: fc.nat(4) }),
);
const strategy = fc.record(
  {
    type: fc.constantFrom('All' as const, 'Progressive' as const, 'ProgressivePerGroup' as const),
    minSuccessTime: seconds,
    progressDeadline: fc.oneof(seconds, fc.constantFrom('', 'None')),
    maxFailures: size,
    maxConcurrency: size,
    mandatoryDecisionGroups: fc.array(mandatory, { maxLength: 3 }),
  },
  { requiredKeys: ['type'] },
);

/** Named groups before those without a name, as placements list them, and each of them sorted. */
const groups = fc
  .record({
    clusters: fc.shuffledSubarray(CLUSTERS),
    sizes: fc.array(fc.nat(6), { minLength: 1, maxLength: 5 }),
    named: fc.nat(3),
  })
  .map(({ clusters, sizes, named }) => {
    const starts = sizes.map((_, at) => sizes.slice(0, at).reduce((sum, one) => sum + one, 0));
    return Object.fromEntries(
      sizes.map((length, at) => {
        const start = starts[at] ?? 0;
        return [at < named ? `group${at + 1}` : `_${at}`, clusters.slice(start, start + length).toSorted()];
      }),
    );
  });

const status = fc.constantFrom('ToApply', 'Progressing', 'Succeeded', 'Failed', 'Unknown', 'Skip', 'TimeOut');
const standing = fc
  .tuple(status, fc.option(fc.integer({ min: -180, max: 10 }), { nil: undefined }))
  .map(([title, since]) => (since === undefined ? title : `${title}@${since}`));

type Input = Fleet & Parameters<typeof rollout>[0];

/** Any states in any order, also of clusters without a group. */
const anywhere: fc.Arbitrary<Input> = fc.record({
  strategy,
  groups,
  existing: fc.dictionary(fc.constantFrom(...CLUSTERS), standing),
});

/** A rollout that has reached some clusters, of which few are in trouble: with more it stops at its first group. */
const underWay: fc.Arbitrary<Input> = fc
  .record({
    strategy,
    groups,
    reach: fc.integer({ min: 1, max: CLUSTERS.length }),
    troubles: fc.array(fc.tuple(fc.nat(), standing), { minLength: 1, maxLength: 3 }),
  })
  .map(({ reach, troubles, ...fleet }) => {
    const reached = Object.values(fleet.groups).flat().slice(0, reach);
    const existing = new Map(reached.map((cluster) => [cluster, 'Succeeded@-3600']));
    for (const [at, text] of troubles) {
      const cluster = reached[at % reached.length];
      if (cluster !== undefined) existing.set(cluster, text);
    }
    return { ...fleet, existing: Object.fromEntries(existing) };
  });

test('both simulators give one answer for any fleet', () => {
  const property = fc.property(fc.oneof(anywhere, underWay), (one) => {
    assert.equal(rollout(one), simulate(one));
  });
  fc.assert(property, cases(300));
});

test.run();
