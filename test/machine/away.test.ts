import { planCluster, type ClusterPlan } from '../../src/machine/plan.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { desired, machine, NEW, OLD, plan, reasons, seen, THREE, titles } from './seen-cluster.ts';

const test = suite('plans past machines that are away');

test('an upgrade goes on past a worker that does not answer, and says how far', () => {
  const away = machine('w0', { answers: false, ready: false });
  const [cp0, w1] = [machine('cp0'), machine('w1')];
  const past = plan('cp0 w0 w1', [cp0, away, w1]);
  const ends = (host: string): readonly string[] => [
    `drain ${host} ${NEW}`,
    `upgrade ${host} ${NEW}`,
    `uncordon ${host}`,
  ];
  assert.equal(titles(past), [
    `images cp0 ${NEW}`,
    `images w1 ${NEW}`,
    `snapshot cp0 ${NEW}`,
    ...ends('cp0'),
    ...ends('w1'),
  ]);
  const cure = 'turn it on, or curlew machine remove takes it out of the cluster';
  assert.equal(reasons(past.held), [`w0: it does not answer: ${cure}`]);
  const further = planCluster(
    desired(['cp0', 'w0'], { version: 'v1.31.4' }),
    seen([cp0, { ...away, kubelet: 'v1.29.9' }]),
  );
  assert.equal(titles(further), []);
  assert.equal(reasons(further.held), [
    `w0: it does not answer, and the cluster goes no further than ${OLD} while it has v1.29.9: ${cure}`,
  ]);
});

test('what is wrong with a worker holds neither the joins nor the upgrades of others', () => {
  const foreign = machine('w0', { cluster: 'bank', joined: false });
  const bare = { name: 'w2', answers: true, joined: false, images: [OLD, NEW] };
  const found = plan('cp0 w0 w1 w2', [
    machine('cp0', { images: [NEW] }),
    foreign,
    machine('w1', { images: [NEW] }),
    bare,
  ]);
  assert.equal(titles(found).slice(0, 3), [`join w2 ${OLD}`, `snapshot cp0 ${NEW}`, `drain cp0 ${NEW}`]);
  assert.ok(titles(found).includes(`upgrade w1 ${NEW}`));
  assert.not.ok(titles(found).some((title) => title.includes('w0')));
  assert.equal([reasons(found.refused), reasons(found.held)], [['w0: it belongs to the cluster bank'], []]);
  // A control plane in doubt stops all.
  const other = plan('cp0 cp1 cp2', [...THREE.slice(0, 2), machine('cp2', { cluster: 'bank' })]);
  assert.equal([titles(other), reasons(other.refused)], [[], ['cp2: it belongs to the cluster bank']]);
});

test('a machine that does not answer is never as its file says, also while its node is ready', () => {
  const now = { kubelet: NEW, apiServer: NEW };
  const away = machine('w0', { kubelet: NEW, answers: false });
  assert.equal(reasons(plan('cp0 w0', [machine('cp0', now), away]).held), ['w0: it does not answer']);
  const loud = { ...away, silence: 'it prints without end' };
  assert.equal(reasons(plan('cp0 w0', [machine('cp0', now), loud]).held), ['w0: it prints without end']);
});

test('one worker that is not ready stops the others only if it has the new version', () => {
  const broken = (kubelet: string): ClusterPlan =>
    plan('cp0 w0 w1', [
      machine('cp0', { apiServer: NEW, kubelet: NEW }),
      machine('w0', { ready: false, kubelet }),
      machine('w1'),
    ]);
  assert.ok(titles(broken(OLD)).includes(`upgrade w1 ${NEW}`));
  assert.equal(titles(broken(NEW)), []);
  assert.match(reasons(broken(NEW).held).join('; '), 'w1: 1 of 2 workers are not ready');
});

test('a control plane that kubeadm would refuse gets no images', () => {
  const found = plan('cp0 w0', [machine('cp0', { ready: false }), machine('w0')]);
  assert.equal(titles(found), []);
  assert.equal(reasons(found.held), ['cp0: the control plane is not healthy: repair it']);
});

test('after a restore, a control plane without a member of etcd is to be removed, and not repaired', () => {
  const machines = [machine('cp0'), machine('cp1', { answers: false, ready: false }), machine('cp2', { ready: false })];
  const members = [
    { name: 'cp0', healthy: true },
    { name: 'cp2', healthy: false },
  ];
  const { held } = planCluster(desired(['cp0', 'cp1', 'cp2'], { version: OLD }), seen(machines, { members }));
  assert.equal(reasons(held), [
    'cp1: it is no longer a control plane, as after a restore of etcd: remove its Node on another one (curlew node remove cp1 --yes); reset or installed again, it then joins',
    'cp2: the control plane is not healthy: repair it',
  ]);
});

test('where all control planes are lost, a plan leads to the restore', () => {
  const bare = { joined: false, cluster: undefined };
  const machines = [machine('cp0', bare), machine('w0', { joined: false }), machine('w1', { joined: false })];
  const { held } = planCluster(desired(['cp0', 'w0', 'w1']), seen(machines, { members: undefined }));
  assert.match(
    reasons(held).join(),
    /no control plane of it runs: start one, or restore etcd on one \(curlew help cluster.md\)/,
  );
});

test.run();
