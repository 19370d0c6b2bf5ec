/** The connection to a Docker engine, through dockerode's, and what its failures mean to a user. */
import { request as httpRequest } from 'node:http';
import type { Readable } from 'node:stream';
import { asError, CurlewError, errnoOf, fileError, type ErrorCode } from '../../core/errors.ts';
import { formatImageRef, type ImageRef } from '../../core/image-ref.ts';

/** One call of the engine's API. */
export interface EngineRequest {
  /** What is being done, for messages. */
  readonly doing: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, unknown>>;
  /** Sent as JSON, or as it is when it is a stream. */
  readonly body?: Readonly<Record<string, unknown>> | Readable;
  /** Statuses that are answers too; all others but 2xx and 304 are failures. */
  readonly expected?: readonly number[];
  /** What a refusal of the engine is; `CONTAINER_FAILED` when left out. */
  readonly code?: ErrorCode;
}

interface Options {
  readonly signal: AbortSignal;
}

export interface Engine {
  /** The answer's body as it comes. Failures are `FETCH_FAILED` (no engine) or `CONTAINER_FAILED`. */
  readonly open: (
    request: EngineRequest,
    options: Options,
  ) => Promise<{ readonly status: number; readonly body: Readable }>;
  /** The answer's JSON; undefined when it has none. */
  readonly ask: (
    request: EngineRequest,
    options: Options,
  ) => Promise<{ readonly status: number; readonly value: unknown }>;
}

/** A name as the engine lists it: Docker Hub's parts are left out there. */
export function engineName(ref: ImageRef): string {
  return formatImageRef(ref).replace(/^docker\.io\/(?:library\/)?/, '');
}

/** The HTTP status that the engine answered with, if it was one that made the call fail. */
function statusOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('statusCode' in error)) return undefined;
  return typeof error.statusCode === 'number' ? error.statusCode : undefined;
}

const NO_ENGINE: ReadonlySet<string> = new Set(['ENOENT', 'ECONNREFUSED', 'EACCES', 'ENOTFOUND', 'ETIMEDOUT']);

function engineError(doing: string, error: unknown, refusal: ErrorCode): CurlewError {
  if (error instanceof CurlewError) return error;
  const errno = errnoOf(error);
  if (errno === 'ENOSPC' || errno === 'EDQUOT') return fileError(doing, error);
  if (errno !== undefined && NO_ENGINE.has(errno)) {
    return new CurlewError('FETCH_FAILED', `${doing}: the Docker engine does not answer`, {
      hint:
        'start it (systemctl start docker), or name its socket in DOCKER_HOST (unix:///path or tcp://host:port); ' +
        'OS packages can also be collected by this machine itself, without an engine',
      cause: error,
    });
  }
  if (errno === 'ECONNRESET' || errno === 'EPIPE') {
    return new CurlewError('FETCH_FAILED', `${doing}: the Docker engine broke off the connection`, {
      hint: 'look into its log (journalctl -u docker), then run the same command again',
      cause: error,
    });
  }
  const code = statusOf(error) === undefined ? 'FETCH_FAILED' : refusal;
  const [, words = asError(error).message] = /^\(HTTP code \d+\) .*? - (.*)$/s.exec(asError(error).message) ?? [];
  return new CurlewError(code, `${doing}: ${words.trimEnd()}`, { cause: error });
}

/** What made a call fail: its signal, or the engine. A signal that was only a time limit means that the engine hangs. */
export function callError(
  doing: string,
  error: unknown,
  { aborted, reason }: AbortSignal,
  refusal: ErrorCode = 'FETCH_FAILED',
): Error {
  if (!aborted) return engineError(doing, error, refusal);
  if (!(reason instanceof DOMException && reason.name === 'TimeoutError')) return asError(reason);
  return new CurlewError('FETCH_FAILED', `${doing}: the Docker engine did not answer in time`, { cause: error });
}

/** Where an engine listens. */
type Target =
  | { readonly socketPath: string }
  | { readonly host: string; readonly port: number; readonly protocol: 'http' };

function targetOf(host: string | undefined): Target {
  if (host === undefined || host === '') return { socketPath: '/var/run/docker.sock' };
  if (host.startsWith('unix://')) return { socketPath: host.slice('unix://'.length) };
  const url = URL.canParse(host) ? new URL(host) : undefined;
  if (url?.protocol !== 'tcp:') {
    throw new CurlewError('USAGE', `DOCKER_HOST: ${host} is neither unix:///path nor tcp://host:port`);
  }
  return { host: url.hostname, port: Number(url.port === '' ? 2375 : url.port), protocol: 'http' };
}

/** What is used of dockerode's connection. */
interface Modem {
  readonly dial: (request: object, done: (error: unknown, answer: Answer | undefined) => void) => void;
}

type Answer = Readable & { readonly statusCode?: number | undefined };

const FINE = [200, 201, 202, 204, 304];
const ANSWER_LIMIT = 32 << 20;

/**
 * Connects to the engine that `DOCKER_HOST` names, the local one by default. Nothing is asked until it is needed.
 * dockerode's own calls are not used: not all of them can be cancelled, and its types do not say what comes back.
 */
export function connectDocker(env: Readonly<Record<string, string | undefined>>): Engine {
  const target = targetOf(env['DOCKER_HOST']);
  let modem: Promise<Modem> | undefined;
  const load = async (): Promise<Modem> => (modem ??= loadModem(target));
  // Whoever streams hears of a failure.
  const preload = (): void => void load().catch(() => undefined);
  const open: Engine['open'] = async (asked, { signal }) => {
    const { doing, method, path, query = {}, body, expected = [], code = 'CONTAINER_FAILED' } = asked;
    signal.throwIfAborted();
    const sent = { method, path, query, fine: [...FINE, ...expected], signal };
    try {
      const answer = isStream(body)
        ? await stream(await load(), { ...sent, body })
        : await call(target, { ...sent, body }, method === 'GET' ? undefined : preload);
      // Whoever reads it hears of the error; between two calls nobody does.
      answer.on('error', () => undefined);
      return { status: answer.statusCode ?? 0, body: answer };
    } catch (error) {
      if (isStream(body)) body.destroy();
      throw callError(doing, error, signal, code);
    }
  };
  return {
    open,
    ask: async (request, options) => {
      const { status, body } = await open(request, options);
      const text = await readText(body, request.doing, options);
      try {
        return { status, value: text === '' ? undefined : JSON.parse(text) };
      } catch (error) {
        throw new CurlewError('FETCH_FAILED', `${request.doing}: the Docker engine did not answer with JSON`, {
          cause: error,
        });
      }
    },
  };
}

async function loadModem(target: Target): Promise<Modem> {
  const { default: Docker } = await import('dockerode');
  return (new Docker(target) as { readonly modem: Modem }).modem;
}

interface Sent<Body> {
  readonly method: EngineRequest['method'];
  readonly path: string;
  readonly query: Readonly<Record<string, unknown>>;
  readonly body: Body;
  readonly fine: readonly number[];
  readonly signal: AbortSignal;
}

/** A request whose body is a stream goes over dockerode. */
async function stream(modem: Modem, { method, path, query, body, fine, signal }: Sent<Readable>): Promise<Answer> {
  const request = {
    path: Object.keys(query).length === 0 ? path : `${path}?`,
    method,
    isStream: true,
    statusCodes: Object.fromEntries(fine.map((status) => [status, true])),
    abortSignal: signal,
    options: { ...query },
    file: body,
  };
  return new Promise((resolve, reject) => {
    modem.dial(request, (error, answer) => {
      if (answer === undefined || answer === null) reject(asError(error));
      else resolve(answer);
    });
  });
}

const WORDS_LIMIT = 8192;

/**
 * All others go over Node's own client: dockerode takes longer to load than a build in which nothing has changed takes
 * altogether, and all that such a build does is ask. `onSent`: the time until the engine answers is free for other work,
 * such as loading dockerode when a container is being made that will be given files.
 */
async function call(
  target: Target,
  { method, path, query, body, fine, signal }: Sent<Readonly<Record<string, unknown>> | undefined>,
  onSent: (() => void) | undefined,
): Promise<Answer> {
  const words = new URLSearchParams(
    Object.entries(query).map(([name, value]): [string, string] => [name, asText(value)]),
  ).toString();
  const where = 'socketPath' in target ? target : { host: target.host, port: target.port };
  const text = body === undefined ? '' : JSON.stringify(body);
  const headers = {
    'content-length': Buffer.byteLength(text),
    ...(text === '' ? {} : { 'content-type': 'application/json' }),
  };
  const answer = await new Promise<Answer>((resolve, reject) => {
    const request = httpRequest(
      { ...where, method, headers, path: words === '' ? path : `${path}?${words}`, agent: false, signal },
      resolve,
    );
    request.on('error', reject);
    if (onSent !== undefined) request.once('finish', onSent);
    request.end(text);
  });
  const status = answer.statusCode ?? 0;
  if (fine.includes(status)) return answer;
  let said = '';
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    said += chunk.toString('utf8');
    if (said.length > WORDS_LIMIT) break;
  }
  throw Object.assign(new Error(refusalOf(said)), { statusCode: status });
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The engine says why in JSON. */
function refusalOf(text: string): string {
  try {
    const { message } = JSON.parse(text) as { readonly message?: unknown };
    if (typeof message === 'string') return message;
  } catch {
    // Something else than an engine listens there.
  }
  return text.trim().slice(0, 1000) || 'refused';
}

function isStream(body: EngineRequest['body']): body is Readable {
  return body !== undefined && 'pipe' in body;
}

async function readText(body: Readable, doing: string, { signal }: Options): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      size += chunk.byteLength;
      if (size > ANSWER_LIMIT) throw new CurlewError('FETCH_FAILED', `${doing}: an answer of more than 32 MiB`);
      parts.push(chunk);
    }
  } catch (error) {
    throw callError(doing, error, signal);
  }
  return Buffer.concat(parts).toString('utf8').trim();
}
