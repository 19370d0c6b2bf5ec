/** A look at a cluster that waits for an answer: an operator who is gone has left a step that still runs, or a control plane starts. */
import type { Report } from '../../core/events.ts';
import { reportStep } from '../../core/events.ts';
import { pause } from '../../platform/limit/repeat.ts';
import type { SshHost } from '../ssh/ssh.ts';
import { saysLostQuorum } from '../etcd.ts';
import type { ClusterLook } from './look.ts';
import { followRun, lockHosts, type Remote } from './remote.ts';

/** A control plane that starts needs most of it. */
const PATIENCE_MS = 90_000;
const AGAIN_MS = 3000;

interface Patience {
  readonly owner: string;
  readonly doing: string;
  /** The owner has the locks already. */
  readonly isLocked: boolean;
  readonly patienceMs: number | undefined;
  /** Nothing can be done without an answer. */
  readonly isIdle: (look: ClusterLook) => boolean;
}

/** Follows what control planes run to its end, and looks again while none can be asked. `BUSY` if the operator who runs it is there. */
export async function lookPatiently(
  lookOnce: () => Promise<ClusterLook>,
  { patienceMs = PATIENCE_MS, isIdle, ...by }: Patience,
  remote: Remote & { readonly report: Report },
): Promise<ClusterLook> {
  const { report } = remote;
  const until = performance.now() + patienceMs;
  const said = new Set<string>();
  for (;;) {
    const look = await lookOnce();
    if (look.busy.length > 0) {
      await followBusy(remote, look, by);
      continue;
    }
    if (look.unasked.length === 0 || performance.now() >= until || !isIdle(look) || isLost(look)) return look;
    for (const { host = '', reason } of look.unasked) {
      const text = `${host}: ${reason}`;
      if (!said.has(text)) report({ type: 'note', level: 'info', text });
      said.add(text);
    }
    await pause(Math.min(AGAIN_MS, patienceMs), remote);
  }
}

/** Not enough control planes are there for a quorum, which no wait brings back. Where they are, etcd may be starting on them. */
function isLost({ hosts, unasked }: ClusterLook): boolean {
  const planes = hosts.filter(({ host }) => host.role === 'control-plane');
  const present = planes.filter(({ facts }) => facts?.isControlPlane === true);
  return unasked.some(({ reason }) => saysLostQuorum(reason)) && 2 * present.length <= planes.length;
}

/** Shows what control planes still run to its end. */
async function followBusy(
  remote: Remote & { readonly report: Report },
  look: ClusterLook,
  { isLocked, ...by }: Pick<Patience, 'owner' | 'doing' | 'isLocked'>,
): Promise<void> {
  await using lock = isLocked ? undefined : await lockHosts(remote, controlPlanes(look), by);
  const inside = { ...remote, signal: lock?.signal ?? remote.signal };
  const { report } = remote;
  for (const { name, ssh } of look.busy) {
    const id = `follow ${name}`;
    const title = `${name} still runs a step: it is followed to its end`;
    const line = (text: string): void => report({ type: 'step-log', id, text });
    await reportStep(
      report,
      { id, title },
      async () => followRun(inside, ssh, line),
      () => 'ended',
    );
  }
}

/** Hosts that every operator of this cluster has, as far as they answer. */
export function controlPlanes({ hosts }: ClusterLook): readonly SshHost[] {
  return hosts.flatMap(({ host, facts }) => (host.role === 'control-plane' && facts !== undefined ? host.ssh : []));
}
