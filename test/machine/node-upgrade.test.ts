import { nextNodes, whyNotUpgrade } from '../../src/machine/node-upgrade.ts';
import type { SeenMachine } from '../../src/machine/cluster.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('machine/node-upgrade');

function node(name: string, role: 'control-plane' | 'worker', kubelet: string): SeenMachine {
  return { name, role, kubelet, answers: true, joined: true };
}

const FIRST = { kubelet: 'v1.33.13', cluster: 'v1.33.13', wanted: 'v1.34.4', leads: true, others: [] };
const SECOND = { ...FIRST, leads: false };

test('a first control plane goes up one minor, or continues that', () => {
  assert.equal(whyNotUpgrade(FIRST), undefined);
  assert.equal(whyNotUpgrade({ ...FIRST, cluster: 'v1.34.4' }), undefined);
  assert.equal(whyNotUpgrade({ ...FIRST, wanted: 'v1.33.14' }), undefined);
});

test('it neither skips a minor nor goes down', () => {
  assert.match(
    whyNotUpgrade({ ...FIRST, wanted: 'v1.35.4' }) ?? '',
    /skips a minor version: v1\.33\.13 goes to 1\.34 first/,
  );
  assert.match(whyNotUpgrade({ ...FIRST, wanted: 'v1.33.12' }) ?? '', /kubeadm cannot return to v1\.33\.12/);
  assert.match(whyNotUpgrade({ ...FIRST, cluster: 'v1.34.4', wanted: 'v1.33.13' }) ?? '', /cannot return/);
});

test('no other node is before the first control plane', () => {
  assert.match(whyNotUpgrade(SECOND) ?? '', /its first control plane goes to v1\.34\.4 before other nodes do/);
  assert.equal(whyNotUpgrade({ ...SECOND, cluster: 'v1.34.4' }), undefined);
});

test('nodes that an upgrade before this one has left are upgraded first', () => {
  const others = [node('two', 'control-plane', 'v1.32.9')];
  assert.match(
    whyNotUpgrade({ ...FIRST, others }) ?? '',
    /the control plane two has v1\.32\.9: upgrade it to v1\.33\.13/,
  );
  assert.match(
    whyNotUpgrade({ ...FIRST, others: [node('w', 'worker', 'v1.30.1')] }) ?? '',
    /the kubelet v1\.30\.1 of w does not/,
  );
  assert.equal(whyNotUpgrade({ ...FIRST, others: [node('w', 'worker', 'v1.31.1')] }), undefined);
});

test('control planes are next one by one, then all workers', () => {
  const others = [
    node('w1', 'worker', 'v1.33.13'),
    node('two', 'control-plane', 'v1.33.13'),
    node('w2', 'worker', 'v1.34.4'),
  ];
  const { wanted } = FIRST;
  assert.equal(nextNodes({ wanted, others }), ['two']);
  assert.equal(nextNodes({ wanted, others: [...others.slice(0, 1), ...others.slice(2)] }), ['w1']);
  assert.equal(nextNodes({ wanted, others: others.slice(2) }), []);
});

test.run();
