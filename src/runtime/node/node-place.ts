/** The install folder, as this process and as hooks see it. */
import { isAbsolute, join, relative } from 'node:path';

export interface NodePlace {
  /** Absolute path of the install folder. */
  readonly directory: string;
  /** Path of the same folder for hooks; it differs if hooks are confined. */
  readonly seen: string;
  /** Hooks run in a sandbox and end when their standard input closes, and so with this process. */
  readonly confined: boolean;
  /** Hooks use the network of this machine. */
  readonly connected: boolean;
  /** Wraps a command so that it runs where hooks run. */
  readonly wrap: (command: readonly [string, ...string[]]) => readonly [string, ...string[]];
}

/** The install folder without a sandbox. */
export function plainPlace(directory: string): NodePlace {
  return { directory, seen: directory, confined: false, connected: true, wrap: (command) => command };
}

/** A path below the install folder, as hooks see it. */
export function seenPath({ directory, seen }: NodePlace, path: string): string {
  const below = relative(directory, path);
  return below.startsWith('..') || isAbsolute(below) ? path : join(seen, below);
}
