/** Renews the certificates that kubeadm has made on this control plane. */
import { hostname } from 'node:os';
import type { Context } from '../core/context.ts';
import { CurlewError } from '../core/errors.ts';
import { useCase } from '../core/request.ts';
import { openEtcd, type Member } from '../cluster/kube/etcd.ts';
import { mayRestart } from '../machine/etcd.ts';
import { folderOf } from '../steps/node/install-folder.ts';
import { kubernetesTask } from '../steps/node/kubernetes-task.ts';
import { CERTIFICATES_RENEW } from '../requests/node.ts';
import { lastAttempt, recordAttempt } from '../machine/run/attempts.ts';
import {
  certificateOf,
  certificatesIn,
  KUBELET_CERTIFICATE,
  whenExpired,
  type NodeCertificate,
} from '../machine/run/certificates.ts';
import { ownAddresses } from '../machine/run/cluster-info.ts';
import { startTimer } from '../machine/run/timer.ts';

export interface Renewed {
  readonly certificates: readonly CertificateDays[];
  /** The unit of systemd that renews them from now on. */
  readonly timer?: string;
}

export interface CertificateDays {
  /** Path below /etc/kubernetes. */
  readonly name: string;
  /** Days that are left, rounded down; negative if it has expired, and absent if the file is damaged. */
  readonly before: number | undefined;
  /** The same afterwards; absent in a preview. */
  readonly after?: number | undefined;
}

const FOLDERS = { kubernetes: '/etc/kubernetes', kubelet: '/var/lib/kubelet' };
const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;
/** With `every`. Several control planes do not begin at once: each needs the others' members of etcd. */
const TIMER = {
  name: 'curlew-certificates',
  description: 'Renewal of certificates of this control plane that expire soon',
  spreadMs: HOUR_MS,
};

/** `CLUSTER_FAILED` on a machine that is no control plane, where the kubelet cannot start anything, and where etcd would lose its quorum. */
export const renewCertificates = useCase(
  CERTIFICATES_RENEW,
  async (
    request,
    context: Context,
    { dryRun = false }: { readonly dryRun?: boolean } = {},
    { kubernetes, kubelet }: typeof FOLDERS = FOLDERS,
  ): Promise<Renewed> => {
    const { within, every } = request;
    const directory = folderOf(request, context);
    const before = await daysOf(kubernetes, new Date());
    if (!dryRun && !before.has('pki/apiserver.crt')) {
      throw new CurlewError(
        'CLUSTER_FAILED',
        `cannot renew certificates: ${kubernetes}/pki has none of an API server`,
        {
          hint: `run it as root on a control plane; the kubelet of a worker renews its own certificate, and if that has expired: ${whenExpired(KUBELET_CERTIFICATE, { isControlPlane: false })}`,
        },
      );
    }
    const shown = (after: ReadonlyMap<string, number | undefined> = new Map()): readonly CertificateDays[] =>
      [...before].map(([name, days]) => ({ name, before: days, after: after.get(name) }));
    if (!dryRun && within !== undefined && every !== undefined) {
      const args = ['certificates', 'renew', `--within=${within / HOUR_MS}h`, `--install-dir=${directory}`];
      const timer = await startTimer(args, { ...TIMER, everyMs: every }, { directory, context });
      return { certificates: shown(), timer };
    }
    const requireStart = async (): Promise<void> => {
      // A kubelet.conf that was made again has its certificate in itself, until the kubelet has asked for another.
      const own = await certificateOf(kubernetes, 'kubelet.conf');
      requireKubelet(own ?? (await certificateOf(kubelet, KUBELET_CERTIFICATE)), new Date());
    };
    if (dryRun) {
      if (before.has('pki/apiserver.crt')) await requireStart();
      return { certificates: shown() };
    }
    if (within !== undefined && !(await isDue(kubernetes, [...before.values()], within)))
      return { certificates: shown() };
    await recordAttempt(kubernetes, 'renewal', async () => {
      await requireStart();
      using etcd = await openEtcd({ signal: context.signal });
      // With expired certificates it does not answer. Without a quorum, its members are listed, and there is none to lose.
      const members = (await etcd?.agrees()) === true ? await etcd?.members() : [];
      requireRestart(members ?? [], { name: hostname().toLowerCase(), addresses: ownAddresses() });
      await kubernetesTask(directory, ['kubernetes_renew_certificates'], context);
    });
    return { certificates: shown(await daysOf(kubernetes, new Date())) };
  },
);

/** Also after a failure: components may still run with their former certificates. */
async function isDue(folder: string, days: readonly (number | undefined)[], withinMs: number): Promise<boolean> {
  const isSoon = days.some((left) => left === undefined || left * DAY_MS < withinMs);
  return isSoon || (await lastAttempt(folder, 'renewal'))?.problem !== undefined;
}

/** Days that are left of each certificate that kubeadm renews, by its path below the folder; undefined for a damaged one. */
export async function daysOf(folder: string, now: Date): Promise<ReadonlyMap<string, number | undefined>> {
  const all = await certificatesIn(folder);
  return new Map(
    all.map(({ name, expires }) => {
      return [name, expires === undefined ? undefined : Math.floor((expires - now.getTime()) / DAY_MS)];
    }),
  );
}

/** `CLUSTER_FAILED` if the kubelet ends for its own certificate: it would start no component with a new one. */
export function requireKubelet(own: NodeCertificate | undefined, now: Date): void {
  if (own?.expires === undefined || own.expires > now.getTime()) return;
  const cure = (isControlPlane: boolean): string => whenExpired(KUBELET_CERTIFICATE, { isControlPlane });
  const when = new Date(own.expires).toISOString().slice(0, 10);
  throw new CurlewError(
    'CLUSTER_FAILED',
    `cannot renew certificates: that of the kubelet (${own.name}) expired on ${when}`,
    { hint: `${cure(true)}, then run the same command again; or, with other control planes, ${cure(false)}` },
  );
}

/** `CLUSTER_FAILED` if the others would not keep the quorum of etcd while this one restarts, and one of them is not healthy. */
export function requireRestart(
  members: readonly Member[],
  machine: { readonly name: string; readonly addresses: ReadonlySet<string> },
): void {
  const ownMember = members.find(({ addresses }) => addresses.some((one) => machine.addresses.has(one)));
  const own = ownMember?.name ?? machine.name;
  const broken = members.filter(({ name, healthy, learner }) => name !== own && (!healthy || learner));
  if (broken.length === 0 || mayRestart(members, own)) return;
  const names = broken.map(({ name }) => (name === '' ? 'one that has just joined' : name)).join(', ');
  throw new CurlewError(
    'CLUSTER_FAILED',
    `cannot restart etcd: it would lose its quorum, since ${names} is not healthy`,
    { hint: 'wait until it is, or remove its node (curlew node remove); then run the same command again' },
  );
}
