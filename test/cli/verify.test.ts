import * as assert from '../support/assert.ts';
import { boxWith } from '../support/node-bundles.ts';
import { tracer } from '../support/node-install.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';

const test = suite('cli/verify');

test('words of verify that do not go together are refused', async () => {
  await using box = await boxWith([tracer('aaa')]);
  for (const words of [
    [],
    ['--installed', 'b.tar.gz'],
    ['--installed', '--key', 'our.pub'],
    ['b.tar.gz', '--root', 'root'],
  ]) {
    assert.is((await runCommand(['verify', ...words], box.path)).exitCode, 64, words.join(' '));
  }
  const nothing = await runCommand(['verify', '--installed', '--install-dir', 'nowhere'], box.path);
  assert.equal([nothing.exitCode, nothing.stdout.startsWith('Nothing is installed in ')], [0, true]);
});

test.run();
