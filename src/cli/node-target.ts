/** Which install folder a command works on, and how hooks are kept to it. */
import { join, resolve } from 'node:path';
import { CurlewError } from '../core/errors.ts';
import { INSTALL_DIRECTORY } from '../core/layout.ts';
import { confinedEnvironment, confinedPlace } from '../runtime/hooks/confine.ts';
import { parseLimit } from '../runtime/hooks/hook-limit.ts';
import { plainPlace, type NodePlace } from '../runtime/node/node-place.ts';
import type { Arguments, CommandContext, OptionSpecs } from './command.ts';
import { ownProgramPaths, withOwnProgram } from './own-program.ts';
import { ownScripts } from '../app/own-scripts.ts';

/** Options of every command that runs hooks. */
export const TARGET_OPTIONS = {
  'install-dir': { type: 'string', value: 'DIR', help: `install folder (default: ${INSTALL_DIRECTORY})` },
  root: { type: 'string', value: 'DIR', help: 'a trial: hooks run in a sandbox, and what they write lands below DIR' },
  network: {
    type: 'string',
    value: 'host',
    help: 'with --root: hooks get the network of this machine (default: none)',
  },
  env: {
    type: 'string',
    multiple: true,
    value: 'NAME',
    help: 'with --root: hooks get this variable, and can read the files of one like KUBECONFIG',
  },
  unconfined: {
    type: 'boolean',
    help: 'with --root, or without being root: NO sandbox, hooks change this machine itself',
  },
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
  const all = withOwnProgram(args.flag('yes') ? { ...env, ASSUME_YES: '1' } : env);
  return isConfined(args) ? confinedEnvironment(all, args.texts('env')) : all;
}

function isConfined(args: Arguments): boolean {
  return args.text('root') !== undefined && !args.flag('unconfined');
}

/** A mistake in the words of a command. */
export function usage(what: string): CurlewError {
  return new CurlewError('USAGE', what);
}

/** Where to install, as the words say it; nothing is touched. */
export interface Target {
  /** The install folder. */
  readonly directory: string;
  /** The same folder in the eyes of a hook. */
  readonly seen: string;
  /** What hooks are to be confined to; undefined when they are not. */
  readonly root: string | undefined;
  /** With the network of this machine. */
  readonly network: boolean;
  /** Names of variables that hooks get beside the harmless ones. */
  readonly passed: readonly string[];
}

/** Like {@link placesOf}, for a run that changes the machine: `UNSUPPORTED` for somebody who may not. */
export function targetOf(args: Arguments, context: CommandContext): Target {
  if (args.text('root') === undefined && effectiveUser() !== 0 && !args.flag('unconfined')) {
    throw new CurlewError('UNSUPPORTED', 'hooks change this machine, which only root may do', {
      hint: 'run it as root; a trial in a sandbox: --root DIR; without either, as this user: --unconfined, which changes this machine',
    });
  }
  return placesOf(args, context);
}

export function placesOf(args: Arguments, { cwd }: CommandContext): Target {
  const seen = resolve(cwd, args.text('install-dir') ?? INSTALL_DIRECTORY);
  if (seen === '/') throw usage('--install-dir / is no folder of its own');
  const word = args.text('root');
  const sandbox = sandboxOf(args);
  if (word === undefined) return { directory: seen, seen, root: undefined, ...sandbox };
  const root = resolve(cwd, word);
  if (root === '/') throw usage('--root / would confine nothing');
  const directory = join(root, seen);
  return {
    directory,
    ...(args.flag('unconfined') ? { seen: directory, root: undefined } : { seen, root }),
    ...sandbox,
  };
}

function sandboxOf(args: Arguments): Pick<Target, 'network' | 'passed'> {
  const network = args.text('network');
  const passed = args.texts('env');
  if (!isConfined(args) && (network !== undefined || passed.length > 0)) {
    throw usage(`--${network === undefined ? 'env' : 'network'} is for the sandbox of --root`);
  }
  if (network !== undefined && network !== 'host') throw usage(`--network is host, or left out: ${network}`);
  const wrong = passed.find((name) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name));
  if (wrong !== undefined) throw usage('--env is the name of a variable, whose value is taken from the environment');
  return { network: network === 'host', passed };
}

/** Why a run loads no images; undefined when it does. */
export function whySkipImages(args: Arguments): string | undefined {
  if (args.flag('skip-images')) return 'asked for by --skip-images';
  return args.text('root') === undefined ? undefined : 'a trial leaves the container runtime alone';
}

function effectiveUser(): number {
  return process.geteuid?.() ?? -1;
}

/** The install folder, and how hooks are kept to it. */
export async function placeOf(target: Target, { env, signal }: CommandContext): Promise<NodePlace> {
  const { directory, seen, root, network, passed } = target;
  if (root === undefined) return plainPlace(directory);
  const scripts = ownScripts();
  const shown = ownProgramPaths(scripts);
  return confinedPlace({ root, seen, scripts, uid: effectiveUser(), network, shown, env, passed, signal });
}

/** A run goes on when its terminal has gone. Returns how to undo that. */
export function outliveTerminal(): () => void {
  const nothing = (): void => undefined;
  process.on('SIGHUP', nothing);
  return () => {
    process.off('SIGHUP', nothing);
  };
}
