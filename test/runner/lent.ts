/** Servers that one run of the tests starts once and lends to one file after another; `lending.ts` has them. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

/** Which server, or what is to be done with it; one line of JSON each. */
export type Asked = { readonly take: string } | { readonly call: string };
export type Answer = { readonly about?: unknown } | { readonly error: string };

/** The socket of the lender. */
export const LENDER = 'CURLEW_TEST_LENDER';

/** A server that nobody else uses until it is disposed of, or this process ends. */
export interface Lent extends AsyncDisposable {
  readonly about: unknown;
  /** Has the lender do this with it. */
  readonly call: (name: string) => Promise<void>;
}

/** Takes a server of this kind; undefined outside of a run that lends any. */
export async function borrow(kind: string, path = process.env[LENDER]): Promise<Lent | undefined> {
  if (path === undefined) return undefined;
  const socket = connect(path);
  await once(socket, 'connect');
  const ask = asker(socket);
  const about = await ask({ take: kind }).catch((error: unknown) => {
    socket.destroy();
    throw error;
  });
  return {
    about,
    call: async (name) => {
      await ask({ call: name });
    },
    [Symbol.asyncDispose]: async () => {
      if (socket.closed) return;
      const closed = once(socket, 'close');
      socket.end();
      await closed;
    },
  };
}

/** One question after another. */
function asker(socket: Socket): (asked: Asked) => Promise<unknown> {
  const lines = linesOf(socket)[Symbol.asyncIterator]();
  return async (asked) => {
    socket.write(`${JSON.stringify(asked)}\n`);
    const { done, value } = await lines.next();
    if (done === true) throw new Error('the lender of servers has ended; its log: .curlew/log/tests/lender.log');
    const answer = JSON.parse(value) as Answer;
    if ('error' in answer) throw new Error(answer.error);
    return answer.about;
  };
}

/** They end with the socket, also where the other side was killed. */
export function linesOf(socket: Socket): AsyncIterable<string> {
  const lines = createInterface({ input: socket });
  socket.once('close', () => {
    lines.close();
  });
  return lines;
}
