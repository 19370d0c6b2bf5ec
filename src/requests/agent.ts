/** Requests about the agent of a cluster. */
import { delayField, duration, flag, path } from '../core/field.ts';
import { request, type RequestOf } from '../core/request.ts';
import { CLUSTER, HELM, METRICS } from './channel.ts';
import { ADDRESS } from './connection.ts';
import { SOURCE } from './node.ts';

const AGENT = {
  root: path('DIR', 'the folder below which the agent has its files, and hooks their sandbox (default: /)'),
};

export const AGENT_RUN = request('agent run', 'Deliver what the hub has for this cluster', {
  ...AGENT,
  ...CLUSTER,
  from: { ...SOURCE.from, help: 'packages: a store, or a web server with one (repeat for mirrors)' },
  acceptOlder: flag('accept lower revisions and versions than before, as from a hub that was restored'),
  delay: delayField('TIME', 'limit of the random time before the first request to the hub (default: 60s; 0s: none)'),
  wait: duration('TIME', 'limit of the wait until an add-on is healthy, or gone (default: 5m)'),
  ...METRICS,
  ...HELM,
  ...ADDRESS,
});
export type AgentRunRequest = RequestOf<typeof AGENT_RUN.fields>;
