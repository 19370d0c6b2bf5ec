/**
 * SDK middleware: sends requests without TLS through a proxy, and limits responses. Documents of the protocol are small; a
 * document that exceeds the limit or stalls is an error.
 */
import { Readable } from 'node:stream';
import type { S3Client } from '@aws-sdk/client-s3';
import { CurlewError } from '../core/errors.ts';
import type { Connections } from '../platform/http/connections.ts';
import { credentialsRequired } from '../platform/http/failure.ts';
import { LEAST_RATE, paced } from '../platform/http/pace.ts';

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
  body?: unknown;
}

/** `idleMs`: milliseconds without a byte before a response times out. */
export function limitResponses(client: S3Client, connections: Connections, idleMs: number): void {
  client.middlewareStack.add(
    (next, context) => async (args) => {
      const request = args.request as WireRequest;
      const proxy = routeThroughProxy(request, connections);
      const result = await next(args);
      const response = result.response as WireResponse;
      if (proxy !== undefined && response.statusCode === 407) throw credentialsRequired(proxy);
      const { body, statusCode } = response;
      const isObject = context['commandName'] === 'GetObjectCommand' && statusCode >= 200 && statusCode < 300;
      if (body instanceof Readable && !isObject)
        response.body = Readable.from(limited(body, idleMs), { objectMode: false });
      return result;
    },
    { step: 'deserialize', priority: 'low', name: 'limitResponses' },
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
  for await (const chunk of paced(body, { idleMs, leastRate: LEAST_RATE })) {
    size += chunk.byteLength;
    if (size > DOCUMENT_LIMIT) {
      throw new CurlewError('FETCH_FAILED', `the server's response is larger than ${DOCUMENT_LIMIT} bytes`);
    }
    yield chunk;
  }
}
