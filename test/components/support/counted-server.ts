/** A web server of one file that counts what it sends, and stops where it is told to. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';

const CHUNK = 64 << 10;

export interface CountedServer extends AsyncDisposable {
  readonly port: number;
  /** Bytes sent since the last time. Answers that were begun before are given up: they count for nothing any more. */
  readonly take: () => number;
  /** Resolves when so many bytes have been sent since the last time; none is sent any more until somebody connects anew. */
  readonly sent: (bytes: number) => Promise<void>;
}

export async function startCounted(body: Uint8Array): Promise<CountedServer> {
  let sent = 0;
  let round = 0;
  let limit: { readonly bytes: number; readonly reached: () => void } | undefined;
  const answer = async (asked: IncomingMessage, response: ServerResponse): Promise<void> => {
    const own = round;
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(asked.headers.range ?? '') ?? [];
    const offset = Number(first ?? 0);
    const end = last === undefined ? body.byteLength : Number(last) + 1;
    response.writeHead(first === undefined ? 200 : 206, {
      'content-length': end - offset,
      etag: '"counted"',
      'accept-ranges': 'bytes',
      ...(first === undefined ? {} : { 'content-range': `bytes ${offset}-${end - 1}/${body.byteLength}` }),
    });
    if (asked.method === 'HEAD') {
      response.end();
      return;
    }
    for (let at = offset; at < end && !response.destroyed; at += CHUNK) {
      if (own !== round) return;
      if (limit !== undefined && sent >= limit.bytes) {
        limit.reached();
        return;
      }
      const chunk = body.subarray(at, Math.min(at + CHUNK, end));
      sent += chunk.byteLength;
      await new Promise<void>((resolve) => {
        response.write(chunk, () => {
          resolve();
        });
      });
      await turn();
    }
    response.end();
  };
  const server = createServer((asked, response) => {
    answer(asked, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    take: () => {
      const taken = sent;
      round += 1;
      [sent, limit] = [0, undefined];
      return taken;
    },
    sent: async (bytes) =>
      new Promise((reached) => {
        limit = { bytes, reached };
      }),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
