/**
 * Reads requests only as fast as their responses are sent, so that pipelined requests wait in the network. Node alone would parse
 * all requests in a packet, up to some thousands, before it handles the first.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Bytes to parse at once: about twenty of the shortest requests. */
const SLICE = 512;

export interface Intake {
  /** Closes the connections without a running response. */
  readonly closeIdle: () => void;
}

export interface IntakeOptions {
  /** The server's event for a new connection. */
  readonly arrival: 'connection' | 'secureConnection';
  /** Milliseconds for the head of a request, counted from the end of the previous response. */
  readonly headMs: number;
  /** Milliseconds for the body of a request. */
  readonly bodyMs: number;
}

/**
 * The server must not have connections yet, and Node's request timeouts must be disabled: they also run while a client waits for
 * this server, if the first bytes of its request arrived together with the previous request.
 */
export function createIntake(server: Server, { arrival, headMs, bodyMs }: IntakeOptions): Intake {
  const readers = new Map<Socket, RequestReader>();
  server.on(arrival, (socket: Socket) => {
    readers.set(socket, createReader(socket, { headMs, bodyMs }));
    socket.once('close', () => readers.delete(socket));
  });
  server.on('request', (request, response) => {
    const reader = readers.get(request.socket);
    reader?.requested(request, response);
    response.once('close', () => reader?.responded());
  });
  server.on('timeout', (socket) => {
    if (readers.get(socket)?.waitsForClient() !== false) socket.destroy();
  });
  return {
    closeIdle: () => {
      for (const [socket, reader] of readers) if (reader.running() === 0) socket.destroy();
    },
  };
}

/** Reads the requests of one connection. */
interface RequestReader {
  readonly requested: (request: IncomingMessage, response: ServerResponse) => void;
  readonly responded: () => void;
  /** Number of requests without a complete response. */
  readonly running: () => number;
  /** True while the server waits for the client: to send a request or its body, or to read a response. */
  readonly waitsForClient: () => boolean;
}

const REQUEST_TIMEOUT = 'HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n';

function createReader(socket: Socket, { headMs, bodyMs }: Omit<IntakeOptions, 'arrival'>): RequestReader {
  let running = 0;
  let last: { readonly request: IncomingMessage; readonly response: ServerResponse } | undefined;
  let isReading = false;
  let late: NodeJS.Timeout | undefined;
  const mayRead = (): boolean => !socket.destroyed && (running === 0 || isAwaited(last?.request));
  // read() emits `data`, which feeds Node's parser.
  const read = (): void => {
    if (isReading) return;
    isReading = true;
    while (mayRead() && socket.read(Math.min(SLICE, socket.readableLength)) !== null);
    isReading = false;
  };
  const end = (): void => {
    // Within a response, or before those of other requests, the client would read it as part of them.
    if (running > 1 || (running === 1 && last?.response.headersSent !== false)) return void socket.destroy();
    socket.write(REQUEST_TIMEOUT);
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
  // Node resumes the socket when the reader of a body needs more.
  socket.on('resume', read);
  return {
    requested: (request, response) => {
      running += 1;
      last = { request, response };
      expect(bodyMs);
    },
    responded: () => {
      running -= 1;
      if (running === 0 && !socket.destroyed) expect(headMs);
      read();
    },
    running: () => running,
    waitsForClient: () => mayRead() || socket.writableLength > 0,
  };
}

/** True while a body is incomplete and its buffer is not full. */
function isAwaited(request: IncomingMessage | undefined): boolean {
  return request?.complete === false && request.readableLength < request.readableHighWaterMark;
}
