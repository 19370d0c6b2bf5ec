/** What failed exchanges mean to a user. Nothing that was sent as a secret comes back in a message. */
import { visible } from '../../core/diagnostic.ts';
import { asError, CurlewError, errnoOf, type ErrorCode } from '../../core/errors.ts';
import { decoded } from './proxy.ts';
import { STALLED } from './pace.ts';
import type { HttpRequest, Outcome, ResponseHead } from './message.ts';
import { isRetryable } from './retry.ts';

const MESSAGE_LIMIT = 300;
/** What is shorter cannot be hidden without spoiling the rest of a message. */
const SHORTEST_SECRET = 4;
/** Parameters of queries and forms that carry one. */
const SECRET_NAME = /sig|token|key|credential|secret|passw|auth/i;

const CODES: ReadonlyMap<number, ErrorCode> = new Map([
  [401, 'AUTH_FAILED'],
  [403, 'AUTH_FAILED'],
  [407, 'AUTH_FAILED'],
  [404, 'NOT_FOUND'],
  [410, 'NOT_FOUND'],
]);

/** The texts in a request's headers and address that must not be repeated. */
export function secretsOf(request: HttpRequest): readonly string[] {
  const found: string[] = [];
  for (const [name, value] of Object.entries(request.headers ?? {})) {
    if (!/^(?:authorization|cookie)$/i.test(name)) continue;
    const [scheme = '', ...rest] = value.split(' ');
    const word = rest.join(' ');
    found.push(value, word);
    if (scheme.toLowerCase() === 'basic') {
      const plain = Buffer.from(word, 'base64').toString();
      found.push(plain, plain.slice(plain.indexOf(':') + 1));
    }
  }
  const parameters = [...new URLSearchParams(request.body ?? '')];
  if (URL.canParse(request.url)) {
    const { password, searchParams } = new URL(request.url);
    found.push(password, decoded(password));
    parameters.push(...searchParams);
  }
  found.push(...parameters.filter(([name]) => SECRET_NAME.test(name)).map(([, value]) => value));
  return found.filter((text) => text.length >= SHORTEST_SECRET);
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function fromJson(text: string): string | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const fields = value as Readonly<Record<string, unknown>>;
  const [first] = Array.isArray(fields['errors']) ? (fields['errors'] as readonly unknown[]) : [];
  if (typeof first === 'object' && first !== null) {
    const { code, message } = first as Readonly<Record<string, unknown>>;
    return [textOf(code), textOf(message)].filter((part) => part !== undefined).join(': ') || undefined;
  }
  return textOf(fields['error_description']) ?? textOf(fields['message']) ?? textOf(fields['error']);
}

/** What a server says about a failure: a registry's or OAuth's JSON, or the first line of a text; cut and harmless. */
export function serverMessage(head: ResponseHead, body: Uint8Array, secrets: readonly string[]): string | undefined {
  const text = Buffer.from(body).toString('utf8');
  const [line = ''] = text.trim().split('\n', 1);
  const isText = (head.headers['content-type'] ?? 'text/plain').startsWith('text/plain');
  const said = fromJson(text) ?? (isText ? line : '');
  let clean = said;
  for (const hidden of secrets.toSorted((a, b) => b.length - a.length)) clean = clean.replaceAll(hidden, '[secret]');
  clean = visible(clean).trim();
  if (clean === '') return undefined;
  return clean.length > MESSAGE_LIMIT ? `${clean.slice(0, MESSAGE_LIMIT)}…` : clean;
}

const HINTS: Readonly<Partial<Record<ErrorCode, string>>> = {
  AUTH_FAILED:
    'check the credentials for this host: those of a registry come from docker login, those of other servers from the address',
  NOT_FOUND: 'check the spelling of the name or address',
};
const PROXY_CREDENTIALS = 'the proxy wants credentials: http://USER:PASSWORD@HOST:PORT';
const BUSY_HINT = 'the server is busy or in trouble: run the command again later';

/** The error for a response that is no success: code by status, the address without secrets, the server's words. */
export function statusFailure(
  request: HttpRequest,
  head: ResponseHead,
  body: Uint8Array,
  secrets: readonly string[],
): CurlewError {
  const code = CODES.get(head.status) ?? 'FETCH_FAILED';
  const said = serverMessage(head, body, secrets);
  const message = `${request.doing}: ${head.url} answered ${head.status}${said === undefined ? '' : ` (${said})`}`;
  const usual = isRetryable(head.status) ? BUSY_HINT : HINTS[code];
  const hint = head.status === 407 ? PROXY_CREDENTIALS : usual;
  return new CurlewError(code, message, { hint });
}

const NOT_AGAIN = /^(?:ENOTFOUND|EACCES|EPERM|HPE_HEADER_OVERFLOW|ERR_(?:INVALID|UNESCAPED|HTTP)_.*)$/;

const LATE = {
  connect: 'CURLEW_CONNECT_TIMEOUT',
  head: 'CURLEW_HEAD_TIMEOUT',
} as const;

/** What errors of a connection mean to people. */
const CONNECTION_WORDS: Readonly<Record<string, string>> = {
  [LATE.connect]: 'no connection in time',
  [LATE.head]: 'no answer in time',
  ECONNRESET: 'the connection was reset',
  ECONNREFUSED: 'the connection was refused',
  ENETUNREACH: 'there is no way to this network',
  EHOSTUNREACH: 'there is no way to this host',
  ETIMEDOUT: 'no answer in time',
  ENOTFOUND: 'no such host',
  EAI_AGAIN: 'the name could not be looked up',
  HPE_HEADER_OVERFLOW: 'the head of the answer is too large',
};

/** An error of the connection, apart from those of a sink and of a signal. */
export class Broken extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause });
  }
}

/** For a limit of time: that of a connection, that of the head of an answer. */
export function timedOut(what: keyof typeof LATE): Error {
  return Object.assign(new Error('timed out'), { code: LATE[what] });
}

/** What an error of a connection means, in one line; undefined when nothing is known of it. */
export function connectionWords(error: unknown): string | undefined {
  const code = errnoOf(error) ?? '';
  if (code.startsWith('HPE_') && !Object.hasOwn(CONNECTION_WORDS, code))
    return `the answer cannot be understood (${code})`;
  return CONNECTION_WORDS[code];
}

const CONNECTION_HINTS: Readonly<Record<string, string>> = {
  ENOTFOUND: 'check the name, the network, and HTTPS_PROXY if there is a proxy',
  ECONNREFUSED: 'check the port, and that the server runs',
  ENETUNREACH: 'check the network, and HTTPS_PROXY if there is a proxy',
  EHOSTUNREACH: 'check the network, and HTTPS_PROXY if there is a proxy',
};

/** Node and OpenSSL name what is wrong with a certificate in the error's code. */
export function isCertificateProblem(code: string): boolean {
  return /CERT|_SIGNED|ISSUER|ALTNAME|UNABLE_TO_VERIFY/.test(code);
}

/** The peer speaks, but not TLS. */
export function isNotTls(error: Error, code: string): boolean {
  return code === 'ERR_SSL_WRONG_VERSION_NUMBER' || /wrong version number|packet length too long/i.test(error.message);
}

interface ProxySaid {
  /** The message without names. */
  readonly what: string;
  /** Asking again can help. */
  readonly isLater: boolean;
  readonly cause?: unknown;
}

/** A proxy that gives no connection, or does not pass a request on. */
export class ProxyFailure extends CurlewError {
  readonly what: string;
  readonly isLater: boolean;

  constructor(code: ErrorCode, message: string, hint: string, { what, isLater, cause }: ProxySaid) {
    super(code, message, { hint, cause });
    this.what = what;
    this.isLater = isLater;
  }
}

/** For a proxy that gives no connection to `host:port`. */
export function noTunnel(proxy: URL, target: string, said: ProxySaid): ProxyFailure {
  const message = `connect to ${target} through the proxy ${proxy.host}: ${said.what}`;
  return new ProxyFailure('FETCH_FAILED', message, 'check HTTPS_PROXY and NO_PROXY', said);
}

/** For a proxy that answered 407. */
export function wantsCredentials(proxy: URL): ProxyFailure {
  const what = 'the proxy wants other credentials';
  const message = `the proxy ${proxy.host} wants other credentials`;
  return new ProxyFailure('AUTH_FAILED', message, PROXY_CREDENTIALS, { what, isLater: false });
}

/** The first error in a chain of causes (or of tried addresses) that has a code. */
function root(error: Error): Error {
  let found = error;
  for (let depth = 0; depth < 5; depth += 1) {
    const inner: unknown = found instanceof AggregateError ? found.errors[0] : undefined;
    if (inner instanceof Error) found = inner;
    else if (errnoOf(found) === undefined && found.cause instanceof Error) found = found.cause;
    else break;
  }
  return found;
}

/** The outcome for a connection that could not be made or broke. `url` and `proxy` are shown without secrets. */
export function brokenOutcome(doing: string, url: URL, proxy: URL | undefined, thrown: unknown): Outcome {
  const error = root(asError(thrown));
  const byProxy = error instanceof ProxyFailure ? error : undefined;
  if (error instanceof CurlewError && byProxy === undefined) {
    return { kind: 'broken', error, retryable: false, stalled: false, notTls: false };
  }
  const code = errnoOf(byProxy?.cause ?? error) ?? '';
  const certificate = isCertificateProblem(code);
  const what = byProxy?.what ?? connectionWords(error) ?? visible(error.message);
  const through = proxy === undefined ? '' : ` through the proxy ${proxy.host}`;
  const hint = certificate ? 'a private certificate authority is added with --ca-file FILE' : CONNECTION_HINTS[code];
  return {
    kind: 'broken',
    error: new CurlewError(byProxy?.code ?? 'FETCH_FAILED', `${doing}: ${url.host}${through}: ${what}`, {
      hint: hint ?? byProxy?.hint,
    }),
    retryable: !certificate && !NOT_AGAIN.test(code) && byProxy?.isLater !== false,
    stalled: code === STALLED,
    notTls: byProxy === undefined && isNotTls(error, code),
  };
}
