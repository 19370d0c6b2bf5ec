import { execa } from 'execa';
import { spawn } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { digestOf, hexOf } from '../../../src/core/digest.ts';
import { lockFolder, runInProgress } from '../../../src/runtime/node/lock.ts';
import { processInfo } from '../../../src/platform/process/process-tree.ts';
import type { Owner } from '../../../src/platform/files/owner.ts';
import * as assert from '../../support/assert.ts';
import { ownerOf } from '../../support/partials.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('lock');

function lockOf(owner: Partial<Owner>): string {
  return `${ownerOf(owner)} x\n`;
}

test('a lock is taken, keeps others out, and leaves nothing behind', async () => {
  await using box = await tree();
  {
    await using _held = await lockFolder(box.path);
    await assert.rejectsWith(lockFolder(box.path), 'BUSY', /another run is in progress \(process \d+\)/);
    assert.equal(await readdir(box.path), ['lock']);
  }
  assert.equal(await readdir(box.path), []);
  await using _again = await lockFolder(box.path);
});

for (const [title, text] of [
  ['whose process is gone', lockOf({ pid: 4_194_300 })],
  ['whose pid was given to another process', lockOf({ start: '1' })],
  ['from before a reboot', lockOf({ place: 'f'.repeat(12) })],
  ['that was cut short', `${ownerOf().slice(0, 12)}-`],
  ['that is empty', ''],
] as const) {
  test(`a lock ${title} is taken over`, async () => {
    await using box = await tree({ lock: text });
    await using _held = await lockFolder(box.path);
    assert.equal(await readdir(box.path), ['lock']);
    await assert.rejectsWith(lockFolder(box.path), 'BUSY');
  });
}

test('a lock of a process that lives is respected', async () => {
  await using box = await tree();
  const child = spawn('sleep', ['100'], { stdio: 'ignore' });
  const info = processInfo(child.pid ?? 0);
  await writeFile(box.at('lock'), lockOf({ pid: child.pid ?? 0, start: info?.start ?? '' }));
  await assert.rejectsWith(lockFolder(box.path), 'BUSY', new RegExp(`process ${child.pid ?? 0}`));
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
  await using _held = await lockFolder(box.path);
});

test('a lock that curlew 0.1 holds is respected, and taken over once its process has ended', async () => {
  await using box = await tree();
  const child = spawn('sleep', ['100'], { stdio: 'ignore' });
  const start = processInfo(child.pid ?? 0)?.start ?? '';
  const boot = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
  await writeFile(box.at('lock'), `${JSON.stringify({ pid: child.pid, start, boot, nonce: 'a' })}\n`);
  await assert.rejectsWith(lockFolder(box.path), 'BUSY', new RegExp(`process ${child.pid ?? 0}`));
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
  await using _held = await lockFolder(box.path);
  assert.equal(await readdir(box.path), ['lock']);
});

test('a folder in the place of a lock is an error', async () => {
  await using box = await tree({ 'lock/x': '' });
  await assert.rejectsWith(lockFolder(box.path), 'FILE_UNUSABLE', /it is a folder/);
  assert.equal(await readdir(box.path), ['lock']);
});

test('of many who find a lock without owner, one takes it over', async () => {
  await using box = await tree({ lock: lockOf({ pid: 4_194_300 }) });
  const tries = await Promise.allSettled(Array.from({ length: 20 }, async () => lockFolder(box.path)));
  const won = tries.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  assert.is(won.length, 1);
  for (const held of won) await held[Symbol.asyncDispose]();
  assert.equal(await readdir(box.path), []);
});

test('a takeover that died half-way is taken over too', async () => {
  await using box = await tree({ lock: lockOf({ pid: 4_194_300 }) });
  const stale = lockOf({ pid: 4_194_300 });
  await writeFile(box.at(`lock.claim-${hexOf(digestOf(stale)).slice(0, 16)}`), lockOf({ pid: 4_194_299 }));
  await using _held = await lockFolder(box.path);
  assert.equal(await readdir(box.path), ['lock']);
});

test('takeovers that power cuts have emptied are no circle', async () => {
  const claim = (...texts: readonly string[]): string => `lock.claim-${hexOf(digestOf(texts.join('\n'))).slice(0, 16)}`;
  await using box = await tree({ lock: '', [claim('')]: '' });
  await writeFile(box.at(claim(box.at(claim('')), '')), '');
  await using _held = await lockFolder(box.path);
  assert.equal(await readdir(box.path), ['lock']);
});

test('a pipe and a link to nothing in the place of a lock are replaced, and not waited for', async () => {
  await using box = await tree();
  for (const command of [['mkfifo'], ['ln', '-s', box.at('none')]]) {
    await execa('sh', ['-c', '"$@"', 'sh', ...command, box.at('lock')]);
    assert.is(await runInProgress(box.path), undefined);
    await using _held = await lockFolder(box.path);
    assert.is(await runInProgress(box.path), process.pid);
    assert.equal(await readdir(box.path), ['lock']);
  }
});

test.run();
