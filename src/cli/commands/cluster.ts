/** `curlew cluster …`: a cluster and its machines, from a file. */
import type { PlannedCluster } from '../../app/cluster-plan.ts';
import { CLUSTER_DIFF, CLUSTER_NODES, CLUSTER_PLAN } from '../../requests/cluster.ts';
import { counted } from '../../core/counted.ts';
import { visible } from '../../core/diagnostic.ts';
import { exactJson } from '../../core/json.ts';
import { commandFor } from '../command.ts';
import { columns } from '../render/columns.ts';

/** Exit status of clusters that differ and of plans that would change something, as of diff tools. */
const DIFFERS = 2;

export const diff = commandFor(CLUSTER_DIFF, {
  details:
    'Compares two clusters by their files, and shows each field that differs with both values. What makes each cluster itself does not count: its name, its access, and the names and addresses of its machines. Contacts no cluster. Exits with status 2 if they differ.',
  examples: ['curlew cluster diff paris.yaml berlin.yaml'],
  run: async ({ request }, context) => (await import('../../app/cluster-diff.ts')).diffClusters(request, context),
  render: ({ a, b, differences }) => {
    const shown = (value: unknown): string => (value === undefined ? 'nothing' : exactJson(value));
    const lines = differences.map(({ path, ...values }) => `${path}: ${shown(values.a)} -> ${shown(values.b)}`);
    return [...lines, `${a} and ${b}: ${counted(differences.length, 'difference')}`].map(visible).join('\n');
  },
  exitCode: ({ differences }) => (differences.length > 0 ? DIFFERS : 0),
});

export const plan = commandFor(CLUSTER_PLAN, {
  details:
    'Reads the facts of each machine of the file over SSH, 16 at once, with the configuration, agent and jump hosts of the OpenSSH client of this machine, and the nodes of the cluster from one of its control planes. Shows each machine, what would be done on it, why, and what that waits for. Changes nothing. What a person must settle first is shown as refused. Exits with status 2 if something would change or is refused.',
  examples: [
    'curlew cluster plan paris.yaml --bundle bundle.tar.gz',
    'curlew cluster plan paris.yaml --bundle bundle.tar.gz --out paris.plan',
  ],
  run: async ({ request }, context) => (await import('../../app/cluster-plan.ts')).clusterPlan(request, context),
  render: (result) => planLines(result).map(visible).join('\n'),
  exitCode: (result) => (isSettled(result) ? 0 : DIFFERS),
});

export const nodes = commandFor(CLUSTER_NODES, {
  details: 'Runs on a control plane: it asks its API server and etcd. Changes nothing.',
  examples: ['curlew cluster nodes', 'curlew cluster nodes --json'],
  run: async ({ request }, context) => (await import('../../app/cluster-nodes.ts')).clusterNodes(request, context),
  render: ({ machines, members }) =>
    columns(
      machines.map(({ name, role = '', kubelet = '', ready }) => {
        const member = members?.find((one) => one.name === name);
        const etcd = member === undefined ? '' : member.healthy === true ? 'etcd healthy' : 'etcd not healthy';
        return [name, role, kubelet, ready === true ? 'ready' : 'not ready', etcd].map(visible);
      }),
    ).join('\n'),
});

function isSettled({ steps, held, refused }: PlannedCluster): boolean {
  return steps.length + held.length + refused.length === 0;
}

function planLines({ cluster, hosts, steps, held, refused }: PlannedCluster): readonly string[] {
  const rows = hosts.map(({ name, role, text, answers, joined, kubelet = '' }) => {
    return [
      name,
      role,
      joined ? `in the cluster ${kubelet}` : answers ? 'not in the cluster' : 'does not answer',
      text,
    ];
  });
  const reasons = (word: string, list: PlannedCluster['held']): readonly string[] =>
    list.map(({ host = cluster, reason }) => `${word}: ${host}: ${reason}`);
  return [
    ...columns(rows),
    ...steps.map(({ host, phase, addon, to, reason, waits }) => {
      const what = [host ?? cluster, phase, addon, to].filter((part) => part !== undefined).join(' ');
      return `to do: ${what} (${reason})${waits.length === 0 ? '' : `, after ${waits.join(', ')}`}`;
    }),
    ...reasons('waits', held),
    ...reasons('refused', refused),
    steps.length + held.length + refused.length === 0
      ? `${cluster} is as its file says`
      : `${cluster}: ${counted(steps.length, 'step')} to do, ${held.length} waiting, ${refused.length} refused`,
  ];
}
