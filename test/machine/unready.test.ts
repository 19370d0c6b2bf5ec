/** What keeps hosts from becoming nodes, by their facts. */
import { readFacts } from '../../src/machine/facts.ts';
import type { Role } from '../../src/machine/order.ts';
import { unreadyReasons } from '../../src/machine/unready.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('machine/unready');
const NOW = Date.UTC(2026, 0, 1);
const GOOD = [
  'hostname=p1',
  'arch=x86_64',
  'memory=4000000',
  'swap=0',
  `clock=${NOW / 1000 + 3}`,
  'port=22',
  'port=8080',
];

interface Asked {
  readonly role?: Role;
  readonly kubernetes?: object;
  readonly ignore?: readonly string[];
}

function reasons(
  more: readonly string[] = [],
  { role = 'control-plane', kubernetes = {}, ignore = [] }: Asked = {},
): readonly string[] {
  const facts = readFacts([...GOOD, ...more].join('\n'), NOW);
  if (facts === undefined) throw new Error('no facts');
  return unreadyReasons(facts, role, { kubernetes, ignore });
}

test('a host is refused for all that its own checks and kubeadm would refuse, and what to do is said', () => {
  assert.equal(reasons(), []);
  const text = reasons([
    'memory=1000000',
    'swap=1',
    `clock=${NOW / 1000 - 4000}`,
    'port=6443',
    'port=10250',
    'missing=tar',
    'missing=flock',
  ]);
  assert.equal(
    text.map((one) => one.split(':')[0]),
    [
      'it has 976 MiB of memory, and a control-plane needs 1700',
      'its swap is on',
      'its clock is 4000 s behind that of this machine',
      'port 6443, 10250 is in use there, and Kubernetes needs it',
      'tar, flock is missing',
    ],
  );
  assert.equal(reasons(['port=6443'], { role: 'worker' }), []);
});

test('what a person passes, or the settings of Kubernetes allow, refuses nothing', () => {
  assert.equal(reasons(['swap=2'], { ignore: ['Swap'] }), []);
  assert.equal(reasons(['swap=2'], { kubernetes: { kubeletConfiguration: 'failSwapOn: false\n' } }), []);
  assert.equal(reasons(['port=2379'], { kubernetes: { initIgnorePreflightErrors: 'Swap,Port-2379' } }), []);
});

test('a node, and a host whose join was cut, have their ports in use by themselves', () => {
  assert.equal(reasons(['port=10250', 'part=/etc/kubernetes/kubelet.conf']), []);
  assert.equal(reasons(['port=10250', 'attempt=yes']), []);
});

test.run();
