/** Replaces the data of the etcd of this control plane by a snapshot: that of the only one, or of one that is left. */
import { rename, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import type { Context } from '../core/context.ts';
import { CurlewError, requireRefusal } from '../core/errors.ts';
import { nodePath } from '../core/layout.ts';
import { useCase } from '../core/request.ts';
import { openEtcd, type Etcd } from '../cluster/kube/etcd.ts';
import { madeIn } from '../cluster/kube/kubeadm-made.ts';
import { quorumPlace, type EtcdMember, type EtcdView } from '../machine/etcd.ts';
import { hashOfKey } from '../machine/run/cluster-info.ts';
import { openOwnApi, seenNodes, servesNodes } from '../machine/run/nodes.ts';
import { AUTHORITY, encryptionConfig, openSnapshot, type SnapshotFile } from '../machine/run/snapshot-file.ts';
import { holdsText } from '../machine/run/whole-snapshot.ts';
import { folderOf } from '../steps/node/install-folder.ts';
import { kubernetesTask } from '../steps/node/kubernetes-task.ts';
import { readFound } from '../platform/files/state-file.ts';
import { syncFolder } from '../platform/files/sync-folder.ts';
import { ETCD_RESTORE } from '../requests/node.ts';

const KUBERNETES = '/etc/kubernetes';
const ADMIN = `${KUBERNETES}/admin.conf`;
const PEM_LIMIT = 1 << 20;

export interface EtcdRestored {
  readonly file: string;
  /** Nodes of other control planes in the restored data: etcd has no members of them. */
  readonly lost: readonly string[];
  /** A machine without Kubernetes has the file in this folder, and the next install makes its control plane from it. */
  readonly waiting?: string;
}

/**
 * `CLUSTER_FAILED` for a snapshot that is not whole or is of another cluster, unless it is confirmed, and if other control planes have a
 * quorum. `USAGE`, before the file is read, if another machine is confirmed.
 */
export const etcdRestore = useCase(ETCD_RESTORE, async (request, context): Promise<EtcdRestored> => {
  const { signal } = context;
  requireOwnName(request.confirm);
  const file = resolve(context.cwd, request.file);
  const directory = folderOf(request, context);
  const identity = request.identity && resolve(context.cwd, request.identity);
  await using snapshot = await openSnapshot(file, { folder: directory, identity, signal });
  const isBare = (await madeIn(KUBERNETES)) === 'none';
  await requireFitting(snapshot, file, { kubernetes: KUBERNETES, isBare });
  using etcd = await openEtcd({ signal });
  requireConfirmed(await viewOf(etcd, context), request.confirm);
  if (isBare) {
    if (context.user !== 0) throw new CurlewError('UNSUPPORTED', 'this changes the machine, which requires root');
    return { file, lost: [], waiting: await keepForInstall(snapshot, directory) };
  }
  await kubernetesTask(directory, ['kubernetes_restore_etcd', snapshot.data, file], context);
  return { file, lost: await otherControlPlanes(context) };
});

/** `CLUSTER_FAILED` if the data is of a cluster whose authority this machine does not have, or needs keys that the file does not have. */
export async function requireFitting(
  { data, folder }: SnapshotFile,
  file: string,
  { kubernetes, isBare }: { readonly kubernetes: string; readonly isBare: boolean },
): Promise<void> {
  const theirs = folder === undefined ? undefined : await readFound(join(folder, AUTHORITY), PEM_LIMIT);
  const refusal = (why: string, hint: string): CurlewError =>
    new CurlewError('CLUSTER_FAILED', `cannot restore ${file}: ${why}`, { hint });
  if (isBare) {
    if (theirs !== undefined) return;
    throw refusal(
      'it has only the data of etcd, and this machine has no keys of its cluster',
      'use a file of curlew etcd snapshot, which has the keys; or run it on a control plane of that cluster',
    );
  }
  const own = await readFound(join(kubernetes, 'pki/ca.crt'), PEM_LIMIT);
  // On a worker, or with an authority elsewhere: what is wrong is said by what comes next.
  if (own === undefined) return;
  if (theirs === undefined ? await mayBeOf(data, own, kubernetes) : hashOfKey(theirs) === hashOfKey(own)) return;
  throw refusal(
    'it is of another cluster: nothing would accept what this machine signs',
    theirs === undefined
      ? 'use it on a control plane of its own cluster'
      : 'if that cluster is to run here: curlew reset on this machine, then the same command again; its keys are in the file',
  );
}

/** Encrypted data show no certificate: they may be of any cluster. */
async function mayBeOf(data: string, authority: Buffer, kubernetes: string): Promise<boolean> {
  if ((await encryptionConfig(kubernetes)) !== undefined) return true;
  return holdsText(data, authority.toString('utf8').trim());
}

/** A snapshot that was kept before is replaced. */
async function keepForInstall({ folder = '' }: SnapshotFile, directory: string): Promise<string> {
  const waiting = join(directory, nodePath.restore);
  await rm(waiting, { recursive: true, force: true });
  await rename(folder, waiting);
  await syncFolder(directory);
  return waiting;
}

/** Takes some seconds where there is no quorum. */
export async function viewOf(etcd: Etcd | undefined, context: Context, kubeconfig = ADMIN): Promise<EtcdView> {
  const members = await etcd?.members().catch((error: unknown) => {
    requireRefusal(error, context.signal);
    return undefined;
  });
  const agrees = (await etcd?.agrees()) === true;
  // Without a quorum, and without an etcd of its own, only the balancer of the cluster can lead to one.
  const served = !agrees && (await servesNodes(kubeconfig, context));
  return { members, agrees, served };
}

/** A person may have another machine in mind, and reading takes long. */
function requireOwnName(confirm: string | undefined): void {
  const own = hostname().toLowerCase();
  if (confirm === undefined || confirm === own) return;
  throw new CurlewError('USAGE', `--confirm ${confirm}: this machine is ${own}`);
}

/** Without members etcd does not answer here, which says nothing about those of other machines. */
export function requireConfirmed(view: EtcdView, confirm: string | undefined): void {
  const own = hostname().toLowerCase();
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
    requireRefusal(error, context.signal);
    const text = `the data is restored, but its Nodes could not be listed: ${error.message}`;
    context.report({ type: 'note', level: 'warning', text });
    return [];
  }
}
