/** `curlew cluster …`: a cluster and its machines, from a file. */
import { failureCode, isSettled } from '../../machine/cluster.ts';
import type { Done, PlannedCluster } from '../../machine/run/planned-cluster.ts';
import type { AppliedCluster } from '../../machine/run/follow-plan.ts';
import { CLUSTER_APPLY, CLUSTER_DIFF, CLUSTER_NODES, CLUSTER_PLAN } from '../../requests/cluster.ts';
import { counted } from '../../core/counted.ts';
import { visible } from '../../core/diagnostic.ts';
import { ERROR_CODES, NOTHING_WRITTEN } from '../../core/errors.ts';
import { exactJson } from '../../core/json.ts';
import { commandFor, UNSETTLED, STEPS_STAY } from '../command.ts';
import { columns } from '../render/columns.ts';

export const diff = commandFor(CLUSTER_DIFF, {
  details:
    'Compares the files of two clusters, and shows each field that differs with both values. Ignores what is unique to each cluster: its name, its access, and the names and addresses of its machines. Contacts no cluster. Exits with status 2 if the clusters differ.',
  examples: ['curlew cluster diff paris.yaml berlin.yaml'],
  left: NOTHING_WRITTEN,
  run: async ({ request }, context) => (await import('../../app/cluster-diff.ts')).diffClusters(request, context),
  render: ({ a, b, differences }) => {
    const shown = (value: unknown): string => (value === undefined ? 'nothing' : exactJson(value));
    const lines = differences.map(({ path, ...values }) => `${path}: ${shown(values.a)} -> ${shown(values.b)}`);
    return [...lines, `${a} and ${b}: ${counted(differences.length, 'difference')}`];
  },
  exitCode: ({ differences }) => (differences.length > 0 ? UNSETTLED : 0),
});

export const plan = commandFor(CLUSTER_PLAN, {
  details:
    'Reads the facts of each machine in the file over SSH, 16 at once. Uses the OpenSSH client of this machine, with its configuration, agent and jump hosts. Reads the nodes of the cluster from one of its control planes. Shows each machine with its steps, and for each step the reason and what it waits for. Shows as refused what a person must fix first. Changes nothing. Exits with status 2 if something would change or is refused.',
  examples: [
    'curlew cluster plan paris.yaml --bundle bundle.tar.gz',
    'curlew cluster plan paris.yaml --bundle bundle.tar.gz --out paris.plan',
  ],
  left: NOTHING_WRITTEN,
  run: async ({ request }, context) => (await import('../../app/cluster-plan.ts')).clusterPlan(request, context),
  render: (result) => planLines(result),
  exitCode: (result) => (isSettled(result) ? 0 : UNSETTLED),
});

export const apply = commandFor(CLUSTER_APPLY, {
  details:
    'Shows what would be done, as curlew cluster plan does. With --yes, makes the changes over SSH: sends the bundle to machines that do not have it, creates the first control plane, and joins the other machines with single-use tokens. After any interruption, run the same command again to continue, even from the machine of another operator. A step on a machine continues when the connection is cut, and the command follows it again.\n\nExits with status 0 if the cluster is as its file says, 2 if something is to do or waits, and 33 if, with --yes, something is refused. If a machine fails, exits with its status, or with 33 if machines fail in different ways.',
  examples: [
    'curlew cluster apply paris.yaml --bundle bundle.tar.gz',
    'curlew cluster apply paris.yaml --bundle bundle.tar.gz --yes',
    'curlew cluster apply paris.yaml --bundle bundle.tar.gz --plan paris.plan --yes',
  ],
  changesBy: '--yes',
  left: STEPS_STAY,
  run: async ({ request, options }, context): Promise<PlannedCluster & Partial<AppliedCluster>> => {
    const { applyCluster, previewApply } = await import('../../app/cluster-apply.ts');
    return options.yes ? applyCluster(request, context) : previewApply(request, context);
  },
  render: (result, { options }) => {
    const { done = [], failed = [] } = result;
    const lines = [
      ...done.map((what) => `done: ${titleOf(what)}`),
      ...planLines(result),
      ...failed.map(({ reason, ...what }) => `failed: ${titleOf(what)}: ${reason}`),
      ...(options.yes || isSettled(result) ? [] : ['add --yes to do it']),
      ...(options.yes && done.length === 0 && isSettled(result) ? ['nothing was changed'] : []),
    ];
    return lines;
  },
  exitCode: (result) => {
    const isWrong = result.failed !== undefined && result.failed.length + result.refused.length > 0;
    if (isWrong) return ERROR_CODES[failureCode(result.refused.length > 0 ? [] : result.failed)];
    return isSettled(result) ? 0 : UNSETTLED;
  },
});

export const nodes = commandFor(CLUSTER_NODES, {
  details: 'Run it on a control plane: it queries the API server and etcd there. Changes nothing.',
  examples: ['curlew cluster nodes', 'curlew cluster nodes --json'],
  left: NOTHING_WRITTEN,
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

function titleOf({ host, phase, addon }: Done): string {
  return [host, phase, addon ?? []].flat().join(' ');
}

/** A plan for people. `end`: what a settled one is, apart from a cluster that is as its file says. */
export function planLines(
  { cluster, hosts, steps, held, refused, uncompared = [] }: PlannedCluster,
  end = `${cluster} is as its file says`,
): readonly string[] {
  const rows = hosts.map(({ name, role, text, answers, joined, bare, unknown, kubelet = '' }) => {
    const absent = unknown === true ? 'not known' : 'not in the cluster';
    const node = bare === true ? 'bare, in place of a node' : `in the cluster ${kubelet}`;
    return [name, role, joined ? node : answers ? absent : text === '' ? 'does not answer' : '', text];
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
    ...uncompared.map((text) => `note: ${text}`),
    steps.length + held.length + refused.length === 0
      ? end
      : `${cluster}: ${counted(steps.length, 'step')} to do, ${held.length} waiting, ${refused.length} refused`,
  ];
}
