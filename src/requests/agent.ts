/** Requests about the agent of a cluster. */
import { delayField, duration, flag, path } from '../core/field.ts';
import { request, type RequestOf } from '../core/request.ts';
import { CLUSTER, HELM, METRICS } from './channel.ts';
import { ADDRESS } from './connection.ts';
import { SOURCE } from './node.ts';

const AGENT = {
  root: path('DIR', 'the folder for the files of the agent and the sandbox of its hooks (default: /)'),
};

export const AGENT_RUN = request('agent run', {
  ...AGENT,
  ...CLUSTER,
  from: { ...SOURCE.from, help: 'packages: a store, or a web server with one (repeat for mirrors)' },
  acceptOlder: flag('accept lower revisions and versions than before, such as from a restored hub'),
  delay: delayField('TIME', 'limit of the random time before the first request to the hub (default: 60s; 0s: none)'),
  wait: duration('TIME', 'limit of the wait until an add-on is healthy, or gone (default: 5m)'),
  ...METRICS,
  ...HELM,
  ...ADDRESS,
});
export type AgentRunRequest = RequestOf<typeof AGENT_RUN.fields>;
