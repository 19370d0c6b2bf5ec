import { cp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { parametersOf } from '../../src/core/request.ts';
import { commandOf } from '../../src/cli/commands.ts';
import { readRecords } from '../../src/runtime/node/records.ts';
import * as assert from '../support/assert.ts';
import { greeting, NODE, onNode, put, SAYS } from '../support/kept-node.ts';
import { trace, tracer } from '../support/node-install.ts';
import { runTraced } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import type { RunResult } from '../../src/runtime/run/run-result.ts';

// not fast: hundreds of hooks
const test = suite('cli/resume and reset', { timeoutMs: 240_000 });

test('resume goes on as the last run was asked for, from any folder, though its spec has changed', async () => {
  await using box = await tree();
  await put(box, [tracer('aaa', SAYS, '2.0.0')]);
  await writeFile(box.at('mine.yaml'), greeting('2.0.0', 'hello'));
  const words = ['--unconfined', '--bundle', 'b.tar.gz', '--installer', 'mine.yaml', '--set', 'aaa.greeting=moin'];
  assert.is((await onNode(box, 'install', ...words)).exitCode, 20);
  await rm(box.at('mine.yaml'));
  await writeFile(box.at(NODE, 'go'), '');
  await trace(box);
  const resumed = await onNode({ ...box, path: '/' }, 'resume', '--json');
  assert.is(resumed.exitCode, 0, resumed.stderr);
  assert.equal((await trace(box)).slice(0, 1), ['aaa 2.0.0 moin']);
  const nothing = await onNode(box, 'resume');
  assert.equal([nothing.exitCode, nothing.stdout], [0, 'There is no run to resume.']);
});

test('resume of a folder that was copied leaves the one that it is a copy of alone', async () => {
  await using box = await tree();
  await put(box, [tracer('aaa', SAYS, '2.0.0')]);
  assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz')).exitCode, 20);
  await cp(box.at('root'), box.at('copy'), { recursive: true });
  await writeFile(box.at(NODE, 'go'), '');
  await trace(box);
  const { exitCode, stderr } = await runTraced(['resume', '--root', box.at('copy')], box);
  assert.is(exitCode, 25, stderr);
  assert.match(
    stderr,
    /resume: the last run in \S+\/copy\/var\/lib\/curlew was started in \S+\/root\/var\/lib\/curlew\n/,
  );
  assert.equal(await trace(box), []);
  assert.is((await onNode(box, 'resume')).exitCode, 0);
});

test('resume answers yes to what the first run had nobody to ask, where that is said', async () => {
  await using box = await tree();
  const asks = 'aaa() { confirmN || return 1; echo agreed >>"$TRACE"; }';
  await put(box, [tracer('aaa', asks)]);
  assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz')).exitCode, 20);
  assert.is((await onNode(box, 'resume')).exitCode, 20);
  await trace(box);
  const { exitCode, stderr } = await onNode(box, 'resume', '--yes');
  assert.is(exitCode, 0, stderr);
  assert.ok((await trace(box)).includes('agreed'));
});

for (const form of ['of this version', 'of former versions'] as const) {
  test(`resume finds a run in the folder that a flag of kURL’s named, kept in the form ${form}`, async () => {
    await using box = await tree();
    await put(box, [tracer('aaa', SAYS, '2.0.0')]);
    const words = ['--unconfined', '--bundle', 'b.tar.gz', '--set', 'aaa.greeting=moin', 'kurl-install-directory=/opt'];
    assert.is((await onNode(box, 'install', ...words)).exitCode, 20);
    const node = 'root/opt/kurl';
    const { lastRun = '' } = await readRecords(box.at(node));
    const path = box.at(node, 'runs', lastRun, 'request.json');
    const kept = JSON.parse(await readFile(path, 'utf8')) as { readonly command: Readonly<Record<string, unknown>> };
    if (form === 'of former versions') {
      const { request: _, ...rest } = kept.command;
      const options = {
        root: [box.at('root')],
        unconfined: true,
        bundle: ['b.tar.gz'],
        set: ['aaa.greeting=moin'],
      };
      const command = { ...rest, operands: ['kurl-install-directory=/opt'], options };
      await writeFile(path, JSON.stringify({ ...kept, command }));
    }
    await writeFile(box.at(node, 'go'), '');
    await trace(box);
    const resumed = await onNode({ ...box, path: '/' }, 'resume', '--install-dir', '/opt/kurl');
    assert.is(resumed.exitCode, 0, resumed.stderr);
    assert.equal((await trace(box)).slice(0, 1), ['aaa 2.0.0 moin']);
  });
}

test('resume refuses a run whose request was changed into none', async () => {
  await using box = await tree();
  await put(box, [tracer('aaa', SAYS, '2.0.0')]);
  assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz')).exitCode, 20);
  const { lastRun = '' } = await readRecords(box.at(NODE));
  const path = box.at(NODE, 'runs', lastRun, 'request.json');
  const text = await readFile(path, 'utf8');
  for (const command of [
    undefined,
    'install',
    { name: 'install' },
    { name: 'install', cwd: '/', request: { yes: 1 } },
  ]) {
    await writeFile(path, JSON.stringify({ ...(JSON.parse(text) as object), command }));
    const { exitCode, stderr } = await onNode(box, 'resume');
    assert.is(exitCode, 25, stderr);
    assert.match(stderr, /the last run has no valid saved request\n {2}hint: repeat the full command/);
  }
});

const FAMILY = ['install', 'join', 'upgrade', 'resume', 'rollback', 'reset'];

async function optionsOf(name: string): Promise<readonly string[]> {
  return parametersOf((await commandOf(name)).of).options.map(([option]) => option);
}

test('all commands that run hooks take the same words about the node and its hooks', async () => {
  for (const name of FAMILY) {
    const options = await optionsOf(name);
    for (const option of ['install-dir', 'root', 'unconfined', 'hook-timeout', 'yes']) {
      assert.ok(options.includes(option), `${name} --${option}`);
    }
  }
  for (const name of ['status', 'why', 'logs', 'preflight', 'load-images']) {
    const options = await optionsOf(name);
    for (const option of ['install-dir', 'root']) assert.ok(options.includes(option), name);
  }
});

test('resume may be given a limit of hooks that the run did not have', async () => {
  await using box = await tree();
  await put(box, [tracer('aaa', 'aaa() { [ -e "$DIR/go" ] && sleep 1000; false; }')]);
  assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz')).exitCode, 20);
  await writeFile(box.at(NODE, 'go'), '');
  const late = await onNode(box, 'resume', '--unconfined', '--hook-timeout', '1');
  assert.is(late.exitCode, 20);
  assert.match(late.stderr, 'took longer than its limit of 1 s and was terminated');
});

test('hooks of rollback and reset are answered and limited as those of install', async () => {
  await using box = await tree();
  const asks = `aaa() { [ "$AAA_VERSION" = 1.0.0 ] && { [ ! -e "$DIR/ask" ] || confirmN; }; }
aaa_uninstall() { sleep 1000; }`;
  await put(box, [tracer('aaa', asks)]);
  assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz')).exitCode, 0);
  await put(box, [tracer('aaa', asks, '2.0.0')]);
  assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz')).exitCode, 20);
  await writeFile(box.at(NODE, 'ask'), '');
  assert.is((await onNode(box, 'rollback', 'aaa', '--unconfined')).exitCode, 20);
  const back = await onNode(box, 'rollback', 'aaa', '--unconfined', '--yes');
  assert.is(back.exitCode, 0, back.stderr);
  const reset = await onNode(box, 'reset', '--unconfined', '--yes', '--hook-timeout', '1s');
  assert.is(reset.exitCode, 20);
  assert.match(reset.stderr, 'aaa_uninstall took longer than its limit of 1 s');
});

test('reset with a word that it does not take removes nothing', async () => {
  await using box = await tree();
  await put(box, [tracer('aaa', SAYS)]);
  await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz');
  const { exitCode, stderr } = await onNode(box, 'reset', 'aaa', '--unconfined', '--yes');
  assert.is(exitCode, 64);
  assert.match(stderr, /curlew reset: unexpected argument "aaa"/);
  assert.equal(Object.keys((await readRecords(box.at(NODE))).applied), ['aaa']);
});

test('reset takes off what is installed, in reverse, and goes on after a hook that failed', async () => {
  await using box = await tree();
  await put(box, [tracer('aaa', SAYS), tracer('bbb', 'bbb_uninstall() { echo bbb gone >>"$TRACE"; }')]);
  await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz', '--set', 'aaa.greeting=hello');
  await writeFile(box.at(NODE, 'stay'), '');
  await writeFile(box.at(NODE, 'containerd-last-applied'), '');
  await trace(box);
  const unasked = await onNode(box, 'reset', '--unconfined');
  assert.equal([unasked.exitCode, /add --yes/.test(unasked.stderr)], [64, true]);
  const failed = await onNode(box, 'reset', '--unconfined', '--yes');
  assert.is(failed.exitCode, 20, failed.stderr);
  assert.equal(await trace(box), ['bbb gone', 'gone hello']);
  await rm(box.at(NODE, 'stay'));
  const done = await onNode(box, 'reset', '--unconfined', '--yes', '--json', '--quiet');
  assert.is(done.exitCode, 0, done.stderr);
  assert.equal(
    (JSON.parse(done.stdout) as RunResult).addons.map(({ name, outcome }) => [name, outcome]),
    [
      ['bbb', 'removed'],
      ['aaa', 'removed'],
    ],
  );
  assert.equal(await trace(box), ['gone hello'], 'what is done is not done again');
  assert.is(await stat(box.at(NODE)).catch(() => 'absent'), 'absent');
  assert.match((await onNode(box, 'reset', '--yes')).stdout, 'nothing was installed');
});

test.run();
