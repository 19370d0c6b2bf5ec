/** What is left of helm after a kill: with a program in its place that never ends. */
import { chmod, readdir, readFile, writeFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { openHelm } from '../../src/deliver/helm.ts';
import { processInfo } from '../../src/platform/process/process-tree.ts';
import { runProgram } from '../../src/platform/process/run-program.ts';
import * as assert from '../support/assert.ts';
import { never, noReport } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('deliver/helm', { timeoutMs: 60_000 });

test('kill -9 ends helm, too, and the next run removes the values that it was given', async ({ signal }) => {
  await using box = await tree({ 'tmp/other': '' });
  const helm =
    '#!/bin/sh\n[ "$1" = version ] && { echo v4.0.0; exit; }\necho $$ >"$HOME/pid"; echo ready; exec sleep 1000\n';
  await writeFile(box.at('helm'), helm);
  await chmod(box.at('helm'), 0o755);
  const env = { PATH: process.env['PATH'], HOME: box.path, TMPDIR: box.at('tmp') };
  const module = new URL('../../src/deliver/helm.ts', import.meta.url).href;
  const script = `
    import { openHelm } from ${JSON.stringify(module)};
    const signal = new AbortController().signal;
    const context = { env: process.env, cwd: process.cwd() };
    const helm = await openHelm({ helm: './helm' }, { kubeconfig: '', signal, guard: undefined, kubeContext: undefined }, context);
    await helm.file('values.json', '{}');
    await helm.run(['upgrade'], { doing: 'wait', line: () => process.kill(process.pid, 'SIGKILL') });
  `;
  const args = ['--import', import.meta.resolve('tsx'), '--input-type=module', '-e', script];
  const { error } = await runProgram(process.execPath, args, { env, cwd: box.path, signal });
  assert.is(error?.reason, 'terminated by SIGKILL');
  const pid = Number(await readFile(box.at('pid'), 'utf8'));
  while (processInfo(pid) !== undefined) await pause(5);

  const folders = async (): Promise<readonly string[]> =>
    (await readdir(box.at('tmp'))).filter((name) => name.startsWith('curlew-helm-'));
  const [left] = await folders();
  assert.ok(left, 'the values of the killed run');
  process.env['TMPDIR'] = box.at('tmp');
  const context = { env, cwd: box.path, signal: never, report: noReport };
  await using _next = await openHelm(
    { helm: './helm' },
    { kubeconfig: '', signal, guard: undefined, kubeContext: undefined },
    context,
  );
  const now = await folders();
  assert.is(now.length, 1);
  assert.not.equal(now, [left]);
});

test.run();
