/** What a canceled run says about the node. */
import { CurlewError } from '../../../src/core/errors.ts';
import { changing, HOOKS_DONE, runInstalled } from '../../../src/steps/node/installed-run.ts';
import { uninstallRequest } from '../../../src/runtime/prepare/removal.ts';
import * as assert from '../../support/assert.ts';
import { noReport } from '../../support/context.ts';
import { cleanEnvironment } from '../../support/curlew.ts';
import { onNode, put, SAYS } from '../../support/kept-node.ts';
import { trace, tracer } from '../../support/node-install.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('steps/node/installed-run');

test('a run that is canceled after its hooks does not say that nothing has changed', async () => {
  await using box = await tree();
  await put(box, [tracer('aaa', SAYS)]);
  assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz')).exitCode, 0);
  const stop = new AbortController();
  const { signal } = stop;
  const env = cleanEnvironment({ cwd: box.path, env: { TRACE: box.at('trace'), HOME: box.path } });
  const context = { cwd: box.path, env, report: noReport, signal };
  const options = { keepData: false, keepGoing: false, pruneImages: false };
  const run = {
    command: {},
    requestIn: async (directory: string) => uninstallRequest(directory, ['aaa'], options, context),
  };
  const canceled = runInstalled(run, { root: box.at('root'), unconfined: true }, context, () => {
    stop.abort(new CurlewError('CANCELLED', 'canceled'));
    return signal.throwIfAborted();
  });
  const { hint } = await assert.rejectsWith(canceled, 'CANCELLED');
  assert.is(hint, HOOKS_DONE);
  assert.ok((await trace(box)).some((line) => line.startsWith('gone')));
});

test('what a part of a canceled use case says is left is not replaced', async () => {
  const signal = AbortSignal.abort(new CurlewError('CANCELLED', 'canceled'));
  const stopped = async (): Promise<void> => Promise.reject(new CurlewError('CLUSTER_FAILED', 'x', { hint: 'y' }));
  const outer = changing({ signal }, async () => changing({ signal }, stopped, HOOKS_DONE));
  assert.is((await assert.rejectsWith(outer, 'CANCELLED')).hint, HOOKS_DONE);
  const { hint } = await assert.rejectsWith(changing({ signal }, stopped), 'CANCELLED');
  assert.is(hint, 'nothing has changed on this node: run the same command again');
});

test.run();
