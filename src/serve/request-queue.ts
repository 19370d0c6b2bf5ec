/**
 * Handles the requests of one connection sequentially, each in a separate iteration of the event loop, so that a client that
 * sends a thousand requests at once gets no more memory and time than others. Otherwise responses that are sent without
 * waiting would follow each other before other connections are served.
 */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { createSemaphore } from '../platform/limit/semaphore.ts';

export interface RequestQueue {
  /** Runs `work` after all previous work of the connection, in a new iteration of the event loop. */
  readonly run: (work: () => Promise<void>) => void;
  /** Calls `over` once, when the response is sent or the connection is closed: a queued response gets no close event. */
  readonly whenOver: (response: ServerResponse, over: () => void) => void;
}

export interface RequestQueues {
  readonly of: (socket: Socket) => RequestQueue;
}

export function createRequestQueues(): RequestQueues {
  const queues = new WeakMap<Socket, RequestQueue>();
  return {
    of: (socket) => {
      const queue = queues.get(socket) ?? createQueue(socket);
      queues.set(socket, queue);
      return queue;
    },
  };
}

function createQueue(socket: Socket): RequestQueue {
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
