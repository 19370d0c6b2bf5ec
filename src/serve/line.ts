/**
 * The requests of one connection, one after the other: whoever sends a thousand at once gets no more memory than others.
 */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface Line {
  /** Begins when all work before has ended. */
  readonly run: (work: () => Promise<void>) => void;
  /** Calls once: when the answer has left, or the connection is closed, which an answer that still waits is not told. */
  readonly whenOver: (response: ServerResponse, over: () => void) => void;
}

export interface Lines {
  readonly of: (socket: Socket) => Line;
}

export function createLines(): Lines {
  const lines = new WeakMap<Socket, Line>();
  return {
    of: (socket) => {
      const line = lines.get(socket) ?? createLine(socket);
      lines.set(socket, line);
      return line;
    },
  };
}

function createLine(socket: Socket): Line {
  let last = Promise.resolve();
  const waiting = new Set<() => void>();
  socket.once('close', () => {
    for (const end of waiting) end();
  });
  return {
    run: (work) => {
      last = last.then(work);
    },
    whenOver: (response, over) => {
      const end = (): void => {
        if (waiting.delete(end)) over();
      };
      waiting.add(end);
      response.once('close', end);
    },
  };
}
