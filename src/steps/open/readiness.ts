/** An endpoint on loopback by which supervisors ask a command that stays whether it works. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { asError, CurlewError } from '../../core/errors.ts';

/**
 * `GET /ready` is 200 or 503; without a port, there is no endpoint. `why`: the text of a 503. `USAGE` if it cannot listen.
 */
export async function serveReadiness(
  port: number | undefined,
  isReady: () => boolean,
  why: string,
): Promise<AsyncDisposable> {
  if (port === undefined) return { [Symbol.asyncDispose]: async () => Promise.resolve() };
  const server = createServer({ requestTimeout: 5000 }, ({ url }, response) => {
    const status = url !== '/ready' ? 404 : isReady() ? 200 : 503;
    response.writeHead(status, { 'Content-Type': 'text/plain', Connection: 'close' });
    response.end(status === 200 ? 'ready\n' : status === 503 ? `${why}\n` : 'not found\n');
  });
  server.maxConnections = 16;
  server.listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch (error) {
    throw new CurlewError('USAGE', `cannot listen on port ${port} of 127.0.0.1: ${asError(error).message}`, {
      hint: 'choose another port with --ready',
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
