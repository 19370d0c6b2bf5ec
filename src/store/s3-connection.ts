/** A connection to a bucket: requests with retries, and failures as errors for users. */
import { S3Client } from '@aws-sdk/client-s3';
import { openConnections } from '../platform/http/connections.ts';
import { proxyFor } from '../platform/http/proxy.ts';
import { checkedEndpoint, parseS3Address, type S3Options, type S3Place } from './s3-address.ts';
import { CurlewError } from '../core/errors.ts';
import { limitResponses } from './s3-middleware.ts';
import { s3Error } from './s3-error.ts';
import type { StorePlace } from './store.ts';

/** Attempts per request; the SDK waits between them with backoff. */
const ATTEMPTS = 6;
const CONNECT_MS = 20_000;
const IDLE_MS = 60_000;

export interface RequestOptions {
  readonly abortSignal: AbortSignal;
}

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
  /** Runs a request; throws the signal's reason if it is aborted. Rethrows `expected` failures unchanged. */
  readonly call: <Result>(
    purpose: Purpose,
    work: (options: RequestOptions) => Promise<Result>,
    expected?: (error: unknown) => boolean,
  ) => Promise<Result>;
}

/** Creates a connection without sending a request. */
export function connectS3(place: S3Place, options: S3Options): S3Connection {
  const endpoint = options.endpoint === undefined ? undefined : checkedEndpoint(options.endpoint);
  const client = newClient(endpoint, options);
  const { profile, idleMs = IDLE_MS } = options;
  return connectionTo(place, { client, endpoint, profile, idleMs });
}

export function placeOf({ endpoint, address }: S3Connection): StorePlace {
  return { server: `s3:${endpoint ?? ''}`, base: address.slice('s3://'.length) };
}

/**
 * A connection to another place of the same server with the same credentials, or `connection` itself if `place` is undefined
 * or the same. A place on another server is `UNSUPPORTED`.
 */
export function connectionOf(connection: S3Connection, place: StorePlace | undefined): S3Connection {
  const own = placeOf(connection);
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
    call: async ({ doing, permission, signal }, work, expected) => {
      signal.throwIfAborted();
      try {
        // A separate signal for each request: Node warns about many listeners on one signal as a leak.
        const result = await work({ abortSignal: AbortSignal.any([signal]) });
        answered = true;
        return result;
      } catch (error) {
        signal.throwIfAborted();
        if (expected?.(error) === true) throw error;
        const secrets = await secretsOf(client, error);
        throw s3Error(error, { doing, bucket: place.bucket, permission, profile, secrets });
      }
    },
  };
}

const QUIET = { debug: ignore, info: ignore, warn: ignore, error: ignore };

function ignore(): undefined {
  return undefined;
}

function newClient(endpoint: string | undefined, options: S3Options): S3Client {
  const { region, profile, pathStyle, ca, env = {}, idleMs = IDLE_MS } = options;
  const connections = openConnections({ proxyOf: (url) => proxyFor(url, env), connectMs: CONNECT_MS, roots: ca });
  // Self-hosted servers have no regions, but signatures contain one.
  const signed = region ?? (endpoint === undefined ? undefined : 'us-east-1');
  const client = new S3Client({
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(signed === undefined ? {} : { region: signed }),
    ...(profile === undefined ? {} : { profile }),
    forcePathStyle: pathStyle ?? endpoint !== undefined,
    maxAttempts: ATTEMPTS,
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
