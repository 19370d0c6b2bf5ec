/** Whether a load balancer forwards to this machine. */
import type { Collector } from '../collector.ts';
import { networkFacts, roundTrip, type NetworkFacts } from '../network-status.ts';
import { limitOf } from '../limit.ts';

const TRY_MS = 180_000;

export const tcpLoadBalancer: Collector<NetworkFacts> = {
  kind: 'tcpLoadBalancer',
  defaultName: 'tcpLoadBalancer',
  shared: false,
  settings: { address: 'text', port: 'whole!', timeout: 'text' },
  limitMs: (settings) => limitOf(settings, TRY_MS) + 5000,
  mutexKey: (settings) => `tcp ${settings.whole('port') ?? 0}`,
  collect: async (settings, { signal }) => {
    const port = settings.whole('port') ?? 0;
    const address = settings.text('address') ?? '';
    return roundTrip({ host: '0.0.0.0', port, address, limitMs: limitOf(settings, TRY_MS), signal });
  },
  facts: networkFacts,
};
