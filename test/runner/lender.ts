/** The process that lends real servers to test files, for as long as a run lasts. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { LENDER } from './lent.ts';
import { compiledModule, LENDER_MODULE } from '../support/compiled.ts';

export interface Lender extends AsyncDisposable {
  /** How test files find it. */
  readonly env: Readonly<Record<string, string>>;
}

/** Starts it, with no server yet. */
export async function startLender(logFile: string): Promise<Lender> {
  const folder = await mkdtemp(join(tmpdir(), 'curlew-lender-'));
  const path = join(folder, 'socket');
  await mkdir(dirname(logFile), { recursive: true });
  const child = spawn(process.execPath, [compiledModule(LENDER_MODULE), path], {
    // The terminal's Ctrl-C ends the runner, and that ends the lender when the files have given back what they have.
    detached: true,
  });
  child.stderr.pipe(createWriteStream(logFile));
  const ended = once(child, 'exit');
  await Promise.race([once(child.stdout, 'data'), ended]);
  return {
    env: { [LENDER]: path },
    [Symbol.asyncDispose]: async () => {
      child.stdin.end();
      await ended;
      await rm(folder, { recursive: true });
    },
  };
}
