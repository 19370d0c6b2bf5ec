import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { runProgram, type Ended } from '../../../src/manifest/scaffold/program.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('scaffold/program');

interface Given {
  readonly lines?: string[];
  readonly capture?: number;
  readonly graceMs?: number;
  readonly signal: AbortSignal;
}

async function bash(box: Tree, script: string, { lines = [], ...given }: Given): Promise<Ended> {
  const env = { PATH: process.env['PATH'] ?? '' };
  return runProgram('bash', ['-c', script], { cwd: box.path, env, line: (text) => lines.push(text), ...given });
}

async function isThere(pid: string): Promise<boolean> {
  const stat = await readFile(`/proc/${pid.trim()}/stat`, 'utf8').catch(() => '');
  return stat !== '' && !/\) [ZX] /.test(stat);
}

async function gone(pid: string): Promise<void> {
  while (await isThere(pid)) await pause(20);
}

test('its lines come as they are printed, with its status at the end', async ({ signal }) => {
  await using box = await tree();
  const lines: string[] = [];
  const ended = await bash(box, 'echo one; echo two >&2; printf "\\033[1mthree"; exit 7', { lines, signal });
  assert.equal(lines.toSorted(), ['one', 'three', 'two']);
  assert.is(ended.status, 7);
  assert.equal([...ended.lastLines].toSorted(), ['one', 'three', 'two']);
});

test('standard output is kept when it is asked for, up to a limit', async ({ signal }) => {
  await using box = await tree();
  const lines: string[] = [];
  const ended = await bash(box, 'echo kept; echo said >&2', { capture: 100, lines, signal });
  assert.is(ended.output, 'kept\n');
  assert.equal(lines, ['said']);
  await assert.rejectsWith(bash(box, 'yes', { capture: 1000, signal }), 'FILE_UNUSABLE', /more than 1000/);
});

test('a signal that ends it is told', async ({ signal }) => {
  await using box = await tree();
  const { status, endedBy } = await bash(box, 'kill -9 $$', { signal });
  assert.equal([status, endedBy], [undefined, 'SIGKILL']);
});

test('a program that is not installed is told', async ({ signal }) => {
  await using box = await tree();
  const options = { cwd: box.path, env: { PATH: box.path }, line: () => undefined, signal };
  await assert.rejectsWith(runProgram('no-such-program', [], options), 'NOT_FOUND', /no-such-program/);
});

test('what it leaves in its group ends with it', async ({ signal }) => {
  await using box = await tree();
  await bash(box, 'sleep 1000 & echo $! >pid', { signal });
  await gone(await readFile(box.at('pid'), 'utf8'));
});

test('nobody waits for pipes that a process of another group holds', async ({ signal }) => {
  await using box = await tree();
  const ended = await bash(box, 'setsid sleep 1000 & echo $! >pid; echo said; sleep 0.2', { signal });
  assert.is(ended.status, 0);
  const pid = (await readFile(box.at('pid'), 'utf8')).trim();
  if (await isThere(pid)) process.kill(Number(pid), 'SIGKILL');
});

for (const [title, script] of [
  ['one that obeys', 'sleep 1000 & echo $! >child; echo ready; wait'],
  ['one that does not', 'trap "" TERM; sleep 1000 & echo $! >child; echo ready; while true; do sleep 0.1; done'],
] as const) {
  test(`an abort ends the whole group: ${title}`, async ({ signal }) => {
    await using box = await tree();
    const stop = new AbortController();
    const env = { PATH: process.env['PATH'] ?? '' };
    const line = (text: string): void => {
      if (text === 'ready') stop.abort(new Error('stopped'));
    };
    let said = '';
    await runProgram('bash', ['-c', script], {
      cwd: box.path,
      env,
      line,
      graceMs: 200,
      signal: AbortSignal.any([stop.signal, signal]),
    }).catch((error: unknown) => {
      said = String(error);
    });
    assert.match(said, 'stopped');
    await gone(await readFile(box.at('child'), 'utf8'));
  });
}

test.run();
