/** Resets the machines of a cluster over SSH, or deletes those of providers: workers, then control planes. */
import type { Context } from '../core/context.ts';
import { CurlewError } from '../core/errors.ts';
import { reportStep } from '../core/events.ts';
import { INSTALL_DIRECTORY } from '../core/layout.ts';
import { useCase } from '../core/request.ts';
import type { Failed, Held } from '../machine/cluster.ts';
import { readHosts, type WrittenCluster } from '../machine/run/cluster-file.ts';
import { runsElsewhere } from '../machine/run/provided-hosts.ts';
import { lookAt, type ClusterLook, type HostLook } from '../machine/run/look.ts';
import { deleteProvided } from '../machine/run/provider.ts';
import { cleanHost, lockHosts, operatorOf, runCommand, type Remote } from '../machine/run/remote.ts';
import { eachLimited } from '../platform/limit/each.ts';
import { CLUSTER_DELETE } from '../requests/cluster.ts';
import { openSsh, SshError } from '../machine/ssh/ssh.ts';

export interface ClusterDeletion {
  readonly cluster: string;
  /** Machines that are left to reset, in this order. */
  readonly left: readonly string[];
  readonly done: readonly string[];
  /** Machines of a provider, which deletes them. */
  readonly provided: readonly string[];
  /** Machines that their providers do not have, with the reason: nothing of them is left, or a provider looks elsewhere. */
  readonly absent: readonly Held[];
  readonly failed: readonly ({ readonly host: string } & Failed)[];
  /** Why no machine is reset. */
  readonly refused: readonly Held[];
  /** Machines that cannot be reached. */
  readonly unreached: readonly Held[];
  /** It was confirmed, and was to leave out what cannot be reached. */
  readonly confirmed: boolean;
  readonly skipped: boolean;
  /** The leftovers of a reset, for people. */
  readonly stays: readonly string[];
}

const AT_ONCE = 8;

/**
 * Looks at the machines first, so that it continues what was interrupted. Without the name of the cluster as `confirm` it changes nothing;
 * `USAGE` for another name. What is wrong with hosts is in the result; `BUSY` while another operator changes the cluster.
 */
export const deleteCluster = useCase(CLUSTER_DELETE, async (request, context): Promise<ClusterDeletion> => {
  const { confirm, skipUnreachable = false } = request;
  const cluster = await readHosts({ ...request, withoutSettings: true }, 'delete', context);
  const { name } = cluster;
  if (confirm !== undefined && confirm !== name) {
    throw new CurlewError('USAGE', `cannot delete ${name}: it was confirmed as ${confirm}`, {
      hint: `--confirm ${name}, if that is the cluster that you want to delete`,
    });
  }
  await using ssh = openSsh(context.env);
  const inspect = async (signal: AbortSignal): Promise<ClusterLook> =>
    lookAt(cluster, { ssh, bundle: undefined }, { ...context, signal });
  let look = await inspect(context.signal);
  const result = (done: readonly string[] = [], failed: ClusterDeletion['failed'] = []): ClusterDeletion => {
    const { refused, unreached, left } = deletionOf(cluster, look);
    return {
      cluster: name,
      left: left.map(({ host }) => host.name).filter((one) => !done.includes(one)),
      done,
      provided: cluster.machines.flatMap((host) => (host.provided === undefined ? [] : host.name)),
      absent: look.hosts.flatMap(({ host, exists, problem }) =>
        exists === false && !done.includes(host.name) ? [{ host: host.name, reason: problem?.reason ?? '' }] : [],
      ),
      failed,
      refused,
      unreached,
      confirmed: confirm !== undefined,
      skipped: skipUnreachable,
      stays: [
        'images in /var/lib/containerd of the machines',
        'CNI configurations of other programs',
        `${cluster.kubeconfig}, if it exists: delete it before a new cluster gets this name`,
      ],
    };
  };
  const isHeld = (): boolean => {
    const { refused, unreached, left } = deletionOf(cluster, look);
    return left.length === 0 || refused.length > 0 || (unreached.length > 0 && !skipUnreachable);
  };
  if (confirm === undefined || isHeld()) return result();
  // Every operator of this cluster has these hosts.
  const control = look.hosts.filter(({ host, facts }) => host.role === 'control-plane' && facts !== undefined);
  const first = control.map(({ host }) => host.ssh);
  await using lock = await lockHosts({ ssh, signal: context.signal }, first, {
    owner: operatorOf(context.env),
    doing: `delete ${name}`,
  });
  const remote = { ssh, signal: lock.signal };
  // Another operator may have changed something before the lock was taken.
  look = await inspect(lock.signal);
  if (isHeld()) return result();
  const { left } = deletionOf(cluster, look);
  const done: string[] = [];
  const failed: ClusterDeletion['failed'][number][] = [];
  const act = async (one: HostLook): Promise<void> => {
    const host = one.host.name;
    try {
      const {
        exists,
        host: { provided },
      } = one;
      const word = exists === true ? 'delete' : 'reset';
      await reportStep(
        context.report,
        { id: `${word} ${host}`, title: `${host} ${word}` },
        async () =>
          exists === true && provided !== undefined
            ? deleteProvided(provided.by, provided.wanted, lock.signal)
            : resetHost(remote, one, context.report),
        () => 'done',
      );
      done.push(host);
    } catch (error) {
      if (!(error instanceof CurlewError) || lock.signal.aborted) throw error;
      failed.push({ host, reason: error instanceof SshError ? error.reason : error.message, code: error.code });
    }
  };
  const workers = left.filter(({ host }) => host.role === 'worker');
  await eachLimited(workers, async (one) => act(one), { width: AT_ONCE, signal: lock.signal });
  for (const one of left) if (one.host.role === 'control-plane' && failed.length === 0) await act(one);
  return result(done, failed);
});

/** Why not even a provider deletes a control plane by itself. */
const SHUT =
  'no control plane can be asked for nodes that the file does not have, and locked against other operators: --skip-unreachable lets its provider delete this one without that';

/** The machines to reset, workers first, and what is in the way. */
function deletionOf({ name, paused }: WrittenCluster, { hosts, seen, extras, speaker }: ClusterLook) {
  const refused: Held[] = paused === true ? [{ reason: 'the cluster is paused' }] : [];
  const unreached: Held[] = [];
  const hostsLeft: HostLook[] = [];
  for (const one of hosts) {
    const { host, facts, problem, exists } = one;
    const node = seen.machines.find((machine) => machine.name === host.name);
    if (exists === false) {
      const elsewhere = runsElsewhere(one, node);
      if (elsewhere !== undefined) unreached.push({ host: host.name, reason: elsewhere });
      continue;
    }
    const belongs = node?.cluster;
    const refuse = (reason: string): unknown => refused.push({ host: host.name, reason });
    // Its provider deletes it by its uid, which needs no connection.
    if (facts === undefined && exists === true) hostsLeft.push(one);
    else if (facts === undefined) unreached.push({ host: host.name, reason: problem?.reason ?? '' });
    else if (belongs !== undefined && belongs !== name) refuse(`it belongs to the cluster ${belongs}`);
    else if (facts.cluster !== undefined && facts.cluster !== name) {
      // Nothing of it is left there; but a provider has its machine until it deletes it.
      if (exists === true) refuse(`it is prepared for the cluster ${facts.cluster}`);
    } else if (facts.hostname !== host.name) refuse(`its hostname is ${facts.hostname}: it may be another machine`);
    else if (exists === true) hostsLeft.push(one);
    else if (facts.isPart && facts.bundle === undefined)
      refuse('curlew is not there: curlew reset on it, or cluster apply sends it the bundle');
    else if (belongs === name || facts.cluster === name || facts.bundle !== undefined) hostsLeft.push(one);
  }
  const known = new Set(hosts.map(({ host }) => host.name));
  const others = seen.machines.filter((machine) => machine.joined && !known.has(machine.name));
  const unlisted =
    'the file does not have it: add it there, or take it out of the cluster by curlew node remove on a control plane, then run curlew reset on it';
  unreached.push(...others.map((machine) => ({ host: machine.name, reason: unlisted })));
  unreached.push(
    ...extras.map(({ host }) => ({ host: host.name, reason: 'only its provider has it: curlew machine remove' })),
  );
  const isNamed = speaker !== undefined || seen.machines.some(({ joined }) => joined);
  const isShut = ({ host, facts, exists }: HostLook): boolean =>
    host.role === 'control-plane' && facts === undefined && exists === true;
  if (!isNamed) {
    unreached.push(
      ...hosts.filter(isShut).map(({ host, problem }) => {
        return { host: host.name, reason: `${problem?.reason ?? 'it does not answer'}, and ${SHUT}` };
      }),
    );
  }
  const rank = ({ host }: HostLook): number => (host.role === 'worker' ? 0 : 1);
  return { refused, unreached, left: hostsLeft.toSorted((a, b) => rank(a) - rank(b)) };
}

/** The hook of the kubernetes package reads it. Hooks do not get a variable of the caller that begins with `CURLEW_`. */
export const DELETE_CLUSTER = 'KUBERNETES_DELETE_CLUSTER';

const RESET = ['./tasks.sh', 'reset', '--yes'] as const;

/**
 * The hook of an earlier package refuses where the cluster has other control planes. The reset succeeds if that is the only hook that has
 * failed. It runs the hooks of the version that is recorded as applied; folders of other versions do not count.
 */
const LEAVE = `applied=$(sed -n '/^    "kubernetes": {/,/^    }/s/^      "version": "\\([^"]*\\)".*/\\1/p' ${INSTALL_DIRECTORY}/records.json 2>/dev/null)
old=$(grep -L ${DELETE_CLUSTER} ${INSTALL_DIRECTORY}/*/kubernetes/"$applied"/install.sh 2>/dev/null)
if [ -z "$old" ]; then exec ${RESET.join(' ')}; fi
${RESET.join(' ')} --keep-going || { status=$?
if [ $status = 20 ] && ! grep '^not removed: ' ../log | grep -qv ': kubernetes_leave '; then exit 0; fi
exit $status; }`;

/** A control plane does not ask the others whether it may leave: the quorum of their etcd is of no use here. */
async function resetHost(remote: Remote, { host, facts }: HostLook, report: Context['report']): Promise<void> {
  if (facts?.bundle !== undefined) {
    const id = `reset ${host.name}`;
    await runCommand(remote, host.ssh, {
      name: id,
      command: ['env', `${DELETE_CLUSTER}=1`, ...(host.role === 'control-plane' ? ['sh', '-c', LEAVE] : RESET)],
      line: (text) => report({ type: 'step-log', id, text }),
    });
  }
  await cleanHost(remote, host.ssh);
}
