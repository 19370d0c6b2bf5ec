/** Whether a port of another machine is reachable. */
import type { Collector } from '../collector.ts';
import { dial, networkFacts, splitAddress, stateOf, type NetworkFacts } from '../network-status.ts';
import { limitOf } from '../limit.ts';

const TRY_MS = 10_000;

export const tcpConnect: Collector<NetworkFacts> = {
  kind: 'tcpConnect',
  defaultName: 'connect',
  shared: false,
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
  facts: networkFacts,
};
