/** A node below a folder, for tests of commands over what it has. */
import { writeFile } from 'node:fs/promises';
import type { Outcome } from './curlew.ts';
import { bundleOf, specOf, type TestAddon } from './node-bundles.ts';
import { runTraced } from './run-command.ts';
import type { Tree } from './tree.ts';

/** Its install folder. */
export const NODE = 'root/var/lib/curlew';

/** A command on the node of this box. */
export async function onNode(box: Tree, command: string, ...more: readonly string[]): Promise<Outcome> {
  return runTraced([command, '--root', box.at('root'), ...more], box, { HOME: box.at() });
}

/** Makes b.tar.gz. */
export async function put(box: Tree, addons: readonly TestAddon[], spec?: string): Promise<void> {
  await writeFile(box.at('b.tar.gz'), bundleOf(addons, spec));
}

/** Installs 1.0.0, another version only where `go` is, and is removed only where `stay` is not. */
export const SAYS = `aaa() { echo "aaa $AAA_VERSION $AAA_GREETING" >>"$TRACE"; [ "$AAA_VERSION" = 1.0.0 ] || [ -e "$DIR/go" ]; }
aaa_uninstall() { echo "gone $AAA_GREETING" >>"$TRACE"; [ ! -e "$DIR/stay" ]; }`;

/** A spec with this version of aaa, and its greeting. */
export function greeting(version: string, text: string): string {
  return `${specOf([{ name: 'aaa', version }])}    greeting: ${text}\n`;
}
