import { healthOf } from '../../../src/cluster/channel/health.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cluster/channel/health');

const metadata = { name: 'web', generation: 1 };

function deployment(replicas: number, readyReplicas: number) {
  const status = { observedGeneration: 1, readyReplicas, updatedReplicas: replicas, availableReplicas: readyReplicas };
  return { kind: 'Deployment', metadata, spec: { replicas }, status };
}

function daemonSet(desiredNumberScheduled: number, numberReady: number) {
  const counts = { desiredNumberScheduled, numberReady, updatedNumberScheduled: desiredNumberScheduled };
  return { kind: 'DaemonSet', metadata, spec: {}, status: { observedGeneration: 1, ...counts } };
}

test('a Deployment needs all of its pods, and by the rules of Open Cluster Management one', () => {
  assert.equal(healthOf(deployment(3, 1)), { state: 'progressing', reason: '1 of 3 available' });
  assert.is(healthOf(deployment(3, 1), { asOcm: true }).state, 'healthy');
  assert.is(healthOf(deployment(0, 0), { asOcm: true }).state, 'healthy');
  assert.equal(healthOf(deployment(3, 0), { asOcm: true }), { state: 'progressing', reason: '0 of 3 ready' });
});

test('by the rules of Open Cluster Management, a DaemonSet needs all of its pods', () => {
  assert.is(healthOf(daemonSet(3, 3), { asOcm: true }).state, 'healthy');
  assert.equal(healthOf(daemonSet(3, 2), { asOcm: true }), { state: 'progressing', reason: '2 of 3 ready' });
});

test('a workload that its controller has not seen is not healthy by any rules', () => {
  const { status: _, ...unseen } = deployment(0, 0);
  assert.is(healthOf(unseen).state, 'progressing');
  assert.is(healthOf(unseen, { asOcm: true }).state, 'progressing');
});

test.run();
