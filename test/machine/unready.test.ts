/** What keeps hosts from becoming nodes, by their facts. */
import { readFacts } from '../../src/machine/facts.ts';
import type { Role } from '../../src/machine/cluster.ts';
import type { WrittenCluster, WrittenHost } from '../../src/machine/run/cluster-file.ts';
import type { ClusterLook } from '../../src/machine/run/look.ts';
import { planOf } from '../../src/machine/run/planned-cluster.ts';
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
  /** Whether the cluster has a control plane already; a worker always has one. */
  readonly joins?: boolean;
}

/** What a plan refuses about a machine with these facts. */
function reasons(
  more: readonly string[] = [],
  { role = 'control-plane', kubernetes = {}, ignore = [], joins = role === 'worker' }: Asked = {},
): readonly string[] {
  const facts = readFacts([...GOOD, ...more].join('\n'), NOW);
  if (facts === undefined) throw new Error('no facts');
  const ssh = { name: 'm', address: 'm', hostKey: 'x' };
  const hosts = (joins ? ['first', 'm'] : ['m']).map((name) => {
    return { name, role: name === 'm' ? role : 'control-plane', ssh, machine: {} } as WrittenHost;
  });
  const cluster = { name: 'paris', version: 'v1.31.2', machines: hosts, installer: { kubernetes } };
  const look = { hosts: [], extras: [], held: [], refused: [], isListed: true, speaker: undefined, silent: undefined };
  const first = { name: 'first', joined: true, answers: true, role: 'control-plane', kubelet: 'v1.31.2' };
  const machines = [...(joins ? [first] : []), { name: 'm', joined: false, answers: true }];
  const { refused } = planOf(
    cluster as unknown as WrittenCluster,
    {
      ...look,
      hosts: [{ host: hosts.at(-1), facts }],
      seen: { complete: true, machines },
      busy: [],
      unasked: [],
    } as unknown as ClusterLook,
    undefined,
    { ignore },
  );
  return refused.flatMap(({ host, reason }) => (host === 'm' ? reason : []));
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
  assert.equal(reasons(['swap=2'], { kubernetes: { kubeletConfiguration: '{"failSwapOn": false}' } }), []);
  assert.equal(reasons(['port=2379'], { kubernetes: { initIgnorePreflightErrors: 'Swap, Port-2379' } }), []);
});

test('the first control plane may have what kubeadm init lets pass, and a machine that joins what kubeadm join does', () => {
  const listed = (errors: string): string => `nodeRegistration: { ignorePreflightErrors: [${errors}] }`;
  const taken = ['port 10250 is in use there, and Kubernetes needs it: ss -ltnp names the program'];
  const of = (kubernetes: object, more: Asked = {}) => reasons(['port=10250'], { kubernetes, ...more });
  const joined: readonly Asked[] = [{ role: 'worker' }, { joins: true }];
  for (const errors of ['port-10250', 'all']) {
    const [init, join] = [{ initConfiguration: listed(errors) }, { joinConfiguration: listed(errors) }];
    assert.equal([of(init), of(join)], [[], taken]);
    for (const more of joined) assert.equal([of(init, more), of(join, more)], [taken, []]);
  }
  for (const more of joined) assert.equal(of({ initIgnorePreflightErrors: 'Port-10250' }, more), taken);
  // What kubeadm cannot read lets nothing pass.
  assert.equal(of({ joinConfiguration: 'a: [' }, { role: 'worker' }), taken);
});

test('a node, and a host whose join was cut, have their ports in use by themselves', () => {
  assert.equal(reasons(['port=10250', 'part=kubelet.conf']), []);
  assert.equal(reasons(['port=10250', 'part=curlew/attempt']), []);
});

test.run();
