/** A real web server on loopback that keeps a log and can be told to fail. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';

export interface Asked {
  readonly method: string;
  /** Path with its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
}

/** How a body is sent: as it is, cut after so many bytes by a reset, halted there, byte by byte, without end, or never. */
export type Sending =
  | 'whole'
  | 'endless'
  | 'never'
  | { readonly resetAt: number }
  | { readonly closeAt: number }
  | { readonly haltAt: number }
  /** Milliseconds between two bytes. */
  | { readonly dripMs: number };

export interface Reply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | string;
  readonly sending?: Sending;
}

/** Looks at a request and its regular reply; another reply, or undefined for the regular one. */
export type Fault = (asked: Asked, regular: Reply) => Reply | undefined;

export interface WebServer extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** `http://127.0.0.1:PORT`, without a slash at the end. */
  readonly url: string;
  readonly log: readonly Asked[];
  /** Connections that are open now. */
  readonly connections: () => number;
}

export interface ServerOptions {
  readonly faults?: readonly Fault[];
  /** Key and certificate in PEM: https. */
  readonly tls?: { readonly key: string; readonly cert: string } | undefined;
  /** Name in the server's URL; it listens on 127.0.0.1 all the same. */
  readonly name?: string;
}

/** Without a copy of what is bytes already. */
export function bytesOf(body: Reply['body'] = ''): Buffer {
  return typeof body === 'string' ? Buffer.from(body) : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
}

/** The reply for the part that a Range header asks for; If-Range is honoured. */
export function ranged(asked: Asked, reply: Reply): Reply {
  const body = bytesOf(reply.body);
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(String(asked.headers['range'] ?? '')) ?? [];
  const condition = asked.headers['if-range'];
  const { etag, 'last-modified': modified } = reply.headers ?? {};
  if (first === undefined || reply.status !== 200) return reply;
  if (condition !== undefined && condition !== etag && condition !== modified) return reply;
  const from = Number(first);
  if (from >= body.byteLength) return { status: 416, headers: { 'content-range': `bytes */${body.byteLength}` } };
  const end = last === '' || last === undefined ? body.byteLength : Math.min(Number(last) + 1, body.byteLength);
  const range = `bytes ${from}-${end - 1}/${body.byteLength}`;
  return {
    ...reply,
    status: 206,
    headers: { ...reply.headers, 'content-range': range },
    body: body.subarray(from, end),
  };
}

function send(asked: Asked, reply: Reply, response: ServerResponse): void {
  const body = bytesOf(reply.body);
  const { sending = 'whole' } = reply;
  if (sending === 'never') return;
  if (sending === 'endless') {
    response.writeHead(reply.status, reply.headers);
    const chunk = Buffer.alloc(65_536, 'x');
    const more = (): void => {
      while (!response.destroyed && response.write(chunk));
    };
    response.on('drain', more);
    more();
    return;
  }
  response.writeHead(reply.status, { 'content-length': String(body.byteLength), ...reply.headers });
  if (asked.method === 'HEAD' || sending === 'whole') {
    response.end(asked.method === 'HEAD' ? undefined : body);
    return;
  }
  if ('haltAt' in sending) {
    response.write(body.subarray(0, sending.haltAt));
    return;
  }
  if ('dripMs' in sending) {
    let next = 0;
    const timer = setInterval(() => response.write(body.subarray(next, (next += 1))), sending.dripMs);
    response.on('close', () => clearInterval(timer));
    return;
  }
  const at = 'resetAt' in sending ? sending.resetAt : sending.closeAt;
  response.write(body.subarray(0, at), () => {
    // Node resets no connections with TLS: it cuts them without the alert that would end them.
    if ('resetAt' in sending && response.socket instanceof TLSSocket) response.socket.destroy();
    else if ('resetAt' in sending) response.socket?.resetAndDestroy();
    else response.socket?.end();
  });
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const chunk of request) parts.push(chunk as Uint8Array);
  return Buffer.concat(parts).toString();
}

/** Starts a server on a free port of 127.0.0.1. Faults are asked in order; the first that answers counts. */
export async function startServer(
  regular: (asked: Asked) => Reply,
  { faults = [], tls, name = '127.0.0.1' }: ServerOptions = {},
): Promise<WebServer> {
  const log: Asked[] = [];
  let open = 0;
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const asked: Asked = {
      method: request.method ?? '',
      path: request.url ?? '',
      headers: request.headers,
      body: await bodyOf(request),
    };
    log.push(asked);
    const reply = regular(asked);
    for (const fault of faults) {
      const other = fault(asked, reply);
      if (other === undefined) continue;
      send(asked, other, response);
      return;
    }
    send(asked, reply, response);
  };
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    answer(request, response).catch(() => response.destroy());
  };
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  server.on('connection', (socket) => {
    open += 1;
    socket.on('close', () => (open -= 1));
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    host: `${name}:${port}`,
    port,
    url: `${tls === undefined ? 'http' : 'https'}://${name}:${port}`,
    log,
    connections: () => open,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

/** A server of files by path, with ranges and validators. */
export async function serveFiles(
  files: Readonly<Record<string, Uint8Array | string>>,
  options: ServerOptions = {},
): Promise<WebServer> {
  return startServer((asked) => {
    const [path = ''] = asked.path.slice(1).split('?', 1);
    const body = files[path];
    if (body === undefined) return { status: 404, body: 'no such file' };
    const headers = { etag: `"${bytesOf(body).byteLength}-${path}"`, 'content-type': 'application/octet-stream' };
    return ranged(asked, { status: 200, headers, body });
  }, options);
}

/** A server of a folder as it is at each request, with ranges and validators: what stands in front of a store. */
export async function serveFolder(root: string, options: ServerOptions = {}): Promise<WebServer> {
  return startServer((asked) => {
    const [path = ''] = asked.path.split('?', 1);
    let body: Buffer;
    try {
      body = readFileSync(join(root, decodeURIComponent(path)));
    } catch {
      return { status: 404, body: 'no such file' };
    }
    const headers = { etag: `"${createHash('sha256').update(body).digest('hex').slice(0, 16)}"` };
    return ranged(asked, { status: 200, headers, body });
  }, options);
}
