/** A connection to a bucket: requests with retries, whose failures are errors for users. */
import { S3Client } from '@aws-sdk/client-s3';
import { openConnections } from '../platform/http/connections.ts';
import { proxyFor } from '../platform/http/proxy.ts';
import { checkedEndpoint, parseS3Address, type S3Options, type S3Place } from './s3-address.ts';
import { CurlewError } from '../core/errors.ts';
import { limitAnswers } from './s3-answers.ts';
import { s3Error } from './s3-error.ts';
import type { StorePlace } from './store.ts';

/** Requests of one kind before giving up; the SDK pauses between them, longer each time. */
const ATTEMPTS = 6;
const CONNECT_MS = 20_000;
const IDLE_MS = 60_000;

export interface RequestOptions {
  readonly abortSignal: AbortSignal;
}

/** What a request is for, for messages. */
export interface Purpose {
  readonly doing: string;
  /** The permission that AWS wants for it. */
  readonly permission: string;
  readonly signal: AbortSignal;
}

export interface S3Connection extends S3Place {
  readonly client: S3Client;
  /** Undefined for AWS itself. */
  readonly endpoint: string | undefined;
  /** Whose credentials are used; undefined for those that the SDK finds. */
  readonly profile: string | undefined;
  /** True once the bucket has answered a request as it should. */
  readonly hasAnswered: () => boolean;
  /** Milliseconds without a byte before an answer is given up. */
  readonly idleMs: number;
  /** What requests name an object by. */
  readonly target: (key: string) => { readonly Bucket: string; readonly Key: string };
  /** Runs a request; the signal's reason is thrown when it fires. `expected` failures come out as they are. */
  readonly call: <Result>(
    purpose: Purpose,
    work: (options: RequestOptions) => Promise<Result>,
    expected?: (error: unknown) => boolean,
  ) => Promise<Result>;
}

/** Sends nothing yet. */
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
 * A connection to this place, with the same credentials: the one given when there is none, or it is its own. A place of
 * another server is `UNSUPPORTED`.
 */
export function connectionOf(connection: S3Connection, place: StorePlace | undefined): S3Connection {
  const own = placeOf(connection);
  if (place === undefined || (place.server === own.server && place.base === own.base)) return connection;
  if (place.server === own.server) return connectionTo(parseS3Address(`s3://${place.base}`), connection);
  throw new CurlewError('UNSUPPORTED', `${connection.address}: a server cannot copy from another one by itself`);
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
        // A signal of its own for each request: many listeners on one would be taken for a leak.
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
  // A server of one's own has no regions, but signatures name one.
  const signed = region ?? (endpoint === undefined ? undefined : 'us-east-1');
  const client = new S3Client({
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(signed === undefined ? {} : { region: signed }),
    ...(profile === undefined ? {} : { profile }),
    forcePathStyle: pathStyle ?? endpoint !== undefined,
    maxAttempts: ATTEMPTS,
    requestHandler: {
      // Later than our own, which has better words for bodies.
      socketTimeout: idleMs + 1000,
      httpAgent: connections.plain,
      httpsAgent: connections.secure,
    },
    // It would warn on the terminal of profiles beside keys in the environment; a failure says what was tried.
    logger: QUIET,
    // Checksums are our own: the SDK's would be sent to servers that reject them.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
  limitAnswers(client, connections, idleMs);
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
