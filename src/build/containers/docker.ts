/** The connection to a Docker engine, and its errors. */
import type { Cancellable } from '../../core/cancellable.ts';
import { fieldsOf, jsonIn } from '../../core/json.ts';
import { request as httpRequest } from 'node:http';
import type { Readable } from 'node:stream';
import { asError, CurlewError, errnoOf, fileError, type ErrorCode } from '../../core/errors.ts';
import { formatImageRef, type ImageRef } from '../../core/image-ref.ts';

/** One call of the engine's API. */
export interface EngineRequest {
  /** The operation, for messages. */
  readonly doing: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, unknown>>;
  /** Sent as JSON, or unchanged if it is a stream. */
  readonly body?: Readonly<Record<string, unknown>> | Readable;
  /** Additional statuses that are not errors; by default all but 2xx and 304 are. */
  readonly expected?: readonly number[];
  /** Error code for a refusal of the engine; default `CONTAINER_FAILED`. */
  readonly code?: ErrorCode;
}

export interface Engine {
  /** The response's body as a stream. Errors are `FETCH_FAILED` (no engine) or `CONTAINER_FAILED`. */
  readonly open: (
    request: EngineRequest,
    options: Cancellable,
  ) => Promise<{ readonly status: number; readonly body: Readable }>;
  /** The response's JSON; undefined if it is empty. */
  readonly request: (
    request: EngineRequest,
    options: Cancellable,
  ) => Promise<{ readonly status: number; readonly value: unknown }>;
}

/** A name in the engine's form, which omits the prefixes of Docker Hub. */
export function engineName(ref: ImageRef): string {
  return formatImageRef(ref).replace(/^docker\.io\/(?:library\/)?/, '');
}

/** The HTTP status of a failed call, if the engine responded. */
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
    return new CurlewError('FETCH_FAILED', `cannot ${doing}: the Docker engine does not respond`, {
      hint:
        'start it (systemctl start docker), or set DOCKER_HOST to its socket (unix:///path or tcp://host:port); ' +
        'this machine can also collect OS packages itself, without an engine',
      cause: error,
    });
  }
  if (errno === 'ECONNRESET' || errno === 'EPIPE') {
    return new CurlewError('FETCH_FAILED', `cannot ${doing}: the Docker engine closed the connection`, {
      hint: 'check its log (journalctl -u docker), then run the same command again',
      cause: error,
    });
  }
  const code = statusOf(error) === undefined ? 'FETCH_FAILED' : refusal;
  const [, reason = asError(error).message] = /^\(HTTP code \d+\) .*? - (.*)$/s.exec(asError(error).message) ?? [];
  return new CurlewError(code, `cannot ${doing}: ${reason.trimEnd()}`, { cause: error });
}

/** The error of a failed call: from its signal, or from the engine. A signal with a timeout means that the engine hangs. */
export function callError(
  doing: string,
  error: unknown,
  { aborted, reason }: AbortSignal,
  refusal: ErrorCode = 'FETCH_FAILED',
): Error {
  if (!aborted) return engineError(doing, error, refusal);
  if (!(reason instanceof DOMException && reason.name === 'TimeoutError')) return asError(reason);
  return new CurlewError('FETCH_FAILED', `cannot ${doing}: the Docker engine did not respond in time`, {
    cause: error,
  });
}

/** The address of an engine. */
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

/** The part of dockerode's connection that is used. */
interface Modem {
  readonly dial: (request: object, done: (error: unknown, answer: Answer | undefined) => void) => void;
}

type Answer = Readable & { readonly statusCode?: number | undefined };

const FINE = [200, 201, 202, 204, 304];
const ANSWER_LIMIT = 32 << 20;

/**
 * Connects to the engine of `DOCKER_HOST`, by default the local one. Connects lazily. Does not use dockerode's own calls: not
 * all of them can be canceled, and their types do not describe the responses.
 */
export function connectDocker(env: Readonly<Record<string, string | undefined>>): Engine {
  const target = targetOf(env['DOCKER_HOST']);
  let modem: Promise<Modem> | undefined;
  const load = async (): Promise<Modem> => (modem ??= loadModem(target));
  // The request that streams gets the error.
  const preload = (): void => void load().catch(() => undefined);
  const open: Engine['open'] = async (request, { signal }) => {
    const { doing, method, path, query = {}, body, expected = [], code = 'CONTAINER_FAILED' } = request;
    signal.throwIfAborted();
    const sent = { method, path, query, fine: [...FINE, ...expected], signal };
    try {
      const answer = isStream(body)
        ? await stream(await load(), { ...sent, body })
        : await call(target, { ...sent, body }, method === 'GET' ? undefined : preload);
      // The reader of the body gets its errors; between two calls no one listens.
      answer.on('error', () => undefined);
      return { status: answer.statusCode ?? 0, body: answer };
    } catch (error) {
      if (isStream(body)) body.destroy();
      throw callError(doing, error, signal, code);
    }
  };
  return {
    open,
    request: async (request, options) => {
      const { status, body } = await open(request, options);
      const text = await readText(body, request.doing, options);
      try {
        return { status, value: text === '' ? undefined : JSON.parse(text) };
      } catch (error) {
        throw new CurlewError('FETCH_FAILED', `cannot ${request.doing}: the Docker engine did not respond with JSON`, {
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

interface Sent<Body> extends Cancellable {
  readonly method: EngineRequest['method'];
  readonly path: string;
  readonly query: Readonly<Record<string, unknown>>;
  readonly body: Body;
  readonly fine: readonly number[];
}

/** Sends a request with a stream as body, through dockerode. */
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

const REASON_LIMIT = 8192;

/**
 * Sends all other requests with Node's own client: loading dockerode takes longer than a build without changes, which sends
 * only such requests. `onSent`: work to do until the engine responds, such as loading dockerode while a container is created
 * that will receive files.
 */
async function call(
  target: Target,
  { method, path, query, body, fine, signal }: Sent<Readonly<Record<string, unknown>> | undefined>,
  onSent: (() => void) | undefined,
): Promise<Answer> {
  const parameters = new URLSearchParams(
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
      { ...where, method, headers, path: parameters === '' ? path : `${path}?${parameters}`, agent: false, signal },
      resolve,
    );
    request.on('error', reject);
    if (onSent !== undefined) request.once('finish', onSent);
    request.end(text);
  });
  const status = answer.statusCode ?? 0;
  if (fine.includes(status)) return answer;
  let responseText = '';
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    responseText += chunk.toString('utf8');
    if (responseText.length > REASON_LIMIT) break;
  }
  throw Object.assign(new Error(refusalOf(responseText)), { statusCode: status });
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The reason of a refusal, which the engine sends as JSON. */
function refusalOf(text: string): string {
  const { message } = fieldsOf(jsonIn(text));
  if (typeof message === 'string') return message;
  // The server is not an engine.
  return text.trim().slice(0, 1000) || 'refused';
}

function isStream(body: EngineRequest['body']): body is Readable {
  return body !== undefined && 'pipe' in body;
}

async function readText(body: Readable, doing: string, { signal }: Cancellable): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      size += chunk.byteLength;
      if (size > ANSWER_LIMIT)
        throw new CurlewError('FETCH_FAILED', `cannot ${doing}: the response is larger than 32 MiB`);
      parts.push(chunk);
    }
  } catch (error) {
    throw callError(doing, error, signal);
  }
  return Buffer.concat(parts).toString('utf8').trim();
}
