/** Access to the cluster for the verbs of kURL's program `kurl`: API requests, and kubectl for everything else. */
import { delimiter } from 'node:path';
import { visible } from '../../core/diagnostic.ts';
import { CurlewError, redact } from '../../core/errors.ts';
import { isObject, listOf } from '../../core/json.ts';
import { shortened } from '../../core/shortened.ts';
import { openApi } from '../../cluster/kube/api.ts';
import { programPath } from '../../cluster/kube/exec-plugin.ts';
import type { ApiPath } from '../../cluster/kube/path.ts';
import { kubeconfigPaths } from '../../cluster/kube/session.ts';
import { tryProgram } from '../../platform/process/run-program.ts';

/** Longer than a program in a container waits for an unreachable cluster. */
const DEADLINE_MS = 330_000;
const MAX_OUTPUT = 16 << 20;
const MESSAGE_LIMIT = 500;

/** The environment of a verb. */
export interface VerbContext {
  /** Prints a line to standard output immediately. */
  readonly say: (line: string) => void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  /** Waits; throws the signal's reason if it is aborted. */
  readonly pause: (ms: number, options: { readonly signal: AbortSignal }) => Promise<void>;
}

export interface ClusterCalls {
  /** An API object by path; undefined if it does not exist. `CLUSTER_FAILED` for other failures. */
  readonly find: (path: ApiPath, signal: AbortSignal) => Promise<unknown>;
  /** The items of an API list. */
  readonly list: (path: ApiPath, signal: AbortSignal) => Promise<readonly unknown[]>;
  /** Runs kubectl with arguments and optional input; returns its output. */
  readonly run: (args: readonly string[], signal: AbortSignal, input?: string) => Promise<string>;
}

/** Throws `CLUSTER_FAILED` without a kubeconfig on this machine. */
export async function clusterCalls(verb: string, { env }: Pick<VerbContext, 'env'>): Promise<ClusterCalls> {
  const api = await openApi({ env });
  if (api === undefined) {
    throw new CurlewError('CLUSTER_FAILED', `kurl ${verb}: no kubeconfig on this machine`, {
      hint: 'run it on a primary node, or set KUBECONFIG',
    });
  }
  const failed = (doing: string, reason: string, hint?: string): CurlewError =>
    new CurlewError('CLUSTER_FAILED', `kurl ${verb}: ${doing}: ${reason}`, { hint });
  const find: ClusterCalls['find'] = async (path, signal) => {
    const answer = await api.ask({ verb: 'get', path }, { signal });
    if (answer.kind === 'answer') return answer.value;
    if (answer.problem === 'not found') return undefined;
    throw failed(`get ${path}`, answer.message, answer.hint);
  };
  return {
    find,
    list: async (path, signal) => listOf(at(await find(path, signal), 'items')),
    run: async (args, signal, input = '') =>
      callKubectl(args, { env, input, signal }, (reason) => failed(`kubectl ${args.join(' ')}`, reason)),
  };
}

/** Its output without the last newline. Runs kubectl from PATH with curlew's kubeconfig. `input` is its standard input, which process lists do not show. */
async function callKubectl(
  args: readonly string[],
  { env, input, signal }: Pick<VerbContext, 'env' | 'signal'> & { readonly input: string },
  failed: (reason: string) => Error,
): Promise<string> {
  const options = {
    env: { ...env, PATH: programPath(env), KUBECONFIG: kubeconfigPaths(env).join(delimiter) },
    input,
    limitMs: DEADLINE_MS,
    outputLimit: MAX_OUTPUT,
    signal,
  };
  return tryProgram('kubectl', args, options, ({ stdout, stderr, error }) => {
    if (error === undefined) return stdout.replace(/\r?\n$/, '');
    if (error.problem === 'missing') throw failed('kubectl is not installed on this machine');
    if (error.problem !== 'status' && error.problem !== 'signal') throw failed(error.reason);
    throw failed(messageOf(stderr.trim() === '' ? 'it failed' : stderr.trim()));
  });
}

/** The end of a program's error output in one line without control characters. */
function messageOf(text: string): string {
  const lines = text.split('\n').slice(-3);
  const line = visible(redact(lines.join('; ')));
  return shortened(line, MESSAGE_LIMIT);
}

/** The value at a path in a response, or undefined. Responses are not trusted to have a certain structure. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((inner, key) => {
    if (Array.isArray(inner)) return typeof key === 'number' ? (inner as readonly unknown[])[key] : undefined;
    return isObject(inner) && Object.hasOwn(inner, key) ? inner[String(key)] : undefined;
  }, value);
}

export function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** 0 for anything except a number, as Go decodes a missing field. */
export function countFrom(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}

/** Runs `work` with a time limit; `seconds` undefined for none. Returns undefined after the time limit. */
export async function withinSeconds<Answer>(
  seconds: number | undefined,
  { signal }: Pick<VerbContext, 'signal'>,
  work: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer | undefined> {
  if (seconds === undefined) return work(signal);
  const over = AbortSignal.timeout(seconds * 1000);
  try {
    return await work(AbortSignal.any([signal, over]));
  } catch (error) {
    if (over.aborted && !signal.aborted) return undefined;
    throw error;
  }
}
