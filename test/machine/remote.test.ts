import { writeFile } from 'node:fs/promises';
import { sendBundle } from '../../src/machine/run/remote.ts';
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

test.run();
