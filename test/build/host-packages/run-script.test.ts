import { readdir, readFile } from 'node:fs/promises';
import { runScript } from '../../../src/build/host-packages/run-script.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('build/host-packages/run-script');
const env = { PATH: process.env['PATH'] };

/** True once no process has this id any more, or only as a zombie that its parent has not asked for yet. */
async function isGone(pid: number): Promise<boolean> {
  try {
    return /^\d+ \(.*\) Z/.test(await readFile(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return true;
  }
}

test('status, words, environment and the last lines', async ({ signal }) => {
  await using box = await tree({ 'x.sh': 'echo "$1 $OWN ${HOME-none}"; pwd >&2; exit 7' });
  const own = { ...env, OWN: 'own' };
  const { status, last } = await runScript(box.at('x.sh'), ['a b'], { env: own, cwd: box.path, signal });
  assert.is(status, 7);
  assert.equal([...last].toSorted(), [box.path, 'a b own none'].toSorted());
});

test('much output is read to its end, and only its last lines are kept', async ({ signal }) => {
  await using box = await tree({ 'x.sh': 'for ((i = 0; i < 50000; i++)); do echo "line $i"; done' });
  const { status, last } = await runScript(box.at('x.sh'), [], { env, cwd: box.path, signal });
  assert.is(status, 0);
  assert.is(last.at(-1), 'line 49999');
  assert.ok(last.length <= 20);
});

test('what the script leaves running is ended', async ({ signal }) => {
  await using box = await tree({ 'x.sh': 'sleep 1000 & echo $!' });
  const { last } = await runScript(box.at('x.sh'), [], { env, cwd: box.path, signal });
  assert.ok(await isGone(Number(last[0])));
});

test('an abort ends the script and its children, and is what is thrown', async () => {
  await using box = await tree({ 'x.sh': 'sleep 1000 & echo $! >pid; echo $$ >own; mkfifo go; cat go' });
  const stop = new AbortController();
  const running = runScript(box.at('x.sh'), [], { env, cwd: box.path, signal: stop.signal });
  const outcome = running.catch((error: unknown) => error);
  for (;;) {
    const own = await readFile(box.at('own'), 'utf8').catch(() => '');
    if (own.endsWith('\n')) break;
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
  const reason = new Error('enough');
  stop.abort(reason);
  assert.is(await outcome, reason);
  for (const name of ['pid', 'own']) assert.ok(await isGone(Number(await readFile(box.at(name), 'utf8'))), name);
});

test('an abort before it begins starts nothing', async () => {
  await using box = await tree({ 'x.sh': 'touch started' });
  const run = runScript(box.at('x.sh'), [], { env, cwd: box.path, signal: AbortSignal.abort(new Error('no')) });
  assert.is(await run.catch((error: unknown) => String(error)), 'Error: no');
  assert.equal(await readdir(box.path), ['x.sh']);
});

test('without a bash it says so', async ({ signal }) => {
  await using box = await tree({ 'x.sh': '' });
  const run = runScript(box.at('x.sh'), [], { env: { PATH: box.path }, cwd: box.path, signal });
  await assert.rejectsWith(run, 'UNSUPPORTED', /bash/);
});

test.run();
