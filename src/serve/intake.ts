/**
 * Requests are read as their answers leave: what a client sends ahead of them waits in the network, not here. Node alone would
 * make objects of all requests of a packet, some thousands, before the first of them is answered.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Bytes that are looked at together: some twenty of the shortest requests. */
const SLICE = 512;

export interface Intake {
  /** Closes the connections that no answer is on its way to. */
  readonly closeSilent: () => void;
}

export interface IntakeOptions {
  /** The event with which a connection arrives. */
  readonly arrival: 'connection' | 'secureConnection';
  /** Milliseconds that a client has for the head of a request, from when the answers before it have left. */
  readonly headMs: number;
  /** For the body of a request. */
  readonly bodyMs: number;
}

/**
 * Of a server that has no connections yet, and no limits of time for requests of its own: Node's clocks also run while a client
 * waits for this server, for requests whose first bytes came with the one before.
 */
export function createIntake(server: Server, { arrival, headMs, bodyMs }: IntakeOptions): Intake {
  const mouths = new Map<Socket, Mouth>();
  server.on(arrival, (socket: Socket) => {
    mouths.set(socket, createMouth(socket, { headMs, bodyMs }));
    socket.once('close', () => mouths.delete(socket));
  });
  server.on('request', (request, response) => {
    const mouth = mouths.get(request.socket);
    mouth?.asked(request, response);
    response.once('close', () => mouth?.answered());
  });
  server.on('timeout', (socket) => {
    if (mouths.get(socket)?.owes() !== false) socket.destroy();
  });
  return {
    closeSilent: () => {
      for (const [socket, mouth] of mouths) if (mouth.unanswered() === 0) socket.destroy();
    },
  };
}

/** What one connection sends. */
interface Mouth {
  readonly asked: (request: IncomingMessage, response: ServerResponse) => void;
  readonly answered: () => void;
  readonly unanswered: () => number;
  /** True while it is the client's turn: to send a request or the rest of one, or to take what was sent to it. */
  readonly owes: () => boolean;
}

const TOO_LATE = 'HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n';

function createMouth(socket: Socket, { headMs, bodyMs }: Omit<IntakeOptions, 'arrival'>): Mouth {
  let unanswered = 0;
  let last: { readonly request: IncomingMessage; readonly response: ServerResponse } | undefined;
  let isReading = false;
  let late: NodeJS.Timeout | undefined;
  const mayRead = (): boolean => !socket.destroyed && (unanswered === 0 || isAwaited(last?.request));
  // Node's parser gets what is read by the event `data`, within read().
  const read = (): void => {
    if (isReading) return;
    isReading = true;
    while (mayRead() && socket.read(Math.min(SLICE, socket.readableLength)) !== null);
    isReading = false;
  };
  const end = (): void => {
    // In the middle of an answer, or before those of other requests, it would be taken for a part of them.
    if (unanswered > 1 || (unanswered === 1 && last?.response.headersSent !== false)) return void socket.destroy();
    socket.write(TOO_LATE);
    socket.destroySoon();
  };
  const expect = (milliseconds: number): void => {
    clearTimeout(late);
    late = setTimeout(() => {
      if (mayRead()) end();
      else if (last?.request.complete === false) expect(milliseconds);
    }, milliseconds);
  };
  expect(headMs);
  socket.once('close', () => clearTimeout(late));
  socket.on('readable', read);
  // Whoever reads a body asks for more of it in this way.
  socket.on('resume', read);
  return {
    asked: (request, response) => {
      unanswered += 1;
      last = { request, response };
      expect(bodyMs);
    },
    answered: () => {
      unanswered -= 1;
      if (unanswered === 0 && !socket.destroyed) expect(headMs);
      read();
    },
    unanswered: () => unanswered,
    owes: () => mayRead() || socket.writableLength > 0,
  };
}

/** True while a body has not come to its end, and whoever reads it keeps up. */
function isAwaited(request: IncomingMessage | undefined): boolean {
  return request?.complete === false && request.readableLength < request.readableHighWaterMark;
}
