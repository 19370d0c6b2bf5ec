/** Commands with a fault at one of their calls: inside of a process that runs many, or as processes of their own. */
import { execa } from 'execa';
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compiledModule, MAIN } from '../../../support/compiled.ts';
import { cleanEnvironment, type Outcome } from '../../../support/curlew.ts';
import { run } from '../programs.ts';

/** Against hanging; no measurement. */
const LIMIT_MS = 120_000;

export interface Fault {
  /** A word that the shim knows. */
  readonly kind: string;
  /** Label of a call. */
  readonly at: string;
}

export interface Job {
  readonly words: readonly string[];
  /** Current folder of the command, and the root of what the shim looks at. */
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  /** File that takes the labels of all calls. */
  readonly log?: string;
  readonly fault?: Fault;
}

export interface JobEnd extends Outcome {
  readonly isHit: boolean;
}

/** Makes the shim, and returns its path; it ends with this process. */
export async function makeShim(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'curlew-shim-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'shim.so');
  await run('cc', [
    '-shared',
    '-fPIC',
    '-O2',
    '-Wall',
    '-Werror',
    '-o',
    file,
    join(import.meta.dirname, 'shim.c'),
    '-ldl',
  ]);
  return file;
}

export interface Host extends AsyncDisposable {
  /** Runs a job after the one before; one that hangs ends with the process, and with a status that no command has. */
  readonly run: (job: Job) => Promise<JobEnd>;
}

/** A process that runs jobs with this shim. */
export function openHost(shim: string): Host {
  let child: ChildProcess | undefined;
  const start = (): ChildProcess =>
    fork(compiledModule('test/components/support/faults/host.ts'), {
      env: { ...process.env, LD_PRELOAD: shim },
      execArgv: [],
    });
  return {
    run: async (job) => {
      child ??= start();
      const own = child;
      const timer = setTimeout(() => own.kill('SIGKILL'), LIMIT_MS);
      const answer = new Promise<JobEnd>((resolve) => {
        own.once('message', (end) => resolve(end as JobEnd));
        own.once('exit', () => resolve({ exitCode: 255, stdout: '', stderr: 'ended, or hung', isHit: true }));
      });
      own.send(job);
      const end = await answer;
      clearTimeout(timer);
      own.removeAllListeners('message').removeAllListeners('exit');
      if (own.exitCode !== null || own.signalCode !== null) child = undefined;
      return end;
    },
    [Symbol.asyncDispose]: async () => {
      if (child === undefined) return;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** The command as a process of its own with this shim. */
export function startFaulty(shim: string, { words, cwd, env = {}, fault }: Job) {
  const faulty = fault === undefined ? {} : { FAULT_ROOT: cwd, FAULT_KIND: fault.kind, FAULT_AT: fault.at };
  return execa(process.execPath, [MAIN, ...words], {
    cwd,
    env: { ...cleanEnvironment({ cwd, env }), LD_PRELOAD: shim, ...faulty },
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
    timeout: LIMIT_MS,
  });
}
