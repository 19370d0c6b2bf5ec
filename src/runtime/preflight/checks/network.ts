/** Attempts to reach a port of this machine or another one; a condition is one of their states. */
import { createSocket } from 'node:dgram';
import { type Check, limitOf } from '../check.ts';
import { dial, networkFacts, roundTrip, splitAddress, stateOf, type NetworkFacts } from '../network-status.ts';
import { firstOutcome } from '../outcome.ts';
import { localIpv4 } from './ipv4-interfaces.ts';

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
