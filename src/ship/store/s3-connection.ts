/** A connection to a bucket: requests with retries, and failures as errors for users. */
import {
  S3Client,
  type $Command,
  type S3ClientResolvedConfig,
  type ServiceInputTypes,
  type ServiceOutputTypes,
} from '@aws-sdk/client-s3';
import { openConnections, type Connections } from '../../platform/http/connections.ts';
import { proxyFor } from '../../platform/http/proxy.ts';
import { checkedEndpoint, parseS3Address, type S3Options, type S3Place } from './s3-address.ts';
import { CurlewError } from '../../core/errors.ts';
import { s3Error, s3Status } from './s3-error.ts';
import type { StorePlace } from './store.ts';
import { Readable } from 'node:stream';
import { credentialsRequired, PROXY_SCHEMES } from '../../platform/http/failure.ts';
import { MIN_RATE } from '../../platform/http/limits.ts';
import { paced } from '../../platform/http/pace.ts';
import { isRetryable } from '../../platform/http/retry.ts';

/** Attempts per request; the SDK waits between them with backoff. */
const ATTEMPTS = 6;
const CONNECT_MS = 20_000;
const IDLE_MS = 60_000;

/** The purpose of a request, for messages. */
export interface Purpose {
  readonly doing: string;
  /** The AWS permission that it needs. */
  readonly permission: string;
  readonly signal: AbortSignal;
}

export interface S3Connection extends S3Place {
  readonly client: S3Client;
  /** Undefined for AWS itself. */
  readonly endpoint: string | undefined;
  /** Profile for credentials; undefined for the SDK's default. */
  readonly profile: string | undefined;
  /** True after a first successful request to the bucket. */
  readonly hasAnswered: () => boolean;
  /** Milliseconds without a byte before a response times out. */
  readonly idleMs: number;
  /** Bucket and key of an object, for requests. */
  readonly target: (key: string) => { readonly Bucket: string; readonly Key: string };
  /** Sends a request; throws the signal's reason if it is aborted. Rethrows `expected` failures unchanged. */
  readonly send: <Input extends ServiceInputTypes, Output extends ServiceOutputTypes>(
    purpose: Purpose,
    command: $Command<Input, Output, S3ClientResolvedConfig, ServiceInputTypes, ServiceOutputTypes>,
    expected?: (error: unknown) => boolean,
  ) => Promise<Output>;
}

/** Creates a connection without sending a request. */
export function connectS3(place: S3Place, options: S3Options): S3Connection {
  const endpoint = options.endpoint === undefined ? undefined : checkedEndpoint(options.endpoint);
  const client = newClient(endpoint, options);
  const { profile, idleMs = IDLE_MS } = options;
  return connectionTo(place, { client, endpoint, profile, idleMs });
}

export function s3Place({ endpoint, address }: S3Connection): StorePlace {
  return { server: `s3:${endpoint ?? ''}`, base: address.slice('s3://'.length) };
}

/**
 * A connection to another place of the same server with the same credentials, or `connection` itself if `place` is undefined
 * or the same. A place on another server is `UNSUPPORTED`.
 */
export function connectionOf(connection: S3Connection, place: StorePlace | undefined): S3Connection {
  const own = s3Place(connection);
  if (place === undefined || (place.server === own.server && place.base === own.base)) return connection;
  if (place.server === own.server) return connectionTo(parseS3Address(`s3://${place.base}`), connection);
  throw new CurlewError('UNSUPPORTED', `${connection.address}: the server cannot copy from another server`);
}

type Server = Pick<S3Connection, 'client' | 'endpoint' | 'profile' | 'idleMs'>;

function connectionTo(place: S3Place, { client, endpoint, profile, idleMs }: Server): S3Connection {
  let answered = false;
  return {
    ...place,
    client,
    endpoint,
    profile,
    idleMs,
    hasAnswered: () => answered,
    target: (key) => ({ Bucket: place.bucket, Key: `${place.prefix}${key}` }),
    send: async ({ doing, permission, signal }, command, expected) => {
      signal.throwIfAborted();
      try {
        // A separate signal for each request: Node warns about many listeners on one signal as a leak.
        const result = await client.send(command, { abortSignal: AbortSignal.any([signal]) });
        answered = true;
        return result;
      } catch (error) {
        signal.throwIfAborted();
        if (expected?.(error) === true) throw error;
        const secrets = await secretsOf(client, error);
        throw s3Error(error, { doing, bucket: place.bucket, endpoint, permission, profile, secrets });
      }
    },
  };
}

const QUIET = { debug: ignore, info: ignore, warn: ignore, error: ignore };

function ignore(): undefined {
  return undefined;
}

function newClient(endpoint: string | undefined, options: S3Options): S3Client {
  const { region, profile, pathStyle, ca, attempts = ATTEMPTS, env = {}, idleMs = IDLE_MS } = options;
  const connections = openConnections({ proxyOf: (url) => proxyFor(url, env), connectMs: CONNECT_MS, roots: ca });
  // Self-hosted servers have no regions, but signatures contain one.
  const signed = region ?? (endpoint === undefined ? undefined : 'us-east-1');
  const client = new S3Client({
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(signed === undefined ? {} : { region: signed }),
    ...(profile === undefined ? {} : { profile }),
    forcePathStyle: pathStyle ?? endpoint !== undefined,
    maxAttempts: attempts,
    requestHandler: {
      // Longer than curlew's own timeout, which has better messages for bodies.
      socketTimeout: idleMs + 1000,
      httpAgent: connections.plain,
      httpsAgent: connections.secure,
    },
    // The SDK would print a warning if both a profile and keys in the environment are set. Errors contain that information.
    logger: QUIET,
    // curlew sends its own checksums: the SDK would also send them to servers that reject them.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
  limitResponses(client, connections, idleMs);
  markRetryable(client);
  return client;
}

async function secretsOf(client: S3Client, error: unknown): Promise<readonly string[]> {
  if (error instanceof Error && error.name === 'CredentialsProviderError') return [];
  try {
    const { accessKeyId, secretAccessKey, sessionToken } = await client.config.credentials();
    return [secretAccessKey, sessionToken ?? '', accessKeyId];
  } catch {
    return [];
  }
}

/** Larger than a page of a thousand escaped keys of a thousand bytes each. */
const DOCUMENT_LIMIT = 16 << 20;

/** The parts of the SDK's request and response that are used here. */
interface WireRequest {
  protocol: string;
  hostname: string;
  port?: number;
  path: string;
  headers: Record<string, string>;
}

interface WireResponse {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  body?: unknown;
}

/**
 * SDK middleware: sends requests without TLS through a proxy, and limits responses. Documents of the protocol are small; a
 * document that exceeds the limit or stalls is an error. `idleMs`: milliseconds without a byte before a response times out.
 */
function limitResponses(client: S3Client, connections: Connections, idleMs: number): void {
  client.middlewareStack.add(
    (next, context) => async (args) => {
      const request = args.request as WireRequest;
      const proxy = routeThroughProxy(request, connections);
      const result = await next(args);
      const response = result.response as WireResponse;
      if (proxy !== undefined && response.statusCode === 407)
        throw credentialsRequired(proxy, response.headers[PROXY_SCHEMES]);
      const { body, statusCode } = response;
      const isObject = context['commandName'] === 'GetObjectCommand' && statusCode >= 200 && statusCode < 300;
      if (body instanceof Readable && !isObject)
        response.body = Readable.from(limited(body, idleMs), { objectMode: false });
      return result;
    },
    { step: 'deserialize', priority: 'low', name: 'limitResponses' },
  );
}

/** SDK middleware: the SDK itself retries only 500, 502, 503, 504 and throttling, not the statuses of CDNs. */
function markRetryable(client: S3Client): void {
  client.middlewareStack.add(
    (next) => async (args) => {
      try {
        return await next(args);
      } catch (error) {
        if (error instanceof Error && isRetryable(s3Status(error) ?? 0)) Object.assign(error, { $retryable: {} });
        throw error;
      }
    },
    { step: 'finalizeRequest', priority: 'low', name: 'markRetryable' },
  );
}

/** Changes where a request is sent. The request is already signed. Returns the proxy, if any. */
function routeThroughProxy(request: WireRequest, { routeOf }: Connections): URL | undefined {
  const { protocol, hostname, port } = request;
  if (protocol !== 'http:') return undefined;
  const {
    proxy,
    secure,
    host,
    port: proxyPort,
    prefix,
    headers,
  } = routeOf(new URL(`${protocol}//${hostname}${port === undefined ? '' : `:${port}`}`));
  if (proxy === undefined) return undefined;
  // The SDK's agent for TLS would apply a proxy to the proxy itself.
  if (secure) {
    const message = `${hostname}: requests without TLS cannot go through the proxy ${proxy.origin}`;
    const hint = 'use an http address for HTTP_PROXY, or an https address for the server';
    throw new CurlewError('UNSUPPORTED', message, { hint });
  }
  request.headers = { ...request.headers, ...headers };
  request.hostname = host;
  request.port = proxyPort;
  request.path = `${prefix}${request.path}`;
  return proxy;
}

async function* limited(body: Readable, idleMs: number): AsyncGenerator<Uint8Array, void, undefined> {
  let size = 0;
  for await (const chunk of paced(body, { idleMs, minRate: MIN_RATE })) {
    size += chunk.byteLength;
    if (size > DOCUMENT_LIMIT) {
      throw new CurlewError('FETCH_FAILED', `the server's response is larger than ${DOCUMENT_LIMIT} bytes`);
    }
    yield chunk;
  }
}
