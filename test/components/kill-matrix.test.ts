import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { eachLimited } from '../../src/core/each.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { HOOK_MOMENTS, nodeState, openScene, readyForAnother, type How, type Scene } from './support/kill-scene.ts';

const test = suite('a run that is killed', { timeoutMs: 1_200_000 });
const FOLDER = 'var/lib/curlew';

interface Point {
  readonly at: string;
  readonly mode: 'alone' | 'tree';
}

/** Moments of an undisturbed run. Where no hook is alive both ways to kill are the same. */
async function pointsOf(scene: Scene): Promise<readonly Point[]> {
  await writeFile(scene.at('moments'), '');
  const ended = await scene.run('undisturbed', { KILL_LOG: scene.at('moments') });
  assert.is(ended.exitCode, 0, ended.stderr);
  const moments = (await readFile(scene.at('moments'), 'utf8')).trimEnd().split('\n');
  return moments.flatMap((at): readonly Point[] => {
    const alone = { at, mode: 'alone' } as const;
    return /^(?:hook|spawn) /.test(at) ? [alone, { at, mode: 'tree' }] : [alone];
  });
}

async function processesOf(scene: Scene, node: string): Promise<readonly string[]> {
  const marker = `SCENE=${scene.at('nodes', node)}`;
  const found: string[] = [];
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '');
    if (environment.split('\0').includes(marker))
      found.push(await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => ''));
  }
  return found;
}

/** Kills a run at one moment, gives the same command again, and returns what is not as it should be. */
async function problemOf(
  scene: Scene,
  { at, mode }: Point,
  node: string,
  expected: Readonly<Record<string, string>>,
  how?: How,
): Promise<string | undefined> {
  const killed = await scene.run(node, { KILL_AT: at, KILL_MODE: mode }, how);
  if (killed.signal !== 'SIGKILL') return `was not killed: ${killed.exitCode ?? 'no status'} ${killed.stderr}`;
  await readyForAnother(scene.at('nodes', node, FOLDER));
  const again = await scene.run(node, {}, how);
  if (again.exitCode !== 0) return `the same command failed: ${again.stderr}`;
  const state = await nodeState(scene.at('nodes', node, FOLDER));
  const differing = [...new Set([...Object.keys(state), ...Object.keys(expected)])].filter(
    (path) => state[path] !== expected[path],
  );
  if (differing.length > 0) {
    return differing.map((path) => `${path}: ${JSON.stringify([expected[path], state[path]])}`).join('\n  ');
  }
  const processes = await processesOf(scene, node);
  if (processes.length > 0) return `left processes: ${processes.join(' ')}`;
  const mounts = await readFile('/proc/self/mountinfo', 'utf8');
  return mounts.includes(scene.at('nodes', node)) ? 'left mounts' : undefined;
}

test('comes to the same end, whatever the moment, by the same command', async ({ signal }) => {
  await using scene = await openScene();
  const points = await pointsOf(scene);
  const expected = await nodeState(scene.at('nodes/undisturbed', FOLDER));
  for (const name of ['aaa', 'bbb', 'ccc', 'ddd']) {
    for (const moment of HOOK_MOMENTS) assert.ok(points.some(({ at }) => at === `hook ${name}_pre_init ${moment}`));
  }
  const problems: string[] = [];
  const tryPoint = async (point: Point): Promise<void> => {
    const node = `n${points.indexOf(point)}`;
    const problem = await problemOf(scene, point, node, expected);
    if (problem !== undefined) problems.push(`${point.at}, ${point.mode}: ${problem}`);
    await rm(scene.at('nodes', node), { recursive: true, force: true });
  };
  const width = availableParallelism() + 1;
  await eachLimited(points, tryPoint, { width, signal });
  console.log(`killed at ${points.length} points`);
  assert.ok(points.length > 250, `only ${points.length} points`);
  assert.is(problems.length, 0, `${problems.length} of ${points.length}:\n${problems.slice(0, 10).join('\n')}`);
});

test('leaves no mounts when its hooks were confined', async () => {
  await using scene = await openScene();
  const confined: How = { more: [] };
  const ended = await scene.run('undisturbed', {}, confined);
  assert.is(ended.exitCode, 0, ended.stderr);
  const expected = await nodeState(scene.at('nodes/undisturbed', FOLDER));
  for (const mode of ['alone', 'tree'] as const) {
    assert.is(await problemOf(scene, { at: 'hook bbb middle', mode }, `c-${mode}`, expected, confined), undefined);
  }
});

test.run();
