/**
 * The one HTTP client. It follows redirects itself, so that it checks every hop and sends secrets only to their own host. It
 * uses proxies, trusts the operator's certificate authorities, and limits time and size of everything.
 */
import type { Cancellable } from '../../core/cancellable.ts';
import { allowsPlainHttp, checkedAddress, checkNamedBy, sameOrigin, type AddressRules } from './address.ts';
import { CurlewError } from '../../core/errors.ts';
import { secretsOf, statusFailure } from './failure.ts';
import { MAX_STALLS, TIMEOUTS } from './limits.ts';
import {
  collector,
  type Headers,
  type HttpRequest,
  type HttpOutcome,
  type ResponseHead,
  type Sink,
} from './message.ts';
import { decoded, proxyFor, type Environment } from './proxy.ts';
import { isWorthRetry, pauseMs, RETRY_POLICY, withinTime, type RetryPolicy } from './retry.ts';
import { pause } from '../limit/repeat.ts';
import { loadRoots } from './roots.ts';
import { createWire, type Timeouts, type Wire } from './wire.ts';

export interface HttpOptions {
  /** Source of HTTPS_PROXY, HTTP_PROXY, NO_PROXY (either case), SSL_CERT_FILE. */
  readonly env: Environment;
  /** File of certificate authorities in PEM; takes precedence over SSL_CERT_FILE. */
  readonly caFile?: string | undefined;
  /** Hosts, `name` or `name:port`, that may be contacted over plain http; this machine always may. */
  readonly allowHttp?: readonly string[] | undefined;
  readonly userAgent?: string | undefined;
  /** Omitted ones have their defaults. */
  readonly timeouts?: Partial<Timeouts> | undefined;
  readonly retry?: RetryPolicy | undefined;
}

export interface SmallResponse extends ResponseHead {
  readonly body: Uint8Array;
}

export interface Http extends AsyncDisposable {
  readonly retry: RetryPolicy;
  /** True if plain http to this address is allowed. */
  readonly allowsPlain: (url: URL) => boolean;
  /**
   * One exchange: follows redirects, authorizes, does not retry. The sink receives the head and body of the last response
   * only. Throws `FETCH_FAILED` for an address that is not allowed and for too many redirects.
   */
  readonly exchange: (request: HttpRequest, sink: Sink, options: Cancellable) => Promise<HttpOutcome>;
  /**
   * A response with its whole body of at most `limit` bytes, retried with back-off. Returns any status; those that mean
   * "later" only after the last attempt, or if the server requests a long wait. Throws `FETCH_FAILED` for a longer body, before reading it if its length is
   * announced, for a failed connection, and for a response that takes too long in total.
   */
  readonly small: (
    request: HttpRequest,
    options: { readonly limit: number; readonly signal: AbortSignal },
  ) => Promise<SmallResponse>;
  /** The error for an error response: code by status, redacted address, the server's message without control characters. */
  readonly failure: (request: HttpRequest, head: ResponseHead, body: Uint8Array) => CurlewError;
  readonly close: () => Promise<void>;
}

const MAX_REDIRECTS = 10;
/** Headers that are kept on a redirect to another scheme, host or port. */
const CROSS_ORIGIN_HEADERS: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'range',
  'if-range',
  'user-agent',
]);
/** Limit of an error response's body, in bytes. */
const FAILURE_LIMIT = 8192;

interface Chain {
  readonly wire: Wire;
  readonly rules: AddressRules;
  readonly userAgent: string;
  /** Texts that were sent as secrets, and must not be repeated in messages. */
  readonly secrets: Set<string>;
}

function isRedirect({ status, headers }: ResponseHead): boolean {
  return [301, 302, 303, 307, 308].includes(status) && headers['location'] !== undefined;
}

function lowerCased(headers: Headers): Headers {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/** Keeps redirects and other non-final responses from the sink. */
function untilFinal(sink: Sink, isFinal: (head: ResponseHead) => boolean): Sink {
  let pass = false;
  return {
    head: (head) => {
      pass = isFinal(head);
      if (pass) sink.head(head);
    },
    data: (chunk) => (pass ? sink.data(chunk) : false),
  };
}

async function follow(
  { wire, rules, userAgent, secrets }: Chain,
  request: HttpRequest,
  sink: Sink,
  signal: AbortSignal,
): Promise<HttpOutcome> {
  const { doing, via, method = 'GET', body } = request;
  const first = checkedAddress(request.url, undefined, doing, rules);
  let url = first;
  for (const text of secretsOf(request)) secrets.add(text);
  let from = via === undefined ? undefined : new URL(via);
  let headers: Headers = {
    'accept-encoding': 'identity',
    ...(first.username === '' ? {} : { authorization: basic(decoded(first.username), decoded(first.password)) }),
    ...lowerCased(request.headers ?? {}),
    'user-agent': userAgent,
  };
  for (let hops = 0; hops <= MAX_REDIRECTS; hops += 1) {
    const guarded = from !== undefined && checkNamedBy(from, url, doing, rules);
    const hop = { doing, url, method, headers, body, namedBy: guarded ? from?.host : undefined };
    // A body (which may contain a token) is never sent twice: its redirects are treated as final responses.
    const outcome = await wire.send(
      hop,
      untilFinal(sink, (head) => body !== undefined || !isRedirect(head)),
      { signal },
    );
    if (outcome.kind === 'broken' || body !== undefined || !isRedirect(outcome.head)) return outcome;
    const next = checkedAddress(outcome.head.headers['location'] ?? '', url, doing, rules);
    next.username = '';
    next.password = '';
    // Dropped headers stay dropped, even if a later redirect leads back.
    if (!sameOrigin(next, url)) {
      headers = Object.fromEntries(Object.entries(headers).filter(([name]) => CROSS_ORIGIN_HEADERS.has(name)));
    }
    from = first;
    url = next;
  }
  throw new CurlewError('FETCH_FAILED', `cannot ${doing}: ${first.href}: more than ${MAX_REDIRECTS} redirects`);
}

/** Value of an Authorization header. */
export function basic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

/** Withholds a refusal from the sink until it is known whether better headers are available; `replay` passes it on. */
function refusalGate(sink: Sink, isRefusal: (head: ResponseHead) => boolean) {
  let refusal: ResponseHead | undefined;
  const parts: Uint8Array[] = [];
  let size = 0;
  const gate: Sink = {
    head: (head) => {
      refusal = isRefusal(head) ? head : undefined;
      if (refusal === undefined) sink.head(head);
    },
    data: (chunk) => {
      if (refusal === undefined) return sink.data(chunk);
      size += chunk.byteLength;
      parts.push(Uint8Array.from(chunk));
      return size > FAILURE_LIMIT ? false : undefined;
    },
  };
  const replay = (head: ResponseHead): void => {
    sink.head(head);
    if (size > 0) void sink.data(Buffer.concat(parts));
  };
  return { gate, replay, refusal: (): ResponseHead | undefined => refusal };
}

/** Adds authorization headers to a request; retries once after a 401 from the requested host. */
async function authorized(chain: Chain, request: HttpRequest, sink: Sink, signal: AbortSignal): Promise<HttpOutcome> {
  const { authorize } = request;
  if (authorize === undefined) return follow(chain, request, sink, signal);
  const withHeaders = (more: Headers | undefined): HttpRequest => ({
    ...request,
    headers: { ...request.headers, ...more },
  });
  const origin = checkedAddress(request.url, undefined, request.doing, chain.rules).origin;
  const before = await authorize(undefined, { signal });
  const held = refusalGate(sink, (head) => head.status === 401 && new URL(head.url).origin === origin);
  const outcome = await follow(chain, withHeaders(before), held.gate, signal);
  const refusal = held.refusal();
  if (outcome.kind === 'broken' || refusal === undefined) return outcome;
  const better = await authorize({ head: refusal, sent: before }, { signal });
  if (better !== undefined) return follow(chain, withHeaders(better), sink, signal);
  held.replay(refusal);
  return outcome;
}

async function small(
  http: Http,
  request: HttpRequest,
  { limit, ms, signal }: { readonly limit: number; readonly ms: number; readonly signal: AbortSignal },
): Promise<SmallResponse> {
  const tooLong = (): CurlewError =>
    new CurlewError(
      'FETCH_FAILED',
      `cannot ${request.doing}: the response of ${request.url} is longer than ${limit} bytes`,
    );
  let stalls = 0;
  for (let attempt = 1; ; attempt += 1) {
    const { sink, body } = collector({ limit, failureLimit: FAILURE_LIMIT, method: request.method, tooLong });
    const outcome = await withinTime(request, { ms, signal, received: () => body().byteLength }, async (own) =>
      http.exchange(request, sink, { signal: own }),
    );
    const last = attempt >= http.retry.attempts;
    if (outcome.kind === 'complete') {
      if (last || !isWorthRetry(outcome.head)) return { ...outcome.head, body: body() };
    } else {
      if (outcome.stalled) stalls += 1;
      if (last || !outcome.retryable || stalls >= MAX_STALLS) throw outcome.error;
    }
    const head = outcome.kind === 'complete' ? outcome.head : undefined;
    await pause(pauseMs(attempt, head, http.retry, Date.now()), { signal });
  }
}

/** Returns a successful response; throws the error for any other status. */
export function succeeded(http: Http, request: HttpRequest, response: SmallResponse): SmallResponse {
  if (response.status >= 200 && response.status < 300) return response;
  throw http.failure(request, response, response.body);
}

/** Creates a client. Throws `FILE_UNUSABLE` if a file of certificate authorities cannot be used. The caller closes the client. */
export async function createHttp(options: HttpOptions): Promise<Http> {
  const roots = await loadRoots(options.caFile, options.env);
  const timeouts = { ...TIMEOUTS, ...options.timeouts };
  const { env } = options;
  const wire = createWire({ proxyOf: (url) => proxyFor(url, env), connectMs: timeouts.connectMs, roots }, timeouts);
  const rules: AddressRules = { allowHttp: new Set((options.allowHttp ?? []).map((host) => host.toLowerCase())) };
  const chain: Chain = { wire, rules, userAgent: options.userAgent ?? 'curlew', secrets: new Set() };
  const http: Http = {
    retry: options.retry ?? RETRY_POLICY,
    allowsPlain: (url) => allowsPlainHttp(url, rules),
    exchange: async (request, sink, { signal }) => authorized(chain, request, sink, signal),
    small: async (request, { limit, signal }) => small(http, request, { limit, ms: timeouts.smallMs, signal }),
    failure: (request, head, body) => statusFailure(request, head, body, [...chain.secrets]),
    close: async () => wire.close(),
    [Symbol.asyncDispose]: async () => wire.close(),
  };
  return http;
}
