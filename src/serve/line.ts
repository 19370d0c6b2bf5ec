/**
 * The requests of one connection, one after the other, each in a turn of the event loop of its own: whoever sends a thousand at
 * once gets no more memory than others, and no more time. Answers that the network takes at once would otherwise follow each
 * other for as long as there are requests, before anybody else is heard.
 */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { createSemaphore } from '../platform/limit/semaphore.ts';

export interface Line {
  /** Begins when all work before has ended, and every other connection has had its turn. */
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
  const mutex = createSemaphore(1);
  const waiting = new Set<() => void>();
  socket.once('close', () => {
    for (const end of waiting) end();
  });
  return {
    run: (work) => {
      void mutex.run(async () => {
        await setImmediate();
        await work();
      });
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
