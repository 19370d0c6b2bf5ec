/** A forward proxy: CONNECT for https, absolute addresses for http. Names can be led to other addresses. */
import { createServer, request as forward, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type AddressInfo, type Socket } from 'node:net';

export interface ProxyServer extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  /** `CONNECT name:port` and `GET http://…`, in order. */
  readonly log: readonly string[];
}

export interface ProxyOptions {
  /** By `name:port`, where to go instead: a port of 127.0.0.1. */
  readonly hosts?: Readonly<Record<string, number>>;
  /** Expected Proxy-Authorization. */
  readonly authorization?: string;
  /** What it offers then. */
  readonly schemes?: readonly string[];
  /** Key and certificate in PEM: it is asked over TLS. */
  readonly tls?: { readonly key: string; readonly cert: string };
}

export async function startProxy({ hosts = {}, authorization, schemes, tls }: ProxyOptions = {}): Promise<ProxyServer> {
  const log: string[] = [];
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
  };
  const pass: RequestListener = (asked, response) => {
    log.push(`${asked.method} ${asked.url}`);
    if (authorization !== undefined && asked.headers['proxy-authorization'] !== authorization) {
      response.writeHead(407, schemes === undefined ? {} : { 'Proxy-Authenticate': [...schemes] }).end();
      return;
    }
    const url = new URL(asked.url ?? '');
    const port = hosts[url.host] ?? hosts[`${url.hostname}:80`] ?? Number(url.port);
    const { 'proxy-authorization': _secret, ...headers } = asked.headers;
    const onward = forward(
      { host: '127.0.0.1', port, path: `${url.pathname}${url.search}`, method: asked.method, headers },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      },
    );
    onward.on('error', () => response.destroy());
    asked.pipe(onward);
  };
  const server = tls === undefined ? createServer(pass) : createTlsServer(tls, pass);
  server.on('connection', keep);
  server.on('connect', (asked, socket: Socket) => {
    log.push(`CONNECT ${asked.url}`);
    if (authorization !== undefined && asked.headers['proxy-authorization'] !== authorization) {
      const header = schemes === undefined ? '' : `Proxy-Authenticate: ${schemes.join('\r\nProxy-Authenticate: ')}\r\n`;
      socket.end(`HTTP/1.1 407 Proxy Authentication Required\r\n${header}\r\n`);
      return;
    }
    const port = hosts[asked.url ?? ''] ?? Number(asked.url?.split(':').at(-1));
    const onward = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      onward.pipe(socket).pipe(onward);
    });
    keep(onward);
    onward.on('close', () => socket.destroy());
    socket.on('close', () => onward.destroy());
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    log,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}
