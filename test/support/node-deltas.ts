/** Nodes that were installed from a bundle, and deltas from there to the next. */
import { writeFile } from 'node:fs/promises';
import { parseInventory } from '../../src/ship/bundle/delta/inventory.ts';
import * as assert from './assert.ts';
import type { TestPackage } from './bundles.ts';
import type { Outcome } from './curlew.ts';
import { bundleOfPackages, deltaOf } from './deltas.ts';
import { trace } from './node-install.ts';
import { runTraced } from './run-command.ts';
import { tree, type Tree } from './tree.ts';

/** Install folder, in the box. */
export const NODE = 'root/var/lib/curlew';

/** `install`, `join` or `upgrade`, below `root` of the box. */
export async function runBelow(box: Tree, kind: string, ...words: readonly string[]): Promise<Outcome> {
  return runTraced([kind, ...words, '--root', 'root', '--unconfined'], box);
}

export async function install(box: Tree, bundle: string, ...more: readonly string[]): Promise<Outcome> {
  return runBelow(box, 'install', '--bundle', bundle, ...more);
}

/** A node with these packages, the bundle 2.tar.gz of others, and the delta d.tar.gz from the node to that. */
export async function nodeWith(
  before: readonly TestPackage[],
  after: readonly TestPackage[],
  kind = 'install',
): Promise<Tree> {
  const box = await tree();
  await writeFile(box.at('1.tar.gz'), (await bundleOfPackages(before)).bytes);
  const first = await runBelow(box, kind, '--bundle', '1.tar.gz');
  assert.is(first.exitCode, 0, first.stderr);
  await trace(box);
  const { stdout } = await runTraced(['inventory', NODE], box);
  const next = await bundleOfPackages(after);
  await writeFile(box.at('2.tar.gz'), next.bytes);
  await writeFile(box.at('d.tar.gz'), (await deltaOf(next, parseInventory(stdout, 'inventory'))).bytes);
  return box;
}
