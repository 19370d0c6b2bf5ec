/** Real daemons for component tests: started with folders and ports of their own, waited for, ended by their pid. */
import { spawn, type ChildProcess } from 'node:child_process';
import { open, readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';

export interface Daemon extends AsyncDisposable {
  readonly pid: number;
  /** What it has printed so far. */
  readonly log: () => Promise<string>;
}

export interface DaemonOptions {
  readonly command: string;
  readonly args: readonly string[];
  /** File that receives standard output and error. */
  readonly logFile: string;
  readonly env?: Readonly<Record<string, string>>;
  /** True once it answers. Asked every 50 ms until the limit. */
  readonly ready: () => Promise<boolean>;
  readonly limitMs?: number;
}

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGTERM');
});
for (const [name, status] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const) {
  process.once(name, () => process.exit(status));
}

/** Starts a daemon and comes back when it is ready; one that ends before, or is late, throws with its log. */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const { command, args, logFile, env = {}, ready, limitMs = 60_000 } = options;
  await using log = await openLog(logFile);
  const child = spawn(command, args, {
    stdio: ['ignore', log.fd, log.fd],
    env: { ...process.env, ...env },
  });
  running.add(child);
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => {
      running.delete(child);
      resolve(error.message);
    });
    child.once('exit', (status, signal) => {
      running.delete(child);
      resolve(`ended with ${signal ?? status}`);
    });
  });
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    const kill = setTimeout(() => child.kill('SIGKILL'), 20_000);
    await ended;
    clearTimeout(kill);
  };
  const failure = await waitUntil(ready, ended, limitMs);
  if (failure !== undefined) {
    await stop();
    const text = await readFile(logFile, 'utf8');
    throw new Error(`${command}: ${failure}\n${text.split('\n').slice(-30).join('\n')}`);
  }
  return { pid: child.pid ?? -1, log: async () => readFile(logFile, 'utf8'), [Symbol.asyncDispose]: stop };
}

async function openLog(path: string): Promise<{ readonly fd: number } & AsyncDisposable> {
  const handle = await open(path, 'a');
  return { fd: handle.fd, [Symbol.asyncDispose]: async () => handle.close() };
}

async function waitUntil(
  ready: () => Promise<boolean>,
  ended: Promise<string>,
  limitMs: number,
): Promise<string | undefined> {
  const limit = Date.now() + limitMs;
  while (Date.now() < limit) {
    const answer = ready().catch(() => false);
    const first = await Promise.race([answer, ended]);
    if (first === true) return undefined;
    if (typeof first === 'string') return first;
    await pause(50);
  }
  return `not ready after ${limitMs} ms`;
}
