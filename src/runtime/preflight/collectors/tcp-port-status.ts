/** Whether a port of this machine is free and reachable at the machine's own address. */
import { DEFAULT_LIMIT_MS, type Collector } from '../collector.ts';
import { networkFacts, roundTrip, type NetworkFacts } from '../network-status.ts';
import { localIpv4 } from './ipv4-interfaces.ts';

const TRY_MS = 10_000;

export const tcpPortStatus: Collector<NetworkFacts> = {
  kind: 'tcpPortStatus',
  defaultName: 'tcpPortStatus',
  shared: false,
  settings: { port: 'whole!', interface: 'text' },
  limitMs: () => DEFAULT_LIMIT_MS,
  mutexKey: (settings) => `tcp ${settings.whole('port') ?? 0}`,
  collect: async (settings, { signal }) => {
    const port = settings.whole('port') ?? 0;
    const name = settings.text('interface');
    const address = localIpv4(name);
    const host = name === undefined ? '0.0.0.0' : address;
    return roundTrip({ host, port, address: `${address}:${port}`, limitMs: TRY_MS, signal });
  },
  facts: networkFacts,
};
