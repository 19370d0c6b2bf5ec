/** The steps of a run on the node around its hooks, for an upgrade of Kubernetes or of the container runtime. */
import { hostname } from 'node:os';
import type { Context } from '../core/context.ts';
import { CurlewError } from '../core/errors.ts';
import type { Etcd } from '../cluster/kube/etcd.ts';
import type { NodeUpgrade } from '../machine/run/upgrade.ts';
import type { InstallRequest } from '../requests/node.ts';
import { KUBERNETES } from '../runtime/plan/hooks.ts';
import type { PlannedAddon } from '../runtime/plan/run-plan.ts';
import type { RunView } from '../runtime/prepare/request.ts';
import { owesUncordon } from '../runtime/plan/node-actions.ts';
import type { NodeSteps } from '../runtime/run/run-result.ts';

/** How long a run that changes nothing on the node waits for its API server. */
const SHORT_MS = 5000;

interface Around extends Pick<NodeUpgrade, 'node' | 'steps'> {
  /** For the run, as actions of its journal. */
  readonly around: NodeSteps;
  /** The next steps, after the run. */
  readonly next: () => string | undefined;
}

/** For tests. */
interface OwnCluster {
  /** Default: that of kubeadm. */
  readonly folder?: string;
  /** Default: the member of this machine, if it has one. */
  readonly open?: () => Promise<Etcd | undefined>;
}

/** Undefined where the run does not upgrade a node, and has none to uncordon; what may stop it is reported. */
export async function upgradeOf(
  { plan, last, request: { place } }: Pick<RunView, 'plan' | 'last' | 'request'>,
  { root, drainTimeout }: Pick<InstallRequest, 'root' | 'drainTimeout'>,
  context: Context,
  { folder = '/etc/kubernetes', open: opened }: OwnCluster = {},
): Promise<Around | undefined> {
  const known = plan.addons.filter(({ hasInstallScript }) => hasInstallScript);
  const kubernetes = known.find(({ ref }) => ref.name === KUBERNETES);
  const containerd = known.find(({ ref }) => ref.name === 'containerd');
  const addon = (kubernetes ?? containerd)?.ref.name;
  if (root !== undefined || addon === undefined) return undefined;
  // Loaded on use: most runs are not on a node of kubeadm's.
  const { openEtcd } = await import('../cluster/kube/etcd.ts');
  const { DRAIN_MS } = await import('../machine/run/drain.ts');
  const { openOwnApi } = await import('../machine/run/nodes.ts');
  const { quorumProblem } = await import('../machine/run/quorum.ts');
  const { planNodeUpgrade } = await import('../machine/run/upgrade.ts');
  const open = opened ?? (async () => openEtcd(context));
  const versions = { kubernetes: changedTo(kubernetes), containerd: changedTo(containerd) };
  const isIdle = (versions.kubernetes ?? versions.containerd) === undefined;
  const { report } = context;
  try {
    const cluster = await openOwnApi(context, { folder, ...(isIdle && { patienceMs: SHORT_MS }) });
    if (cluster === undefined) return undefined;
    // An API server without etcd is asked for a minute, and never says why it does not answer.
    const lost = isIdle ? undefined : await quorumProblem(context, open);
    if (lost !== undefined) throw lost;
    const own = { ...cluster, openEtcd: open };
    const rights = { leads: plan.kind === 'install', isAdmin: cluster.isAdmin };
    const limitMs = drainTimeout ?? DRAIN_MS;
    const about = { node: hostname().toLowerCase(), limitMs, directory: place.directory, owed: owesUncordon(last) };
    const upgrade = await planNodeUpgrade(own, { ...versions, ...rights, ...about }, context);
    for (const text of upgrade?.notes ?? []) report({ type: 'note', level: 'warning', text });
    return upgrade && aroundHooks(addon, upgrade);
  } catch (error) {
    // The hooks look after an API server that is away. Then a cordon that an earlier version has left stays until the next run.
    if (!isIdle || !(error instanceof CurlewError) || error.code !== 'CLUSTER_FAILED') throw error;
    return undefined;
  }
}

function changedTo(addon: PlannedAddon | undefined): string | undefined {
  return addon?.mode === 'already applied' ? undefined : addon?.ref.version;
}

function aroundHooks(addon: string, { node, steps, because, begin, finish }: NodeUpgrade): Around {
  let next: string | undefined;
  const drain = begin && { because, title: `${addon}: make ${node} ready for the upgrade`, perform: begin };
  const end = async (): Promise<void> => void (next = await finish());
  const uncordon = { because, title: `${addon}: ${steps.at(-1) ?? 'wait'}`, perform: end };
  return { node, steps, around: { addon, drain, uncordon }, next: () => next };
}
