/** Replaces the data of the etcd of this control plane by a snapshot: that of the only one, or of one that is left. */
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import type { Context } from '../core/context.ts';
import { CurlewError } from '../core/errors.ts';
import { useCase } from '../core/request.ts';
import { openEtcd, type Etcd } from '../cluster/kube/etcd.ts';
import { quorumPlace, type EtcdMember, type EtcdView } from '../machine/etcd.ts';
import { openOwnApi, seenNodes, servesNodes } from '../machine/run/nodes.ts';
import { requireWhole } from '../machine/run/snapshots.ts';
import { folderOf } from '../steps/node/install-folder.ts';
import { kubernetesTask } from '../steps/node/kubernetes-task.ts';
import { ETCD_RESTORE } from '../requests/node.ts';

const ADMIN = '/etc/kubernetes/admin.conf';

export interface EtcdRestored {
  readonly file: string;
  /** Nodes of other control planes in the restored data: etcd has no members of them. */
  readonly lost: readonly string[];
}

/** `CLUSTER_FAILED` for a snapshot that is not whole, unless it is confirmed, and if other control planes have a quorum. */
export const etcdRestore = useCase(ETCD_RESTORE, async (request, context: Context): Promise<EtcdRestored> => {
  const file = resolve(context.cwd, request.file);
  await requireWhole(file);
  using etcd = await openEtcd({ signal: context.signal });
  requireConfirmed(await viewOf(etcd, context), request.confirm);
  await kubernetesTask(folderOf(request, context), ['kubernetes_restore_etcd', file], context);
  return { file, lost: await otherControlPlanes(context) };
});

/** Takes some seconds where there is no quorum. */
export async function viewOf(etcd: Etcd | undefined, context: Context, kubeconfig = ADMIN): Promise<EtcdView> {
  const members = await etcd?.members().catch((error: unknown) => {
    context.signal.throwIfAborted();
    if (error instanceof CurlewError) return undefined;
    throw error;
  });
  const agrees = (await etcd?.agrees()) === true;
  // Without a quorum, and without an etcd of its own, only the balancer of the cluster can lead to one.
  const served = !agrees && (await servesNodes(kubeconfig, context));
  return { members, agrees, served };
}

/** Without members etcd does not answer here, which says nothing about those of other machines. */
export function requireConfirmed(view: EtcdView, confirm: string | undefined): void {
  const own = hostname().toLowerCase();
  if (confirm !== undefined && confirm !== own) {
    throw new CurlewError('USAGE', `--confirm ${confirm}: this machine is ${own}`);
  }
  const refusal = (why: string, hint: string): CurlewError =>
    new CurlewError('CLUSTER_FAILED', `cannot restore etcd: ${why}`, { hint });
  const { members, agrees } = view;
  const place = quorumPlace(view);
  const others = (members ?? []).filter(({ name }) => name !== own);
  if (place === 'here') {
    throw refusal(
      `its ${others.length + 1} members have a quorum, and the others would keep the data of now`,
      `remove the other control planes first (curlew node remove NODE --yes, for ${namesOf(others)}); then run this again`,
    );
  }
  if (place === 'elsewhere') {
    throw refusal(
      'other control planes have a quorum without this machine: only this machine needs repair',
      `on another control plane: curlew node remove ${own} --yes; then curlew reset --yes on this machine, and join it again`,
    );
  }
  if (confirm !== undefined) return;
  if (agrees) {
    throw refusal(
      'the cluster runs, and would lose its changes',
      `save it first (curlew etcd snapshot); then add --confirm ${own}`,
    );
  }
  const add = `then add --confirm ${own}`;
  if (others.length === 0) {
    throw refusal(
      'it does not answer here, and another control plane may run with its data',
      `switch off all other control planes until they are reset; ${add}`,
    );
  }
  throw refusal(
    `it has lost its quorum: of ${others.length + 1} members, ${namesOf(others)} do not answer`,
    `if they cannot come back, restore here: they must stay off until they are reset, since they have other data; ${add}`,
  );
}

function namesOf(members: readonly EtcdMember[]): string {
  return members.map(({ name }) => (name === '' ? 'one that has just joined' : name)).join(', ');
}

/** The data is restored already: a failure here is a warning. */
async function otherControlPlanes(context: Context): Promise<readonly string[]> {
  try {
    const cluster = await openOwnApi(context);
    const nodes = cluster === undefined ? [] : await seenNodes(cluster.call);
    const own = hostname().toLowerCase();
    return nodes.flatMap(({ name, role }) => (role === 'control-plane' && name !== own ? [name] : []));
  } catch (error) {
    context.signal.throwIfAborted();
    if (!(error instanceof CurlewError)) throw error;
    const text = `the data is restored, but its Nodes could not be listed: ${error.message}`;
    context.report({ type: 'note', level: 'warning', text });
    return [];
  }
}
