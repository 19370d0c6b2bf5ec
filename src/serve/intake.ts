/**
 * Requests are read as their answers leave: what a client sends ahead of them waits in the network, not here. Node alone would
 * make objects of all requests of a packet, some thousands, before the first of them is answered.
 */
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';

/** Bytes that are looked at together: some twenty of the shortest requests. */
const SLICE = 512;

export interface Intake {
  /** Closes the connections that no answer is on its way to. */
  readonly closeSilent: () => void;
}

/** Of a server that has no connections yet. */
export function createIntake(server: Server, arrival: 'connection' | 'secureConnection'): Intake {
  const mouths = new Map<Socket, Mouth>();
  server.on(arrival, (socket: Socket) => {
    mouths.set(socket, createMouth(socket));
    socket.once('close', () => mouths.delete(socket));
  });
  server.on('request', (request, response) => {
    const mouth = mouths.get(request.socket);
    mouth?.asked(request);
    response.once('close', () => mouth?.answered());
  });
  return {
    closeSilent: () => {
      for (const [socket, mouth] of mouths) if (mouth.unanswered() === 0) socket.destroy();
    },
  };
}

/** What one connection sends. */
interface Mouth {
  readonly asked: (request: IncomingMessage) => void;
  readonly answered: () => void;
  readonly unanswered: () => number;
}

function createMouth(socket: Socket): Mouth {
  let unanswered = 0;
  let last: IncomingMessage | undefined;
  let isReading = false;
  const mayRead = (): boolean => !socket.destroyed && (unanswered === 0 || isAwaited(last));
  // Node's parser gets what is read by the event `data`, within read().
  const read = (): void => {
    if (isReading) return;
    isReading = true;
    while (mayRead() && socket.read(Math.min(SLICE, socket.readableLength)) !== null);
    isReading = false;
  };
  socket.on('readable', read);
  // Whoever reads a body asks for more of it in this way.
  socket.on('resume', read);
  return {
    asked: (request) => {
      unanswered += 1;
      last = request;
    },
    answered: () => {
      unanswered -= 1;
      read();
    },
    unanswered: () => unanswered,
  };
}

/** True while a body has not come to its end, and whoever reads it keeps up. */
function isAwaited(request: IncomingMessage | undefined): boolean {
  return request?.complete === false && request.readableLength < request.readableHighWaterMark;
}
