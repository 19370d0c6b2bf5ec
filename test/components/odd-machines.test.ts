/** Machines that turn odd in the middle of a run: output that fills the disk, a clock that jumps. */
import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import type { RunSummary } from '../../src/runtime/history/hook-logs.ts';
import { readRecords } from '../../src/runtime/node/records.ts';
import type { AddonHistory } from '../../src/runtime/history/why.ts';
import * as assert from '../support/assert.ts';
import { curlew, type Outcome } from '../support/curlew.ts';
import { bundleOf } from '../support/node-bundles.ts';
import { traced, tracer } from '../support/node-install.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { cannotRun, run } from './support/programs.ts';

const test = suite('components/odd-machines', { timeoutMs: 300_000 });
const NODE = 'root/var/lib/curlew';

async function install(box: Tree, env: Readonly<Record<string, string>> = {}): Promise<Outcome> {
  const words = ['install', '--bundle', 'b.tar.gz', '--root', box.at('root'), '--unconfined', '--quiet'];
  return curlew(words, traced(box, env));
}

const noDisk = cannotRun('mount', 'umount');
const FILLS = 'a hook that fills the disk with its output is told with its log, and goes on when that is gone';
if (noDisk === undefined) {
  test(FILLS, async () => {
    await using box = await tree({ 'root/x': '' });
    await run('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', box.at('root')]);
    try {
      const script = 'bad() {\n  if [ -e "$DIR/enough" ]; then return; fi\n  touch "$DIR/enough"\n  exec_yes\n}\n';
      const files = { 'install.sh': `${script}exec_yes() { yes "so much to say"; }\n` };
      await writeFile(box.at('b.tar.gz'), bundleOf([tracer('aaa'), { name: 'bad', version: '1.0.0', files }]));
      const { exitCode, stderr } = await install(box);
      assert.is(exitCode, 20, stderr);
      assert.is(stderr.split('\n').filter((line) => line.startsWith('error ')).length, 1);
      assert.match(stderr, /^error HOOK_FAILED: bad: bad failed.*no space is left on the disk of /m);
      assert.match(stderr, /last lines of its output:\n(?: {4}.*\n)* {4}so much to say/);
      assert.match(stderr, /hint: \S+\/bad\.log has \d+ MB: check its end and remove it; free some space, then run /);
      assert.match((await install(box)).stderr, /^error NO_SPACE: /m);
      const { lastRun = '' } = await readRecords(box.at(NODE));
      await rm(box.at(NODE, 'runs', lastRun, 'bad.log'));
      const again = await install(box);
      assert.is(again.exitCode, 0, again.stderr);
      assert.is((await readRecords(box.at(NODE))).applied['bad']?.finished, true);
    } finally {
      await run('umount', [box.at('root')]);
    }
  });
} else test.skip(FILLS, noDisk);

const FAKE = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1';
const JUMPS = 'a clock that jumps by years, between runs and inside one, changes neither what is done nor what is told';
if (existsSync(FAKE)) {
  test(JUMPS, async () => {
    await using box = await tree({ now: '+0d\n' });
    const clock = { LD_PRELOAD: FAKE, FAKETIME_TIMESTAMP_FILE: box.at('now'), FAKETIME_NO_CACHE: '1' };
    const env = { ...clock, DONT_FAKE_MONOTONIC: '1', NOW: box.at('now') };
    const jumps = `bad_pre_init() { date +%Y >"$DIR/before"; echo -3650d >"$NOW"; }
      bad() { date +%Y >"$DIR/after"; echo +7300d >"$NOW"; spinner_until 20 test -e "$DIR/after"; }`;
    await writeFile(box.at('b.tar.gz'), bundleOf([tracer('bad', jumps)]));
    const first = await install(box, env);
    assert.is(first.exitCode, 0, first.stderr);
    const years = await Promise.all(['before', 'after'].map(async (name) => readFile(box.at(NODE, name), 'utf8')));
    assert.ok(Number(years[1]) < Number(years[0]) - 8, `the clock was set back: ${years.join(' ')}`);
    const ids: string[] = [(await readRecords(box.at(NODE))).lastRun ?? ''];
    for (const now of ['-7300d', '+36500d', '+0d']) {
      await writeFile(box.at('now'), `${now}\n`);
      const next = await install(box, env);
      assert.is(next.exitCode, 0, next.stderr);
      assert.match(next.stdout, /^bad {2}1\.0\.0 {2}already applied/);
      ids.push((await readRecords(box.at(NODE))).lastRun ?? '');
    }
    assert.equal(ids.toSorted(), ids);
    const asked = async (...words: readonly string[]): Promise<string> => {
      const { stdout, stderr, exitCode } = await curlew(
        [...words, '--json', '--quiet', '--install-dir', box.at(NODE)],
        { cwd: box.path, env },
      );
      assert.is(exitCode, 0, stderr);
      return stdout;
    };
    const { last } = JSON.parse(await asked('why', 'bad')) as AddonHistory;
    assert.equal([last?.run, last?.mode], [ids.at(-1), 'already applied']);
    const { runs } = JSON.parse(await asked('logs')) as { readonly runs: readonly RunSummary[] };
    assert.equal(
      runs.map((one) => [one.run, one.state]),
      ids.toReversed().map((id) => [id, 'finished']),
    );
  });
} else test.skip(JUMPS, `there is no ${FAKE}`);

test.run();
