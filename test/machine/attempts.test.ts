import { CurlewError } from '../../src/core/errors.ts';
import { lastAttempt, recordAttempt } from '../../src/machine/run/attempts.ts';
import { clusterHealth } from '../../src/machine/run/node-health.ts';
import * as assert from '../support/assert.ts';
import { never, noReport } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('what timers of a control plane have tried');

test('status names a snapshot of etcd whose copy has failed, until one has not', async () => {
  await using box = await tree({ 'kubernetes/kubelet.conf': 'users: []', 'kubelet/config.yaml': '' });
  const context = { signal: never, report: noReport, env: {}, cwd: box.path, user: 0 };
  const kubernetes = box.at('kubernetes');
  const problems = async () => {
    const health = await clusterHealth(context, { kubernetes, kubelet: box.at('kubelet'), images: box.path });
    return health?.problems.join('; ') ?? '';
  };
  const lost = recordAttempt(kubernetes, 'snapshot', async () => {
    throw new CurlewError('FETCH_FAILED', 'cannot put the copy: connect ECONNREFUSED');
  });
  await assert.rejectsWith(lost, 'FETCH_FAILED');
  assert.match(
    await problems(),
    /the snapshot of etcd has failed on \d{4}-.*cannot put the copy.*curlew-etcd-snapshot/,
  );
  assert.is(await recordAttempt(kubernetes, 'snapshot', async () => 'saved'), 'saved');
  assert.is((await lastAttempt(kubernetes, 'snapshot'))?.problem, undefined);
  assert.is((await problems()).includes('snapshot'), false);
});

test.run();
