/** One script as a process of its own group: its last lines are kept, and an abort ends the whole group. */
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { CurlewError, errnoOf } from '../../core/errors.ts';
import { keepLastLines, linesOf, plainLine } from '../../platform/process/program-lines.ts';

export interface ScriptOutcome {
  readonly status: number;
  readonly last: readonly string[];
}

const LOOK_MS = 20;
const GRACE_MS = 5000;

/** False when no process of the group is left. */
function signalGroup(leader: number, name: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-leader, name);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'ESRCH') return false;
    // Of another user, as apt's own processes are: there, and theirs to end.
    if (errnoOf(error) === 'EPERM') return true;
    throw error;
  }
}

/** Process group and state out of `/proc/<pid>/stat`, proc(5); the name before them may hold anything. */
const STAT = /^\d+ \(.*\) (\S) \d+ (\d+) /s;

/** False once the group holds nothing but zombies, for which their parent may take its time. */
function isRunning(leader: number): boolean {
  if (!signalGroup(leader, 0)) return false;
  if (!existsSync('/proc')) return true;
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const [, state, group] = STAT.exec(statOf(pid)) ?? [];
    if (Number(group) === leader && state !== 'Z' && state !== 'X') return true;
  }
  return false;
}

function statOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return '';
  }
}

/** Ends every process of a group: SIGTERM, five seconds, SIGKILL. This is how an abort is carried out: it takes no signal. */
async function endGroup(leader: number): Promise<void> {
  if (!isRunning(leader)) return;
  const deadline = performance.now() + GRACE_MS;
  signalGroup(leader, 'SIGTERM');
  while (isRunning(leader)) {
    if (performance.now() > deadline) signalGroup(leader, 'SIGKILL');
    if (performance.now() > deadline + GRACE_MS) return;
    await wait(LOOK_MS);
  }
}

/**
 * Runs `bash SCRIPT WORD…` with exactly this environment. When it comes back, or throws because of the signal, no
 * process of it is left.
 */
export async function runScript(
  script: string,
  words: readonly string[],
  { env, cwd, signal }: { readonly env: NodeJS.ProcessEnv; readonly cwd: string; readonly signal: AbortSignal },
): Promise<ScriptOutcome> {
  signal.throwIfAborted();
  const child = spawn('bash', [script, ...words], { env, cwd, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<number>((resolve, reject) => {
    child.once('error', (error) => {
      reject(new CurlewError('UNSUPPORTED', `run ${script}: ${error.message}`, { cause: error }));
    });
    child.once('exit', (status) => {
      resolve(status ?? 1);
    });
  });
  const end = async (): Promise<void> => (child.pid === undefined ? undefined : endGroup(child.pid));
  let ending: Promise<void> | undefined;
  const stop = (): void => {
    ending ??= end();
  };
  signal.addEventListener('abort', stop, { once: true });
  const kept = keepLastLines();
  const keep = async (stream: AsyncIterable<Uint8Array>): Promise<void> => {
    for await (const line of linesOf(stream)) kept.add(plainLine(line));
  };
  try {
    const told = Promise.all([keep(child.stdout), keep(child.stderr)]);
    const [status] = await Promise.all([ended.finally(stop), told]);
    signal.throwIfAborted();
    return { status, last: kept.lines() };
  } finally {
    signal.removeEventListener('abort', stop);
    await ending;
  }
}
