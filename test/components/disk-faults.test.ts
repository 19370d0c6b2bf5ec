/** Any single call that writes, syncs or names something meets a full disk: one error is told, and the same command succeeds. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { eachLimited } from '../../src/platform/limit/each.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { sampleInTurn } from '../support/sweep.ts';
import {
  killAddon,
  nodeState,
  openScene,
  readyForAnother,
  type Scene,
  type SceneKind,
  type State,
} from './support/kill-scene.ts';
import { differences } from './support/kill-trial.ts';

// soak: every call
const test = suite('a call that meets a full disk', { timeoutMs: 1_200_000 });
/** NODE_OPTIONS is split at blanks, which an address does not have. */
const FAULTS = `--import=${new URL('support/disk-faults.mjs', import.meta.url).href}`;
const [NO_SPACE, HOOK_FAILED] = [18, 20];

const bundles = { before: [killAddon('aaa', '1.0.0')], now: [killAddon('aaa', '2.0.0'), killAddon('bbb', '1.0.0')] };
const KINDS: readonly (readonly [title: string, kind: SceneKind])[] = [
  ['an install', { bundles, before: [[0, 'install', '--bundle', 'before']], words: ['install', '--bundle', 'now'] }],
  [
    'a rollback',
    {
      bundles: { before: bundles.before, now: bundles.now.slice(0, 1) },
      before: [
        [0, 'install', '--bundle', 'before'],
        [0, 'install', '--bundle', 'now'],
      ],
      words: ['rollback', 'aaa'],
    },
  ],
];

/** What is not as it should be if the call of this number fails. */
async function problemOf(scene: Scene, at: number, expected: State): Promise<string | undefined> {
  const node = `n${at}`;
  const { exitCode, stderr } = await scene.run(node, { NODE_OPTIONS: FAULTS, FAULT_AT: String(at) });
  if (exitCode !== 0) {
    if (exitCode !== NO_SPACE && exitCode !== HOOK_FAILED) return `status ${exitCode ?? 'none'}: ${stderr}`;
    if (stderr.match(/^error /gm)?.length !== 1 || !/no space/i.test(stderr)) return `does not tell it once: ${stderr}`;
    if (/this is a bug|^ +at .*:\d+:\d+\)?$/im.test(stderr)) return `is taken for a bug: ${stderr}`;
    await readyForAnother(scene.folder(node));
    const again = await scene.run(node);
    if (again.exitCode !== 0) return `the same command failed: ${again.stderr}`;
  }
  const differing = differences(expected, await nodeState(scene.folder(node)));
  await rm(scene.at('nodes', node), { recursive: true, force: true });
  return differing.length === 0 ? undefined : `${stderr}\n  ${differing.join('\n  ')}`;
}

for (const [title, kind] of KINDS) {
  test(`of ${title}, is told without a stack trace, and the same command comes to the same end`, async ({ signal }) => {
    await using scene = await openScene(kind);
    await writeFile(scene.at('calls'), '');
    const whole = await scene.run('whole', { NODE_OPTIONS: FAULTS, FAULT_LOG: scene.at('calls') });
    assert.is(whole.exitCode, 0, whole.stderr);
    const expected = await nodeState(scene.folder('whole'));
    const calls = (await readFile(scene.at('calls'), 'utf8')).trimEnd().split('\n');
    assert.ok(calls.length > 50, calls.join('\n'));
    const problems: string[] = [];
    const tryOne = async ([call, at]: readonly [string, number]): Promise<void> => {
      const problem = await problemOf(scene, at, expected);
      if (problem !== undefined) problems.push(`${at}, ${call}: ${problem}`);
    };
    const sample = sampleInTurn(
      calls.map((call, index) => [call, index + 1] as const),
      KINDS.length,
    );
    await eachLimited(sample, tryOne, { width: availableParallelism() + 1, signal });
    console.log(`${sample.length} of ${calls.length} calls failed`);
    assert.is(problems.length, 0, problems.join('\n'));
  });
}

test.run();
