import { writeFile } from 'node:fs/promises';
import type { Step } from '../../src/machine/cluster.ts';
import type { PlannedCluster } from '../../src/machine/run/planned-cluster.ts';
import { readSaved, requireSameCluster, withinPlan } from '../../src/machine/run/saved-plan.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('saved plans of clusters');
const digest = 'sha256:a';
const [images, join] = (['images', 'join'] as const).map((phase): Step => ({
  host: 'w1',
  phase,
  to: 'v1.34.4',
  reason: 'the file has it',
  waits: [],
})) as [Step, Step];

function plan(...steps: readonly Step[]): PlannedCluster {
  return { cluster: 'paris', digest, hosts: [], steps, held: [], refused: [] };
}

test('what is left of a saved plan is done, and nothing once a step is not in it', async () => {
  await using box = await tree();
  await writeFile(box.at('paris.plan'), JSON.stringify({ format: 1, cluster: 'paris', digest, steps: [images, join] }));
  const saved = await readSaved('paris.plan', { cwd: box.path });
  requireSameCluster(saved, plan(images, join));
  assert.throwsWith(() => requireSameCluster(saved, { ...plan(join), digest: 'sha256:b' }), 'PLAN_CHANGED');
  const left = { ...join, waits: [], reason: 'it has begun' };
  assert.equal(withinPlan(saved, plan(left)).steps, [left]);
  const { steps, held } = withinPlan(saved, plan(left, { ...images, host: 'w2' }));
  assert.equal(steps, []);
  assert.equal(held, [{ host: 'w2', reason: 'paris.plan does not have its step images: plan again, and look at it' }]);
});

test('a file that is no plan is refused', async () => {
  await using box = await tree();
  await writeFile(box.at('a.plan'), '{"format":1,"cluster":"paris","digest":"x"}');
  await assert.rejectsWith(readSaved('a.plan', { cwd: box.path }), 'USAGE', /it is not a plan of curlew cluster plan/);
  await assert.rejectsWith(readSaved('b.plan', { cwd: box.path }), 'NOT_FOUND');
});

test.run();
