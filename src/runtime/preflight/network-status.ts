/** Attempts to reach a port, and their results. Nothing stays bound or open. */
import { randomBytes } from 'node:crypto';
import { connect, createServer, isIPv4, type Server, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import * as v from 'valibot';
import { asError, errnoOf } from '../../core/errors.ts';
import type { Read } from '../../core/schema.ts';

const NETWORK_STATES = [
  'address-in-use',
  'connection-refused',
  'connection-timeout',
  'connected',
  'error',
  'invalid-address',
] as const;

export const networkFacts = v.object({ status: v.picklist(NETWORK_STATES), message: v.string() });
export type NetworkFacts = Read<typeof networkFacts>;

export function stateOf(error: unknown): NetworkFacts {
  const message = asError(error).message;
  const errno = errnoOf(error);
  if (errno === 'EADDRINUSE') return { status: 'address-in-use', message };
  if (errno === 'ECONNREFUSED') return { status: 'connection-refused', message };
  if (errno === 'ETIMEDOUT') return { status: 'connection-timeout', message };
  return { status: 'error', message };
}

/** `host:port`, `[::1]:port`; undefined for anything else. */
export function splitAddress(address: string): { readonly host: string; readonly port: number } | undefined {
  const [, bracketed, plain, digits = ''] = /^(?:\[([^\]]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(address) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  return host === undefined || port > 65_535 ? undefined : { host: host === '' ? 'localhost' : host, port };
}

/** Opens a connection; rejects with the system's error, `ETIMEDOUT` after the limit. */
export async function dial(
  { host, port }: { readonly host: string; readonly port: number },
  { limitMs, signal }: { readonly limitMs: number; readonly signal: AbortSignal },
): Promise<Socket> {
  signal.throwIfAborted();
  const socket = connect({ host, port });
  const late = (): void => {
    socket.destroy(Object.assign(new Error(`connect ${host}:${port}: i/o timeout`), { code: 'ETIMEDOUT' }));
  };
  const stop = (): void => {
    socket.destroy(asError(signal.reason));
  };
  const timer = setTimeout(late, limitMs);
  signal.addEventListener('abort', stop);
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    socket.on('error', () => undefined);
    return socket;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}

/** A name or IPv4 address with a port: the form of a load balancer's address. */
function isPlainAddress(address: string): boolean {
  const [, host = '', digits = ''] = /^([^:]*):(\d{1,5})$/.exec(address) ?? [];
  const port = Number(digits);
  if (host === '' || port < 1 || port > 65_535 || host.length > 253) return false;
  if (/^[0-9.]+$/.test(host)) return isIPv4(host);
  return host.split('.').every((label) => /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/.test(label));
}

export interface RoundTrip {
  /** Address to listen on. */
  readonly host: string;
  readonly port: number;
  /** `host:port` that must forward to this machine. */
  readonly address: string;
  /** Time limit of all attempts. */
  readonly limitMs: number;
  readonly signal: AbortSignal;
}

const DIAL_MS = 1000;
const ANSWER_MS = 250;
const PAUSE_MS = 500;

/**
 * Listens on a port and connects to it through an address until its own token arrives: the address may lead to another machine
 * for now.
 */
export async function roundTrip({ host, port, address, limitMs, signal }: RoundTrip): Promise<NetworkFacts> {
  const target = splitAddress(address);
  if (!isPlainAddress(address) || target === undefined) {
    return { status: 'invalid-address', message: `not an address: ${address}` };
  }
  const token = randomBytes(16);
  let server: Server;
  try {
    server = await listen(host, port, token);
  } catch (error) {
    return stateOf(error);
  }
  try {
    const until = performance.now() + limitMs;
    for (;;) {
      const left = until - performance.now();
      if (left <= 0) return { status: 'connection-timeout', message: `no response from this machine at ${address}` };
      const found = await tryOnce(target, token, Math.min(left, DIAL_MS), signal);
      if (found !== undefined) return found;
      await pause(Math.min(PAUSE_MS, Math.max(0, until - performance.now())), undefined, { signal });
    }
  } finally {
    await new Promise((resolve) => {
      server.close(resolve);
    });
  }
}

async function tryOnce(
  target: { readonly host: string; readonly port: number },
  token: Buffer,
  limitMs: number,
  signal: AbortSignal,
): Promise<NetworkFacts | undefined> {
  let socket: Socket;
  try {
    socket = await dial(target, { limitMs, signal });
  } catch (error) {
    signal.throwIfAborted();
    const state = stateOf(error);
    return state.status === 'connection-timeout' ? undefined : state;
  }
  const answered = await receivesToken(socket, token);
  return answered ? { status: 'connected', message: '' } : undefined;
}

/** Closes every connection after sending the token, so that none outlives the attempt. */
async function listen(host: string, port: number, token: Buffer): Promise<Server> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.setTimeout(ANSWER_MS, () => socket.destroy());
    socket.end(token);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port, exclusive: true }, resolve);
  });
  return server;
}

async function receivesToken(socket: Socket, token: Buffer): Promise<boolean> {
  try {
    return await new Promise<boolean>((resolve) => {
      let received = Buffer.alloc(0);
      socket.setTimeout(ANSWER_MS, () => resolve(false));
      socket.on('close', () => resolve(false));
      socket.on('data', (chunk: Buffer) => {
        received = Buffer.concat([received, chunk]);
        if (received.includes(token)) resolve(true);
        else if (received.byteLength > 1024) resolve(false);
      });
    });
  } finally {
    socket.destroy();
  }
}
