/** The cluster as the verbs of kURL's program `kurl` ask it: by requests, and through kubectl what is more than that. */
import { CurlewError } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { openApi } from '../../kube/api.ts';
import type { ApiPath } from '../../kube/path.ts';
import { callKubectl } from '../../runtime/cluster/kubectl.ts';

/** What a verb has of the world around it. */
export interface VerbContext {
  /** A line on standard output, at once. */
  readonly say: (line: string) => void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  /** Waits; throws the signal's reason when it fires. */
  readonly pause: (ms: number, options: { readonly signal: AbortSignal }) => Promise<void>;
}

export interface ClusterCalls {
  /** An object of the API by its path; undefined when there is none. `CLUSTER_FAILED` for anything else. */
  readonly find: (path: ApiPath, signal: AbortSignal) => Promise<unknown>;
  /** The items of a list of the API. */
  readonly list: (path: ApiPath, signal: AbortSignal) => Promise<readonly unknown[]>;
  /** What kubectl prints, given these words and perhaps a document. */
  readonly run: (words: readonly string[], signal: AbortSignal, input?: string) => Promise<string>;
}

/** Throws `CLUSTER_FAILED` when nothing on this machine says how to reach a cluster. */
export async function clusterCalls(verb: string, { env }: Pick<VerbContext, 'env'>): Promise<ClusterCalls> {
  const api = await openApi({ env });
  if (api === undefined) {
    throw new CurlewError('CLUSTER_FAILED', `kurl ${verb}: no kubeconfig on this machine`, {
      hint: 'run it on a primary node, or name a kubeconfig in KUBECONFIG',
    });
  }
  const failed = (doing: string, said: string, hint?: string): CurlewError =>
    new CurlewError('CLUSTER_FAILED', `kurl ${verb}: ${doing}: ${said}`, { hint });
  const find: ClusterCalls['find'] = async (path, signal) => {
    const answer = await api.ask({ verb: 'get', path }, { signal });
    if (answer.kind === 'answer') return answer.value;
    if (answer.problem === 'not found') return undefined;
    throw failed(`get ${path}`, answer.said, answer.hint);
  };
  return {
    find,
    list: async (path, signal) => listOf(at(await find(path, signal), 'items')),
    run: async (words, signal, input = '') => {
      const answer = await callKubectl(words, { env, input, signal });
      if (answer.kind === 'output') return answer.text;
      throw failed(`kubectl ${words.join(' ')}`, answer.said);
    },
  };
}

/** What stands at a place in an answer, or undefined: answers are not believed to have a shape. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((found, key) => {
    if (Array.isArray(found)) return typeof key === 'number' ? (found as readonly unknown[])[key] : undefined;
    return isObject(found) && Object.hasOwn(found, key) ? found[String(key)] : undefined;
  }, value);
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** 0 for what is no number, as Go reads a field that is not there. */
export function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Asks until there is an answer; `seconds`: undefined waits for ever. Undefined when the time is over. */
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
