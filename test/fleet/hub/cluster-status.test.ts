/** What the status of a Cluster says. */
import { NO_RECORD } from '../../../src/fleet/hub/agent-record.ts';
import { degradedOf } from '../../../src/fleet/hub/agent-status.ts';
import { hubClusterStatus } from '../../../src/fleet/hub/cluster-status.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/hub/cluster-status');

test('a second agent of a cluster is named before all else that is wrong there', () => {
  const decided = { record: NO_RECORD, jobs: [], refused: new Map(), detached: ['web'], recheckAfter: Infinity };
  const { reason, message } = degradedOf(decided, 'oslo-2/17_ab');
  assert.is(reason, 'TwoAgents');
  assert.match(message ?? '', /^oslo-2\/17_ab is an agent of this cluster, too: stop one of them/);
});

test('a clock that is off is named by the minute, with its direction', () => {
  const clock = (ahead: number): string | undefined => {
    const { conditions } = hubClusterStatus({ facts: {}, problem: '', ahead }, [], undefined, 1000) as unknown as {
      readonly conditions: readonly { readonly type: string; readonly message?: string }[];
    };
    return conditions.find(({ type }) => type === 'ClockSynced')?.message;
  };
  assert.equal(
    [clock(0), clock(3620), clock(-90)],
    ['', 'its clock is about 60 min ahead of that of the hub', 'its clock is about 2 min behind that of the hub'],
  );
});

test.run();
