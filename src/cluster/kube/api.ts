/** Sends requests to the API server of the kubeconfig's cluster. */
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Cancellable } from '../../core/cancellable.ts';
import { CurlewError, isMissing } from '../../core/errors.ts';
import { exactValue } from '../../core/json.ts';
import type { Environment } from '../../platform/http/proxy.ts';
import { retryAfterMs } from '../../platform/http/retry.ts';
import { pause } from '../../platform/limit/repeat.ts';
import { exchange, streamLines, type Answered } from './exchange.ts';
import { choosing, type KubeconfigWay } from './kubeconfig.ts';
import { Unfinished, madeIn } from './kubeadm-made.ts';
import type { ApiPath } from './path.ts';
import { statusProblem, thrownProblem, type ApiFailure } from './problem.ts';
import { statusWithoutValues, writesSecret } from './secret-values.ts';
import { kubeconfigPaths, openSessions, type Session, type Sessions } from './session.ts';

export interface ApiRequest {
  /** `merge` is a JSON merge patch, `patch` a JSON patch, `apply` a server-side apply. */
  readonly verb: keyof typeof METHODS;
  readonly path: ApiPath;
  /** JSON text; not for `get`. */
  readonly document?: string;
  /** Media types of the response; JSON by default. */
  readonly accept?: string;
  /** The response is text, not JSON. */
  readonly isText?: boolean;
}

export type ApiAnswer =
  /** `value` has bigints for integers beyond 2^53. `bytes`: of the response. */
  { readonly kind: 'answer'; readonly value: unknown; readonly bytes: number } | ApiFailure;

export interface AskOptions extends Cancellable {
  /** Called before each attempt of a request that writes; nothing is sent if it rejects. */
  readonly guard?: (() => Promise<void>) | undefined;
}

export interface FollowOptions extends Cancellable {
  readonly idleMs: number;
  /** An error that it throws becomes the problem. */
  readonly onLine: (line: string) => void;
}

export interface KubeApi {
  /**
   * Sends one request within its deadline, and retries if the server requests that with Retry-After. Throws nothing but the
   * signal's reason.
   */
  readonly ask: (request: ApiRequest, options: AskOptions) => Promise<ApiAnswer>;
  /**
   * Passes on the lines of a response that does not end, as that of a watch. Returns when the server ends it, or the problem that
   * did, such as no data for `idleMs`. Throws nothing but the signal's reason.
   */
  readonly follow: (path: ApiPath, options: FollowOptions) => Promise<ApiFailure | undefined>;
  /** The server of the kubeconfig's context; `CLUSTER_FAILED` if it names no server. */
  readonly target: (options: {
    readonly signal: AbortSignal;
  }) => Promise<{ readonly server: string; readonly namespace: string }>;
  readonly embedded: Sessions['embedded'];
  /** The time by the server's clock, as its last response said; by that of this machine if they differ by less than a minute. */
  readonly now: () => Date;
}

export interface ApiOptions {
  /** Source of KUBECONFIG, proxy variables and SSL_CERT_FILE, and the environment of credential plug-ins. */
  readonly env: Environment;
  /** Name of the context in the kubeconfig; default: its current one. */
  readonly kubeContext?: string | undefined;
  /** The kubeconfig came with files of others: it may neither start a program nor send the content of a file as a token. */
  readonly isForeign?: boolean | undefined;
  /** How the caller chose the kubeconfig, for hints; default: KUBECONFIG. */
  readonly way?: KubeconfigWay | undefined;
  /** Time limit of a request, including credentials, waits and retries. */
  readonly deadlineMs?: number | undefined;
}

const DEADLINE_MS = 15_000;
const MAX_WAITS = 10;
/** The date of a response is rounded, and old when a slow response has arrived. */
const SAME_CLOCK_MS = 60_000;
const MIN_WAIT_MS = 250;

/**
 * {@link Unfinished} where kubeadm has begun and not finished. Undefined if no kubeconfig exists: that of KUBECONFIG, or else kubeadm's.
 * Idle connections do not keep the process alive, and are closed after 30 seconds.
 */
export async function openApi({
  env,
  kubeContext,
  isForeign,
  way,
  deadlineMs = DEADLINE_MS,
}: ApiOptions): Promise<KubeApi | undefined> {
  const paths = kubeconfigPaths(env);
  // First: kubeadm writes its kubeconfig seconds after it has begun.
  const made = await Promise.all([...new Set(paths.map(dirname))].map(madeIn));
  if (made.includes('unfinished')) throw new Unfinished();
  const present = await Promise.all(paths.map(mayExist));
  if (!present.includes(true)) return undefined;
  const sessions = openSessions(env, { wanted: kubeContext, isForeign, way });
  let aheadMs = 0;
  const onDate = (date: string): void => {
    const offsetMs = Date.parse(date) - Date.now();
    if (!Number.isNaN(offsetMs)) aheadMs = Math.abs(offsetMs) < SAME_CLOCK_MS ? 0 : offsetMs;
  };
  const ask: KubeApi['ask'] = async (request, { signal, guard }) => {
    signal.throwIfAborted();
    const own = new AbortController();
    const canceled = (): void => own.abort(signal.reason);
    const timer = setTimeout(() => own.abort(new Late()), deadlineMs);
    signal.addEventListener('abort', canceled, { once: true });
    try {
      return await send(sessions, request, {
        until: performance.now() + deadlineMs,
        signal: own.signal,
        guard,
        onDate,
      });
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof Late)) return thrownProblem(error);
      return { kind: 'problem', problem: 'unreachable', message: `no response in ${deadlineMs / 1000} s` };
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', canceled);
    }
  };
  const target: KubeApi['target'] = async (options) => {
    const session = await sessions.current(options);
    if (session !== undefined) return { server: session.server.href.replace(/\/$/, ''), namespace: session.namespace };
    const { message, hint } = notNamed(sessions);
    throw new CurlewError('CLUSTER_FAILED', message, { hint });
  };
  const followed: KubeApi['follow'] = async (path, options) => follow(sessions, path, options);
  const now = (): Date => new Date(Date.now() + aheadMs);
  return { ask, target, follow: followed, embedded: sessions.embedded, now };
}

async function follow(
  sessions: Sessions,
  path: ApiPath,
  { signal, idleMs, onLine }: FollowOptions,
): Promise<ApiFailure | undefined> {
  signal.throwIfAborted();
  const idle = new AbortController();
  using timer = setTimeout(() => idle.abort(new Late()), idleMs);
  const both = AbortSignal.any([signal, idle.signal]);
  const request = { method: 'GET', path, accept: 'application/json', contentType: '', body: undefined } as const;
  const onData = (): void => void timer.refresh();
  try {
    let session = await sessions.current({ signal: both });
    for (let isRenewed = false; ; isRenewed = true) {
      if (session === undefined) return notNamed(sessions);
      const answer = await streamLines(session, request, { signal: both, onData, onLine });
      if (answer.status >= 200 && answer.status < 300) return undefined;
      const better = answer.status === 401 && !isRenewed && (await sessions.renewed(session, { signal: both }));
      if (!better) return statusProblem(answer, session);
      session = better;
    }
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof Late)) return thrownProblem(error);
    return { kind: 'problem', problem: 'unreachable', message: `no data in ${idleMs / 1000} s` };
  }
}

/** Sends a request until there is a final response. Rejects with the signal's reason, and for an unusable kubeconfig. */
async function send(
  sessions: Sessions,
  request: ApiRequest,
  { until, signal, guard, onDate }: AskOptions & { readonly until: number; readonly onDate: (date: string) => void },
): Promise<ApiAnswer> {
  let session = await sessions.current({ signal });
  let isRenewed = false;
  for (let waits = 0; ; waits += 1) {
    if (session === undefined) return notNamed(sessions);
    if (request.verb !== 'get') await guard?.();
    const answer = await answered(session, request, signal);
    if (answer.kind === 'problem') return answer;
    onDate(answer.headers['date'] ?? '');
    if (answer.status >= 200 && answer.status < 300) return valueOf(answer, request, session);
    if (answer.status === 401 && !isRenewed) {
      isRenewed = true;
      const better = await sessions.renewed(session, { signal });
      if (better === undefined) return failureOf(answer, request, session);
      session = better;
      continue;
    }
    const waitMs = waitOf(answer);
    if (waitMs === undefined || waits >= MAX_WAITS || performance.now() + waitMs >= until) {
      return failureOf(answer, request, session);
    }
    await pause(waitMs, { signal });
  }
}

function failureOf(answer: Answered, request: ApiRequest, session: Session): ApiFailure {
  return statusProblem(writesSecret(request) ? { ...answer, body: statusWithoutValues(answer.body) } : answer, session);
}

/** The deadline of a request has passed. */
class Late extends Error {}

function notNamed({ way }: Sessions): ApiFailure {
  const hint = choosing(way, 'a kubeconfig with a current-context');
  return { kind: 'problem', problem: 'unreachable', message: 'no kubeconfig names a current context', hint };
}

/** True also for folders and unreadable files, so that reading them reports the error. */
async function mayExist(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    (error: unknown) => !isMissing(error),
  );
}

const METHODS = {
  get: 'GET',
  create: 'POST',
  replace: 'PUT',
  merge: 'PATCH',
  patch: 'PATCH',
  apply: 'PATCH',
  delete: 'DELETE',
} as const;

/** JSON is YAML. */
const CONTENT_TYPES: Partial<Record<keyof typeof METHODS, string>> = {
  merge: 'application/merge-patch+json',
  patch: 'application/json-patch+json',
  apply: 'application/apply-patch+yaml',
};

/** Rejects only if the signal has aborted. */
async function answered(
  session: Session,
  { verb, path, document, accept = 'application/json' }: ApiRequest,
  signal: AbortSignal,
): Promise<(Answered & { readonly kind: 'answered' }) | ApiFailure> {
  try {
    const contentType = CONTENT_TYPES[verb] ?? 'application/json';
    const call = { method: METHODS[verb], path, accept, contentType, body: document };
    return { kind: 'answered', ...(await exchange(session, call, { signal })) };
  } catch (error) {
    signal.throwIfAborted();
    return thrownProblem(error, session);
  }
}

/** How long the server asks to wait, if it does. */
function waitOf({ status, headers }: Answered): number | undefined {
  if (status !== 429 && status < 500) return undefined;
  const requested = retryAfterMs(headers['retry-after'], Date.now());
  return requested === undefined ? undefined : Math.max(requested, MIN_WAIT_MS);
}

function valueOf({ body }: Answered, { isText = false }: ApiRequest, { server }: Session): ApiAnswer {
  const text = body.toString('utf8');
  const bytes = body.byteLength;
  if (isText) return { kind: 'answer', value: text, bytes };
  try {
    return { kind: 'answer', value: exactValue(text), bytes };
  } catch {
    return { kind: 'problem', problem: 'failed', message: `${server.host}: the response is not JSON` };
  }
}
