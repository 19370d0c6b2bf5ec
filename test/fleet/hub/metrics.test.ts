/** Metrics of a hub and of its agents: bounded, and without names. */
import { readFile } from 'node:fs/promises';
import { agentMetrics, controllerMetrics, PassCounts } from '../../../src/fleet/hub/metrics.ts';
import type { FleetAddonStatus } from '../../../src/fleet/rollout/fleet.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/hub/metrics');

const STATUS: FleetAddonStatus = {
  observedGeneration: 1,
  revision: 'a',
  since: 0,
  reached: 0,
  rolledBack: false,
  counts: { Succeeded: 2, Failed: 1 },
  reasons: { Group: 3 },
  batch: ['oslo'],
  waiting: [{ cluster: 'oslo', reason: 'Group', message: 'group canary is not done', since: 0 }],
};

function samples(text: string): readonly string[] {
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}

test('a controller that leads counts its passes, and what its fleet waits for', () => {
  const passes = new PassCounts();
  passes.ended(true, 1000);
  passes.ended(false, 2000);
  const stopped = { ...STATUS, stopped: 'too many', removed: [{ at: 5, begun: 2 }], counts: { Failed: 1 } };
  const text = controllerMetrics({ passes, leads: true, statuses: [STATUS, stopped] });
  assert.equal(samples(text), [
    'curlew_controller_leads 1',
    'curlew_controller_passes_total{result="decided"} 1',
    'curlew_controller_passes_total{result="failed"} 1',
    'curlew_controller_last_pass_timestamp_seconds 1000',
    'curlew_fleet_targets{state="Failed"} 2',
    'curlew_fleet_targets{state="Succeeded"} 2',
    'curlew_fleet_waiting{reason="Group"} 6',
    'curlew_fleet_stopped 1',
    'curlew_fleet_removals 2',
  ]);
  assert.match(text, /^# HELP curlew_controller_leads .*\n# TYPE curlew_controller_leads gauge\n/);
  assert.ok(!text.includes('oslo'));
});

test('one that does not lead says nothing of the fleet, and a status with a thousand reasons makes a hundred labels', () => {
  assert.equal(samples(controllerMetrics({ passes: new PassCounts(), leads: false, statuses: [] })), [
    'curlew_controller_leads 0',
    'curlew_controller_passes_total{result="decided"} 0',
    'curlew_controller_passes_total{result="failed"} 0',
  ]);
  const reasons = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`"R${at}\n`, 1]));
  const text = controllerMetrics({ passes: new PassCounts(), leads: true, statuses: [{ ...STATUS, reasons }] });
  const waiting = samples(text).filter((line) => line.startsWith('curlew_fleet_waiting'));
  assert.is(waiting.length, 100);
  assert.is(waiting[0], String.raw`curlew_fleet_waiting{reason="\"R0\n"} 1`);
});

test('an agent counts its add-ons by state, its jobs by result, and its errors', () => {
  const passes = new PassCounts();
  const states = ['Succeeded', 'Succeeded', 'Failed'];
  const jobs = new Map([['done', 3]]);
  assert.equal(samples(agentMetrics({ passes, states, jobs, errors: 4 })).slice(2), [
    'curlew_agent_addons{state="Failed"} 1',
    'curlew_agent_addons{state="Succeeded"} 2',
    'curlew_agent_jobs_total{result="done"} 3',
    'curlew_agent_errors_total 4',
  ]);
});

test('docs/hub.md describes each metric, and its alerts ask for no other', async () => {
  const passes = new PassCounts();
  passes.ended(true, 1000);
  const done = { passes, states: ['Failed'], jobs: new Map([['done', 1]]), errors: 1 };
  const text = controllerMetrics({ passes, leads: true, statuses: [STATUS] }) + agentMetrics(done);
  const names = new Set(samples(text).flatMap((line) => /^\w+/.exec(line)?.[0] ?? []));
  const page = await readFile('docs/hub.md', 'utf8');
  const [, section = '', alerts = ''] = /### Metrics\n([^]*?)```yaml\n([^]*?)```/.exec(page) ?? [];
  const named = (part: string): readonly string[] => [...new Set(part.match(/curlew_\w+/g))].toSorted();
  assert.equal(named(section), [...names].toSorted());
  assert.ok(alerts.includes('expr:') && named(alerts).every((one) => names.has(one)), alerts);
});

test.run();
