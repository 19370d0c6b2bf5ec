/** Attempts to reach a port of this machine or another one; a condition is one of their states. Nothing stays bound or open. */
import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { connect, createServer, isIPv4, type Server, type Socket } from 'node:net';
import * as v from 'valibot';
import { asError, errnoOf } from '../../../core/errors.ts';
import { repeatUntil } from '../../../platform/limit/repeat.ts';
import type { Read } from '../../../core/schema.ts';
import { type Check, limitOf } from '../check.ts';
import { firstOutcome } from '../outcome.ts';
import { localIpv4 } from './ipv4-interfaces.ts';

const NETWORK_STATES = [
  'address-in-use',
  'connection-refused',
  'connection-timeout',
  'connected',
  'error',
  'invalid-address',
] as const;

const networkFacts = v.object({ status: v.picklist(NETWORK_STATES), message: v.string() });
type NetworkFacts = Read<typeof networkFacts>;

const TRY_MS = 10_000;
const BALANCER_MS = 180_000;

const byState: Pick<Check<NetworkFacts>, 'facts' | 'analyze'> = {
  facts: networkFacts,
  analyze: firstOutcome((when, { status }) => when === status),
};

/** Whether a port of another machine is reachable. */
export const tcpConnect: Check<NetworkFacts> = {
  ...byState,
  kind: 'tcpConnect',
  defaultName: 'connect',
  title: 'TCP Connection Attempt',
  settings: { address: 'text!', timeout: 'text' },
  limitMs: (settings) => limitOf(settings, TRY_MS) + 1000,
  collect: async (settings, { signal }) => {
    const address = settings.text('address') ?? '';
    const target = splitAddress(address);
    if (target === undefined) return { status: 'error', message: `not an address: ${address}` };
    try {
      (await dial(target, { limitMs: limitOf(settings, TRY_MS), signal })).destroy();
      return { status: 'connected', message: '' };
    } catch (error) {
      signal.throwIfAborted();
      return stateOf(error);
    }
  },
};

/** Whether a load balancer forwards to this machine. */
export const tcpLoadBalancer: Check<NetworkFacts> = {
  ...byState,
  kind: 'tcpLoadBalancer',
  title: 'TCP Load Balancer',
  settings: { address: 'text', port: 'whole!', timeout: 'text' },
  limitMs: (settings) => limitOf(settings, BALANCER_MS) + 5000,
  mutexKey: (settings) => `tcp ${settings.whole('port') ?? 0}`,
  collect: async (settings, { signal }) => {
    const port = settings.whole('port') ?? 0;
    const address = settings.text('address') ?? '';
    return roundTrip({ host: '0.0.0.0', port, address, limitMs: limitOf(settings, BALANCER_MS), signal });
  },
};

/** Whether a port of this machine is free and reachable at the machine's own address. */
export const tcpPortStatus: Check<NetworkFacts> = {
  ...byState,
  kind: 'tcpPortStatus',
  title: 'TCP Port Status',
  settings: { port: 'whole!', interface: 'text' },
  mutexKey: (settings) => `tcp ${settings.whole('port') ?? 0}`,
  collect: async (settings, { signal }) => {
    const port = settings.whole('port') ?? 0;
    const name = settings.text('interface');
    const address = localIpv4(name);
    const host = name === undefined ? '0.0.0.0' : address;
    return roundTrip({ host, port, address: `${address}:${port}`, limitMs: TRY_MS, signal });
  },
};

/** Whether a UDP port of this machine is free. */
export const udpPortStatus: Check<NetworkFacts> = {
  ...byState,
  kind: 'udpPortStatus',
  title: 'UDP Port Status',
  settings: { port: 'whole!', interface: 'text' },
  mutexKey: (settings) => `udp ${settings.whole('port') ?? 0}`,
  collect: async (settings) => {
    const name = settings.text('interface');
    const address = name === undefined ? '0.0.0.0' : localIpv4(name);
    const socket = createSocket('udp4');
    try {
      await new Promise<void>((resolve, reject) => {
        socket.once('error', reject);
        socket.bind({ address, port: settings.whole('port') ?? 0, exclusive: true }, resolve);
      });
      return { status: 'connected', message: '' };
    } catch (error) {
      return stateOf(error);
    } finally {
      await new Promise<void>((resolve) => {
        socket.close(resolve);
      });
    }
  },
};

function stateOf(error: unknown): NetworkFacts {
  const message = asError(error).message;
  const errno = errnoOf(error);
  if (errno === 'EADDRINUSE') return { status: 'address-in-use', message };
  if (errno === 'ECONNREFUSED') return { status: 'connection-refused', message };
  if (errno === 'ETIMEDOUT') return { status: 'connection-timeout', message };
  return { status: 'error', message };
}

/** `host:port`, `[::1]:port`; undefined for anything else. */
function splitAddress(address: string): { readonly host: string; readonly port: number } | undefined {
  const [, bracketed, plain, digits = ''] = /^(?:\[([^\]]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(address) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  return host === undefined || port > 65_535 ? undefined : { host: host === '' ? 'localhost' : host, port };
}

/** Opens a connection; rejects with the system's error, `ETIMEDOUT` after the limit. */
async function dial(
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

interface RoundTrip {
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
async function roundTrip({ host, port, address, limitMs, signal }: RoundTrip): Promise<NetworkFacts> {
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
    const result = await repeatUntil(
      async () => tryOnce(target, token, Math.min(limitMs, DIAL_MS), signal),
      (one) => one !== undefined,
      { firstMs: PAUSE_MS, limitMs, signal },
    );
    return result ?? { status: 'connection-timeout', message: `no response from this machine at ${address}` };
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
