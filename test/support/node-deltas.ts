/** Nodes that were installed from a bundle, and deltas from there to the next. */
import { writeFile } from 'node:fs/promises';
import { parseInventory } from '../../src/bundle/delta/inventory.ts';
import * as assert from './assert.ts';
import type { TestPackage } from './bundles.ts';
import { bundleOfPackages, deltaOf } from './deltas.ts';
import { trace, tracer } from './node-install.ts';
import { runCommand } from './run-command.ts';
import type { SourceOutcome } from './source-command.ts';
import { tree, type Tree } from './tree.ts';

/** Install folder, in the box. */
export const NODE = 'root/var/lib/curlew';

/** A package of these files whose hooks write down that they ran. */
export function tracing(
  name: string,
  version: string,
  files: Readonly<Record<string, Buffer | string>>,
  hooks = '',
): TestPackage {
  const own = Object.entries(tracer(name, hooks).files).map(([path, data]) => ({ path, data }));
  return { name, version, files: [...own, ...Object.entries(files).map(([path, data]) => ({ path, data }))] };
}

/** Where a command runs, and with which environment besides its own. */
interface Place extends Pick<Tree, 'path' | 'at'> {
  readonly env?: Readonly<Record<string, string>>;
}

export async function curlew({ path, at, env }: Place, ...words: readonly string[]): Promise<SourceOutcome> {
  return runCommand(words, path, { TRACE: at('trace'), ...env });
}

/** `install`, `join` or `upgrade`, below `root` of the box. */
export async function runBelow(box: Tree, kind: string, ...words: readonly string[]): Promise<SourceOutcome> {
  return curlew(box, kind, ...words, '--root', 'root', '--unconfined');
}

export async function install(box: Tree, bundle: string, ...more: readonly string[]): Promise<SourceOutcome> {
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
  const { stdout } = await curlew(box, 'inventory', NODE);
  const next = await bundleOfPackages(after);
  await writeFile(box.at('2.tar.gz'), next.bytes);
  await writeFile(box.at('d.tar.gz'), (await deltaOf(next, parseInventory(stdout, 'inventory'))).bytes);
  return box;
}
