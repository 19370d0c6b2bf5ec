/** `curlew cluster status`: what the machines of a cluster say. */
import type { ClusterStatus } from '../../app/cluster-status.ts';
import { NOTHING_WRITTEN } from '../../core/errors.ts';
import { CLUSTER_STATUS } from '../../requests/cluster.ts';
import { commandFor, UNSETTLED } from '../command.ts';
import { columns } from '../render/columns.ts';
import { expiryText } from '../render/expiry.ts';

export const status = commandFor(CLUSTER_STATUS, {
  details:
    'Queries each machine of the file over SSH, and a control plane for nodes, add-ons and pods. Shows who is changing the cluster, what waits or is refused, and which certificate expires first. Changes nothing. Exits with status 0 if the cluster is healthy and matches its file, and 2 otherwise.',
  examples: ['curlew cluster status paris.yaml', 'curlew cluster status paris.yaml --json'],
  left: NOTHING_WRITTEN,
  run: async ({ request }, context) => (await import('../../app/cluster-status.ts')).clusterStatus(request, context),
  render: (result) => statusLines(result),
  exitCode: ({ healthy }) => (healthy ? 0 : UNSETTLED),
});

function statusLines(result: ClusterStatus): readonly string[] {
  const { cluster, hosts, addons, pods, morePods, certificate, steps, held, refused, problems, healthy } = result;
  const rows = hosts.map(({ name, role, answers, joined, bare, unknown, kubelet = '', reason, cordoned, text }) => {
    const state = reason === undefined ? 'ready' : `not ready: ${reason}`;
    const absent = unknown === true ? 'not known: the nodes of the cluster could not be listed' : 'not in the cluster';
    const isNew = bare === true ? ['nothing of the cluster is on this machine'] : [];
    const node = joined ? [state, ...isNew, ...(cordoned ? ['takes no new pods'] : [])].join(', ') : absent;
    return [name, role, kubelet, answers ? node : `${node}, ${text === '' ? 'it does not answer' : text}`];
  });
  const named = (word: string, list: ClusterStatus['held']): readonly string[] =>
    list.map(({ host = cluster, reason }) => `${word}: ${host}: ${reason}`);
  return [
    ...columns(rows),
    ...hosts.flatMap(({ name, joined, answers, asked }) => {
      return joined && answers && !asked ? [`${name}: its certificates and disk are not known`] : [];
    }),
    ...hosts.flatMap(({ name, lock }) => {
      if (lock === undefined) return [];
      const since = lock.since === undefined ? '' : ` since ${lock.since}`;
      return [`locked: ${name}: by ${lock.owner}${since}`];
    }),
    ...addons.map(({ name, reason }) => `add-on ${name}: ${reason}`),
    ...pods.map(({ name, reason }) => `pod ${name}: ${reason}`),
    ...(morePods === 0 ? [] : [`${morePods} more pods are not ready`]),
    ...(certificate === undefined
      ? []
      : [`certificates: ${certificate.name} of ${certificate.host}, the first, ${expiryText(certificate.expires)}`]),
    ...named('problem', problems),
    ...named('waits', held),
    ...named('refused', refused),
    ...(steps === 0 ? [] : [`it is not as its file says: curlew cluster plan shows what would be done`]),
    `${cluster} is ${healthy ? 'healthy, and as its file says' : 'not as it should be'}`,
  ];
}
