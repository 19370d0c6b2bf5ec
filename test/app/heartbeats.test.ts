/** Which agents a controller takes as silent. */
import { Heartbeats } from '../../src/app/hub/heartbeats.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('app/heartbeats');

function lease(namespace: string, resourceVersion: string, holderIdentity = 'paris/1') {
  const metadata = { namespace, name: 'curlew-agent', uid: '', resourceVersion, labels: {}, annotations: {} };
  const rest = { finalizers: [], ownerReferences: [], managedFields: [] };
  return { metadata: { ...metadata, ...rest }, spec: { holderIdentity } };
}

test('an agent whose Lease has not changed for five minutes is silent, until it changes', () => {
  let now = 0;
  let returns = 0;
  const beats = new Heartbeats(
    () => (returns += 1),
    () => now,
  );
  beats.see(lease('fleet-paris', '1'));
  now = 299_000;
  assert.is(beats.silence('paris'), undefined);
  assert.is(beats.nextMs, 1000);
  // A list brings the same again.
  beats.see(lease('fleet-paris', '1'));
  now = 310_000;
  assert.is(beats.silence('paris'), 10);
  assert.is(beats.nextMs, Infinity);
  beats.see(lease('fleet-paris', '2'));
  assert.is(beats.silence('paris'), undefined);
  assert.is(returns, 1);
});

test('a Lease that no agent has renewed, or of another namespace, says nothing', () => {
  let now = 0;
  const beats = new Heartbeats(
    () => undefined,
    () => now,
  );
  beats.see(lease('fleet-paris', '1', ''));
  beats.see(lease('default', '1'));
  now = 1e9;
  assert.is(beats.silence('paris'), undefined);
  assert.is(beats.nextMs, Infinity);
});

test.run();
