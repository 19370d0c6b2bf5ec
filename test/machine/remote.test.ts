import { writeFile } from 'node:fs/promises';
import { lockHosts, sendBundle } from '../../src/machine/run/remote.ts';
import type { Ssh, SshHost } from '../../src/ssh/ssh.ts';
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
