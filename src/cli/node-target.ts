/** Which install folder a command works on, and how hooks are kept to it. */
import { join, resolve } from 'node:path';
import { CurlewError } from '../core/errors.ts';
import { INSTALL_DIRECTORY } from '../core/layout.ts';
import { confinedPlace } from '../runtime/confine.ts';
import { parseLimit } from '../runtime/hook-limit.ts';
import { plainPlace, type NodePlace } from '../runtime/node-place.ts';
import type { Arguments, CommandContext, OptionSpecs } from './command.ts';
import { withOwnProgram } from './own-program.ts';
import { ownScripts } from './own-scripts.ts';

/** Options of every command that runs hooks. */
export const TARGET_OPTIONS = {
  'install-dir': { type: 'string', value: 'DIR', help: `install folder (default: ${INSTALL_DIRECTORY})` },
  root: { type: 'string', value: 'DIR', help: 'for trials: all that is written lands below DIR' },
  unconfined: { type: 'boolean', help: 'with --root, or without being root: run hooks unconfined' },
} satisfies OptionSpecs;

const YES_OPTION = {
  yes: { type: 'boolean', short: 'y', help: 'answer yes to what hooks want confirmed' },
} satisfies OptionSpecs;

/** How hooks are dealt with, in every command that runs some. */
export const HOOK_OPTIONS = {
  'hook-timeout': { type: 'string', value: 'TIME', help: 'end a hook that takes longer: 90s, 30m, 2h (default: none)' },
  ...YES_OPTION,
} satisfies OptionSpecs;

/** Seconds; undefined for no limit. */
export function hookLimitOf(args: Arguments): number | undefined {
  const text = args.text('hook-timeout');
  return text === undefined ? undefined : parseLimit(text, '--hook-timeout');
}

/** The environment of hooks. */
export function hookEnv(args: Arguments, { env }: CommandContext): CommandContext['env'] {
  return withOwnProgram(args.flag('yes') ? { ...env, ASSUME_YES: '1' } : env);
}

/** A mistake in the words of a command. */
export function usage(what: string): CurlewError {
  return new CurlewError('USAGE', what, { hint: 'the --help of the command lists its options' });
}

/** Where to install, as the words say it; nothing is touched. */
export interface Target {
  /** The install folder. */
  readonly directory: string;
  /** The same folder in the eyes of a hook. */
  readonly seen: string;
  /** What hooks are to be confined to; undefined when they are not. */
  readonly root: string | undefined;
}

/** Like {@link placesOf}, for a run that changes the machine: `UNSUPPORTED` for somebody who may not. */
export function targetOf(args: Arguments, context: CommandContext): Target {
  if (args.text('root') === undefined && effectiveUser() !== 0 && !args.flag('unconfined')) {
    throw new CurlewError('UNSUPPORTED', 'hooks change this machine, which only root may do', {
      hint: 'run it as root; or, for a trial, with --root DIR --unconfined',
    });
  }
  return placesOf(args, context);
}

export function placesOf(args: Arguments, { cwd }: CommandContext): Target {
  const seen = resolve(cwd, args.text('install-dir') ?? INSTALL_DIRECTORY);
  if (seen === '/') throw usage('--install-dir / is no folder of its own');
  const word = args.text('root');
  if (word === undefined) return { directory: seen, seen, root: undefined };
  const root = resolve(cwd, word);
  if (root === '/') throw usage('--root / would confine nothing');
  const directory = join(root, seen);
  return args.flag('unconfined') ? { directory, seen: directory, root: undefined } : { directory, seen, root };
}

/** Why a run loads no images; undefined when it does. */
export function whySkipImages(args: Arguments): string | undefined {
  if (args.flag('skip-images')) return 'asked for by --skip-images';
  return args.text('root') === undefined
    ? undefined
    : 'with --root the container runtime of this machine is left alone';
}

function effectiveUser(): number {
  return process.geteuid?.() ?? -1;
}

/** The install folder, and how hooks are kept to it. */
export async function placeOf({ directory, seen, root }: Target, { signal }: CommandContext): Promise<NodePlace> {
  if (root === undefined) return plainPlace(directory);
  return confinedPlace({ root, seen, scripts: ownScripts(), uid: effectiveUser(), signal });
}

/** A run goes on when its terminal has gone. Returns how to undo that. */
export function outliveTerminal(): () => void {
  const nothing = (): void => undefined;
  process.on('SIGHUP', nothing);
  return () => {
    process.off('SIGHUP', nothing);
  };
}
