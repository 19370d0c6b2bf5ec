import { planCluster } from '../../src/machine/plan.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { desired, machine, OLD, seen } from './seen-cluster.ts';

const test = suite('labels and taints of nodes');

test('labels and taints of the file that a node does not have are set, and what others have set stays', () => {
  const file = desired(['cp0', 'w0'], { version: OLD });
  const marked = { labels: { disk: 'ssd' }, taints: ['dedicated=db:NoSchedule'] };
  const machines = file.machines.map((one) => (one.name === 'w0' ? { ...one, ...marked } : one));
  const stepsFor = (own: object, more: object = {}): readonly string[] => {
    const state = seen([machine('cp0'), machine('w0', own)]);
    const { steps, held } = planCluster({ ...file, machines, ...more }, state);
    return [...steps, ...held].map(({ host = '', reason }) => `${host}: ${reason}`);
  };
  const others = { labels: { rack: 'a', disk: 'hdd' }, taints: ['other=:NoExecute'] };
  assert.equal(stepsFor(others), ['w0: the file has disk=ssd, dedicated=db:NoSchedule']);
  const all = { labels: { ...others.labels, ...marked.labels }, taints: [...others.taints, ...marked.taints] };
  assert.equal(stepsFor(all), []);
  // An earlier version on the control plane lists neither.
  assert.equal(stepsFor({}), []);
  assert.equal(stepsFor(others, { paused: true }), [': the cluster is paused']);
});

test.run();
