/**
 * A process that runs commands one after the other, each with a fault at one of its calls: a start of a process takes longer than
 * a small command. The shim is preloaded into it; its parent sends jobs.
 */
import { openSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { renderFailure } from '../../../../src/cli/render/failure.ts';
import { NO_PAINT } from '../../../../src/cli/render/paint.ts';
import { asError, errnoOf } from '../../../../src/core/errors.ts';
import { runCommand } from '../../../support/run-command.ts';
import type { Job, JobEnd } from './hosts.ts';

const stray: string[] = [];
process.on('unhandledRejection', (error) => stray.push(failureText(error)));

function failureText(error: unknown): string {
  return renderFailure(asError(error), NO_PAINT);
}

/** Tells the shim, whose answer is an error. True if a call was hit. */
function tell(...words: readonly string[]): boolean {
  try {
    openSync(`/fault/${words.join('\n')}`, 'r');
  } catch (error) {
    return errnoOf(error) === 'EEXIST';
  }
  throw new Error('the shim is not preloaded');
}

async function runJob({ words, cwd, env, log, fault }: Job): Promise<JobEnd> {
  if (log !== undefined) tell('log', cwd, log);
  if (fault !== undefined) tell('arm', cwd, fault.kind, fault.at);
  let end;
  try {
    end = await runCommand(words, cwd, env);
  } catch (error) {
    end = { exitCode: 1, stdout: '', stderr: failureText(error) };
  }
  // What was rejected meanwhile is told in the next turns.
  await setImmediate();
  await setImmediate();
  const isHit = tell('off');
  return { ...end, stderr: [end.stderr, ...stray.splice(0)].join('\n'), isHit };
}

process.on('message', (job: Job) => {
  void runJob(job).then((end) => process.send?.(end));
});
