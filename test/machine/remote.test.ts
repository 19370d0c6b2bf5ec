import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { digestOf } from '../../src/core/digest.ts';
import { cleanHost, lockHosts, runCommand, sendBundle } from '../../src/machine/run/remote.ts';
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

/** The scripts of curlew in a folder of this machine, in the place of that of a host. */
function local(folder: string, begun: (script: string) => void = () => undefined): Ssh['run'] {
  return async (at, { script, operands = [], input }) => {
    const child = spawn('sh', ['-c', script, 'sh', folder, ...operands.slice(1)]);
    begun(script);
    const said: Record<'stdout' | 'stderr', string> = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].on('data', (data: Buffer) => (said[name] += data.toString()));
    }
    child.stdin.on('error', () => undefined);
    if (typeof input === 'object') for await (const part of input) child.stdin.write(part);
    child.stdin.end();
    const [status] = (await once(child, 'close')) as [number];
    if (status === 0) return said.stdout;
    throw new SshError(at, 'status', `it failed with status ${status}: ${said.stderr.trim()}`, '');
  };
}

async function bundleIn(box: { readonly at: (path: string) => string }) {
  execFileSync('tar', ['-czf', box.at('b.tar.gz'), '-C', box.at('bundle'), '.']);
  const bytes = await readFile(box.at('b.tar.gz'));
  const digest = `sha256:${'a'.repeat(64)}` as const;
  return { path: box.at('b.tar.gz'), digest, size: bytes.length, whole: digestOf(bytes), bytes };
}

test('a run that is not known to leave settings records none, and not those of a run before it that was cut', async () => {
  await using box = await tree({ 'there/settings.new': '{"digests":{}}', 'there/bundle/join.sh': 'true' });
  const run: Ssh['run'] = async (at, { script, operands = [], input }) => {
    const words = ['-c', script, 'sh', box.at('there'), ...operands.slice(1)];
    const text = typeof input === 'string' ? input : '';
    const { status, stdout, stderr } = spawnSync('sh', words, { input: text, encoding: 'utf8' });
    if (status === 0) return stdout;
    throw new SshError(at, 'status', `it failed with status ${status}: ${stderr.trim()}`, '');
  };
  const remote = { ssh: { run } as Ssh, signal: never };
  const join = { name: 'join p1', command: ['sh', './join.sh'], line: () => undefined };
  await runCommand(remote, host, join);
  const recorded = async () => (await readdir(box.at('there'))).filter((name) => name.startsWith('settings'));
  assert.equal(await recorded(), []);
  await runCommand(remote, host, { ...join, settings: '{"by":"join","digests":{}}' });
  assert.equal(await recorded(), ['settings']);
});

test('a bundle that an operator who is gone has sent, and that is unpacked still, is waited for', async () => {
  await using box = await tree({ 'bundle/join.sh': '', 'there/name': '' });
  const { bytes, ...file } = await bundleIn(box);
  const partial = box.at(`there/${'a'.repeat(64)}.partial`);
  await writeFile(partial, bytes);
  const other = spawn('flock', [box.at('there/unpack.lock'), 'sh', '-c', 'echo held; cat'], { stdio: 'pipe' });
  const ended = once(other, 'exit');
  await once(other.stdout, 'data');
  let sent: Promise<void> | undefined;
  await new Promise<void>((resolve) => {
    const run = local(box.at('there'), (script) => {
      if (script.includes('unpack.lock')) resolve();
    });
    sent = sendBundle({ ssh: { run } as Ssh, signal: never }, host, { file, sent: () => undefined });
  });
  // The other one ends its work.
  await mkdir(box.at('there/bundle'));
  await writeFile(box.at('there/bundle/.digest'), `${file.digest}\n`);
  await rm(partial);
  other.stdin.end();
  await ended;
  await sent;
  assert.equal(await readdir(box.at('there/bundle')), ['.digest']);
});

test('the rest of a bundle has its place, whatever comes late from an operator who is gone', async () => {
  await using box = await tree({ 'bundle/join.sh': '', 'there/name': '' });
  const { bytes, ...file } = await bundleIn(box);
  const partial = box.at(`there/${'a'.repeat(64)}.partial`);
  await writeFile(partial, bytes.subarray(0, 10));
  let late = 0;
  const run = local(box.at('there'), (script) => {
    // What was on its way to the other one.
    if (script.includes('seek=')) writeFileSync(partial, bytes.subarray(0, (late = 20)));
  });
  await sendBundle({ ssh: { run } as Ssh, signal: never }, host, { file, sent: () => undefined });
  assert.equal([late, await readdir(box.at('there/bundle'))], [20, ['.digest', 'join.sh']]);
});

test('a bundle for which a host has no room, or that is none, is named with its folder', async () => {
  await using box = await tree({ 'bundle/join.sh': '', 'there/name': '' });
  const { bytes, ...file } = await bundleIn(box);
  await writeFile(file.path, bytes.subarray(0, file.size - 9));
  const cut = { ...file, size: file.size - 9, whole: digestOf(bytes.subarray(0, file.size - 9)) };
  const ssh = { run: local(box.at('there')) } as Ssh;
  const sent = sendBundle({ ssh, signal: never }, host, { file: cut, sent: () => undefined });
  await assert.rejectsWith(sent, 'PROGRAM_FAILED', /cannot unpack the bundle in .*there: (?!.*Exiting).*\w/);
  assert.equal(await readdir(box.at('there')), ['name', 'unpack.lock']);
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
