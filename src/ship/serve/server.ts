/** The HTTP server: connections, limits and graceful shutdown. */
import { createServer as createHttpServer, type Server, type ServerOptions } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { constants } from 'node:crypto';
import { DEFAULT_CIPHERS } from 'node:tls';
import { CurlewError, asError, errnoOf } from '../../core/errors.ts';
import { createHandler, type HandlerOptions } from './handler.ts';
import { createIntake } from './intake.ts';
import { createMetrics } from './metrics.ts';

export interface ServeLimits {
  readonly connections: number;
  /** Milliseconds for the whole head of a request. */
  readonly headMs: number;
  /** Milliseconds for its body. */
  readonly bodyMs: number;
  /** Milliseconds without a byte in either direction, while the server waits for the client. */
  readonly idleMs: number;
  /** Minimum rate at which a client must read a response, in bytes per second. */
  readonly minRate: number;
  /** Maximum bytes of a posted spec. */
  readonly body: number;
  /** Milliseconds to wait for running responses at shutdown. */
  readonly graceMs: number;
}

export const DEFAULT_LIMITS: ServeLimits = {
  connections: 1000,
  headMs: 10_000,
  bodyMs: 30_000,
  idleMs: 120_000,
  minRate: 240,
  body: 64 << 10,
  graceMs: 60_000,
};

export interface ListenOptions extends Pick<HandlerOptions, 'site' | 'token' | 'publicUrl' | 'tool' | 'log' | 'now'> {
  /** Undefined for all addresses of this machine, IPv4 and IPv6. */
  readonly host: string | undefined;
  /** 0 selects a free port. */
  readonly port: number;
  /** Certificate and key in PEM. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  readonly limits: ServeLimits;
}

export interface RunningServer {
  /** `http://127.0.0.1:8080` */
  readonly url: string;
  /** Stops accepting connections; resolves when the last response is sent, or the grace period is over. */
  readonly stop: () => Promise<ServedTotals>;
}

export interface ServedTotals {
  readonly requests: number;
  readonly bytes: number;
}

/** Node's, without those that chain blocks, whose padding has leaked plaintext. Every client of TLS 1.2 has the others. */
const CIPHERS = `${DEFAULT_CIPHERS}:!SHA1:!SHA256:!SHA384`;
/** Each handshake that a client demands again costs a server more than its client; Node alone allows three in ten minutes. */
const NO_RENEGOTIATION = constants.SSL_OP_NO_RENEGOTIATION;
const HEAD_LIMIT = 16 << 10;
const KEEP_ALIVE_MS = 5000;
const CHECK_MS = 1000;

/** Starts listening; `BUSY` if the port is in use. */
export async function startServer({ host, port, tls, limits, ...rest }: ListenOptions): Promise<RunningServer> {
  const metrics = createMetrics();
  let open = 0;
  const server = createServer(tls, limits.headMs, {
    maxHeaderSize: HEAD_LIMIT,
    headersTimeout: 0,
    requestTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
  });
  const { body: bodyLimit, minRate } = limits;
  const handler = createHandler({ ...rest, bodyLimit, minRate, metrics, connections: () => open });
  server.timeout = limits.idleMs;
  server.on('connection', (socket) => {
    open += 1;
    socket.once('close', () => {
      open -= 1;
    });
    if (open > limits.connections && !handler.makeRoom()) socket.destroy();
  });
  const arrival = tls === undefined ? 'connection' : 'secureConnection';
  const intake = createIntake(server, { arrival, headMs: limits.headMs, bodyMs: limits.bodyMs });
  server.on('request', handler.handle);
  await listen(server, host, port);
  const stop = async (): Promise<ServedTotals> => {
    handler.drain();
    const late = setTimeout(() => server.closeAllConnections(), limits.graceMs);
    // Idle keep-alive connections would otherwise stay open.
    const sweep = setInterval(() => server.closeIdleConnections(), 50);
    // For Node, connections without any request are not idle, and their timeouts end when the server stops listening.
    const idle = setInterval(intake.closeIdle, CHECK_MS);
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeIdleConnections();
    });
    clearTimeout(late);
    clearInterval(sweep);
    clearInterval(idle);
    return metrics.totals();
  };
  return { url: urlOf(server, host, tls !== undefined), stop };
}

function createServer(tls: ListenOptions['tls'], handshakeTimeout: number, options: ServerOptions): Server {
  if (tls === undefined) return createHttpServer(options);
  try {
    return createHttpsServer({
      ...options,
      ...tls,
      ciphers: CIPHERS,
      secureOptions: NO_RENEGOTIATION,
      handshakeTimeout,
    });
  } catch (error) {
    const mismatch = errnoOf(error) === 'ERR_OSSL_X509_KEY_VALUES_MISMATCH';
    const what = mismatch ? 'the key does not belong to the certificate' : 'the certificate or its key is not PEM';
    throw new CurlewError('USAGE', `--tls-cert and --tls-key: ${what}`, {
      hint: 'use PEM for both; the key must match the first certificate in the file and have no passphrase',
    });
  }
}

const LISTEN_ERRORS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program is already listening on this port',
  EADDRNOTAVAIL: 'this machine does not have this address',
  EACCES: 'only root may use this port',
  ENOTFOUND: 'no such host',
};

async function listen(server: Server, host: string | undefined, port: number): Promise<void> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ ...(host === undefined ? {} : { host }), port }, () => {
        server.off('error', reject);
        resolve();
      });
    });
  } catch (error) {
    const errno = errnoOf(error) ?? '';
    const what = LISTEN_ERRORS[errno] ?? asError(error).message;
    throw new CurlewError(
      errno === 'EADDRINUSE' ? 'BUSY' : 'USAGE',
      `cannot listen on ${host ?? ''}:${port}: ${what}`,
      {
        hint:
          errno === 'EADDRINUSE'
            ? 'stop that program, or use another port with --listen'
            : 'use another address with --listen',
      },
    );
  }
}

function urlOf(server: Server, publicUrl: string | undefined, isTls: boolean): string {
  const bound = server.address();
  const { address, port } = typeof bound === 'object' && bound !== null ? bound : { address: '', port: 0 };
  const host = publicUrl ?? address;
  return `${isTls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
