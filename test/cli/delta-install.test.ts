import { execa } from 'execa';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { joinBases, openBase } from '../../src/ship/bundle/delta/base.ts';
import { makeInventory } from '../../src/ship/bundle/delta/inventory.ts';
import * as assert from '../support/assert.ts';
import { noReport } from '../support/context.ts';
import { install, NODE, nodeWith } from '../support/node-deltas.ts';
import { trace, tracerPackage } from '../support/node-install.ts';
import { noise } from '../support/packages.ts';
import { runTraced } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

// not fast: hundreds of hooks
const test = suite('cli/delta-install', { timeoutMs: 120_000 });
const signal = new AbortController().signal;

const [ONE, TWO, THREE] = [noise(300_000, 1), noise(200_000, 2), noise(100_000, 3)];

const BEFORE = [tracerPackage('aaa', '1.0.0', { one: ONE, two: TWO })];
const AFTER = [
  tracerPackage('aaa', '1.0.1', { one: ONE, three: THREE }),
  tracerPackage('bbb', '1.0.0', { 'data/two': TWO }),
];

test('a delta is installed with what the node has', async () => {
  await using box = await nodeWith(BEFORE, AFTER);
  const { size } = await stat(box.at('d.tar.gz'));
  assert.ok(size < 160_000, `${size} bytes`);
  const plan = await install(box, 'd.tar.gz', '--dry-run');
  assert.is(plan.exitCode, 0, plan.stderr);
  const { exitCode, stdout, stderr } = await install(box, 'd.tar.gz');
  assert.is(exitCode, 0, stderr);
  assert.match(stdout, /^aaa {2}1\.0\.0 → 1\.0\.1 {2}installed.*\nbbb {2}1\.0\.0 {10}installed/);
  for (const [path, data] of [
    ['addons/aaa/1.0.1/one', ONE],
    ['addons/aaa/1.0.1/three', THREE],
    ['addons/bbb/1.0.0/data/two', TWO],
  ] as const) {
    assert.ok((await readFile(box.at(NODE, path))).equals(data), path);
  }
  const again = await install(box, 'd.tar.gz');
  assert.match(again.stdout, /^aaa {2}1\.0\.1 {2}already applied/, again.stderr);
  const whole = await install(box, '2.tar.gz');
  assert.match(whole.stdout, /^aaa {2}1\.0\.1 {2}already applied/, whole.stderr);
});

test('a package that takes the place of another one of its version still gives what others need', async () => {
  const same = [tracerPackage('aaa', '1.0.0', { one: ONE, three: THREE }), tracerPackage('bbb', '1.0.0', { two: TWO })];
  await using box = await nodeWith(BEFORE, same);
  const { exitCode, stderr } = await install(box, 'd.tar.gz');
  assert.is(exitCode, 0, stderr);
  assert.ok((await readFile(box.at(NODE, 'addons/bbb/1.0.0/two'))).equals(TWO));
});

test('a delta goes on where a hook has failed, with the delta alone', async () => {
  const failing = 'bbb() { echo bbb >>"$TRACE"; [ -e "$TRACE-ok" ]; }';
  const [aaa] = AFTER;
  if (aaa === undefined) throw new Error('no package');
  await using box = await nodeWith(BEFORE, [aaa, tracerPackage('bbb', '1.0.0', { two: TWO }, failing)]);
  assert.is((await install(box, 'd.tar.gz')).exitCode, 20);
  await writeFile(box.at('trace-ok'), '');
  const { exitCode, stderr } = await install(box, 'd.tar.gz');
  assert.is(exitCode, 0, stderr);
});

for (const [title, change, name] of [
  ['lacks a file', async (path: string) => rm(path), /addons\/aaa\/1\.0\.1\/one \(300000 bytes\)/],
  ['has another file in its place', async (path: string) => writeFile(path, noise(300_000, 9)), /1\.0\.1\/one/],
] as const) {
  test(`a node that ${title} refuses the delta by name, before anything is changed`, async () => {
    await using box = await nodeWith(BEFORE, AFTER);
    await change(box.at(NODE, 'addons/aaa/1.0.0/one'));
    const before = [await readFile(box.at(NODE, 'records.json')), await readdir(box.at(NODE))] as const;
    const { exitCode, stderr } = await install(box, 'd.tar.gz');
    assert.is(exitCode, 14, stderr);
    assert.match(stderr, /1 file \(300000 bytes\) missing/);
    assert.match(stderr, name);
    assert.equal(await trace(box), []);
    assert.equal([await readFile(box.at(NODE, 'records.json')), await readdir(box.at(NODE))], before);
  });
}

test('what a package shares with one that is in place is looked for, too, before anything is changed', async () => {
  const [aaa] = BEFORE;
  if (aaa === undefined) throw new Error('no package');
  await using box = await nodeWith(BEFORE, [aaa, tracerPackage('bbb', '1.0.0', { 'data/two': TWO })]);
  await writeFile(box.at(NODE, 'addons/aaa/1.0.0/two'), noise(TWO.byteLength, 9));
  const before = [await readFile(box.at(NODE, 'records.json')), await readdir(box.at(NODE))] as const;
  const { exitCode, stderr } = await install(box, 'd.tar.gz');
  assert.is(exitCode, 14, stderr);
  assert.match(stderr, /addons\/bbb\/1\.0\.0\/data\/two \(200000 bytes\)/);
  assert.equal([await readFile(box.at(NODE, 'records.json')), await readdir(box.at(NODE))], before);
});

test('a node that has nothing refuses a delta, and nothing is made', async () => {
  await using box = await nodeWith(BEFORE, AFTER);
  await rm(box.at('root'), { recursive: true });
  const { exitCode, stderr } = await install(box, 'd.tar.gz');
  assert.is(exitCode, 14, stderr);
  assert.is(await stat(box.at('root')).catch(() => 'absent'), 'absent');
});

test('an unpacked delta is not taken, and says what is', async () => {
  await using box = await nodeWith(BEFORE, AFTER);
  await mkdir(box.at('out'));
  await execa('tar', ['xzf', box.at('d.tar.gz'), '-C', box.at('out')]);
  const words = ['install', '--dir', 'out', '--root', 'root', '--unconfined'];
  const { exitCode, stderr } = await runTraced(words, box);
  assert.is(exitCode, 22, stderr);
  assert.match(stderr, '--bundle');
});

test('the whole bundle is made from a node, when the tool for nodes comes with the delta', async () => {
  await using box = await nodeWith(BEFORE, AFTER);
  const { exitCode, stderr } = await runTraced(['apply', 'd.tar.gz', '--base', NODE, '-o', 'made.tar.gz'], box);
  assert.is(exitCode, 0, stderr);
  assert.ok((await readFile(box.at('made.tar.gz'))).equals(await readFile(box.at('2.tar.gz'))));
});

test('what hooks keep from other users is in no inventory, and neither is what is no plain file', async () => {
  await using box = await tree({ 'addons/aaa/1.0.0/secret': 'hunter2', 'addons/aaa/1.0.0/x': 'x' });
  await execa('chmod', ['600', box.at('addons/aaa/1.0.0/secret')]);
  await execa('ln', ['-s', '/etc/hostname', box.at('addons/aaa/1.0.0/link')]);
  await execa('mkfifo', [box.at('addons/aaa/1.0.0/pipe')]);
  const base = joinBases([await openBase(box.path, { report: noReport, signal })]);
  const payloads = [];
  for await (const one of base.payloads({ signal })) payloads.push(one);
  assert.equal(
    makeInventory({ payloads, packages: base.packages, tool: '1' }).payloads.map(([, size]) => size),
    [1],
  );
});

test.run();
