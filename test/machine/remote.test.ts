import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { digestOf } from '../../src/core/digest.ts';
import { cleanHost, lockHosts, sendBundle } from '../../src/machine/run/remote.ts';
import { SshError, type Ssh, type SshHost } from '../../src/machine/ssh/ssh.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('what curlew does on a host');
const host: SshHost = { name: 'p1', address: '10.0.0.1', hostKey: 'x' };

test('a host that does not count what it has gets the whole bundle', async () => {
  await using box = await tree();
  const path = box.at('b.tar.gz');
  await writeFile(path, '0123456789');
  const file = { path, digest: `sha256:${'a'.repeat(64)}`, size: 10, whole: `sha256:${'b'.repeat(64)}` } as const;
  const sentAfter = async (answer: string): Promise<string> => {
    const parts: Uint8Array[] = [];
    const run: Ssh['run'] = async (_, { script, input }) => {
      if (typeof input === 'object') for await (const part of input) parts.push(part);
      return script.includes('wc -c') ? answer : '';
    };
    const ssh = { run } as Ssh;
    await sendBundle({ ssh, signal: never }, host, { file, sent: () => undefined });
    return Buffer.concat(parts).toString();
  };
  assert.is(await sentAfter('4\n'), '456789');
  for (const answer of ['-1', '1.5', 'NaN', '']) assert.is(await sentAfter(answer), '0123456789');
});

test('what a host runs keeps its bundle, and is named', async () => {
  await using box = await tree({ 'there/name': 'join p1 v1.34.4', 'bundle/join.sh': '' });
  execFileSync('tar', ['-czf', box.at('b.tar.gz'), '-C', box.at('bundle'), '.']);
  const whole = digestOf(await readFile(box.at('b.tar.gz')));
  const { size } = await stat(box.at('b.tar.gz'));
  const run: Ssh['run'] = async (at, { script, operands = [], input }) => {
    const chunks: Uint8Array[] = [];
    if (typeof input === 'object') for await (const chunk of input) chunks.push(chunk);
    const words = ['-c', script, 'sh', box.at('there'), ...operands.slice(1)];
    const { status, stdout, stderr } = spawnSync('sh', words, { input: Buffer.concat(chunks), encoding: 'utf8' });
    if (status === 0) return stdout;
    throw new SshError(at, 'status', `it failed with status ${status}: ${stderr.trim()}`, '');
  };
  const remote = { ssh: { run } as Ssh, signal: never };
  const file = { path: box.at('b.tar.gz'), digest: `sha256:${'a'.repeat(64)}`, size, whole };
  const send = async (): Promise<void> => sendBundle(remote, host, { file, sent: () => undefined });
  // It holds the lock until its input ends.
  const other = spawn('flock', [box.at('there/run.lock'), 'sh', '-c', 'echo held; cat'], { stdio: 'pipe' });
  const ended = once(other, 'exit');
  try {
    await once(other.stdout, 'data');
    const busy = /it failed with status 75: join p1 v1\.34\.4 runs there: wait until it ends$/;
    await assert.rejectsWith(send(), 'PROGRAM_FAILED', busy);
    await assert.rejectsWith(cleanHost(remote, host), 'PROGRAM_FAILED', busy);
  } finally {
    other.stdin.end();
    await ended;
  }
  await send();
  assert.equal(await readdir(box.at('there/bundle')), ['.digest', 'join.sh']);
  // The run has ended: what has the lock is another command.
  await writeFile(box.at('there/status'), '0\n');
  const last = spawn('flock', [box.at('there/run.lock'), 'sh', '-c', 'echo held; cat'], { stdio: 'pipe' });
  const isOver = once(last, 'exit');
  try {
    await once(last.stdout, 'data');
    const unnamed = /it failed with status 75: another command of curlew runs there: wait until it ends$/;
    await assert.rejectsWith(cleanHost(remote, host), 'PROGRAM_FAILED', unnamed);
  } finally {
    last.stdin.end();
    await isOver;
  }
  await cleanHost(remote, host);
  assert.equal(await readdir(box.at('there')), ['run.lock']);
});

test('a control plane that is replaced under its name is locked, too, and the one that is gone is left alone', async () => {
  const asked: string[] = [];
  const run: Ssh['run'] = async ({ address }, { operands = [] }) => {
    asked.push(`${address} ${operands[2] === '0' ? 'free' : 'lock'}`);
    return '';
  };
  const remote = { ssh: { run } as Ssh, signal: never };
  const p2: SshHost = { name: 'p2', address: '10.0.0.2', hostKey: 'x' };
  {
    await using lock = await lockHosts(remote, [host, p2], { owner: 'me', doing: 'apply paris' });
    await lock.add([{ ...host }, p2]);
    assert.equal(asked, ['10.0.0.1 lock', '10.0.0.2 lock']);
    await lock.add([{ ...host, address: '10.0.0.9' }, p2]);
    assert.equal(asked.slice(2), ['10.0.0.9 lock']);
  }
  assert.equal(asked.slice(3).toSorted(), ['10.0.0.2 free', '10.0.0.9 free']);
});

test.run();
