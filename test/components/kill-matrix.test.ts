import { availableParallelism } from 'node:os';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { leftToOtherRuns } from '../support/sweep.ts';
import { HOOK_MOMENTS, killAddon, openScene, type SceneKind } from './support/kill-scene.ts';
import { problemOf, tryPoints, undisturbed } from './support/kill-trial.ts';

// soak: every point
const test = suite('a run that is killed', { timeoutMs: 1_200_000 });
const width = availableParallelism() + 1;

test('comes to the same end, whatever the moment, by the same command', async ({ signal }) => {
  await using scene = await openScene();
  // Before a hook is said to be done is its end.
  const points = await tryPoints({ scene, moments: /^(?!journal done hook .* before )/ }, { width, signal });
  for (const name of ['aaa', 'bbb', 'ccc', 'ddd']) {
    for (const moment of HOOK_MOMENTS) assert.ok(points.some(({ at }) => at === `hook ${name}_pre_init ${moment}`));
  }
  assert.ok(points.length > 240, `only ${points.length} points`);
});

const OTHERS = ['containerd', 'kubernetes', 'aaa'];
const NODE: SceneKind['bundles'] = {
  before: OTHERS.map((name) => killAddon(name, '1.0.0')),
  now: [...OTHERS, 'bbb'].map((name) => killAddon(name, name === 'aaa' ? '1.0.0' : '2.0.0')),
};
const BACK: SceneKind['bundles'] = {
  before: ['aaa', 'bbb'].map((name) => killAddon(name, '1.0.0')),
  failing: [killAddon('aaa', '2.0.0', 'aaa_post_init() { false; }\n'), killAddon('bbb', '1.0.0')],
};

/** The fewest possible add-ons: what is tried is what only these commands do. */
const FINISHED: SceneKind['bundles'] = {
  before: [killAddon('aaa', '1.0.0')],
  now: [killAddon('aaa', '2.0.0')],
};
const LEAVING: SceneKind['bundles'] = {
  before: ['aaa', 'ccc'].map((name) => killAddon(name, '1.0.0')),
  now: [killAddon('aaa', '1.0.0')],
};

/**
 * Lock, extraction and the folders of runs are those of an installation: what is tried of the other commands is where their
 * own hooks run, and what they write themselves, torn and whole; before a write all is as it was after the one before.
 */
const KINDS: readonly (readonly [title: string, kind: SceneKind, moments: RegExp])[] = [
  [
    'a first join',
    { bundles: NODE, before: [], words: ['join', '--bundle', 'now'] },
    /^hook .* middle$|^spawn aaa_join|^journal started .* inside |^rename .*records\.json.* after |^link .* after/,
  ],
  [
    'an upgrade of a node',
    { bundles: NODE, before: [[0, 'join', '--bundle', 'before']], words: ['upgrade', '--bundle', 'now'] },
    /^hook .* middle$|^journal done .* inside |^rename .*(?:records\.json|\d).* after |^rm .*\.old-.* after /,
  ],
  [
    'a rollback',
    {
      bundles: BACK,
      before: [
        [0, 'install', '--bundle', 'before'],
        [20, 'install', '--bundle', 'failing'],
      ],
      words: ['rollback', 'aaa'],
    },
    /^hook .* middle$|^journal (?!ended).* after |^(?:rename|rm .*\.old-).* after /,
  ],
  [
    'a rollback of an upgrade that finished',
    {
      bundles: FINISHED,
      before: [
        [0, 'install', '--bundle', 'before'],
        [0, 'install', '--bundle', 'now'],
      ],
      words: ['rollback', 'aaa'],
    },
    /^hook .* middle$|^journal (?!ended).* after |^(?:rename|rm .*\.old-).* after /,
  ],
  [
    'an installation that prunes',
    {
      bundles: LEAVING,
      before: [[0, 'install', '--bundle', 'before']],
      words: ['install', '--bundle', 'now', '--prune'],
    },
    /^hook ccc.* middle$|^journal \w+ hook ccc.* after |^(?:rename|rm (?!.*\/lock )).* after /,
  ],
  [
    'a reset',
    { bundles: BACK, before: [[0, 'install', '--bundle', 'before']], words: ['reset', '--yes'] },
    /^hook .* middle$|^journal .* after |^(?:rename|rm).* after /,
  ],
  [
    'an uninstall',
    { bundles: NODE, before: [[0, 'install', '--bundle', 'before']], words: ['uninstall', 'aaa', '--yes'] },
    // Once it has finished, there is nothing to uninstall.
    /^hook .* middle$|^journal (?!ended).* after |^(?:rename|rm (?!.*\/lock )).* after /,
  ],
];

for (const [title, kind, moments] of KINDS) {
  const elsewhere = leftToOtherRuns(
    title,
    KINDS.map(([one]) => one),
  );
  if (elsewhere !== undefined) {
    test.skip(title, elsewhere);
    continue;
  }
  test(`${title} does so, too`, async ({ signal }) => {
    await using scene = await openScene(kind);
    await tryPoints({ scene, moments, sweeps: KINDS.length }, { width, signal });
  });
}

test('leaves no mounts when its hooks were confined', async () => {
  await using scene = await openScene();
  const more = ['KILL_AT', 'SCENE'].flatMap((name) => ['--env', name]);
  const trial = { scene, how: { more } };
  const { expected } = await undisturbed(trial);
  for (const mode of ['alone', 'tree'] as const) {
    assert.is(await problemOf(trial, { at: 'hook bbb middle', mode }, `c-${mode}`, expected), undefined);
  }
});

test.run();
