/** Drains a node by a control plane of its cluster, over SSH. */
import type { Context } from '../../core/context.ts';
import { CurlewError } from '../../core/errors.ts';
import { fieldsOf, isTexts, jsonIn } from '../../core/json.ts';
import type { Failed } from '../cluster.ts';
import { openSsh, SshError } from '../ssh/ssh.ts';
import { requireFound, requireKnown, type WrittenCluster, type WrittenHost } from './cluster-file.ts';
import { lookAt, REMOTE } from './look.ts';
import { requireForce } from './drain.ts';
import { drainLimit } from './perform.ts';
import { lockHosts, operatorOf, runCommand, type Remote } from './remote.ts';

export interface DrainedMachine {
  readonly cluster: string;
  readonly machine: string;
  /** It takes no new pods. */
  readonly isCordoned: boolean;
  /** Pods that are still to be evicted, or to end. */
  readonly pods: readonly string[];
  /** The losses with these pods: see `NodeDrain`. None by an earlier version of curlew on the host. */
  readonly lost: readonly string[];
  /** Why it does not begin. */
  readonly held?: string;
  readonly failed?: Failed;
}

const ASK_MS = 60_000;
/** Its status says whether something is to do, as its output does. */
const ASK = 'cd "$1/bundle" || exit 70; ./tasks.sh node drain "$2" --json; status=$?; [ $status = 2 ] || exit $status';

/** The drain that is left, as a control plane says it. Throws `SshError`. */
export async function leftOverSsh(
  { ssh, signal }: Remote,
  speaker: WrittenHost,
  name: string,
): Promise<Pick<DrainedMachine, 'isCordoned' | 'pods' | 'lost'>> {
  const run = { script: ASK, operands: [REMOTE, name], limitMs: ASK_MS, signal };
  const { isCordoned, pods, lost } = fieldsOf(jsonIn(await ssh.run(speaker.ssh, run)));
  return { isCordoned: isCordoned === true, pods: isTexts(pods) ? pods : [], lost: isTexts(lost) ? lost : [] };
}

/** `CLUSTER_FAILED` if no control plane answers. */
export async function drainOverSsh(
  cluster: WrittenCluster,
  name: string,
  { yes, force, ignoreBudgets }: Readonly<Record<'yes' | 'force' | 'ignoreBudgets', boolean>>,
  context: Context,
): Promise<DrainedMachine> {
  await using ssh = openSsh(context.env);
  const look = await lookAt(cluster, { ssh, bundle: undefined }, context);
  const { hosts, speaker, silent } = look;
  if (speaker === undefined) {
    requireFound(cluster, look, { name, doing: `drain ${name}` });
    throw new CurlewError('CLUSTER_FAILED', `cannot drain ${name}: no control plane could be asked for its nodes`, {
      hint:
        silent === undefined
          ? 'curlew cluster plan says why'
          : `${silent.name} has no curlew: curlew cluster apply with --bundle brings it there`,
    });
  }
  requireKnown(cluster, look, { name, doing: `drain ${name}` });
  const ask = async (): Promise<DrainedMachine> => {
    const left = await leftOverSsh({ ssh, signal: context.signal }, speaker, name);
    return { cluster: cluster.name, machine: name, ...left };
  };
  const before = await ask();
  if (before.isCordoned && before.pods.length === 0) return before;
  if (cluster.paused === true) return { ...before, held: 'the cluster is paused' };
  if (!yes) return before;
  requireForce(name, before, force);
  const control = hosts.filter(({ host, facts }) => host.role === 'control-plane' && facts !== undefined);
  const owner = operatorOf(context.env);
  const locked = control.map(({ host }) => host.ssh);
  await using lock = await lockHosts({ ssh, signal: context.signal }, locked, { owner, doing: `drain ${name}` });
  const limit = drainLimit(cluster.machines.find((one) => one.name === name));
  // An earlier version of curlew on the host does not know them.
  const past = [...(before.lost.length > 0 ? ['--force'] : []), ...(ignoreBudgets ? ['--ignore-budgets'] : [])];
  try {
    await runCommand({ ssh, signal: lock.signal }, speaker.ssh, {
      name: `drain ${name}`,
      command: ['./tasks.sh', 'node', 'drain', name, ...limit, ...past, '--yes'],
      line: (text) => context.report({ type: 'step-log', id: `drain ${name}`, text }),
    });
  } catch (error) {
    if (!(error instanceof SshError) || lock.signal.aborted) throw error;
    return { ...(await ask()), failed: { reason: error.reason, code: error.code } };
  }
  return await ask();
}
