/** `curlew uninstall`, and add-ons that `--prune` removes. */
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { DELETE_CLUSTER } from '../../src/app/cluster-delete.ts';
import { formatEntry, parseJournal } from '../../src/runtime/journal/journal.ts';
import { isRunPlan } from '../../src/runtime/plan/run-plan.ts';
import { readRecords } from '../../src/runtime/node/records.ts';
import { RunRecords } from '../../src/runtime/node/run-records.ts';
import { appears } from '../support/appears.ts';
import * as assert from '../support/assert.ts';
import type { Outcome } from '../support/curlew.ts';
import { boxWith, bundleOf, type TestAddon } from '../support/node-bundles.ts';
import { trace, tracer } from '../support/node-install.ts';
import { runTraced } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import type { Tree } from '../support/tree.ts';
import type { RunResult } from '../../src/runtime/run/run-result.ts';

// not fast: hundreds of hooks
const test = suite('cli/uninstall', { timeoutMs: 240_000 });
const NODE = 'root/var/lib/curlew';

const HOOKS = ['join', 'pre_remove', 'leave', 'uninstall'];

/** Its hooks of removal write down what they are told. */
function addon(name: string, requires: readonly string[] = []): TestAddon {
  const greeting = `$${name.toUpperCase()}_GREETING`;
  const made = tracer(
    name,
    `${name}_join() { :; }
${name}_pre_remove() { echo "${name} out \${CURLEW_KEEP_DATA-}" >>"$TRACE"; [ ! -e "$DIR/stay" ]; }
${name}_leave() { echo "${name} leaves" >>"$TRACE"; }
${name}_uninstall() { echo "${name} off ${greeting}" >>"$TRACE"; [ ! -e "$DIR/stuck" ]; }`,
  );
  return { ...made, extra: { requires, hooks: HOOKS.map((hook) => `${name}_${hook}`) } };
}

async function on(box: Tree, command: string, ...more: readonly string[]): Promise<Outcome> {
  return runTraced([command, '--root', box.at('root'), '--unconfined', ...more], box);
}

/** How messages name the command: on the node that they are about. */
function uninstallIn(box: Tree): string {
  return `curlew uninstall --root ${box.at('root')} --unconfined`;
}

/** A node with these add-ons, from b.tar.gz. */
async function node(addons: readonly TestAddon[], ...more: readonly string[]): Promise<Tree> {
  const box = await boxWith(addons);
  const { exitCode, stderr } = await on(box, 'install', '--bundle', 'b.tar.gz', ...more);
  assert.is(exitCode, 0, stderr);
  await trace(box);
  return box;
}

async function installed(box: Tree): Promise<readonly string[]> {
  return Object.keys((await readRecords(box.at(NODE))).applied).toSorted();
}

test('one add-on goes, with its settings, files and records; the others stay', async () => {
  await using box = await node([addon('web'), addon('db')], '--set', 'db.greeting=hello');
  const { exitCode, stdout, stderr } = await on(box, 'uninstall', 'db', '--yes');
  assert.is(exitCode, 0, stderr);
  assert.match(stdout, /^db {2}1\.0\.0 {2}removed \(requested\), [\d.]+ s\nrun \S+, [\d.]+ s$/);
  assert.equal(await trace(box), ['db out ', 'db off hello']);
  assert.equal(await installed(box), ['web']);
  assert.equal(await readdir(box.at(NODE, 'addons')), ['web']);
  assert.equal((await readdir(box.at(NODE, 'kustomize'))).toSorted(), ['kubeadm', 'web']);
  assert.match((await on(box, 'install', '--bundle', 'b.tar.gz')).stdout, /^db {3}1\.0\.0 {2}installed/m);
});

test('names that are no names of add-ons in the journal of an earlier removal are no folders to be removed', async () => {
  await using box = await node([addon('web')]);
  await writeFile(box.at(NODE, 'stuck'), '');
  assert.is((await on(box, 'uninstall', 'web', '--yes')).exitCode, 20);
  await rm(box.at(NODE, 'stuck'));
  await mkdir(box.at('victim'));
  const { lastRun = '' } = await readRecords(box.at(NODE));
  const journal = box.at(NODE, 'runs', lastRun, 'journal.jsonl');
  const entries = parseJournal(await readFile(journal, 'utf8'), journal, isRunPlan).map((entry) => {
    if (entry.type !== 'planned') return entry;
    const addons = entry.plan.addons.map((one) => ({ ...one, ref: { ...one.ref, name: '../../../../../victim' } }));
    return { ...entry, plan: { ...entry.plan, addons } };
  });
  await writeFile(journal, entries.map(formatEntry).join(''));
  const again = await on(box, 'uninstall', 'web', '--yes');
  assert.is(again.exitCode, 25, again.stderr);
  assert.match(again.stderr, 'line 1 is damaged');
  assert.ok((await stat(box.at('victim'))).isDirectory());
});

test('several go in the reverse of their order, those named twice once', async () => {
  await using box = await node([addon('db'), addon('web', ['db'])]);
  assert.is((await on(box, 'uninstall', 'db', 'web', 'db', '--yes', '--keep-data')).exitCode, 0);
  assert.equal(await trace(box), ['web out 1', 'db out 1', 'web off ', 'db off ']);
  assert.equal(await installed(box), []);
});

test('an uninstall that is repeated after its success says that nothing is left to do', async () => {
  await using box = await node([addon('db'), addon('web')]);
  assert.is((await on(box, 'uninstall', 'web', '--yes')).exitCode, 0);
  const { exitCode, stderr } = await on(box, 'uninstall', 'web', '--yes');
  assert.is(exitCode, 14);
  assert.match(
    stderr,
    /web is already uninstalled: the last run on this node removed it\n +hint: nothing is left to do/,
  );
  assert.equal(await installed(box), ['db']);
});

test('what another add-on requires stays, and both are named', async () => {
  await using box = await node([addon('db'), addon('web', ['db'])]);
  const { exitCode, stderr } = await on(box, 'uninstall', 'db', '--yes');
  assert.is(exitCode, 64);
  assert.match(stderr, 'uninstall db: web 1.0.0 requires it');
  assert.match(stderr, `${uninstallIn(box)} db web removes all of them`);
  assert.equal([await trace(box), await installed(box)], [[], ['db', 'web']]);
});

for (const [words, status, message] of [
  [[], 64, /specify at least one add-on/],
  [['wed'], 14, /uninstall wed: it is not installed on this node[^]*did you mean "web"\?/],
  [['../../etc'], 14, /it is not installed/],
  [['constructor'], 14, /it is not installed/],
  [['kubernetes'], 64, /everything else on this node runs on it[^]*curlew reset/],
  [['web', '--prune-images'], 64, /--prune-images cannot be used with --root/],
] as const) {
  test(`uninstall ${words.join(' ')} removes nothing`, async () => {
    await using box = await node([addon('kubernetes'), addon('web')]);
    const { exitCode, stderr } = await on(box, 'uninstall', ...words, '--yes');
    assert.is(exitCode, status, stderr);
    assert.match(stderr.replaceAll(/\s+/g, ' '), message);
    assert.equal([await trace(box), await installed(box)], [[], ['kubernetes', 'web']]);
  });
}

test('nothing is removed where nobody can be asked', async () => {
  await using box = await node([addon('web')]);
  const { exitCode, stderr } = await on(box, 'uninstall', 'web');
  assert.equal([exitCode, /add --yes/.test(stderr)], [64, true]);
  assert.equal(await installed(box), ['web']);
});

test('a dry run shows the hooks, and changes nothing', async () => {
  await using box = await node([addon('web')]);
  for (const words of [['uninstall', 'web'], ['reset']] as const) {
    const { exitCode, stdout, stderr } = await on(box, words[0], ...words.slice(1), '--dry-run');
    assert.is(exitCode, 0, stderr);
    assert.match(stdout, /^ {2}remove {3}requested\n {2}hooks {4}web_pre_remove web_uninstall$/m);
  }
  assert.equal([await trace(box), await installed(box)], [[], ['web']]);
});

test('plan and result say what stays of an add-on that has no hook to remove it', async () => {
  const only = (name: string, hook: string): TestAddon => ({
    ...tracer(name, `${name}_${hook}() { :; }`),
    extra: { hooks: [`${name}_${hook}`] },
  });
  await using box = await node([tracer('none'), only('part', 'pre_remove'), only('whole', 'uninstall')]);
  const planned = await on(box, 'uninstall', 'none', 'part', 'whole', '--dry-run');
  assert.match(planned.stdout, /^ {2}leaves {3}everything that its hooks installed: it has no none_uninstall$/m);
  const { exitCode, stdout } = await on(box, 'uninstall', 'none', 'part', 'whole', '--yes');
  assert.is(exitCode, 0);
  assert.equal(stdout.match(/^\w+ leaves .*$/gm)?.toSorted(), [
    'none leaves everything that its hooks installed: it has no none_uninstall',
    'part leaves files and services that its hooks installed: it has no part_uninstall',
  ]);
});

test('status names the hook that runs, and the end of a reset the Node that the cluster keeps', async () => {
  const wait =
    'kubernetes_join() { :; }\nkubernetes_leave() { touch "$DIR/here"; until [ -e "$DIR/go" ]; do sleep 0.01; done; }';
  await using box = await boxWith([tracer('kubernetes', wait)]);
  assert.is((await on(box, 'join', '--bundle', 'b.tar.gz')).exitCode, 0);
  const running = on(box, 'reset', '--yes');
  await appears(box.at(NODE, 'here'));
  const { stdout } = await runTraced(['status', '--root', box.at('root')], box);
  await writeFile(box.at(NODE, 'go'), '');
  assert.match(stdout, /^A run is in progress: process \d+, in kubernetes_leave of kubernetes\.$/m);
  assert.match((await running).stdout, `on a control plane: curlew node remove ${hostname().toLowerCase()}`);
});

test('a hook of reset sees that the whole cluster is deleted', async () => {
  const leave = `kubernetes_join() { :; }\nkubernetes_leave() { echo "leaves $${DELETE_CLUSTER}" >>"$TRACE"; }`;
  await using box = await boxWith([tracer('kubernetes', leave)]);
  assert.is((await on(box, 'join', '--bundle', 'b.tar.gz')).exitCode, 0);
  await trace(box);
  const words = ['reset', '--root', box.at('root'), '--unconfined', '--yes'];
  assert.is((await runTraced(words, box, { [DELETE_CLUSTER]: '1' })).exitCode, 0);
  assert.equal(await trace(box), ['leaves 1']);
});

test('after a hook that failed, resume goes on with it', async () => {
  await using box = await node([addon('web')]);
  await writeFile(box.at(NODE, 'stuck'), '');
  assert.is((await on(box, 'uninstall', 'web', '--yes')).exitCode, 20);
  assert.equal(await trace(box), ['web out ', 'web off ']);
  assert.match((await runTraced(['status', '--root', box.at('root')], box)).stdout, /web/);
  await rm(box.at(NODE, 'stuck'));
  const { exitCode, stderr } = await runTraced(['resume', '--root', box.at('root')], box);
  assert.is(exitCode, 0, stderr);
  assert.equal(await trace(box), ['web off ']);
  assert.equal(await installed(box), []);
});

test('what was begun with --keep-data is begun anew without it', async () => {
  await using box = await node([addon('web')]);
  await writeFile(box.at(NODE, 'stuck'), '');
  assert.is((await on(box, 'uninstall', 'web', '--yes', '--keep-data')).exitCode, 20);
  await rm(box.at(NODE, 'stuck'));
  await trace(box);
  assert.is((await on(box, 'uninstall', 'web', '--yes')).exitCode, 0);
  assert.equal(await trace(box), ['web out ', 'web off ']);
});

test('an add-on whose hook unpacks something beside its own files can be rolled back and removed', async () => {
  const making = (version: string): TestAddon =>
    tracer(
      'web',
      `web() { echo x >"$DIR/addons/web/$WEB_VERSION/made"; }\nweb_uninstall() { echo off >>"$TRACE"; }`,
      version,
    );
  await using box = await node([making('1.0.0')]);
  await writeFile(box.at('b.tar.gz'), bundleOf([making('2.0.0')]));
  assert.is((await on(box, 'install', '--bundle', 'b.tar.gz')).exitCode, 0);
  const back = await on(box, 'rollback', 'web');
  assert.is(back.exitCode, 0, back.stderr);
  await trace(box);
  const { exitCode, stderr } = await on(box, 'uninstall', 'web', '--yes');
  assert.is(exitCode, 0, stderr);
  assert.equal(await trace(box), ['off']);
});

test('files that a run which died has left are removed by the same command, also after another run', async () => {
  await using box = await node([addon('web'), addon('db')]);
  const directory = box.at(NODE);
  await new RunRecords(directory, 'died', await readRecords(directory)).removed(new Set(['db']));
  await writeFile(box.at('less.tar.gz'), bundleOf([addon('web')]));
  assert.is((await on(box, 'install', '--bundle', 'less.tar.gz')).exitCode, 0);
  await trace(box);
  const { exitCode, stderr } = await on(box, 'uninstall', 'db', '--yes');
  assert.is(exitCode, 0, stderr);
  assert.equal(await trace(box), []);
  assert.equal(await readdir(box.at(NODE, 'addons')), ['web']);
  assert.equal(
    (await readRecords(directory)).extracted.map(({ name }) => name),
    ['web'],
  );
});

test('--keep-going removes what it can, and names what it left behind', async () => {
  await using box = await node([addon('web'), addon('db')]);
  await writeFile(box.at(NODE, 'stay'), '');
  const { exitCode, stdout } = await on(box, 'uninstall', 'web', 'db', '--yes', '--keep-going');
  assert.is(exitCode, 20);
  assert.match(stdout, /^not removed: web: web_pre_remove failed/m);
  assert.equal(await trace(box), ['db out ', 'web out ', 'db off ', 'web off ']);
  assert.equal(await installed(box), []);
});

test('an add-on whose package is gone is removed only with --keep-going, without its hooks', async () => {
  await using box = await node([addon('web')]);
  await rm(box.at(NODE, 'addons/web/1.0.0/install.sh'));
  const refused = await on(box, 'uninstall', 'web', '--yes');
  assert.equal([refused.exitCode, await installed(box)], [14, ['web']]);
  assert.match(refused.stderr.replaceAll(/\s+/g, ' '), `${uninstallIn(box)} web --keep-going removes its files`);
  await writeFile(box.at('less.tar.gz'), bundleOf([addon('db')]));
  const pruned = await on(box, 'install', '--bundle', 'less.tar.gz', '--prune');
  assert.match(pruned.stderr.replaceAll(/\s+/g, ' '), `${uninstallIn(box)} web --keep-going removes its files`);
  assert.is((await on(box, 'uninstall', 'web', '--yes', '--keep-going')).exitCode, 0);
  assert.equal([await trace(box), await installed(box)], [[], []]);
  assert.is(await stat(box.at(NODE, 'addons/web')).catch(() => 'absent'), 'absent');
});

test('a node that joined removes its own part only', async () => {
  await using box = await boxWith([addon('web')]);
  for (const [command, hooks] of [
    ['uninstall', ['web off ']],
    ['reset', ['web leaves', 'web off ']],
  ] as const) {
    assert.is((await on(box, 'join', '--bundle', 'b.tar.gz')).exitCode, 0);
    const words = command === 'uninstall' ? ['web'] : [];
    const { exitCode, stderr } = await on(box, command, ...words, '--yes');
    assert.is(exitCode, 0, stderr);
    assert.equal(await trace(box), hooks);
  }
});

test('a reset removes what a join that failed has begun, too, with the settings of that join', async () => {
  const kubernetes = tracer(
    'kubernetes',
    'kubernetes_join() { false; }\nkubernetes_uninstall() { echo "off $KUBERNETES_GREETING" >>"$TRACE"; }',
  );
  await using box = await boxWith([kubernetes, addon('web')]);
  const join = await on(box, 'join', '--bundle', 'b.tar.gz', '--set', 'kubernetes.greeting=hello');
  assert.is(join.exitCode, 20);
  await trace(box);
  const { exitCode, stdout, stderr } = await on(box, 'reset', '--yes');
  assert.is(exitCode, 0, stderr);
  assert.match(stdout, /^kubernetes {2}1\.0\.0 {2}removed$/m);
  assert.equal(await trace(box), ['web leaves', 'web off ', 'off hello']);
});

test('--prune removes what left the spec, as the plan says', async () => {
  await using box = await node([addon('web'), addon('db')], '--set', 'db.greeting=hello');
  await writeFile(box.at('less.tar.gz'), bundleOf([addon('web')]));
  const words = ['--bundle', 'less.tar.gz', '--prune'];
  const told = await on(box, 'install', ...words, '--dry-run', '--out', box.at('plan.json'));
  assert.match(told.stdout, /^Plan: install of 1 add-on, removal of 1 in /);
  assert.match(told.stdout, /^db 1\.0\.0\n(?: {2}.*\n)* {2}remove {3}it is not in the spec$/m);
  assert.equal(await trace(box), []);
  const { exitCode, stdout, stderr } = await runTraced(['install', '--plan', box.at('plan.json'), '--json'], box);
  assert.is(exitCode, 0, stderr);
  const result = JSON.parse(stdout) as RunResult & { readonly stays?: unknown };
  assert.equal(
    result.addons.map(({ name, outcome }) => [name, outcome]),
    [
      ['web', 'already applied'],
      ['db', 'removed'],
    ],
  );
  assert.is(result.stays, undefined);
  assert.equal((await trace(box)).slice(-2), ['db out ', 'db off hello']);
  assert.equal(await installed(box), ['web']);
});

test('--prune keeps what an add-on of the spec requires', async () => {
  await using box = await node([addon('db'), addon('web')]);
  await writeFile(box.at('less.tar.gz'), bundleOf([addon('web', ['db'])]));
  const { exitCode, stderr } = await on(box, 'install', '--bundle', 'less.tar.gz', '--prune');
  assert.is(exitCode, 64);
  assert.match(stderr, 'remove db, which is not in the spec: web 1.0.0 requires it');
  assert.equal(await installed(box), ['db', 'web']);
});

test('on a node that joined, --prune removes its own part', async () => {
  await using box = await boxWith([addon('web'), addon('db')]);
  await on(box, 'join', '--bundle', 'b.tar.gz');
  await writeFile(box.at('less.tar.gz'), bundleOf([addon('web')]));
  await trace(box);
  assert.is((await on(box, 'upgrade', '--bundle', 'less.tar.gz', '--prune')).exitCode, 0);
  assert.equal(await trace(box), ['db off ']);
  assert.equal(await installed(box), ['web']);
});

test.run();
