/** Runs that are killed while they load images: a real containerd must have the same in the end. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeLayout } from '../support/image-packages.ts';
import { binaryLike, makeImage, makeLayer } from '../support/images.ts';
import type { TestAddon } from '../support/node-bundles.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { client, containerds, envOf, type Env, type RuntimeKind } from './support/image-runtimes.ts';
import { openScene, smallAddon, type State } from './support/kill-scene.ts';
import { tryPoints } from './support/kill-trial.ts';

// soak: every point
const test = suite('a run with images that is killed', { timeoutMs: 1_200_000 });
/** containerd is asked for an alias of it, too. */
const NAME = 'registry.k8s.io/killed:1';

/** An add-on with one image of two layers. */
async function withImage(box: Tree): Promise<TestAddon> {
  const layers = ['base', 'own'].map((part) => makeLayer({ [part]: binaryLike(400_000, part) }));
  const { folder, images } = await writeLayout(box.at('source'), { [NAME]: makeImage(layers) });
  const files: Record<string, Buffer> = {};
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile()) files[path.slice(folder.length + 1)] = await readFile(path);
  }
  return smallAddon('aaa', '1.0.0', { files, extra: { images: [...images] } });
}

async function lines(kind: RuntimeKind, env: Env, ...words: readonly string[]): Promise<readonly string[]> {
  return (await client(kind, env, ...words)).split('\n').filter((line) => line !== '');
}

/**
 * What a client that died has held goes away after a day, and what nobody holds a moment after the last lease has ended;
 * here at once, so there must be a lease to end.
 */
async function endLeases(kind: RuntimeKind, env: Env): Promise<void> {
  await client(kind, env, 'leases', 'create');
  for (const id of await lines(kind, env, 'leases', 'ls', '-q')) await client(kind, env, 'leases', 'rm', '--sync', id);
}

/** Names, and whether all of an image is there and unpacked; blobs; and what came only in part. */
async function stateOf(kind: RuntimeKind, env: Env): Promise<State> {
  await endLeases(kind, env);
  const sorted = async (...words: readonly string[]): Promise<string> =>
    (await lines(kind, env, ...words)).toSorted().join('\n').replaceAll(/ +/g, ' ');
  return {
    images: await sorted('images', 'check'),
    content: await sorted('content', 'ls', '-q'),
    partial: await sorted('content', 'active'),
  };
}

async function forget(kind: RuntimeKind, env: Env): Promise<void> {
  await endLeases(kind, env);
  const names = await lines(kind, env, 'images', 'ls', '-q');
  if (names.length > 0) await client(kind, env, 'images', 'rm', '--sync', ...names);
}

for (const kind of containerds()) {
  if (kind.why === undefined) {
    test(`${kind.title}: comes to the same end by the same command`, async ({ signal }) => {
      await using box = await tree();
      await using daemon = await kind.start(box.at('runtime'));
      const env = envOf(kind, daemon);
      await using scene = await openScene({
        bundles: { now: [await withImage(box)] },
        before: [],
        words: ['install', '--bundle', 'now'],
        env: { ...env, KUBECONFIG: '/nowhere' },
      });
      const moments = /^client |^journal .* images /;
      const restore = async (): Promise<void> => forget(kind, env);
      const around = async (): Promise<State> => stateOf(kind, env);
      await tryPoints({ scene, moments, restore, around }, { width: 1, signal });
    });
  } else test.skip(kind.title, kind.why);
}

test.run();
