/** Machines that are not well: a full disk at any write, one that cannot be written to, a user who may not. */
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { asError } from '../../src/core/errors.ts';
import { eachLimited } from '../../src/platform/limit/each.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { sampleOf } from '../support/sweep.ts';
import { nodeState, openScene, readyForAnother, type Scene, type State } from './support/kill-scene.ts';
import { differences } from './support/kill-trial.ts';
import { asOtherUser, USER_PROGRAMS } from './support/other-user.ts';
import { cannotRun, run } from './support/programs.ts';

// soak: every moment and every rest of the disk
const test = suite('a node in trouble', { timeoutMs: 1_200_000 });
const [NO_SPACE, HOOK_FAILED] = [18, 20];

/** A disk of its own for a node, laid out as that which others begin with. */
async function ownDisk(scene: Scene, node: string): Promise<AsyncDisposable> {
  await mkdir(scene.at('nodes', node), { recursive: true });
  await run('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'tmpfs', scene.at('nodes', node)]);
  await cp(scene.at('nodes/before'), scene.at('nodes', node), { recursive: true });
  return {
    [Symbol.asyncDispose]: async () => {
      await run('umount', ['--lazy', scene.at('nodes', node)]);
    },
  };
}

/** Pages left free when the disk fills up inside a hook: its log, what it carries, journal and records take a few. */
const LEFT_FREE = [0, 1, 2, 3, 4, 5, 7];
const PAGE = 4096;

/** One moment of each kind, and of what every add-on has, that of the first; after it the next write fails. */
function fillMoments(moments: readonly string[]): readonly string[] {
  const kinds = new Map<string, string>();
  for (const at of moments) {
    const isWrite = /^(?:journal .* before|rename .* after|extract .* opened|spawn|link .* (?:before|after)) /.test(at);
    const kind = at.replaceAll(/\b(?:aaa|bbb|ccc|ddd)(?:-\S+|_\w+)?|\d\.0\.0| \d+$/g, '');
    // Each time the records tell something else.
    const key = /records\.json/.test(at) ? at : kind;
    if (isWrite && !kinds.has(key)) kinds.set(key, at);
  }
  return [...kinds.values()];
}

/** One error, with what was being done and what to do next. */
const TOLD: readonly RegExp[] = [
  /^error [A-Z_]+: \S[^\n]*.*no space.*hint: .*the same command again/is,
  /^error NO_SPACE: the disk is too small for this run; nothing was changed\n.*hint: free that much/s,
];

/** Fills a disk at a moment, makes room, and gives the same command again; returns whether the first one failed. */
async function fill(
  scene: Scene,
  node: string,
  env: Readonly<Record<string, string>>,
  expected: State,
): Promise<boolean> {
  await using _disk = await ownDisk(scene, node);
  const ended = await scene.run(node, env);
  const what = `${JSON.stringify(env)}: ${ended.exitCode ?? ''} ${ended.stderr}`;
  const failed = ended.exitCode !== 0;
  if (failed) {
    assert.ok(ended.exitCode === NO_SPACE || ended.exitCode === HOOK_FAILED, what);
    assert.ok(
      TOLD.some((one) => one.test(ended.stderr)),
      what,
    );
    assert.not.match(ended.stderr, /^ +at .*:\d+:\d+\)?$/m);
    assert.is(ended.stderr.match(/^error /gm)?.length, 1, what);
  }
  await rm(scene.at('nodes', node, 'filler'), { force: true });
  if (failed) {
    await readyForAnother(scene.folder(node));
    const again = await scene.run(node);
    assert.is(again.exitCode, 0, `${what} ${again.stderr}`);
  }
  assert.equal(differences(expected, await nodeState(scene.folder(node))), [], what);
  return failed;
}

const reason = cannotRun('umount', ...USER_PROGRAMS);
if (reason === undefined) {
  test('a disk that fills up at any moment is told, and with room the same command comes to the same end', async ({
    signal,
  }) => {
    await using scene = await openScene();
    await writeFile(scene.at('moments'), '');
    assert.is((await scene.run('whole', { KILL_LOG: scene.at('moments') })).exitCode, 0);
    const expected = await nodeState(scene.folder('whole'));
    const inside = LEFT_FREE.map((pages, index) => ({
      FILL_AT: index % 2 === 0 ? 'aaa_pre_init middle' : 'bbb end',
      FILL_LEAVE: String(pages * PAGE),
    }));
    const moments = fillMoments((await readFile(scene.at('moments'), 'utf8')).split('\n'));
    const all = [...inside, ...moments.map((at) => ({ FILL_AT: at }))];
    const sample = sampleOf(all);
    const problems: string[] = [];
    let failed = 0;
    const tryOne = async (env: (typeof all)[number]): Promise<void> => {
      try {
        if (await fill(scene, `full-${all.indexOf(env)}`, env, expected)) failed += 1;
      } catch (error) {
        problems.push(asError(error).message);
      }
    };
    await eachLimited(sample, tryOne, { width: availableParallelism() + 1, signal });
    console.log(`${failed} of ${sample.length} runs met a full disk`);
    assert.is(problems.length, 0, problems.join('\n'));
    assert.ok(moments.length > 20, `only ${moments.length} moments`);
    // Some end without another write.
    if (sample.length === all.length) assert.ok(failed > all.length / 2, `only ${failed} runs met a full disk`);
  });

  test('a disk that cannot be written to is told, and nothing was changed', async () => {
    await using scene = await openScene();
    await using _disk = await ownDisk(scene, 'fixed');
    await run('mount', ['-o', 'remount,ro', scene.at('nodes/fixed')]);
    const ended = await scene.run('fixed');
    assert.is(ended.exitCode, 25, ended.stderr);
    assert.match(
      ended.stderr,
      /read-only file system.*\n.*hint: the disk is read-only: .*run the same command again/is,
    );
  });

  test('somebody who is not root is told so before anything', async () => {
    await using scene = await openScene();
    const under = asOtherUser();
    await run('chmod', ['-R', 'a+rX', scene.at()]);
    const ended = await scene.run('theirs', { HOME: scene.at() }, { more: ['--root', '/'], under });
    assert.is(ended.exitCode, 64, ended.stderr);
    const confined = await scene.run('theirs', { HOME: scene.at() }, { more: [], under });
    assert.is(confined.exitCode, 22, confined.stderr);
    assert.match(confined.stderr, /(?:other users can open that folder|user namespace).*\n.*hint: /s);
  });
} else test.skip('a node in trouble', reason);

test.run();
