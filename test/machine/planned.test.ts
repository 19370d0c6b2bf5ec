import type { ClusterLook } from '../../src/machine/run/look.ts';
import { planOf } from '../../src/machine/run/planned-cluster.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { bundle, given, look } from './looked.ts';

const test = suite('what is to do by a look');
const ONE = given(['cp1', 'w1', 'w2', 'w3']);

test('a machine that is refused gets no labels of the file, and the others do', () => {
  const machines = ONE.machines.map((one) => ({ ...one, machine: { ...one.machine, labels: { disk: 'ssd' } } }));
  const node = { labels: {}, taints: [] };
  const all = look(ONE, { cp1: { labels: { disk: 'ssd' }, taints: [] }, w1: node, w2: node, w3: node });
  const strange: ClusterLook = { ...all, refused: [{ host: 'w2', reason: 'it has another host key' }] };
  const { steps, refused } = planOf({ ...ONE, machines }, strange, bundle);
  assert.equal(
    steps.map(({ host, phase }) => `${host ?? ''} ${phase}`),
    ['w1 label', 'w3 label'],
  );
  assert.equal(refused, strange.refused);
});

test.run();
