/** Tries the moments of a run: killed there and given again, it must come to the end of one that nobody has disturbed. */
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { eachLimited } from '../../../src/platform/limit/each.ts';
import * as assert from '../../support/assert.ts';
import { sampleInTurn, sampleOf } from '../../support/sweep.ts';
import { nodeState, readyForAnother, type How, type Scene, type State } from './kill-scene.ts';

export interface Point {
  readonly at: string;
  readonly mode: 'alone' | 'tree';
}

export interface Trial {
  readonly scene: Scene;
  /** Which of the moments are tried; all where it is left out. */
  readonly moments?: RegExp;
  /** Puts what nodes share back to where it was; without it they share nothing, and points are tried side by side. */
  readonly restore?: () => Promise<void>;
  /** What there is beside the node's own files. */
  readonly around?: () => Promise<State>;
  readonly how?: How;
  /** Number of sweeps, if runs of the tests take them in turn. */
  readonly sweeps?: number;
}

/**
 * Where a hook or a client is at work, killing it too is another way to die than killing the command alone. A hook that dies
 * at its start is as if it had never been started.
 */
const WITH_CHILD = /^hook |^client images .* given /;

async function stateOf({ scene, around = async () => Promise.resolve({}) }: Trial, node: string): Promise<State> {
  return { ...(await nodeState(scene.folder(node))), ...(await around()) };
}

/** Ways to die in an undisturbed run, and the state in which that ends. */
export async function undisturbed(
  trial: Trial,
): Promise<{ readonly points: readonly Point[]; readonly expected: State }> {
  const { scene, moments = /./, restore, how } = trial;
  await restore?.();
  await writeFile(scene.at('moments'), '');
  const ended = await scene.run('undisturbed', { KILL_LOG: scene.at('moments') }, how);
  assert.is(ended.exitCode, 0, ended.stderr);
  const found = (await readFile(scene.at('moments'), 'utf8')).trimEnd().split('\n');
  const points = found
    .filter((at) => moments.test(at))
    .flatMap((at): readonly Point[] => {
      const alone = { at, mode: 'alone' } as const;
      return WITH_CHILD.test(at) ? [alone, { at, mode: 'tree' }] : [alone];
    });
  return { points, expected: await stateOf(trial, 'undisturbed') };
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

export function differences(expected: State, state: State): readonly string[] {
  return [...new Set([...Object.keys(state), ...Object.keys(expected)])]
    .filter((path) => state[path] !== expected[path])
    .map((path) => `${path}: ${JSON.stringify([expected[path], state[path]])}`);
}

/** Kills a run at one moment, gives the same command again, and returns what is not as it should be. */
export async function problemOf(
  trial: Trial,
  { at, mode }: Point,
  node: string,
  expected: State,
): Promise<string | undefined> {
  const { scene, how } = trial;
  const killed = await scene.run(node, { KILL_AT: at, KILL_MODE: mode }, how);
  if (killed.signal !== 'SIGKILL') return `was not killed: ${killed.exitCode ?? 'no status'} ${killed.stderr}`;
  await readyForAnother(scene.folder(node));
  const again = await scene.run(node, {}, how);
  if (again.exitCode !== 0) return `the same command failed: ${again.stderr}`;
  const differing = differences(expected, await stateOf(trial, node));
  if (differing.length > 0) return differing.join('\n  ');
  const processes = await processesOf(scene, node);
  if (processes.length > 0) return `left processes: ${processes.join(' ')}`;
  const mounts = await readFile('/proc/self/mountinfo', 'utf8');
  return mounts.includes(scene.at('nodes', node)) ? 'left mounts' : undefined;
}

/**
 * Tries this run's sample of the points, `width` at a time; fails with what is not as it should be, and where. Prints the
 * count, and returns all of them.
 */
export async function tryPoints(
  trial: Trial,
  { width, signal }: { readonly width: number; readonly signal: AbortSignal },
): Promise<readonly Point[]> {
  const { scene, restore, sweeps } = trial;
  const { points, expected } = await undisturbed(trial);
  const problems: string[] = [];
  const tryPoint = async (point: Point): Promise<void> => {
    const node = `n${points.indexOf(point)}`;
    await restore?.();
    const problem = await problemOf(trial, point, node, expected);
    if (problem !== undefined) problems.push(`${point.at}, ${point.mode}: ${problem}`);
    await rm(scene.at('nodes', node), { recursive: true, force: true });
  };
  const sample = sweeps === undefined ? sampleOf(points) : sampleInTurn(points, sweeps);
  await eachLimited(sample, tryPoint, { width: restore === undefined ? width : 1, signal });
  console.log(`killed at ${sample.length} of ${points.length} points`);
  assert.is(problems.length, 0, `${problems.length} of ${sample.length}:\n${problems.slice(0, 10).join('\n')}`);
  return points;
}
