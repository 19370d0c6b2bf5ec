/** Machines of a cluster follow a plan over SSH: a look, what waits for nothing, and another look. */
import { resolve } from 'node:path';
import type { Context } from '../../core/context.ts';
import { CurlewError } from '../../core/errors.ts';
import { hashFile } from '../../platform/files/hash-file.ts';
import { eachLimited } from '../../platform/limit/each.ts';
import { createKeyedMutex } from '../../platform/limit/keyed-mutex.ts';
import { openSsh, SshError } from '../ssh/ssh.ts';
import type { Failed, Phase, Step } from '../cluster.ts';
import type { WrittenCluster } from './cluster-file.ts';
import { lookAt, type BundleFacts, type ClusterLook } from './look.ts';
import { controlPlanes, lookPatiently } from './patient-look.ts';
import { keepKubeconfig, perform, ranPhase, recordBirths, type Scene } from './perform.ts';
import type { PlannedMachine } from './one-machine.ts';
import type { Done, PlannedCluster } from './planned-cluster.ts';
import { lockHosts, operatorOf, type BundleFile } from './remote.ts';

const AT_ONCE = 8;

export interface AppliedCluster extends PlannedCluster {
  readonly done: readonly Done[];
  readonly failed: readonly (Done & Failed)[];
}

export interface MachineResult extends PlannedMachine, Partial<Pick<AppliedCluster, 'done' | 'failed'>> {
  /** The change of the file, to come or made. */
  readonly change?: string | undefined;
  readonly notes?: readonly string[];
}

export interface Plan<Planned extends PlannedCluster> {
  readonly cluster: WrittenCluster;
  /** For the lock: `apply paris`. */
  readonly doing: string;
  readonly bundle?: { readonly path: string; readonly facts: BundleFacts } | undefined;
  /** Titles of host preflights that are passed. */
  readonly ignore?: readonly string[];
  /** The plan by what is seen, after what this command has done, past the machines of `away`. */
  readonly next: (look: ClusterLook, done: readonly Done[], away: readonly string[]) => Planned;
  /** Whether what has failed on a machine holds only that one. Without it, a failure ends the command. */
  readonly holdsOnlyItself?: (step: Done) => boolean;
  /** Brings an add-on of the cluster to the version of a step. */
  readonly moveAddon?: (step: Step, context: Context) => Promise<void>;
  /** Before anything is done, and again once others are locked out. */
  readonly check?: (plan: Planned) => Promise<void>;
  /** Once others are locked out, and nothing is refused: before the first step, also where there is none. */
  readonly begin?: () => Promise<void>;
  /** For tests: how long control planes that cannot be asked are asked again, in milliseconds. */
  readonly patienceMs?: number;
}

/** The plan of what would be done. Changes nothing. */
export async function previewPlan<Planned extends PlannedCluster>(
  { cluster, bundle, next, check }: Plan<Planned>,
  context: Context,
): Promise<Planned> {
  await using ssh = openSsh(context.env);
  const plan = next(await lookAt(cluster, { ssh, bundle: bundle?.facts }, context), [], []);
  await check?.(plan);
  return plan;
}

/**
 * Continues what an attempt before it, also of another operator, has begun. `BUSY` while another operator changes the cluster. Failures of
 * hosts are in the result.
 */
export async function followPlan<Planned extends PlannedCluster>(
  { cluster, doing, bundle, ignore = [], next: nextOf, check, begin, moveAddon, patienceMs, ...own }: Plan<Planned>,
  context: Context,
): Promise<Planned & AppliedCluster> {
  await using ssh = openSsh(context.env);
  const looking = { ssh, bundle: bundle?.facts };
  const owner = operatorOf(context.env);
  const done: Done[] = [];
  const born = new Set<string>();
  const failed: AppliedCluster['failed'][number][] = [];
  const isAlone = (step: Done): boolean => own.holdsOnlyItself?.(step) ?? false;
  const next = (seen: ClusterLook): Planned =>
    nextOf(
      seen,
      done,
      failed.filter(isAlone).map(({ host }) => host),
    );
  const isIdle = (seen: ClusterLook): boolean => failed.length === 0 && next(seen).steps.length === 0;
  const see = async (at: Context): Promise<ClusterLook> => {
    const patience = { owner, doing, isLocked: at !== context, patienceMs, isIdle };
    return lookPatiently(async () => lookAt(cluster, { ...looking, born }, at), patience, { ssh, ...at });
  };
  let look = await see(context);
  let plan = next(look);
  await check?.(plan);
  const mayBegin = (): boolean => plan.refused.length + look.unasked.length === 0;
  if (plan.steps.length === 0 && (begin === undefined || !mayBegin())) {
    // The operator who has made the cluster may be gone, with the only copy.
    const remote = { ssh, signal: context.signal };
    if (plan.refused.length === 0) await keepOwn({ cluster, look, remote, report: context.report });
    return { ...plan, done, failed };
  }
  await using lock = await lockHosts({ ssh, signal: context.signal }, controlPlanes(look), { owner, doing });
  const inside = { ...context, signal: lock.signal };
  const remote = { ssh, signal: lock.signal };
  const turns = createKeyedMutex();
  const passed: Scene['passed'] = { runs: 0, unknown: new Map() };
  let whole: Promise<BundleFile> | undefined;
  const file = async (): Promise<BundleFile> => {
    if (bundle === undefined) throw new CurlewError('USAGE', `cannot ${doing}: hosts need the bundle`);
    const path = resolve(context.cwd, bundle.path);
    return (whole ??= hashFile(path, { signal: lock.signal }).then(({ size, digest }) => {
      return { path, digest: bundle.facts.digest, size, whole: digest };
    }));
  };
  // Another operator may have changed something before the lock was taken.
  look = await see(inside);
  plan = next(look);
  await check?.(plan);
  if (mayBegin()) await begin?.();
  for (;;) {
    const ready = plan.steps.filter(
      ({ waits, host }) => waits.length === 0 && failed.every((one) => one.host !== host),
    );
    if (ready.length === 0 || !failed.every(isAlone)) break;
    const move = async (step: Step): Promise<void> => moveAddon?.(step, inside);
    const scene: Scene = { cluster, look, remote, turns, ignore, passed, file, move, report: context.report };
    await eachLimited(
      ready,
      async (step) => {
        const { host = cluster.name, to = '' } = step;
        const phase = ranPhase(step);
        const addon = step.addon && `${step.addon} ${to}`;
        const did = { host, phase, ...(addon !== undefined && { addon }) };
        try {
          const times = (of: Phase): number =>
            done.filter((one) => one.host === host && one.phase === of && one.addon === addon).length;
          // A reset ends what the bundle has brought, and a deletion what a creation has.
          const most = phase === 'images' ? 1 : phase === 'create' ? times('delete') : 0;
          if (times(phase) > most)
            throw new CurlewError(
              'CLUSTER_FAILED',
              'it has ended without a failure, and changed nothing that can be seen',
            );
          const isNew = await perform(scene, step);
          done.push(did);
          if (isNew) born.add(host);
        } catch (error) {
          if (!(error instanceof CurlewError) || lock.signal.aborted) throw error;
          const reason = error instanceof SshError ? error.reason : error.message;
          // What comes next for it does not depend on what this has reached.
          if (phase === 'repair') done.push(did);
          else failed.push({ ...did, reason, code: error.code });
          const text =
            phase === 'repair'
              ? `${host}: its repair in place has failed: ${reason}`
              : `${host}: ${phase} ${addon ?? to} has failed`;
          context.report({ type: 'note', level: 'warning', text });
        }
      },
      { width: AT_ONCE, signal: lock.signal },
    );
    look = await see(inside);
    await recordBirths(remote, look, { born, report: context.report });
    await lock.add(controlPlanes(look));
    plan = next(look);
  }
  for (const [text, times] of passed.unknown) {
    if (times === passed.runs) context.report({ type: 'note', level: 'warning', text });
  }
  await keepOwn({ cluster, look, remote, report: context.report });
  // What is still to do, also on the machines of which nothing more was expected.
  return { ...(failed.length === 0 ? plan : nextOf(look, done, [])), done, failed };
}

/** The kubeconfig of the cluster, for this operator. */
async function keepOwn({
  cluster,
  look,
  remote,
  report,
}: Pick<Scene, 'cluster' | 'look' | 'remote' | 'report'>): Promise<void> {
  if (look.speaker === undefined) return;
  try {
    await keepKubeconfig(remote, cluster, look.speaker);
  } catch (error) {
    if (!(error instanceof CurlewError) || remote.signal.aborted) throw error;
    // What was done, and has failed, is not lost for it.
    const text = `the kubeconfig is not in ${cluster.kubeconfig}: ${error.message}`;
    report({ type: 'note', level: 'warning', text });
  }
}

/** Follows a plan about one machine, or only shows it. */
export async function carryOut(
  plan: Plan<PlannedMachine>,
  { yes }: { readonly yes: boolean },
  context: Context,
): Promise<MachineResult> {
  return yes ? followPlan(plan, context) : previewPlan(plan, context);
}
