import { chmod, writeFile } from 'node:fs/promises';
import { openSsh, type RemoteRun } from '../../../src/machine/ssh/ssh.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('failures of programs on hosts');
const HOST_KEY = `SHA256:${'a'.repeat(43)}`;

for (const [ends, reason] of [
  ['exit 3', 'it failed with status 3'],
  ['echo why >&2; exit 3', 'it failed with status 3: why'],
  ['echo out; exit 3', 'it failed with status 3: out'],
  ['exit 253', '10.0.0.1 refuses sudo to the user'],
  ['exit 255', 'the connection was cut'],
] as const) {
  test(`a program that ends with ${ends} fails with what it has said, if it has said anything`, async () => {
    await using box = await tree();
    await writeFile(box.at('ssh'), `#!/bin/sh\n${ends}\n`);
    await chmod(box.at('ssh'), 0o755);
    await using ssh = openSsh({ PATH: process.env['PATH'], HOME: box.path }, { program: box.at('ssh') });
    const what: RemoteRun = { script: 'true', limitMs: 20_000, signal: never, line: () => undefined };
    const run = ssh.run({ name: 'p1', address: '10.0.0.1', hostKey: HOST_KEY }, what);
    const { message } = await assert.rejectsWith(run, 'PROGRAM_FAILED');
    assert.is(message, `cannot run a program on p1: ${reason}`);
  });
}

test.run();
