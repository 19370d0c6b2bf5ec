/** What an agent does where an add-on is no longer selected, and is to stay. */
import { afterJob, obey, readOrder } from '../../../src/fleet/hub/agent.ts';
import { NO_RECORD } from '../../../src/fleet/hub/agent-record.ts';
import * as assert from '../../support/assert.ts';
import { hubChart, hubClusterAddon } from '../../support/hub-objects.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/hub/agent-leaving');
const KNOWN = { now: 1000, hub: 'hub-1', acceptOlder: false };
const CLOCK = { now: 1000, random: 0.5 };

function orders(spec: object = {}) {
  const own = { hub: KNOWN.hub, source: hubChart('1.2.3'), values: {}, ...spec };
  const { metadata, ...object } = hubClusterAddon('web', 'oslo', own) as { readonly metadata: object };
  const more = { uid: 'u', resourceVersion: '1', labels: {}, annotations: {}, finalizers: [] };
  return new Map([['web', readOrder({ metadata: { name: 'web', ...metadata, ...more }, ...object })]]);
}

test('what is to stay loses only its record, and an agent that cannot read how it is to go removes nothing', () => {
  const record = obey(orders(), NO_RECORD, KNOWN).record;
  const leave = obey(orders({ revision: 2, action: 'Remove', remove: { onFailure: 'Leave' } }), record, KNOWN);
  const [job] = leave.jobs;
  assert.ok(job !== undefined && job.act === 'forget');
  const { web } = afterJob(leave.record, job, { result: 'done', reason: '', message: '' }, CLOCK).addons;
  assert.equal([web?.state, web?.reason], ['Succeeded', 'Orphaned']);
  const unknown = obey(orders({ revision: 2, action: 'Remove', remove: { onFailure: 'Later' } }), record, KNOWN);
  assert.is(unknown.refused.get('web')?.reason, 'Unreadable');
  assert.is(unknown.record.addons['web']?.spec.action, 'Install');
});

test.run();
