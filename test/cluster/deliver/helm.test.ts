/** How helm is run, and what is left of it after a kill: with programs in its place. */
import { chmod, readdir, readFile, writeFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { helmOf } from '../../../src/cluster/deliver/helm.ts';
import { processInfo } from '../../../src/platform/process/process-tree.ts';
import { tryProgram } from '../../../src/platform/process/run-program.ts';
import * as assert from '../../support/assert.ts';
import { never, noReport } from '../../support/context.ts';
import { withVariables } from '../../support/environment.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('cluster/deliver/helm', { timeoutMs: 60_000 });

test('a pass asks helm for its version once, and the next pass again: a shim may select another one', async () => {
  await using box = await tree({ version: '', runs: '', helm: '' });
  await writeFile(box.at('helm'), `#!/bin/sh\necho "$1" >>'${box.at('runs')}'\ncat '${box.at('version')}'\n`);
  await chmod(box.at('helm'), 0o755);
  const cluster = { kubeconfig: '', signal: never, guard: undefined, kubeContext: undefined };
  const env = { PATH: `${box.path}:${process.env['PATH']}`, HOME: box.path };
  const majorsOf = async (version: string): Promise<readonly number[]> => {
    await writeFile(box.at('version'), version);
    await writeFile(box.at('runs'), '');
    const open = helmOf({}, cluster, { env, cwd: box.path });
    const major = async (): Promise<number> => {
      await using helm = await open();
      return helm.major;
    };
    return [...(await Promise.all([major(), major()])), await major()];
  };
  assert.equal(await majorsOf('v3.18.0'), [3, 3, 3]);
  assert.is(await readFile(box.at('runs'), 'utf8'), 'version\n');
  assert.equal(await majorsOf('v4.0.0'), [4, 4, 4]);
  assert.is(await readFile(box.at('runs'), 'utf8'), 'version\n');
  await assert.rejectsWith(majorsOf('v2.17.0'), 'UNSUPPORTED', /helm is v2\.17\.0$/);
});

test('kill -9 ends helm, too, and leaves nothing of the values that it was given; the next run removes the folder', async ({
  signal,
}) => {
  await using box = await tree({ 'tmp/other': '' });
  const helm =
    '#!/bin/sh\n[ "$1" = version ] && { echo v4.0.0; exit; }\n[ "$1" = read ] && { cat "$2"; exit; }\necho $$ >"$HOME/pid"; echo ready; exec sleep 1000\n';
  await writeFile(box.at('helm'), helm);
  await chmod(box.at('helm'), 0o755);
  const env = { PATH: process.env['PATH'], HOME: box.path, TMPDIR: box.at('tmp') };
  const module = new URL('../../../src/cluster/deliver/helm.ts', import.meta.url).href;
  const script = `
    import { helmOf } from ${JSON.stringify(module)};
    const signal = new AbortController().signal;
    const context = { env: process.env, cwd: process.cwd() };
    const cluster = { kubeconfig: '', signal, guard: undefined, kubeContext: undefined };
    const helm = await helmOf({ helm: './helm' }, cluster, context)();
    const values = helm.file('values.json', '{"password": "s3cret"}');
    await helm.run(['read', values], { doing: 'read', line: console.log });
    await helm.run(['upgrade'], { doing: 'wait', line: () => process.kill(process.pid, 'SIGKILL') });
  `;
  const args = ['--import', import.meta.resolve('tsx'), '--input-type=module', '-e', script];
  const { error, stdout } = await tryProgram(process.execPath, args, { env, cwd: box.path, signal }, (ended) => ended);
  assert.is(error?.reason, 'terminated by SIGKILL');
  assert.is(stdout, '{"password": "s3cret"}\n');
  const pid = Number(await readFile(box.at('pid'), 'utf8'));
  while (processInfo(pid) !== undefined) await pause(5);

  const folders = async (): Promise<readonly string[]> =>
    (await readdir(box.at('tmp'))).filter((name) => name.startsWith('curlew-helm-'));
  const [left] = await folders();
  assert.ok(left, 'the folder of the killed run');
  assert.equal(await readdir(box.at('tmp', left)), []);
  using _folder = withVariables({ TMPDIR: box.at('tmp') });
  const context = { env, cwd: box.path, signal: never, report: noReport };
  const cluster = { kubeconfig: '', signal, guard: undefined, kubeContext: undefined };
  await using _next = await helmOf({ helm: './helm' }, cluster, context)();
  const now = await folders();
  assert.is(now.length, 1);
  assert.not.equal(now, [left]);
});

test.run();
