/** The install folder of a use case, and the sandbox of hooks. */
import { join, resolve } from 'node:path';
import { CurlewError } from '../../core/errors.ts';
import { INSTALL_DIRECTORY, nodePath } from '../../core/layout.ts';
import { confinedEnvironment, confinedPlace } from '../../runtime/hooks/confine.ts';
import { parseLimit } from '../../runtime/hooks/hook-limit.ts';
import { shellQuote } from '../../core/shell-word.ts';
import { plainPlace, type NodePlace } from '../../runtime/node/node-place.ts';
import type { Context } from '../../core/context.ts';
import { ownScripts } from '../../own/scripts.ts';
import type { FolderRequest, TargetRequest, HookRequest } from '../../requests/node.ts';

/** Seconds; undefined for no limit. */
export function hookLimitOf({ hookTimeout }: HookRequest): number | undefined {
  return hookTimeout === undefined ? undefined : parseLimit(hookTimeout, '--hook-timeout');
}

/** The environment of hooks; `BIN_CURLEW` contains the command of this program, quoted for a shell. */
export function hookEnv(
  request: TargetRequest & HookRequest,
  { env, cwd, program }: Pick<Context, 'env' | 'cwd' | 'program'>,
): Context['env'] {
  const all = {
    ...env,
    ...(request.yes === true ? { ASSUME_YES: '1' } : {}),
    ...(program === undefined ? {} : { BIN_CURLEW: program().command.map(shellQuote).join(' ') }),
  };
  if (!isConfined(request)) return all;
  const confined = confinedEnvironment(all, request.env ?? []);
  if (request.kubeconfig === undefined) return confined;
  return { ...confined, KUBECONFIG: join(placesOf(request, { cwd }).seen, nodePath.kubeconfig) };
}

function isConfined({ root, unconfined }: TargetRequest): boolean {
  return root !== undefined && unconfined !== true;
}

/** An error in the request. */
export function usage(what: string): CurlewError {
  return new CurlewError('USAGE', what);
}

/** The place of an install. */
interface Target {
  /** The install folder. */
  readonly directory: string;
  /** Path of the same folder for hooks. */
  readonly seen: string;
  readonly option: NodePlace['option'];
  /** Root folder of the sandbox; undefined without a sandbox. */
  readonly root: string | undefined;
  /** Hooks use the network of this machine. */
  readonly network: boolean;
  /** Names of further variables for hooks. */
  readonly passed: readonly string[];
}

/** Like {@link placesOf}, for a run that changes the machine: `UNSUPPORTED` if this user may not. */
export function nodeTargetOf(request: TargetRequest, context: Context): Target {
  if (request.root === undefined && context.user !== 0 && request.unconfined !== true) {
    throw new CurlewError('UNSUPPORTED', 'hooks change this machine, which requires root', {
      hint: 'run it as root; for a trial in a sandbox, use --root DIR; --unconfined runs hooks as this user, and they change this machine',
    });
  }
  return placesOf(request, context);
}

export function placesOf(request: TargetRequest, { cwd }: Pick<Context, 'cwd'>): Target {
  const seen = resolve(cwd, request.installDir ?? INSTALL_DIRECTORY);
  if (seen === '/') throw usage('--install-dir / is not allowed: name a separate folder');
  const sandbox = sandboxOf(request);
  if (request.root === undefined)
    return { directory: seen, seen, option: '--install-dir', root: undefined, ...sandbox };
  const root = resolve(cwd, request.root);
  if (root === '/') throw usage('--root / is not allowed: it would not confine anything');
  const directory = join(root, seen);
  const inside = isConfined(request) ? { seen, root } : { seen: directory, root: undefined };
  return { directory, ...inside, option: '--root', ...sandbox };
}

function sandboxOf(request: TargetRequest): Pick<Target, 'network' | 'passed'> {
  const { network, env: passed = [], kubeconfig, context } = request;
  const options = { network, env: passed[0], kubeconfig, context };
  const [option] = Object.entries(options).find(([, value]) => value !== undefined) ?? [];
  if (!isConfined(request) && option !== undefined) {
    const why = request.root === undefined ? '' : ', which --unconfined disables';
    throw usage(`--${option} requires the sandbox of --root${why}`);
  }
  if (context !== undefined && kubeconfig === undefined) throw usage('--context requires --kubeconfig');
  if (network !== undefined && network !== 'host') throw usage(`--network ${network}: only host is allowed`);
  const wrong = passed.find((name) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name));
  if (wrong !== undefined) throw usage('--env must be the name of a variable; its value is taken from the environment');
  return { network: network === 'host' || kubeconfig !== undefined, passed };
}

/** Why a run loads no images; undefined if it does. */
export function whySkipImages(
  request: FolderRequest & { readonly skipImages?: boolean | undefined },
): string | undefined {
  if (request.skipImages === true) return 'requested by --skip-images';
  return request.root === undefined ? undefined : 'a trial does not change the container runtime';
}

/** The install folder, and how hooks are kept to it. */
export async function placeOf(target: Target, { env, signal, user = -1, program }: Context): Promise<NodePlace> {
  const { directory, seen, option, root, network, passed } = target;
  if (root === undefined) return plainPlace(directory, option);
  const shown = program?.().files ?? [];
  return confinedPlace({ root, seen, scripts: ownScripts(), uid: user, network, shown, env, passed, signal });
}
