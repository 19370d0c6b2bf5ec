import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import type { RunResult } from '../../src/runtime/execute.ts';
import { COMMANDS } from '../../src/cli/commands.ts';
import { readRecords } from '../../src/runtime/records.ts';
import * as assert from '../support/assert.ts';
import type { Outcome } from '../support/curlew.ts';
import { bundleOf, specOf, type TestAddon } from '../support/node-bundles.ts';
import { trace, tracer } from '../support/node-install.ts';
import { runTraced } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('cli/resume, rollback and reset', { timeoutMs: 240_000 });
const NODE = 'root/var/lib/curlew';

async function onNode(box: Tree, command: string, ...more: readonly string[]): Promise<Outcome> {
  return runTraced([command, '--root', box.at('root'), ...more], box, { HOME: box.at() });
}

async function put(box: Tree, addons: readonly TestAddon[], spec?: string): Promise<void> {
  await writeFile(box.at('b.tar.gz'), bundleOf(addons, spec));
}

const SAYS = `aaa() { echo "aaa $AAA_VERSION $AAA_GREETING" >>"$TRACE"; [ "$AAA_VERSION" = 1.0.0 ] || [ -e "$DIR/go" ]; }
aaa_uninstall() { echo "gone $AAA_GREETING" >>"$TRACE"; [ ! -e "$DIR/stay" ]; }`;

function greeting(version: string, text: string): string {
  return `${specOf([{ name: 'aaa', version }])}    greeting: ${text}\n`;
}

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
  assert.equal([nothing.exitCode, nothing.stdout], [0, 'There is no run to go on with.']);
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

const FAMILY = ['install', 'join', 'upgrade', 'resume', 'rollback', 'reset'];

test('all commands that run hooks take the same words about the node and its hooks', async () => {
  for (const name of FAMILY) {
    const command = await COMMANDS.get(name)?.load();
    for (const option of ['install-dir', 'root', 'unconfined', 'hook-timeout', 'yes']) {
      assert.ok(Object.hasOwn(command?.options ?? {}, option), `${name} --${option}`);
    }
  }
  for (const name of ['status', 'why', 'logs', 'preflight', 'load-images']) {
    const command = await COMMANDS.get(name)?.load();
    for (const option of ['install-dir', 'root']) assert.ok(Object.hasOwn(command?.options ?? {}, option), name);
  }
});

test('resume may be given a limit of hooks that the run did not have', async () => {
  await using box = await tree();
  await put(box, [tracer('aaa', 'aaa() { [ -e "$DIR/go" ] && sleep 1000; false; }')]);
  assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz')).exitCode, 20);
  await writeFile(box.at(NODE, 'go'), '');
  const late = await onNode(box, 'resume', '--unconfined', '--hook-timeout', '1');
  assert.is(late.exitCode, 20);
  assert.match(late.stderr, 'took longer than its limit of 1 s and was ended');
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
  assert.match(stderr, /curlew reset: unexpected word "aaa"/);
  assert.equal(Object.keys((await readRecords(box.at(NODE))).applied), ['aaa']);
});

test('a failed upgrade is rolled back to the package and settings of before, of the same version too', async () => {
  await using box = await tree();
  await put(box, [tracer('aaa', SAYS), tracer('bbb')], greeting('1.0.0', 'before') + specRow('bbb'));
  assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz')).exitCode, 0);
  for (const version of ['2.0.0', '1.0.0']) {
    const fails = version === '1.0.0' ? `${SAYS}\naaa_pre_init() { false; }` : SAYS;
    await put(box, [tracer('aaa', fails, version)], greeting(version, 'after'));
    const failed = await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz');
    assert.is(failed.exitCode, 20);
    const way = `curlew rollback --root ${box.at('root')} --unconfined aaa goes back to 1.0.0`;
    assert.match(failed.stderr.replaceAll(/\s+/g, ' '), way);
    await trace(box);
    const back = await onNode(box, 'rollback', 'aaa', '--unconfined', '--json', '--quiet');
    assert.is(back.exitCode, 0, back.stderr);
    const { addons } = JSON.parse(back.stdout) as RunResult;
    assert.equal(
      addons.map((addon) => [addon.name, addon.version, addon.outcome]),
      [['aaa', '1.0.0', 'installed']],
    );
    assert.ok((await trace(box)).includes('aaa 1.0.0 before'));
    const { applied } = await readRecords(box.at(NODE));
    assert.equal(
      [applied['aaa']?.version, applied['aaa']?.finished, applied['aaa']?.previous],
      ['1.0.0', true, undefined],
    );
    assert.not.match(await readFile(box.at(NODE, 'addons/aaa/1.0.0/install.sh'), 'utf8'), 'pre_init() { false');
    assert.not((await readdir(box.at(NODE))).includes('previous'));
    assert.equal(await readdir(box.at(NODE, 'addons/aaa')), ['1.0.0']);
    const { extracted } = await readRecords(box.at(NODE));
    assert.equal(extracted.map(({ name, version: one }) => `${name} ${one}`).toSorted(), ['aaa 1.0.0', 'bbb 1.0.0']);
  }
  const again = await onNode(box, 'rollback', 'aaa', '--unconfined');
  assert.equal([again.exitCode, /is not kept/.test(again.stderr)], [14, true]);
  assert.match((await onNode(box, 'rollback', 'ccc', '--unconfined')).stderr, 'it is not installed');
});

function specRow(name: string): string {
  return `  ${name}:\n    version: "1.0.0"\n`;
}

/** A node with 1.0.0, greeting before, that was upgraded to 2.0.0. */
async function upgraded(...more: readonly string[]): Promise<Tree> {
  const box = await tree();
  await put(box, [tracer('aaa', SAYS)], greeting('1.0.0', 'before'));
  await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz');
  await put(box, [tracer('aaa', SAYS, '2.0.0')], greeting('2.0.0', 'after'));
  await writeFile(box.at(NODE, 'go'), '');
  const told = await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz', '--dry-run', ...more);
  assert.is(/back {5}curlew rollback aaa returns to 1\.0\.0/.test(told.stdout), more.length === 0, told.stdout);
  assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz', ...more)).exitCode, 0);
  await trace(box);
  return box;
}

test('an upgrade that finished can be rolled back, once, also after a run that changed nothing', async () => {
  await using box = await upgraded();
  assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz')).exitCode, 0);
  const { stdout } = await onNode(box, 'status');
  assert.match(stdout, /^aaa {5}2\.0\.0 .* can be rolled back to 1\.0\.0$/m);
  await trace(box);
  const back = await onNode(box, 'rollback', 'aaa', '--unconfined');
  assert.is(back.exitCode, 0, back.stderr);
  assert.ok((await trace(box)).includes('aaa 1.0.0 before'));
  assert.equal(await readdir(box.at(NODE, 'addons/aaa')), ['1.0.0']);
  assert.is((await onNode(box, 'rollback', 'aaa', '--unconfined')).exitCode, 14);
});

test('a change of settings can be rolled back', async () => {
  await using box = await tree();
  await put(box, [tracer('aaa', SAYS)], greeting('1.0.0', 'before'));
  for (const more of [[], ['--set', 'aaa.greeting=after']])
    await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz', ...more);
  await trace(box);
  assert.is((await onNode(box, 'rollback', 'aaa', '--unconfined')).exitCode, 0);
  assert.ok((await trace(box)).includes('aaa 1.0.0 before'));
});

test('what was before goes away when the next upgrade begins', async () => {
  await using box = await upgraded();
  await put(box, [tracer('aaa', 'aaa() { false; }', '3.0.0')]);
  assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz')).exitCode, 20);
  assert.equal((await readdir(box.at(NODE, 'addons/aaa'))).toSorted(), ['2.0.0', '3.0.0']);
  assert.is((await onNode(box, 'rollback', 'aaa', '--unconfined')).exitCode, 0);
  assert.ok((await trace(box)).includes('aaa 2.0.0 after'));
  assert.equal(await readdir(box.at(NODE, 'addons/aaa')), ['2.0.0']);
});

test('--drop-previous keeps nothing that could be rolled back to', async () => {
  await using box = await upgraded('--drop-previous');
  assert.equal(await readdir(box.at(NODE, 'addons/aaa')), ['2.0.0']);
  assert.equal(
    (await readRecords(box.at(NODE))).extracted.map(({ version }) => version),
    ['2.0.0'],
  );
  assert.match((await onNode(box, 'rollback', 'aaa', '--unconfined')).stderr, 'is not kept');
});

test('a node that joined rolls back by its join hook', async () => {
  await using box = await tree();
  const joins = 'aaa_join() { echo "joins $AAA_VERSION" >>"$TRACE"; }';
  for (const [command, version] of [
    ['join', '1.0.0'],
    ['upgrade', '2.0.0'],
  ] as const) {
    await put(box, [tracer('aaa', joins, version)]);
    assert.is((await onNode(box, command, '--unconfined', '--bundle', 'b.tar.gz')).exitCode, 0);
  }
  await trace(box);
  assert.is((await onNode(box, 'rollback', 'aaa', '--unconfined')).exitCode, 0);
  assert.equal(await trace(box), ['joins 1.0.0']);
  assert.is((await readRecords(box.at(NODE))).applied['aaa']?.by, 'join');
});

test('Kubernetes that was upgraded to the end is not rolled back', async () => {
  await using box = await tree();
  for (const version of ['1.0.0', '2.0.0']) {
    await put(box, [tracer('kubernetes', '', version)]);
    assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz')).exitCode, 0);
  }
  const { exitCode, stderr } = await onNode(box, 'rollback', 'kubernetes', '--unconfined');
  assert.equal([exitCode, /kubeadm does not downgrade/.test(stderr)], [22, true]);
});

test('versions that have failed go away when a later one succeeds', async () => {
  await using box = await tree();
  for (const [version, status] of [
    ['2.0.0', 20],
    ['3.0.0', 20],
    ['1.0.0', 0],
  ] as const) {
    await put(box, [tracer('aaa', SAYS, version)]);
    assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz')).exitCode, status);
  }
  assert.equal(await readdir(box.at(NODE, 'addons/aaa')), ['1.0.0']);
});

test('a rollback that was not heard to finish can be given again, and only that', async () => {
  await using box = await tree();
  for (const [version, status] of [
    ['1.0.0', 0],
    ['2.0.0', 20],
  ] as const) {
    await put(box, [tracer('aaa', SAYS, version)]);
    assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz')).exitCode, status);
  }
  const forgetEnd = async (): Promise<void> => {
    const { lastRun = '' } = await readRecords(box.at(NODE));
    const path = box.at(NODE, 'runs', lastRun, 'journal.jsonl');
    await writeFile(path, (await readFile(path, 'utf8')).replace(/.*"type":"ended".*\n$/, ''));
  };
  const rollback = async (): Promise<number | undefined> =>
    (await onNode(box, 'rollback', 'aaa', '--unconfined')).exitCode;
  assert.is(await rollback(), 0);
  await forgetEnd();
  assert.is(await rollback(), 0);
  assert.is(await rollback(), 14);
  assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz', '--set', 'aaa.x=1')).exitCode, 20);
  await writeFile(box.at(NODE, 'go'), '');
  assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz')).exitCode, 0);
  await forgetEnd();
  assert.is(await rollback(), 0);
  assert.is((await readRecords(box.at(NODE))).applied['aaa']?.version, '1.0.0');
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
