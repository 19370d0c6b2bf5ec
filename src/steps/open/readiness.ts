/** Endpoints on loopback by which supervisors ask a command that stays how it is. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { asError, CurlewError } from '../../core/errors.ts';

interface Answer {
  readonly status: 200 | 503;
  readonly type: string;
  readonly text: string;
}

/**
 * `GET /ready` is 200 or 503; without a port, there is no endpoint. `why`: the text of a 503. `USAGE` if it cannot listen.
 */
export async function serveReadiness(
  port: number | undefined,
  isReady: () => boolean,
  why: string,
): Promise<AsyncDisposable> {
  const type = 'text/plain';
  return serveOn(port, 'ready', () =>
    isReady() ? { status: 200, type, text: 'ready\n' } : { status: 503, type, text: `${why}\n` },
  );
}

/** `GET /metrics`, in the text format of Prometheus; without a port, there is no endpoint. `USAGE` if it cannot listen. */
export async function serveMetrics(port: number | undefined, text: () => string): Promise<AsyncDisposable> {
  return serveOn(port, 'metrics', () => ({ status: 200, type: 'text/plain; version=0.0.4', text: text() }));
}

/** `name` is that of the path and of the option. */
async function serveOn(port: number | undefined, name: string, answer: () => Answer): Promise<AsyncDisposable> {
  if (port === undefined) return { [Symbol.asyncDispose]: async () => Promise.resolve() };
  const server = createServer({ requestTimeout: 5000 }, ({ url }, response) => {
    const { status, type, text } =
      url === `/${name}` ? answer() : { status: 404, type: 'text/plain', text: 'not found\n' };
    response.writeHead(status, { 'Content-Type': type, Connection: 'close' });
    response.end(text);
  });
  server.maxConnections = 16;
  server.listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch (error) {
    throw new CurlewError('USAGE', `cannot listen on port ${port} of 127.0.0.1: ${asError(error).message}`, {
      hint: `choose another port with --${name}`,
    });
  }
  return {
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
