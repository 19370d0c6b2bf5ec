/** Ctrl-C while a file is read that never comes: a pipe whose other end writes nothing. */
import { execa } from 'execa';
import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { until } from '../support/appears.ts';
import { startCurlew } from '../support/curlew.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('cli/interrupted', { timeoutMs: 60_000 });

/** The other end, once the command has opened its own. */
async function otherEnd(path: string): Promise<FileHandle> {
  let file: FileHandle | undefined;
  await until(async () => {
    file = await open(path, constants.O_WRONLY | constants.O_NONBLOCK).catch(() => undefined);
    return file !== undefined;
  });
  if (file === undefined) throw new Error('not opened');
  return file;
}

test('one Ctrl-C ends a command that waits for a channel', async () => {
  await using box = await tree();
  await execa('mkfifo', [box.at('channel.yaml')]);
  const child = startCurlew(['channel', 'check', 'channel.yaml'], { cwd: box.path });
  await using _end = await otherEnd(box.at('channel.yaml'));
  child.kill('SIGINT');
  assert.is((await child).exitCode, 130);
});

test('a second Ctrl-C ends any command at once, even one that cannot be cancelled', async () => {
  await using box = await tree();
  await execa('mkfifo', [box.at('spec.yaml')]);
  const child = startCurlew(['installer', 'validate', 'spec.yaml'], { cwd: box.path });
  await using _end = await otherEnd(box.at('spec.yaml'));
  child.kill('SIGINT');
  const again = setInterval(() => child.kill('SIGINT'), 200);
  const { signal } = await child;
  clearInterval(again);
  assert.is(signal, 'SIGINT');
});

test.run();
