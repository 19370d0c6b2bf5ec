/** Processes that run one test file after another; what one of them does with a file is in `host/main.ts`. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { compiledModule, HOST_MODULE } from '../support/compiled.ts';
import { FILE_DONE } from './host/state.ts';
import { residentBytes } from './machine.ts';
import { HANDED_ON, killGroup, PLAIN, resultOf, within, type ProcessOptions } from './run-process.ts';
import type { Result } from './schedule.ts';

type Most = Readonly<Record<'files' | 'bytes', number>>;

/** All that files load stays in memory. A process that has reached one of these runs no further file. */
const MOST: Most = { files: 50, bytes: 700 << 20 };

export interface Hosts extends AsyncDisposable {
  /**
   * Runs a compiled test file in a process that every file before it has left as it was. A file that fails, crashes, exits,
   * hangs or leaves something behind is the last of its process, and no other file ends with it.
   */
  readonly run: (path: string, options: ProcessOptions) => Promise<Result>;
}

interface Host {
  readonly child: ChildProcess;
  readonly stdout: Readable;
  /** Its files; the last one may be running. */
  readonly files: string[];
  /** What it has printed since its last file was done. */
  printed: string;
  readonly ended: Promise<unknown>;
}

/** A process is started where a file finds none that is free. */
export function createHosts(env: Readonly<Record<string, string>>, most: Most = MOST): Hosts {
  const free: Host[] = [];
  return {
    run: async (path, options) => {
      const host = free.pop() ?? startHost(env);
      const earlier = [...host.files];
      host.files.push(path);
      const ended = await within(host.child, options, async () => {
        const output = await outputOf(host, path);
        const isDone = output.endsWith(FILE_DONE);
        if (isDone && isSmall(host, most)) free.push(host);
        else await end(host);
        if (isDone) return { output: output.slice(0, -FILE_DONE.length), exitCode: 0 };
        const note = earlier.length === 0 ? '' : `\nbefore it in the same process: ${earlier.join(' ')}\n`;
        return { output: output + note, exitCode: host.child.exitCode ?? undefined };
      });
      return resultOf(ended, options);
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(free.map(end));
    },
  };
}

function isSmall({ child, files }: Host, most: Most): boolean {
  return files.length < most.files && residentBytes(child.pid) < most.bytes;
}

function startHost(env: Readonly<Record<string, string>>): Host {
  // One pipe for both, so that what a file prints stays in its order, and before the sign that it is done.
  const words = ['-c', 'exec "$@" 2>&1', 'sh', process.execPath, compiledModule(HOST_MODULE)];
  const child = spawn('sh', words, {
    stdio: ['ignore', 'pipe', 'ignore', 'ipc'],
    detached: true,
    env: { ...process.env, ...PLAIN, ...env, ...HANDED_ON },
  });
  const stdout = child.stdout as Readable;
  // Node does not say that a child is closed where this side has closed the channel.
  const ended = Promise.all([once(child, 'exit'), once(stdout, 'close')]);
  const host: Host = { child, stdout, files: [], printed: '', ended };
  stdout.setEncoding('utf8').on('data', (text: string) => {
    host.printed += text;
  });
  child.once('exit', () => {
    // Whatever its files have started.
    killGroup(child, 'SIGKILL');
  });
  return host;
}

/** Has the host run the file; returns all that it prints until it is done with it or has ended. */
async function outputOf(host: Host, path: string): Promise<string> {
  const { child, stdout, ended } = host;
  child.send(path, () => undefined);
  while (!host.printed.endsWith(FILE_DONE) && stdout.readable) await Promise.race([once(stdout, 'data'), ended]);
  const { printed } = host;
  host.printed = '';
  return printed;
}

async function end({ child, ended }: Host): Promise<void> {
  if (child.connected) child.disconnect();
  await ended;
}
