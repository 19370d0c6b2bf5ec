/** Errors for failed exchanges. Messages never repeat a text that was sent as a secret. */
import { visible } from '../../core/diagnostic.ts';
import { asError, CurlewError, errnoOf, type ErrorCode } from '../../core/errors.ts';
import { fieldsOf, isObject, jsonIn } from '../../core/json.ts';
import { shortened } from '../../core/shortened.ts';
import { formatSeconds } from '../../core/units.ts';
import { decoded } from './proxy.ts';
import { STALLED } from './pace.ts';
import type { HttpRequest, HttpOutcome, ResponseHead } from './message.ts';
import { isRetryable, refusedWaitMs } from './retry.ts';

const MESSAGE_LIMIT = 300;
/** Shorter texts cannot be hidden without damaging the rest of a message. */
const MIN_SECRET = 4;
/** Parameters of queries and forms that contain secrets. */
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
  const secrets: string[] = [];
  for (const [name, value] of Object.entries(request.headers ?? {})) {
    if (!/^(?:authorization|cookie)$/i.test(name)) continue;
    const [scheme = '', ...rest] = value.split(' ');
    const token = rest.join(' ');
    secrets.push(value, token);
    if (scheme.toLowerCase() === 'basic') {
      const plain = Buffer.from(token, 'base64').toString();
      secrets.push(plain, plain.slice(plain.indexOf(':') + 1));
    }
  }
  const parameters = [...new URLSearchParams(request.body ?? '')];
  if (URL.canParse(request.url)) {
    const { password, searchParams } = new URL(request.url);
    secrets.push(password, decoded(password));
    parameters.push(...searchParams);
  }
  secrets.push(...parameters.filter(([name]) => SECRET_NAME.test(name)).map(([, value]) => value));
  return secrets.filter((text) => text.length >= MIN_SECRET);
}

export function nonEmptyText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function fromJson(text: string): string | undefined {
  const fields = fieldsOf(jsonIn(text));
  const [first] = Array.isArray(fields['errors']) ? (fields['errors'] as readonly unknown[]) : [];
  if (isObject(first)) {
    const { code, message } = first;
    return [nonEmptyText(code), nonEmptyText(message)].filter((part) => part !== undefined).join(': ') || undefined;
  }
  return nonEmptyText(fields['error_description']) ?? nonEmptyText(fields['message']) ?? nonEmptyText(fields['error']);
}

/** The server's message for a failure, shortened and escaped: from JSON of a registry or OAuth, or the lines of a text. */
export function serverMessage(head: ResponseHead, body: Uint8Array, secrets: readonly string[]): string | undefined {
  const text = Buffer.from(body).toString('utf8');
  const lines = text.split('\n').map((line) => line.trim());
  const isText = (head.headers['content-type'] ?? 'text/plain').startsWith('text/plain');
  const message = fromJson(text) ?? (isText ? lines.filter((line) => line !== '').join('; ') : '');
  let clean = message;
  for (const hidden of secrets.toSorted((a, b) => b.length - a.length)) clean = clean.replaceAll(hidden, '[secret]');
  clean = visible(clean).trim();
  if (clean === '') return undefined;
  return shortened(clean, MESSAGE_LIMIT);
}

const HINTS: Readonly<Partial<Record<ErrorCode, string>>> = {
  AUTH_FAILED:
    'check the address, since some servers refuse what does not exist, and the USER:PASSWORD@ before its host',
  NOT_FOUND: 'check the spelling of the name or address',
};
const REGISTRY_CREDENTIALS = 'check the credentials for this registry, which docker login stores';
const PROXY_CREDENTIALS = 'the proxy requires credentials: write USER:PASSWORD@ before its host';
const BUSY_HINT = 'the server is overloaded or failing: run the same command again later';

/** The error for an error response: code by status, the address without secrets, the server's message. */
export function statusFailure(
  request: HttpRequest,
  head: ResponseHead,
  body: Uint8Array,
  secrets: readonly string[],
): CurlewError {
  const code = CODES.get(head.status) ?? 'FETCH_FAILED';
  const reported = serverMessage(head, body, secrets);
  const message = `cannot ${request.doing}: ${head.url} returned ${head.status}${reported === undefined ? '' : ` (${reported})`}`;
  const waitMs = refusedWaitMs(head, Date.now());
  if (waitMs !== undefined) {
    const wait = formatSeconds(waitMs / 1000);
    return new CurlewError(code, `${message} and asks to wait ${wait}`, { hint: `run the same command after ${wait}` });
  }
  return new CurlewError(code, message, { hint: hintOf(request, head, code) });
}

function hintOf(
  { authorize, via }: HttpRequest,
  { status, headers }: ResponseHead,
  code: ErrorCode,
): string | undefined {
  if (status === 407) return refusalOf(headers[PROXY_SCHEMES]).hint;
  if (isRetryable(status)) return BUSY_HINT;
  // Only registries negotiate authorization, and name other servers for their tokens.
  const isRegistry = authorize !== undefined || via !== undefined;
  return code === 'AUTH_FAILED' && isRegistry ? REGISTRY_CREDENTIALS : HINTS[code];
}

const NOT_AGAIN = /^(?:ENOTFOUND|EACCES|EPERM|HPE_HEADER_OVERFLOW|ERR_(?:INVALID|UNESCAPED|HTTP)_.*)$/;

const LATE = { connect: 'CURLEW_CONNECT_TIMEOUT', head: 'CURLEW_HEAD_TIMEOUT' } as const;

/** Messages for connection errors. */
const CONNECTION_MESSAGES: Readonly<Record<string, string>> = {
  [LATE.connect]: 'connection timed out',
  [LATE.head]: 'no response in time',
  ECONNRESET: 'the connection was reset',
  ECONNREFUSED: 'the connection was refused',
  ENETUNREACH: 'the network is unreachable',
  EHOSTUNREACH: 'the host is unreachable',
  ETIMEDOUT: 'no response in time',
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'the host name could not be resolved',
  HPE_HEADER_OVERFLOW: 'the response headers are too large',
};

/** A connection error, as opposed to errors of a sink or a signal. */
export class Broken extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause });
  }
}

/** The error for a timeout of a connection or of a response head. */
export function timedOut(what: keyof typeof LATE): Error {
  return Object.assign(new Error('timed out'), { code: LATE[what] });
}

/** The reason in a text of OpenSSL, which also has numbers, a path and a line break. */
const OPENSSL = /:SSL routines:[^:]*:([^:\n]+)/;

/** A one-line message for a connection error; undefined for an unknown error. */
export function connectionMessage(error: unknown): string | undefined {
  const code = errnoOf(error) ?? '';
  if (code.startsWith('HPE_') && !Object.hasOwn(CONNECTION_MESSAGES, code))
    return `the response is not valid HTTP (${code})`;
  if (!(error instanceof Error)) return undefined;
  if (isNotTls(error, code)) return 'the server does not speak TLS';
  const [, reason] = OPENSSL.exec(error.message) ?? [];
  return CONNECTION_MESSAGES[code] ?? (reason === undefined ? undefined : `the TLS handshake failed (${reason})`);
}

const NOT_TLS_HINT = 'write http:// instead of https:// in the address, or use the port for https';

const CONNECTION_HINTS: Readonly<Record<string, string>> = {
  ENOTFOUND: 'check the name, the network, and HTTPS_PROXY if there is a proxy',
  EAI_AGAIN: 'check the network, its DNS servers, and HTTPS_PROXY if there is a proxy',
  ECONNREFUSED: 'check the port, and that the server is running',
  ENETUNREACH: 'check the network, and HTTPS_PROXY if there is a proxy',
  EHOSTUNREACH: 'check the network, and HTTPS_PROXY if there is a proxy',
};

/** True for error codes of Node and OpenSSL about a certificate. */
export function isCertificateProblem(code: string): boolean {
  return /CERT|_SIGNED|ISSUER|ALTNAME|UNABLE_TO_VERIFY/.test(code);
}

/** The hint about a certificate; undefined for other errors. */
export function certificateHint(error: unknown): string | undefined {
  const code = errnoOf(error) ?? '';
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') {
    return "renew the server's certificate, or correct the clock of this machine";
  }
  if (code !== 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return isCertificateProblem(code) ? 'add a private certificate authority with --ca-file FILE' : undefined;
  }
  const certificate = isObject(error) && isObject(error['cert']) ? error['cert'] : {};
  const { subjectaltname: names } = certificate;
  if (typeof names !== 'string' || names === '') return 'the certificate has no names: the server needs another one';
  const shown = visible(names.replaceAll(/DNS:|IP Address:/g, '')).slice(0, 300);
  return `the certificate is for ${shown}: use one of these names in the address, or add this name to the certificate`;
}

/** True if the peer answers, but not with TLS. */
export function isNotTls(error: Error, code: string): boolean {
  return code === 'ERR_SSL_WRONG_VERSION_NUMBER' || /wrong version number|packet length too long/i.test(error.message);
}

interface ProxyProblem {
  /** The message without host names. */
  readonly what: string;
  /** A retry can help. */
  readonly isLater: boolean;
  readonly cause?: unknown;
}

/** A proxy that does not open a connection or forward a request. */
export class ProxyFailure extends CurlewError {
  readonly what: string;
  readonly isLater: boolean;

  constructor(code: ErrorCode, message: string, hint: string, { what, isLater, cause }: ProxyProblem) {
    super(code, message, { hint, cause });
    this.what = what;
    this.isLater = isLater;
  }
}

/** The error if a proxy does not open a connection to `host:port`. */
export function noTunnel(proxy: URL, target: string, problem: ProxyProblem): ProxyFailure {
  const message = `cannot connect to ${target} through the proxy ${proxy.host}: ${problem.what}`;
  return new ProxyFailure('FETCH_FAILED', message, 'check HTTPS_PROXY and NO_PROXY', problem);
}

/** The header in which a proxy says how it authenticates. */
export const PROXY_SCHEMES = 'proxy-authenticate';
/** A scheme is followed by nothing, a comma or a token; a parameter of one by `=`. */
const SCHEME = /(?:^|,)\s*([A-Za-z][A-Za-z-]{0,30})(?=\s*(?:,|$)|\s+[^\s=,])/g;

/** What a proxy that answers 407 refuses, and what to do, by the schemes that it offers. */
function refusalOf(offered: string | undefined): { readonly refuses: string; readonly hint: string } {
  const schemes = [...(offered ?? '').matchAll(SCHEME)].map(([, name = '']) => name);
  if (schemes.length === 0 || schemes.some((name) => name.toLowerCase() === 'basic'))
    return { refuses: 'rejects the credentials', hint: PROXY_CREDENTIALS };
  const hint = 'curlew authenticates with Basic: use a proxy that offers it, or a local one in between, such as cntlm';
  return { refuses: `offers only ${[...new Set(schemes)].slice(0, 5).join(', ')}`, hint };
}

/** The error if a proxy answers 407; `offered` is its header {@link PROXY_SCHEMES}. */
export function credentialsRequired(proxy: URL, offered: string | undefined): ProxyFailure {
  const { refuses, hint } = refusalOf(offered);
  const what = `the proxy ${refuses}`;
  return new ProxyFailure('AUTH_FAILED', `the proxy ${proxy.host} ${refuses}`, hint, { what, isLater: false });
}

/** The first error in a chain of causes (or of tried addresses) that has a code. */
function root(error: Error): Error {
  let cause = error;
  for (let depth = 0; depth < 5; depth += 1) {
    const inner: unknown = cause instanceof AggregateError ? cause.errors[0] : undefined;
    if (inner instanceof Error) cause = inner;
    else if (errnoOf(cause) === undefined && cause.cause instanceof Error) cause = cause.cause;
    else break;
  }
  return cause;
}

/** The outcome for a connection that failed or broke. The message shows `url` and `proxy` without secrets. */
export function brokenOutcome(doing: string, url: URL, proxy: URL | undefined, thrown: unknown): HttpOutcome {
  const error = root(asError(thrown));
  const byProxy = error instanceof ProxyFailure ? error : undefined;
  if (error instanceof CurlewError && byProxy === undefined) {
    return { kind: 'broken', error, retryable: false, stalled: false, notTls: false };
  }
  const code = errnoOf(byProxy?.cause ?? error) ?? '';
  const certificate = isCertificateProblem(code);
  const what = byProxy?.what ?? connectionMessage(error) ?? visible(error.message);
  const through = proxy === undefined ? '' : ` through the proxy ${proxy.host}`;
  const notTls = byProxy === undefined && isNotTls(error, code);
  const hint = notTls ? NOT_TLS_HINT : (certificateHint(byProxy?.cause ?? error) ?? CONNECTION_HINTS[code]);
  return {
    kind: 'broken',
    error: new CurlewError(byProxy?.code ?? 'FETCH_FAILED', `cannot ${doing}: ${url.host}${through}: ${what}`, {
      hint: hint ?? byProxy?.hint,
    }),
    retryable: !certificate && !NOT_AGAIN.test(code) && byProxy?.isLater !== false,
    stalled: code === STALLED,
    notTls,
  };
}
