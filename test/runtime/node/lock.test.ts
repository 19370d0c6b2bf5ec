import { execa } from 'execa';
import { spawn } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { digestOf, hexOf } from '../../../src/core/digest.ts';
import { lockFolder, lockOwner } from '../../../src/runtime/node/lock.ts';
import { processInfo } from '../../../src/platform/process/process-tree.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('lock');

const boot = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
const me = processInfo(process.pid);

function lockOf(owner: Readonly<Record<string, unknown>>): string {
  return `${JSON.stringify({ pid: process.pid, start: me?.start, boot, nonce: 'x', ...owner })}\n`;
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
  ['from before a reboot', lockOf({ boot: 'another' })],
  ['that was cut short', '{"pid":'],
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
  await writeFile(box.at('lock'), lockOf({ pid: child.pid, start: info?.start }));
  await assert.rejectsWith(lockFolder(box.path), 'BUSY', new RegExp(`process ${child.pid ?? 0}`));
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
  await using _held = await lockFolder(box.path);
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

test('a pipe in the place of a lock is refused, and not waited for', async () => {
  await using box = await tree();
  await execa('mkfifo', [box.at('lock')]);
  await assert.rejectsWith(lockFolder(box.path), 'FILE_UNUSABLE', /lock: not a regular file/);
  assert.is(await lockOwner(box.path), undefined);
  assert.equal(await readdir(box.path), ['lock']);
});

test.run();
