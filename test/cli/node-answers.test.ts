import { appendFile, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { fileError } from '../../src/core/errors.ts';
import { readable } from '../../src/runtime/history/history.ts';
import type { HookLog, RunSummary } from '../../src/runtime/history/hook-logs.ts';
import { readRecords } from '../../src/runtime/node/records.ts';
import type { NodeStatus } from '../../src/runtime/history/status.ts';
import type { AddonHistory } from '../../src/runtime/history/why.ts';
import * as assert from '../support/assert.ts';
import type { Outcome } from '../support/curlew.ts';
import { bundleOf } from '../support/node-bundles.ts';
import { packagesOf, run, tracer } from '../support/node-install.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

// not fast: hundreds of hooks
const test = suite('cli/node-answers', { timeoutMs: 120_000 });

async function ask(box: Tree, ...words: readonly string[]): Promise<Outcome> {
  return runCommand([...words, '--install-dir', box.at('node')], box.path);
}

async function told<Result>(box: Tree, ...words: readonly string[]): Promise<Result> {
  const { exitCode, stdout, stderr } = await ask(box, ...words, '--json', '--quiet');
  assert.is(exitCode, 0, stderr);
  return JSON.parse(stdout) as Result;
}

const FAILING = 'bbb() {\n  echo "disk \u001b[31mfull\u001b[0m http://me:secret@host/x?token=1"\n  return 3\n}';

/** A node on which aaa is installed and bbb has failed. */
async function failedNode(): Promise<Tree> {
  const box = await tree();
  const packages = await packagesOf(bundleOf([tracer('aaa'), tracer('bbb', FAILING)]));
  await run(box, packages.slice(0, 1));
  await assert.rejectsWith(run(box, packages), 'HOOK_FAILED');
  return box;
}

test('a node on which nothing was ever installed says so, and that is no failure', async () => {
  await using box = await tree();
  const { exitCode, stdout } = await ask(box, 'status');
  assert.equal([exitCode, stdout], [0, `Nothing is installed in ${box.at('node')}.`]);
  assert.equal((await told<{ runs: unknown }>(box, 'logs')).runs, []);
  assert.is((await ask(box, 'logs')).stdout, 'No recorded runs.');
  const why = await ask(box, 'why', 'aaa');
  assert.is(why.exitCode, 14);
  assert.match(why.stderr, 'nothing is installed on this node, and no run is recorded');
  assert.is(await stat(box.at('node')).catch(() => 'absent'), 'absent');
});

test('a --root in which there is no trial is named, and not taken for an empty node', async () => {
  await using box = await tree({ 'empty/other': 'x' });
  const inside = box.at('empty/var/lib/curlew');
  const WRONG = { nowhere: 'no such folder', empty: `it has no ${inside}` };
  const COMMANDS = ['status', 'logs', 'why aaa', 'verify --installed', 'resume', 'rollback aaa', 'uninstall aaa --yes'];
  const DRY = ['resume --dry-run', 'rollback aaa --dry-run', 'uninstall aaa --dry-run'];
  for (const [root, why] of Object.entries(WRONG)) {
    for (const command of [...COMMANDS, ...DRY]) {
      const { exitCode, stdout, stderr } = await runCommand([...command.split(' '), '--root', root], box.path);
      assert.equal([exitCode, stdout], [14, ''], `${command}: ${stderr}`);
      const hint = `check the path; curlew install --root ${root} creates a trial`;
      const said = stderr.replaceAll(/\s+/g, ' ');
      assert.ok(said.includes(`there is no trial in ${box.at(root)}: ${why}`) && said.includes(hint), stderr);
    }
  }
  assert.equal(await readdir(box.path), ['empty']);
});

test('a file in the place of the folder of a trial, or of the install folder, is named, and no command creates a trial there', async () => {
  await using box = await tree({ file: 'x', 'b.tar.gz': bundleOf([tracer('aaa')]) });
  const WRONG = [
    ['--root', 'file', `cannot use ${box.at('file')} as the folder of a trial: it is not a folder`],
    [
      '--root',
      'file/in/it',
      `cannot use ${box.at('file/in/it')} as the folder of a trial: ${box.at('file')} is not a folder`,
    ],
    ['--install-dir', 'file', `cannot use ${box.at('file')} as the install folder: it is not a folder`],
  ] as const;
  const READING = ['status', 'logs', 'why aaa', 'verify --installed', 'load-images', 'preflight --bundle b.tar.gz'];
  const DRY = ['install --bundle b.tar.gz --dry-run', 'rollback aaa --dry-run', 'uninstall aaa --dry-run'];
  const CHANGING = ['install --bundle b.tar.gz', 'resume', 'rollback aaa', 'uninstall aaa --yes', 'reset --yes'];
  for (const [option, path, what] of WRONG) {
    // Without --root, commands that change the machine ask for root first.
    for (const command of [...READING, ...DRY, ...(option === '--root' ? CHANGING : [])]) {
      const { exitCode, stdout, stderr } = await runCommand([...command.split(' '), option, path], box.path);
      assert.equal([exitCode, stdout], [25, ''], `${command}: ${stderr}`);
      const hint = `hint: specify with ${option} a folder, or a path at which nothing exists yet`;
      assert.is(stderr.replaceAll(/\s+/g, ' ').trim(), `error FILE_UNUSABLE: ${what} ${hint}`, command);
    }
  }
});

test('status tells add-ons, versions, digests, times and the last run', async () => {
  await using box = await tree();
  await run(box, await packagesOf(bundleOf([tracer('aaa'), tracer('bbb', '', '2.0.0')])));
  const status = await told<NodeStatus>(box, 'status');
  assert.equal(
    status.addons.map(({ name, version, finished, inPlace }) => [name, version, finished, inPlace]),
    [
      ['aaa', '1.0.0', true, true],
      ['bbb', '2.0.0', true, true],
    ],
  );
  assert.equal([status.lastRun?.state, status.lastRun?.kind], ['finished', 'install']);
  const { stdout } = await ask(box, 'status');
  assert.match(stdout, /^add-on {2}version {2}package {2}settings {2}last run, UTC\naaa {5}1\.0\.0 {4}[0-9a-f]{7} /);
  assert.match(stdout, /^Last run: \S+, install, finished$/m);
});

test('files of which nothing is recorded are not called changed', async () => {
  await using box = await tree();
  await run(box, await packagesOf(bundleOf([tracer('aaa')])));
  await rm(box.at('node/placed'), { recursive: true });
  assert.match((await ask(box, 'status')).stdout, /^aaa .* files not verified$/m);
  assert.match(
    (await ask(box, 'why', 'aaa')).stdout.replaceAll(/\s+/g, ' '),
    '; its files are verified, or extracted again',
  );
});

test('what did not finish, and files that somebody has changed, are told', async () => {
  await using box = await failedNode();
  await writeFile(box.at('node/addons/aaa/1.0.0/addon.json'), '{}');
  const { stdout, exitCode } = await ask(box, 'status');
  assert.is(exitCode, 0);
  assert.match(stdout, /^bbb .* not finished$/m);
  assert.match(stdout, /^Last run: \S+, install, failed\n {2}bbb: bbb failed with status 3 at /m);
});

test('why tells what was planned, how far it came, and what the next run does', async () => {
  await using box = await failedNode();
  const failed = await told<AddonHistory>(box, 'why', 'bbb');
  assert.equal([failed.last?.state, failed.last?.mode, failed.last?.culprit], ['failed', 'install', true]);
  assert.equal(
    failed.last?.actions.map(({ id, state }) => [id, state]),
    [
      ['extract bbb-1.0.0', 'done'],
      ['hook bbb_pre_init', 'done'],
      ['hook bbb', 'failed'],
      ['hook bbb_post_init', 'not reached'],
      ['hook bbb_outro', 'not reached'],
    ],
  );
  const { stdout } = await ask(box, 'why', 'bbb');
  assert.match(
    stdout,
    /^bbb 1\.0\.0\nlast run {3}\S+, failed\ninstall {4}it was not installed\nfailed {5}bbb: bbb failed/,
  );
  assert.match(stdout, /^next run {3}it is installed again: its last run did not finish$/m);
  const fine = await ask(box, 'why', 'aaa');
  assert.match(fine.stdout, /^skipped {4}same version, package and settings/m);
});

test('why tells hooks that a finished run did not find from those that a failed one has not reached', async () => {
  await using box = await tree();
  const files = { Manifest: '', 'install.sh': 'ccc() { :; }\nccc_outro() { :; }\n' };
  await run(box, await packagesOf(bundleOf([{ name: 'ccc', version: '1.0.0', files }])));
  const { last } = await told<AddonHistory>(box, 'why', 'ccc');
  assert.equal(
    last?.actions.filter(({ kind }) => kind === 'hook').map(({ id, state }) => [id, state]),
    [
      ['hook ccc_pre_init', 'not defined'],
      ['hook ccc', 'done'],
      ['hook ccc_post_init', 'not defined'],
      ['hook ccc_outro', 'done'],
    ],
  );
});

test('a hook that a failed run has passed over is not defined, and one after the failure is not reached', async () => {
  await using box = await tree();
  const files = { Manifest: '', 'install.sh': 'ddd() { return 3; }\n' };
  const packages = await packagesOf(bundleOf([{ name: 'ddd', version: '1.0.0', files }]));
  await assert.rejectsWith(run(box, packages), 'HOOK_FAILED');
  const { last } = await told<AddonHistory>(box, 'why', 'ddd');
  assert.equal(
    last?.actions.filter(({ kind }) => kind === 'hook').map(({ id, state }) => [id, state]),
    [
      ['hook ddd_pre_init', 'not defined'],
      ['hook ddd', 'failed'],
      ['hook ddd_post_init', 'not reached'],
      ['hook ddd_outro', 'not reached'],
    ],
  );
});

test('an add-on that no run had is told with the one that may be meant', async () => {
  await using box = await failedNode();
  const { exitCode, stderr } = await ask(box, 'why', 'aab');
  assert.is(exitCode, 14);
  assert.match(stderr, /did you mean "aaa"\?|did you mean "bbb"\?/);
  assert.is((await ask(box, 'why')).exitCode, 64);
  assert.is((await ask(box, 'why', 'aaa', 'bbb')).exitCode, 64);
  assert.is((await ask(box, 'why', '../../etc/passwd')).exitCode, 14);
  assert.is((await ask(box, 'why', 'constructor')).exitCode, 14);
});

test('logs lists runs and shows what hooks printed, harmless and bounded', async () => {
  await using box = await failedNode();
  const { runs } = await told<{ runs: readonly RunSummary[] }>(box, 'logs');
  assert.equal(
    runs.map(({ state, addons }) => [state, addons]),
    [
      ['failed', ['aaa', 'bbb']],
      ['finished', ['aaa']],
    ],
  );
  const { stdout } = await ask(box, 'logs', 'bbb', 'install');
  assert.match(stdout, /^== bbb, run \S+: .*bbb\.log\ndisk full http:\/\/host\/x$/m);
  assert.not(stdout.includes('\u001b'));
  const { logs } = await told<{ logs: readonly HookLog[] }>(box, 'logs', 'bbb');
  assert.equal(
    logs.map(({ hook }) => hook),
    ['bbb_pre_init', 'bbb'],
  );
  const all = await told<{ logs: readonly HookLog[] }>(box, 'logs', 'look-up');
  assert.equal(
    all.logs.map(({ hook, addon }) => [hook, addon]),
    [['look-up', undefined]],
  );
});

test('logs lists what each run changed, from which version to which', async () => {
  await using box = await failedNode();
  const next = await packagesOf(bundleOf([tracer('aaa', '', '1.1.0')]));
  await run(box, next);
  await run(box, next);
  const { stdout } = await ask(box, 'logs');
  const lines = stdout.split('\n').filter((line) => !line.endsWith(' B)'));
  assert.equal(
    lines.map((line) => line.replace(/^\S+Z-\w{4}, | at \/.*/, '')),
    [
      'install, finished',
      'install, finished',
      '  aaa 1.0.0 → 1.1.0',
      'install, failed',
      '  bbb: bbb failed with status 3',
      '  bbb 1.0.0',
      'install, finished',
      '  aaa 1.0.0',
    ],
  );
});

test('the ID of a run in the place of an add-on is told with the option for it', async () => {
  await using box = await failedNode();
  const { lastRun = '' } = await readRecords(box.at('node'));
  const { exitCode, stderr } = await ask(box, 'logs', lastRun);
  assert.is(exitCode, 14);
  const text = stderr.replaceAll(/\s+/g, ' ');
  assert.match(text, `${lastRun} is a run, not an add-on`);
  assert.match(text, new RegExp(`curlew logs .*--run ${lastRun} lists its logs`));
  const unknown = await ask(box, 'logs', lastRun.slice(0, -1) + (lastRun.endsWith('0') ? '1' : '0'));
  assert.match(unknown.stderr.replaceAll(/\s+/g, ' '), `did you mean "${lastRun}"?`);
});

test('a large log is shown by its end', async () => {
  await using box = await failedNode();
  const { lastRun = '' } = await readRecords(box.at('node'));
  await appendFile(box.at('node/runs', lastRun, 'bbb.log'), `${'x'.repeat(100)}\n`.repeat(20_000));
  const { logs } = await told<{ logs: readonly HookLog[] }>(box, 'logs', 'bbb', 'bbb', '--lines', '5');
  assert.equal([logs[0]?.lines.length, logs[0]?.cut], [5, true]);
  const { logs: most } = await told<{ logs: readonly HookLog[] }>(box, 'logs', 'bbb', 'bbb', '--lines', '100000');
  assert.ok(JSON.stringify(most).length < 100_000);
});

for (const [title, words, exitCode, message] of [
  ['an unknown run', ['logs', '--run', '../../etc'], 14, /has no run/],
  ['an unknown run of an add-on', ['logs', 'bbb', '--run', '20260101T000000Z-0000'], 14, /has no run/],
  ['an unknown add-on', ['logs', 'bbc'], 14, /did you mean "bbb"\?/],
  ['an unknown hook', ['logs', 'bbb', 'bbb_per_init'], 14, /did you mean "bbb_pre_init"\?/],
  ['an unknown hook by its short name', ['logs', 'bbb', 'instal'], 14, /did you mean "install"\?/],
  ['a hook that nothing is near to', ['logs', 'bbb', 'xyz'], 14, /known: .*install/],
  ['a path for a hook', ['logs', 'bbb', '../../../etc/passwd'], 14, /no log of bbb/],
  ['a word too many', ['logs', 'bbb', 'bbb', 'x'], 64, /unexpected argument "x"/],
  ['lines that are no number', ['logs', 'bbb', '--lines', '-1'], 64, /--lines/],
] as const) {
  test(`${title} is told`, async () => {
    await using box = await failedNode();
    const { exitCode: found, stderr } = await ask(box, ...words);
    assert.is(found, exitCode, stderr);
    assert.match(stderr, message);
  });
}

test('damaged records and journals are told, and nothing is guessed', async () => {
  await using box = await failedNode();
  const { lastRun = '' } = await readRecords(box.at('node'));
  const journal = box.at('node/runs', lastRun, 'journal.jsonl');
  await writeFile(journal, (await readFile(journal, 'utf8')).replace('"planned"', '"plannee"'));
  const status = await ask(box, 'status');
  assert.is(status.exitCode, 25);
  assert.match(status.stdout, /^aaa /m);
  assert.match(status.stdout, /^Problem: cannot read .*journal\.jsonl: line 1 is damaged$/m);
  const why = await ask(box, 'why', 'aaa');
  assert.is(why.exitCode, 25);
  assert.match(why.stderr, /line 1 is damaged/);
  await writeFile(box.at('node/records.json'), '{"format":1');
  for (const words of [['status'], ['why', 'aaa'], ['logs']]) {
    const { exitCode, stderr } = await ask(box, ...words);
    assert.is(exitCode, 25);
    assert.match(stderr, /error FILE_UNUSABLE: cannot read .*records\.json: damaged/);
    assert.match(stderr, /hint: restore it from a backup/);
  }
});

test('a torn last line of the journal is a run that was interrupted', async () => {
  await using box = await failedNode();
  const { lastRun = '' } = await readRecords(box.at('node'));
  const journal = box.at('node/runs', lastRun, 'journal.jsonl');
  const text = await readFile(journal, 'utf8');
  await writeFile(journal, text.slice(0, -20));
  assert.match((await ask(box, 'status')).stdout, /^Last run: \S+, install, was interrupted/m);
});

test('what only root may read is told as that', async () => {
  for (const code of ['EACCES', 'EPERM']) {
    const refused = async (): Promise<never> => {
      throw fileError('read x', Object.assign(new Error(`${code}: not permitted`), { code }));
    };
    const error = await assert.rejectsWith(readable('/var/lib/x', refused), 'FILE_UNUSABLE', /permission denied/);
    assert.is(error.hint, 'run the command as root');
  }
});

test.run();
