/** What test files in one process share, and each has to leave as it was. */
import { EventEmitter } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';

/** The last that is printed of a file that succeeded and left all this as it was. */
export const FILE_DONE = '\u0000file done\n';

/** Value by what a person calls it. */
export type State = ReadonlyMap<string, unknown>;

/** Whatever a file can change for those after it and that is cheap to read. Listeners for the end of the process may stay. */
export function stateOfProcess(): State {
  return new Map<string, unknown>([
    ...Object.entries(process.env).map(([name, value]) => [`environment variable ${name}`, value] as const),
    ...process
      .eventNames()
      .filter((name) => name !== 'exit')
      .map((name) => [`listeners of process for ${String(name)}`, process.listenerCount(name)] as const),
    ...valuesOf('global ', globalThis),
    ...valuesOf('console.', console),
    ['process.stdout.write', Reflect.get(process.stdout, 'write')],
    ['process.stderr.write', Reflect.get(process.stderr, 'write')],
    ['Date.now', Date.now],
    ['Math.random', Math.random],
    ['working directory', process.cwd()],
    ['umask', process.umask()],
    ['exit code', process.exitCode],
    ['child processes', childProcesses()],
    ['defaultMaxListeners', EventEmitter.defaultMaxListeners],
    ['http.globalAgent', http.globalAgent],
    ['https.globalAgent', https.globalAgent],
    ...valuesOf('fs.', fs),
    ...valuesOf('fs.promises.', fs.promises),
  ]);
}

/** Accessors are left out: Node replaces its own at their first use. */
function valuesOf(prefix: string, object: object): readonly (readonly [string, unknown])[] {
  return Reflect.ownKeys(object).flatMap((key) => {
    const descriptor = Object.getOwnPropertyDescriptor(object, key);
    return descriptor !== undefined && 'value' in descriptor ? [[`${prefix}${String(key)}`, descriptor.value]] : [];
  });
}

/** Ids of processes; none where the kernel does not list them. */
export function childProcesses(): string {
  try {
    return fs.readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim();
  } catch {
    return '';
  }
}

/** What differs, one line each. A new global is no difference: Node and packages define some when they are first used. */
export function differences(before: State, after: State): readonly string[] {
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((name) => {
    const [was, is] = [before.get(name), after.get(name)];
    if (Object.is(was, is) || (was === undefined && name.startsWith('global '))) return [];
    return `${name}: ${shown(was)} before, ${shown(is)} after`;
  });
}

function shown(value: unknown): string {
  if (value === undefined) return 'none';
  return typeof value === 'function' || typeof value === 'object' ? 'one' : JSON.stringify(value);
}

/** Sorts of what keeps the process alive besides this that is in `before`, such as `TCPServerWrap`. */
export function openBesides(before: readonly string[]): readonly string[] {
  const left = [...before];
  return process.getActiveResourcesInfo().filter((sort) => {
    const index = left.indexOf(sort);
    if (index >= 0) left.splice(index, 1);
    return index < 0;
  });
}
