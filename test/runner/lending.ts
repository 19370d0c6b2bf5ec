/** The side of the lender: one connection for each server that is lent, which comes back when the connection ends. */
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { linesOf, type Answer, type Asked } from './lent.ts';
import type { Server, Stock } from './stock.ts';

/** Lends what these stocks have, by the names of their kinds, at a socket; at the end, the stocks are disposed of. */
export async function lend(path: string, stocks: Readonly<Record<string, Stock>>): Promise<AsyncDisposable> {
  const server = createServer((socket) => {
    serve(socket, stocks).catch((error: unknown) => {
      console.error(error);
    });
  });
  server.listen(path);
  await once(server, 'listening');
  return {
    [Symbol.asyncDispose]: async () => {
      server.close();
      for (const stock of Object.values(stocks)) await stock[Symbol.asyncDispose]();
    },
  };
}

async function serve(socket: Socket, stocks: Readonly<Record<string, Stock>>): Promise<void> {
  // Its user was killed; what it has comes back all the same.
  socket.on('error', () => undefined);
  let taken: { readonly stock: Stock; readonly server: Server } | undefined;
  const take = async (kind: string): Promise<unknown> => {
    const stock = stocks[kind];
    if (stock === undefined) throw new Error(`nothing of the kind ${kind} is lent`);
    const server = await stock.take();
    taken = { stock, server };
    return server.about;
  };
  const answer = async (asked: Asked): Promise<Answer> => {
    try {
      return { about: 'take' in asked ? await take(asked.take) : await taken?.server.calls[asked.call]?.() };
    } catch (error) {
      return { error: String(error) };
    }
  };
  try {
    for await (const line of linesOf(socket))
      socket.write(`${JSON.stringify(await answer(JSON.parse(line) as Asked))}\n`);
  } finally {
    taken?.stock.giveBack(taken.server);
    socket.end();
  }
}
