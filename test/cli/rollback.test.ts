import { appendFile, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { readRecords } from '../../src/runtime/node/records.ts';
import * as assert from '../support/assert.ts';
import { greeting, NODE, onNode, put, SAYS } from '../support/kept-node.ts';
import { trace, tracer } from '../support/node-install.ts';
import type { TestAddon } from '../support/node-bundles.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import type { RunResult } from '../../src/runtime/run/run-result.ts';

// not fast: hundreds of hooks
const test = suite('cli/rollback', { timeoutMs: 240_000 });

test('a failed upgrade is rolled back to the package and settings of before, of the same version too', async () => {
  await using box = await tree();
  await put(box, [tracer('aaa', SAYS), tracer('bbb')], greeting('1.0.0', 'before') + specRow('bbb'));
  assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz')).exitCode, 0);
  for (const version of ['2.0.0', '1.0.0']) {
    const fails = version === '1.0.0' ? `${SAYS}\naaa_pre_init() { false; }` : SAYS;
    await put(box, [tracer('aaa', fails, version)], greeting(version, 'after'));
    const failed = await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz');
    assert.is(failed.exitCode, 20);
    const way = `curlew rollback --root ${box.at('root')} --unconfined aaa restores 1.0.0`;
    assert.match(failed.stderr.replaceAll(/\s+/g, ' '), way);
    const same = version === '1.0.0' ? ' as it was before its last change' : '';
    assert.match((await onNode(box, 'status')).stdout, `\naaa can be rolled back to 1.0.0${same}\n`);
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
  assert.equal([again.exitCode, /was not kept/.test(again.stderr)], [14, true]);
  assert.match(again.stderr, /hint: .*curlew install .*--bundle FILE --allow-downgrade/);
  assert.match((await onNode(box, 'rollback', 'ccc', '--unconfined')).stderr, 'it is not installed');
});

test('an add-on that was installed once has nothing to go back to, and the message says so', async () => {
  await using box = await tree();
  await put(box, [tracer('aaa', SAYS)], greeting('1.0.0', 'before'));
  assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz')).exitCode, 0);
  const { exitCode, stderr } = await onNode(box, 'rollback', 'aaa', '--unconfined');
  assert.is(exitCode, 14);
  assert.match(stderr, 'roll aaa back: it was installed only once, or ');
  assert.match(stderr, /curlew uninstall .*aaa removes it/);
});

test('an add-on whose first run failed has nothing to go back to, and the hint names what removes it', async () => {
  await using box = await tree();
  await put(box, [tracer('aaa', 'aaa() { false; }')], greeting('1.0.0', 'before'));
  assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz')).exitCode, 20);
  const { exitCode, stderr } = await onNode(box, 'rollback', 'aaa', '--unconfined');
  assert.is(exitCode, 14);
  assert.match(stderr, 'roll aaa back: it was not installed before the unfinished run');
  assert.match(stderr, `curlew uninstall --root ${box.at('root')} --unconfined aaa removes what that run installed`);
  assert.match((await onNode(box, 'rollback', 'aab', '--unconfined')).stderr, 'did you mean "aaa"?');
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
  assert.is(
    /back {5}curlew rollback --root\s+\S+ --unconfined aaa\s+restores 1\.0\.0/.test(told.stdout),
    more.length === 0,
    told.stdout,
  );
  assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz', ...more)).exitCode, 0);
  await trace(box);
  return box;
}

test('an upgrade that finished can be rolled back, once, also after a run that changed nothing', async () => {
  await using box = await upgraded();
  assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz')).exitCode, 0);
  const { stdout } = await onNode(box, 'status');
  assert.match(stdout, /^aaa can be rolled back to 1\.0\.0$/m);
  for (const line of stdout.split('\n')) assert.ok(line.length <= 80, line);
  await trace(box);
  const back = await onNode(box, 'rollback', 'aaa', '--unconfined');
  assert.is(back.exitCode, 0, back.stderr);
  assert.ok((await trace(box)).includes('aaa 1.0.0 before'));
  assert.equal(await readdir(box.at(NODE, 'addons/aaa')), ['1.0.0']);
  assert.is((await onNode(box, 'rollback', 'aaa', '--unconfined')).exitCode, 14);
});

test('a plan has the name of its command, and so has a rollback in what it recorded', async () => {
  await using box = await upgraded();
  for (const [command, ...more] of [['rollback', 'aaa'], ['uninstall', 'aaa'], ['reset']] as const) {
    const { stdout } = await onNode(box, command, ...more, '--unconfined', '--dry-run');
    assert.match(stdout, new RegExp(`^Plan: ${command} of 1 add-on in `));
  }
  assert.is((await onNode(box, 'rollback', 'aaa', '--unconfined')).exitCode, 0);
  for (const command of ['status', 'logs']) {
    const { stdout } = await onNode(box, command);
    assert.match(stdout, /\b\d{8}T\d{6}Z-[0-9a-f]{4}, rollback, finished$/m, command);
  }
});

test('an upgrade that finished can be rolled back to another package of its version', async () => {
  await using box = await tree();
  for (const more of ['', '# another']) {
    await put(box, [tracer('aaa', `${SAYS}\n${more}`)]);
    assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz')).exitCode, 0);
  }
  const back = await onNode(box, 'rollback', 'aaa', '--unconfined');
  assert.is(back.exitCode, 0, back.stderr);
  assert.not.match(await readFile(box.at(NODE, 'addons/aaa/1.0.0/install.sh'), 'utf8'), '# another');
});

test('a rollback that ends before its first hook can be given again', async () => {
  await using box = await tree();
  for (const version of ['1.0.0', '2.0.0']) {
    await put(box, [tracer('aaa', '[ ! -e "$DIR/stop" ] || exit 1', version)]);
    assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz')).exitCode, 0);
  }
  await writeFile(box.at(NODE, 'stop'), '');
  assert.is((await onNode(box, 'rollback', 'aaa', '--unconfined')).exitCode, 20);
  await rm(box.at(NODE, 'stop'));
  const back = await onNode(box, 'rollback', 'aaa', '--unconfined');
  assert.is(back.exitCode, 0, back.stderr);
  assert.is((await readRecords(box.at(NODE))).applied['aaa']?.version, '1.0.0');
});

test('a rollback whose hook has failed still goes back, however it is continued', async () => {
  for (const words of [['resume'], ['rollback', 'aaa']] as const) {
    await using box = await tree();
    for (const version of ['1.0.0', '2.0.0']) {
      const hook = 'aaa() { echo "aaa $AAA_VERSION" >>"$TRACE"; [ ! -e "$DIR/stop" ]; }';
      await put(box, [tracer('aaa', hook, version)]);
      assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz')).exitCode, 0);
    }
    await writeFile(box.at(NODE, 'stop'), '');
    assert.is((await onNode(box, 'rollback', 'aaa', '--unconfined')).exitCode, 20);
    await rm(box.at(NODE, 'stop'));
    await trace(box);
    const [command, ...more] = words;
    const told = await onNode(box, command, ...more, '--unconfined', '--dry-run');
    assert.match(told.stdout, /^Plan: rollback of 1 add-on in .*\nResumes run /);
    const back = await onNode(box, command, ...more, '--unconfined');
    assert.is(back.exitCode, 0, back.stderr);
    assert.ok((await trace(box)).includes('aaa 1.0.0'));
    const { version, finished, previous } = (await readRecords(box.at(NODE))).applied['aaa'] ?? {};
    assert.equal([version, finished, previous], ['1.0.0', true, undefined]);
  }
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
  assert.match((await onNode(box, 'rollback', 'aaa', '--unconfined')).stderr, 'was not kept');
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

/** Output as one line: it is wrapped where it is read. */
function flat(text: string): string {
  return text.replaceAll(/\s+/g, ' ');
}

test('Kubernetes that was upgraded to the end is not rolled back, and nothing promises it', async () => {
  await using box = await tree();
  await put(box, [tracer('kubernetes', '', '1.0.0')]);
  const first = await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz');
  assert.equal([first.exitCode, /rolled back/.test(first.stderr)], [0, false], first.stderr);
  await rename(box.at('b.tar.gz'), box.at('older.tar.gz'));
  await put(box, [tracer('kubernetes', '', '2.0.0')]);
  const told = await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz', '--dry-run');
  assert.match(
    flat(told.stdout),
    'back not possible after this run: kubeadm does not downgrade a cluster that was upgraded',
  );
  assert.not.match(told.stdout, 'curlew rollback');
  const done = await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz');
  assert.match(
    flat(done.stderr),
    'kubernetes cannot be rolled back to 1.0.0 after this run: kubeadm does not downgrade',
  );
  assert.not.match((await onNode(box, 'status')).stdout, 'can be rolled back');
  const older = await onNode(box, 'install', '--unconfined', '--bundle', 'older.tar.gz');
  assert.equal([older.exitCode, /curlew rollback/.test(older.stderr)], [34, false], older.stderr);
  const { exitCode, stderr } = await onNode(box, 'rollback', 'kubernetes', '--unconfined');
  assert.equal([exitCode, /kubeadm does not downgrade/.test(stderr)], [22, true]);
});

test('in the middle of an upgrade of Kubernetes nothing offers a rollback, and one that is asked for goes back', async () => {
  await using box = await tree();
  for (const [version, hook] of [
    ['1.0.0', ''],
    ['2.0.0', 'kubernetes() { false; }'],
  ] as const) {
    await put(box, [tracer('kubernetes', hook, version)]);
    const { exitCode, stderr } = await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz');
    assert.equal([exitCode, /curlew rollback/.test(stderr)], [hook === '' ? 0 : 20, false], stderr);
    if (hook === '') await rename(box.at('b.tar.gz'), box.at('older.tar.gz'));
  }
  const { stdout } = await onNode(box, 'status');
  assert.equal([/not finished/.test(stdout), /rolled back/.test(stdout)], [true, false], stdout);
  const older = await onNode(box, 'install', '--unconfined', '--bundle', 'older.tar.gz');
  assert.equal([older.exitCode, /curlew rollback/.test(older.stderr)], [34, false], older.stderr);
  const back = await onNode(box, 'rollback', 'kubernetes', '--unconfined');
  assert.is(back.exitCode, 0, back.stderr);
});

test('an upgrade says beforehand that what it replaces was changed, and is nothing to go back to', async () => {
  await using box = await tree();
  await put(box, [tracer('aaa', SAYS)]);
  await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz');
  await appendFile(box.at(NODE, 'addons/aaa/1.0.0/install.sh'), '# by hand');
  await put(box, [tracer('aaa', SAYS, '2.0.0')]);
  const why = 'the package of aaa-1.0.0 is no longer on this node or has changed';
  const told = await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz', '--dry-run');
  assert.match(flat(told.stdout), `back not possible after this run: ${why}`);
  const failed = await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz');
  assert.is(failed.exitCode, 20);
  assert.match(flat(failed.stderr), `aaa cannot be rolled back to 1.0.0 after this run: ${why}`);
  assert.not.match(failed.stderr, 'curlew rollback');
  await writeFile(box.at(NODE, 'go'), '');
  assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz')).exitCode, 0);
  assert.not.match((await onNode(box, 'status')).stdout, 'can be rolled back');
  assert.match((await onNode(box, 'rollback', 'aaa', '--unconfined')).stderr, why);
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

/** A package with the YAML of these ConfigMaps, and files that nobody applies. */
function withMaps(version: string, names: readonly string[]): TestAddon {
  const addon = tracer('aaa', SAYS, version);
  const maps = names.map((name) => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}, namespace: greeter}\n`);
  const checks = `apiVersion: troubleshoot.sh/v1beta2\nkind: HostPreflight\nmetadata: {name: v${version}}\n`;
  const files = {
    'upstream.yaml': maps.join('---\n'),
    'checks.yaml': checks,
    'tmpl-a.yaml': 'a: ${AAA_GREETING}: b\n',
  };
  return { ...addon, files: { ...addon.files, ...files } };
}

test('a rollback, and its plan, name the objects that only the newer version has', async () => {
  for (const [names, warning] of [
    [['web', 'extra'], /aaa-1\.0\.0 does not have these objects, .*: ConfigMap extra \(namespace greeter\)$/m],
    [['web'], undefined],
  ] as const) {
    await using box = await tree();
    for (const addon of [withMaps('1.0.0', ['web']), withMaps('2.0.0', names)]) {
      await put(box, [addon]);
      await mkdir(box.at(NODE), { recursive: true });
      await writeFile(box.at(NODE, 'go'), '');
      assert.is((await onNode(box, 'install', '--unconfined', '--bundle', 'b.tar.gz')).exitCode, 0);
    }
    for (const more of [['--dry-run'], []]) {
      const { exitCode, stderr } = await onNode(box, 'rollback', 'aaa', '--unconfined', ...more);
      assert.is(exitCode, 0, stderr);
      if (warning === undefined) assert.not.match(stderr, 'these objects');
      else assert.match(flat(stderr).trim(), warning);
    }
  }
});

test.run();
