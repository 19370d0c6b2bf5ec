/** Add-ons that are installed and left the spec. */
import { writeFile } from 'node:fs/promises';
import type { NodeResult } from '../../src/app/install-result.ts';
import * as assert from '../support/assert.ts';
import type { Outcome } from '../support/curlew.ts';
import { boxWith, bundleOf } from '../support/node-bundles.ts';
import { tracer } from '../support/node-install.ts';
import { runTraced } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import type { Tree } from '../support/tree.ts';

const test = suite('cli, add-ons that left the spec', { timeoutMs: 120_000 });

async function install(box: Tree, bundle: string, ...more: readonly string[]): Promise<Outcome> {
  const { exitCode, stdout, stderr } = await runTraced(
    ['install', '--bundle', box.at(bundle), '--root', 'root', '--unconfined', ...more],
    box,
  );
  assert.is(exitCode, 0, stderr);
  return { exitCode, stdout, stderr };
}

test('plan and result name them, and say that they stay', async () => {
  await using box = await boxWith([tracer('web'), tracer('db', '', '2.0.0')]);
  await writeFile(box.at('less.tar.gz'), bundleOf([tracer('web')]));
  assert.not.match((await install(box, 'b.tar.gz')).stdout, 'stays');
  assert.match((await install(box, 'less.tar.gz', '--dry-run')).stdout, /^db 2\.0\.0\n {2}stays {4}not in the spec$/m);
  const told = JSON.parse((await install(box, 'less.tar.gz', '--json')).stdout) as NodeResult;
  assert.equal(told.stays, [{ name: 'db', version: '2.0.0' }]);
  assert.match((await install(box, 'less.tar.gz')).stdout, /^db {3}2\.0\.0 {2}stays installed \(not in the spec\)$/m);
});

test.run();
