/** `curlew install` inside of the process of a test. */
import { stat } from 'node:fs/promises';
import * as assert from './assert.ts';
import type { Outcome } from './curlew.ts';
import { trace } from './node-install.ts';
import { runTraced } from './run-command.ts';
import type { Tree } from './tree.ts';

/** Installs the bundle b.tar.gz: what the command would print, and its status. */
export async function install(
  box: Tree,
  more: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  return runTraced(['install', '--bundle', box.at('b.tar.gz'), '--unconfined', ...more], box, env);
}

/** Words of a trial below the folder `root`. */
export const TRIAL: readonly string[] = ['--root', 'root'];
/** Options of a run that its checks can stop. */
export const ENFORCED: readonly string[] = [...TRIAL, '--preflights', 'enforce'];

/** Nothing was installed, and no hook has run. */
export async function isUntouched(box: Tree): Promise<void> {
  assert.equal(await trace(box), []);
  assert.is(await stat(box.at('root/var/lib/curlew')).catch(() => 'absent'), 'absent');
}
