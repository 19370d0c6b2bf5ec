/** `curlew install` inside of the process of a test: no time goes into starting it. */
import { stat } from 'node:fs/promises';
import { install as command } from '../../src/cli/commands/install.ts';
import { readArguments } from '../../src/cli/read-arguments.ts';
import { renderFailure } from '../../src/cli/render/failure.ts';
import { NO_PAINT } from '../../src/cli/render/paint.ts';
import { createPlainLines } from '../../src/cli/render/plain.ts';
import { CurlewError, ERROR_CODES } from '../../src/core/errors.ts';
import type { ProgressEvent } from '../../src/core/events.ts';
import * as assert from './assert.ts';
import { trace } from './node-install.ts';
import type { SourceOutcome } from './source-command.ts';
import type { Tree } from './tree.ts';

/** Of the bundle b.tar.gz: what the command would print, and its status. */
export async function install(
  box: Tree,
  more: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<SourceOutcome> {
  const said: string[] = [];
  const line = createPlainLines(Date.now);
  const context = {
    cwd: box.path,
    env: { PATH: process.env['PATH'], TRACE: box.at('trace'), ...env },
    report: (event: ProgressEvent) => said.push(line(event) ?? ''),
    signal: new AbortController().signal,
  };
  try {
    const args = readArguments(command, ['--bundle', box.at('b.tar.gz'), '--unconfined', ...more]);
    const result = await command.run(args, context);
    const stdout = args.flag('json') ? JSON.stringify(result) : command.render(result, args, NO_PAINT);
    return { exitCode: command.exitCode?.(result), stdout, stderr: said.join('\n') };
  } catch (error) {
    if (!(error instanceof CurlewError)) throw error;
    said.push(renderFailure(error, NO_PAINT));
    return { exitCode: ERROR_CODES[error.code], stdout: '', stderr: said.join('\n') };
  }
}

/** Words of a trial below the folder `root`. */
export const TRIAL: readonly string[] = ['--root', 'root'];
/** Those of one that its checks can stop. */
export const ENFORCED: readonly string[] = [...TRIAL, '--preflights', 'enforce'];

/** Nothing was installed, and no hook has run. */
export async function isUntouched(box: Tree): Promise<void> {
  assert.equal(await trace(box), []);
  assert.is(await stat(box.at('root/var/lib/curlew')).catch(() => 'absent'), 'absent');
}
