/** Which agents a controller takes as silent. */
import { Heartbeats } from '../../src/fleet/hub/run/heartbeats.ts';
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

test('while the hub is not heard no agent becomes silent, and one that was silent before stays so', () => {
  let now = 0;
  const beats = new Heartbeats(
    () => undefined,
    () => now,
  );
  beats.see(lease('fleet-oslo', '1'));
  beats.hears(true);
  now = 290_000;
  beats.see(lease('fleet-paris', '2'));
  now = 310_000;
  assert.is(beats.heardFor, 310);
  beats.hears(false);
  now = 3_000_000;
  beats.hears(false);
  beats.see(lease('fleet-paris', '2'));
  beats.hears(true);
  assert.equal([beats.silence('oslo'), beats.silence('paris'), beats.heardFor], [2700, undefined, 0]);
  assert.equal([beats.isThere('oslo'), beats.isThere('paris'), beats.isThere('rome')], [false, true, false]);
  now = 3_310_000;
  beats.hears(true);
  assert.equal([beats.silence('paris'), beats.heardFor], [10, 310]);
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
