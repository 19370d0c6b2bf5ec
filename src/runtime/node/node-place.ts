/** The install folder, as this process reaches it and as hooks see it. */
import { isAbsolute, join, relative } from 'node:path';

export interface NodePlace {
  /** Absolute path of the install folder. */
  readonly directory: string;
  /** The same folder in the eyes of a hook: another path when hooks are confined. */
  readonly seen: string;
  /** Hooks run in a sandbox, and end when their standard input does, so with this process. */
  readonly confined: boolean;
  /** Hooks have the network of this machine. */
  readonly connected: boolean;
  /** The command that runs these words where hooks run. */
  readonly wrap: (words: readonly [string, ...string[]]) => readonly [string, ...string[]];
}

/** The install folder itself, nothing in between. */
export function plainPlace(directory: string): NodePlace {
  return { directory, seen: directory, confined: false, connected: true, wrap: (words) => words };
}

/** A path below the install folder, as hooks see it. */
export function seenPath({ directory, seen }: NodePlace, path: string): string {
  const below = relative(directory, path);
  return below.startsWith('..') || isAbsolute(below) ? path : join(seen, below);
}
