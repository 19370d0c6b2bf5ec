import { execa } from 'execa';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import type { Outcome } from '../support/curlew.ts';
import { boxWith } from '../support/node-bundles.ts';
import { tracer } from '../support/node-install.ts';
import { runCommand, runTraced } from '../support/run-command.ts';
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

test('the folder of an unpacked bundle is verified file by file', async () => {
  await using box = await boxWith([tracer('aaa'), tracer('bbb')]);
  await mkdir(box.at('u'));
  await execa('tar', ['xzf', box.at('b.tar.gz'), '-C', box.at('u')]);
  const verify = async (): Promise<Outcome> => runCommand(['verify', 'u'], box.path);
  const trial = ['install', '--dir', 'u', '--root', 'trial', '--unconfined'];
  assert.is((await runTraced(trial, box)).exitCode, 0);
  const whole = await verify();
  assert.is(whole.exitCode, 0, whole.stderr);
  const [, contents] = (await runCommand(['verify', 'b.tar.gz'], box.path)).stdout.split('\n');
  assert.match(whole.stdout, /^u: ok, \d+ files, /);
  assert.is(whole.stdout.split('\n')[1], contents);

  const script = 'u/addons/bbb/1.0.0/install.sh';
  const text = await readFile(box.at(script), 'utf8');
  await writeFile(box.at(script), text.replace('b', 'c'));
  const changed = await verify();
  assert.is(changed.exitCode, 15);
  assert.match(changed.stderr, /bbb\/1\.0\.0\/install\.sh: not the file that its package contains/);
  assert.match(changed.stderr, /hint: unpack the bundle again$/);
  await writeFile(box.at(script), text);
  await writeFile(box.at('u/addons/bbb/1.0.0/more.sh'), '');
  assert.match((await verify()).stderr, /more\.sh: the bundle has no such file/);
  await rm(box.at('u/addons/bbb'), { recursive: true });
  assert.match((await verify()).stderr, /u: the package bbb-1\.0\.0 is missing or incomplete/);
  await rm(box.at('u/stargz.index.json'));
  await writeFile(box.at('u/install.sh'), '');
  assert.match((await verify()).stderr, /u: the bundle was not unpacked to its end/);
});

test.run();
