import { clusterPlan } from '../../src/app/cluster-plan.ts';
import { clusterStatus } from '../../src/app/cluster-status.ts';
import { status as command } from '../../src/cli/commands/cluster-status.ts';
import * as assert from '../support/assert.ts';
import { never, noReport } from '../support/context.ts';
import { cluster, documents } from '../support/fleet-files.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('app/cluster-status');

test('a file with a setting that cannot be read is refused, and its machines are looked at all the same', async () => {
  const machine = { name: 'p1', role: 'control-plane', address: '127.0.0.1' };
  const machines = [{ ...machine, ssh: { port: 1, hostKey: `SHA256:${'A'.repeat(43)}` } }];
  const installer = { kubernetes: { kubeletConfiguration: 'maxPods: 9\nevictionHard: {' } };
  const spec = { kubernetes: { version: 'v1.34.4' }, machines, installer };
  await using box = await tree({ 'paris.yaml': documents(cluster('paris', {}, spec)) });
  const context = {
    signal: never,
    report: noReport,
    env: { HOME: box.path, PATH: process.env['PATH'] },
    cwd: box.path,
  };
  const files = ['paris.yaml'];
  const found = await clusterStatus({ files }, context);
  const { hosts, refused, healthy } = found;
  const shown = command.render(found, { request: { files }, options: {} } as never, {} as never);
  assert.match(shown, /^p1 +control-plane +not [^,:]+(?:: [^,]+)?, it does not answer: /m);
  assert.match(hosts[0]?.text ?? '', 'it does not answer');
  const reason = /^spec\.installer\.kubernetes\.kubeletConfiguration must be a text that is a map in YAML: line 2: /;
  assert.match(refused[0]?.reason ?? '', reason);
  assert.equal([refused.length, healthy], [1, false]);
  await assert.rejectsWith(clusterPlan({ files }, context), 'SPEC_INVALID', new RegExp(reason.source.slice(1)));
});

test.run();
