/**
 * Keeps the end of a connection from undici while the reader of the body has it paused. undici 7 takes the end of a
 * connection that closes behind its body for the end of the body, and throws where nobody can catch it when its parser
 * is paused then (nodejs/undici issue 5360, mended in version 8, which Node 20 cannot run).
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { EventEmitter } from 'node:events';
import { Socket } from 'node:net';
import { errnoOf } from '../../core/errors.ts';

interface Gate {
  /** From now on, end and error of the connection wait. */
  readonly hold: () => void;
  /** Nothing is held back any longer; `flush` hands out what waited. */
  readonly release: () => void;
  readonly flush: () => void;
}

const gates = new WeakMap<Socket, Gate>();

function gateOf(socket: Socket): Gate {
  const known = gates.get(socket);
  if (known !== undefined) return known;
  // Otherwise the socket would close itself before its end is told, and the rest of the body would be lost.
  socket.allowHalfOpen = true;
  const emit = EventEmitter.prototype.emit.bind(socket);
  let held = false;
  let ended = false;
  socket.emit = (event: string | symbol, ...words: readonly unknown[]): boolean => {
    if (!held) return emit(event, ...words);
    if (event === 'end') {
      ended = true;
      return true;
    }
    // A reset is treated like an end; under another name it is what it is.
    const [error] = words;
    if (event !== 'error' || errnoOf(error) !== 'ECONNRESET') return emit(event, ...words);
    return emit('error', new Error('the connection was reset', { cause: error }));
  };
  const gate: Gate = {
    hold: () => {
      held = true;
    },
    release: () => {
      held = false;
    },
    flush: () => {
      if (held || !ended) return;
      ended = false;
      if (!socket.destroyed) emit('end');
    },
  };
  gates.set(socket, gate);
  return gate;
}

/**
 * The gate of the connection that a request is written to. `started` is to be called when the request starts: undici
 * names the connection right after that, in the same turn (its documented channel `undici:client:sendHeaders`).
 */
export function watchConnection(): { readonly started: () => void; readonly gate: () => Gate | undefined } {
  let found: Gate | undefined;
  const take = (message: unknown): void => {
    if (typeof message !== 'object' || message === null || !('socket' in message)) return;
    if (message.socket instanceof Socket) found = gateOf(message.socket);
    unsubscribe('undici:client:sendHeaders', take);
  };
  return {
    started: () => {
      subscribe('undici:client:sendHeaders', take);
      queueMicrotask(() => {
        unsubscribe('undici:client:sendHeaders', take);
      });
    },
    gate: () => found,
  };
}
