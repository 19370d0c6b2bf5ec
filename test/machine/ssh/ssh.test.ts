import { chmod, writeFile } from 'node:fs/promises';
import { ERROR_CODES, type ErrorCode } from '../../../src/core/errors.ts';
import { openSsh, type RemoteRun } from '../../../src/machine/ssh/ssh.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('failures of programs on hosts');
const HOST_KEY = `SHA256:${'a'.repeat(43)}`;

/** What a program on p1 does that is a script with this text. */
async function runEnding(ends: string): Promise<string> {
  await using box = await tree();
  await writeFile(box.at('ssh'), `#!/bin/sh\n${ends}\n`);
  await chmod(box.at('ssh'), 0o755);
  await using ssh = openSsh({ PATH: process.env['PATH'], HOME: box.path }, { program: box.at('ssh') });
  const what: RemoteRun = { script: 'true', limitMs: 20_000, signal: never, line: () => undefined };
  return await ssh.run({ name: 'p1', address: '10.0.0.1', hostKey: HOST_KEY }, what);
}

for (const [ends, reason] of [
  ['exit 3', 'it failed with status 3'],
  ['echo why >&2; exit 3', 'it failed with status 3: why'],
  ['echo out; exit 3', 'it failed with status 3: out'],
  ['exit 253', '10.0.0.1 refuses sudo to the user'],
  ['exit 255', 'the connection was cut'],
] as const) {
  test(`a program that ends with ${ends} fails with what it has said, if it has said anything`, async () => {
    const { message } = await assert.rejectsWith(runEnding(ends), 'PROGRAM_FAILED');
    assert.is(message, `cannot run a program on p1: ${reason}`);
  });
}

test('what curlew on a host says is marked as of the host, keeps its status, and proposes commands of the operator', async () => {
  const told = async (code: ErrorCode, says: string, as: ErrorCode = code): Promise<readonly unknown[]> => {
    const run = runEnding(`printf 'error ${code}: ${says}' >&2; exit ${ERROR_CODES[code]}`);
    const { message, hint } = await assert.rejectsWith(run, as);
    return [message, hint];
  };
  const message = 'p1 says: cannot drain w9: the cluster has no such node';
  const nodes = String.raw`cannot drain w9: the cluster has no such node\n  hint: curlew cluster nodes lists them`;
  assert.equal(await told('NOT_FOUND', nodes), [message, 'curlew cluster status FILE lists them']);
  const budget = String.raw`no\n  hint: ./tasks.sh node drain w1 --ignore-budgets --yes deletes them`;
  const past = 'curlew machine drain FILE w1 --ignore-budgets --yes deletes them';
  assert.equal(await told('CLUSTER_FAILED', budget), ['p1 says: no', past]);
  assert.equal(await told('HOOK_FAILED', String.raw`no\n  hint: curlew logs demo`), [
    'p1 says: no',
    'on p1: curlew logs demo',
  ]);
  // A machine that stays in the file of the cluster only loses its Node.
  assert.equal(await told('CLUSTER_FAILED', String.raw`no\n  hint: remove its Node: ./tasks.sh node remove w1 --yes`), [
    'p1 says: no',
    'on p1: remove its Node: ./tasks.sh node remove w1 --yes',
  ]);
  // A mistake of the command line there is none of the operator.
  assert.equal(await told('USAGE', 'unknown option', 'PROGRAM_FAILED'), ['p1 says: unknown option', '']);
});

test.run();
