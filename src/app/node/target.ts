/** Which install folder a use case works on, and how hooks are kept to it. */
import { join, resolve } from 'node:path';
import { CurlewError } from '../../core/errors.ts';
import { INSTALL_DIRECTORY } from '../../core/layout.ts';
import { confinedEnvironment, confinedPlace } from '../../runtime/hooks/confine.ts';
import { parseLimit } from '../../runtime/hooks/hook-limit.ts';
import { shellQuote } from '../../runtime/hooks/settings.ts';
import { plainPlace, type NodePlace } from '../../runtime/node/node-place.ts';
import type { Context } from '../context.ts';
import type { FolderRequest } from '../install-folder.ts';
import { ownScripts } from '../own-scripts.ts';

/** Of everything that runs hooks: with `root`, they run in a sandbox, and what they write lands below it. */
export interface TargetRequest extends FolderRequest {
  /** Of `root`: `host`, for the network of this machine; hooks have none when absent. */
  readonly network?: string | undefined;
  /** Of `root`: names of variables that hooks get; they can read the files of one like KUBECONFIG. */
  readonly env?: readonly string[] | undefined;
  /** No sandbox, with `root` or without being root: hooks change this machine itself. */
  readonly unconfined?: boolean | undefined;
}

/** How hooks are dealt with. */
export interface HookRequest {
  /** A hook that takes longer is ended: `90s`, `30m`, `2h`. */
  readonly hookTimeout?: string | undefined;
  /** Answers yes to what hooks want confirmed. */
  readonly yes?: boolean | undefined;
}

/** Seconds; undefined for no limit. */
export function hookLimitOf({ hookTimeout }: HookRequest): number | undefined {
  return hookTimeout === undefined ? undefined : parseLimit(hookTimeout, '--hook-timeout');
}

/** The environment of hooks; `BIN_CURLEW` holds the words that call this program, quoted for a shell. */
export function hookEnv(
  request: TargetRequest & HookRequest,
  { env, program }: Pick<Context, 'env' | 'program'>,
): Context['env'] {
  const all = {
    ...env,
    ...(request.yes === true ? { ASSUME_YES: '1' } : {}),
    ...(program === undefined ? {} : { BIN_CURLEW: program().command.map(shellQuote).join(' ') }),
  };
  return isConfined(request) ? confinedEnvironment(all, request.env ?? []) : all;
}

function isConfined({ root, unconfined }: TargetRequest): boolean {
  return root !== undefined && unconfined !== true;
}

/** A mistake in what is asked for. */
export function usage(what: string): CurlewError {
  return new CurlewError('USAGE', what);
}

/** Where to install; nothing is touched. */
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
export function targetOf(request: TargetRequest, context: Context): Target {
  if (request.root === undefined && context.user !== 0 && request.unconfined !== true) {
    throw new CurlewError('UNSUPPORTED', 'hooks change this machine, which only root may do', {
      hint: 'run it as root; a trial in a sandbox: --root DIR; without either, as this user: --unconfined, which changes this machine',
    });
  }
  return placesOf(request, context);
}

export function placesOf(request: TargetRequest, { cwd }: Pick<Context, 'cwd'>): Target {
  const seen = resolve(cwd, request.installDir ?? INSTALL_DIRECTORY);
  if (seen === '/') throw usage('--install-dir / is no folder of its own');
  const sandbox = sandboxOf(request);
  if (request.root === undefined) return { directory: seen, seen, root: undefined, ...sandbox };
  const root = resolve(cwd, request.root);
  if (root === '/') throw usage('--root / would confine nothing');
  const directory = join(root, seen);
  return { directory, ...(isConfined(request) ? { seen, root } : { seen: directory, root: undefined }), ...sandbox };
}

function sandboxOf(request: TargetRequest): Pick<Target, 'network' | 'passed'> {
  const { network, env: passed = [] } = request;
  if (!isConfined(request) && (network !== undefined || passed.length > 0)) {
    throw usage(`--${network === undefined ? 'env' : 'network'} is for the sandbox of --root`);
  }
  if (network !== undefined && network !== 'host') throw usage(`--network is host, or left out: ${network}`);
  const wrong = passed.find((name) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name));
  if (wrong !== undefined) throw usage('--env is the name of a variable, whose value is taken from the environment');
  return { network: network === 'host', passed };
}

/** Why a run loads no images; undefined when it does. */
export function whySkipImages(
  request: FolderRequest & { readonly skipImages?: boolean | undefined },
): string | undefined {
  if (request.skipImages === true) return 'asked for by --skip-images';
  return request.root === undefined ? undefined : 'a trial leaves the container runtime alone';
}

/** The install folder, and how hooks are kept to it. */
export async function placeOf(target: Target, { env, signal, user = -1, program }: Context): Promise<NodePlace> {
  const { directory, seen, root, network, passed } = target;
  if (root === undefined) return plainPlace(directory);
  const shown = program?.().files ?? [];
  return confinedPlace({ root, seen, scripts: ownScripts(), uid: user, network, shown, env, passed, signal });
}
