/** Whether a UDP port of this machine is free. */
import { createSocket } from 'node:dgram';
import { DEFAULT_LIMIT_MS, type Collector } from '../collector.ts';
import { networkFacts, stateOf, type NetworkFacts } from '../network-status.ts';
import { localIpv4 } from './ipv4-interfaces.ts';

export const udpPortStatus: Collector<NetworkFacts> = {
  kind: 'udpPortStatus',
  defaultName: 'udpPortStatus',
  shared: false,
  settings: { port: 'whole!', interface: 'text' },
  limitMs: () => DEFAULT_LIMIT_MS,
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
  facts: networkFacts,
};
