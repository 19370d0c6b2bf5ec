/**
 * The steps from a cluster as it is seen to the desired one: what may begin now, and what comes after it. Pure. A plan of any state between
 * two steps, or in the middle of one, continues where that is.
 */
import { planUpgrade, kubernetesSteps } from '../cluster/channel/upgrade-plan.ts';
import type { Action, DesiredCluster, Held, Policy, SeenCluster, Step } from './cluster.ts';
import { controlPlaneTurn, replaceControlPlane } from './control-plane.ts';
import { refusalReason, refusalsOf, withoutHosts } from './refusals.ts';
import { skippedMinor, workerSteps } from './versions.ts';
import { workersTurn } from './workers.ts';
import { missingMarks } from './marks.ts';
import { changedSettings, namedSettings } from './settings.ts';
import { lostReason, silenceOf, EMPTY_TURN, PlanState, type Turn } from './plan-state.ts';

export interface ClusterPlan {
  /** Steps in an order in which they are possible. */
  readonly steps: readonly Step[];
  /** Differences from what is desired that stay even when all steps are done. */
  readonly held: readonly Held[];
  /** Mistakes, and states that a person must settle: there are no steps, but for those past what is wrong with a worker alone. */
  readonly refused: readonly Held[];
}

const MAX_NAMES = 5;

/** Everything that is left to do. Only what waits for nothing is safe now: plan again before each step. */
export function planCluster(desired: DesiredCluster, seen: SeenCluster, policy: Policy = {}): ClusterPlan {
  const { shared, own } = refusalsOf(desired, seen);
  if (shared.length > 0) return { steps: [], held: [], refused: [...shared, ...own] };
  const state = new PlanState(desired, withoutHosts(seen, own), policy);
  const { version } = state.lists;
  const wrong = version === undefined ? undefined : nextVersion(state, version).refused;
  if (wrong !== undefined) return { steps: [], held: [], refused: [...wrong, ...own] };
  const refused = new Set(own.map(({ host }) => host));
  const steps: Step[] = [];
  let before: readonly string[] = [];
  for (;;) {
    const turn = turnOf(state);
    if (turn.chains.length === 0) {
      const waiting = [...withSilent(state, withLost(state, turn.held)), ...keptSettings(state)];
      const held = waiting.filter(({ host }) => !refused.has(host));
      const labels = labelSteps(state).filter(({ host }) => !refused.has(host));
      return { steps: [...steps, ...labels], held, refused: own };
    }
    const ends = turn.chains.map((chain) => titleOf(chain.at(-1)));
    for (const chain of turn.chains) {
      for (const [at, action] of chain.entries()) {
        steps.push({ ...action, waits: at === 0 ? before : [titleOf(chain[at - 1])] });
        state.apply(action);
      }
    }
    before = ends.length > MAX_NAMES ? [...ends.slice(0, MAX_NAMES), `${ends.length - MAX_NAMES} others`] : ends;
  }
}

/** The work that a lost machine holds, said once, also where nothing is to do on it. */
function withLost(state: PlanState, held: readonly Held[]): readonly Held[] {
  const lost = [...state.machines.values()].flatMap((machine) => {
    const reason = lostReason(state, machine);
    return reason === undefined ? [] : [{ host: machine.name, reason }];
  });
  return [...lost, ...held.filter(({ host }) => lost.every((one) => one.host !== host))];
}

/** Labels and taints of the file that are missing from its nodes. Others stay: someone else may have set them. */
function labelSteps({ desired, seen, machines }: PlanState): readonly Step[] {
  if (desired.paused === true || !seen.complete) return [];
  return desired.machines.flatMap((wanted): readonly Step[] => {
    const { name: host } = wanted;
    const node = machines.get(host);
    // Labels of a node that joins, or that an earlier version has listed, are not known.
    if (node?.joined !== true || node.leaving === true) return [];
    const missing = missingMarks(wanted, node);
    if (missing.length === 0) return [];
    return [{ host, phase: 'label', reason: `the file has ${missing.join(', ')}`, waits: [] }];
  });
}

/** Settings that no run on a machine changes. */
function keptSettings({ desired: { settings = {}, version }, machines, wanted, lists }: PlanState): readonly Held[] {
  return [...machines.values()].flatMap((machine): readonly Held[] => {
    const { name: host, joined, leaving } = machine;
    const { kubeletVersion = version } = wanted.get(host) ?? {};
    if (!joined || leaving === true || !wanted.has(host)) return [];
    const { able, once } = changedSettings(settings, machine);
    const isKept = able.length > 0 && kubeletVersion !== version && lists.version === version;
    return [
      ...(once.length > 0
        ? [
            `the file has another ${namedSettings(once)}, which kubeadm uses only when a machine joins: curlew machine remove, then curlew machine add`,
          ]
        : []),
      ...(isKept
        ? [`the file has another ${namedSettings(able)}, which it gets once its kubeletVersion is that of the cluster`]
        : []),
    ].map((reason) => ({ host, reason }));
  });
}

/** Nor is a machine of the file that does not answer as the file says, whatever the cluster says of its node. */
function withSilent(state: PlanState, held: readonly Held[]): readonly Held[] {
  // What holds the whole cluster says enough.
  if (held.some(({ host }) => host === undefined)) return held;
  const silent = state.desired.machines.flatMap(({ name: host }) => {
    const machine = state.machines.get(host);
    const isNamed =
      machine?.answers !== false || machine.toCreate !== undefined || held.some((one) => one.host === host);
    return isNamed ? [] : [{ host, reason: silenceOf(machine) }];
  });
  return [...held, ...silent];
}

function titleOf(action: Action | undefined): string {
  if (action === undefined) return '';
  const { phase, host, addon, to } = action;
  return [phase, addon ?? host, to].filter((part) => part !== undefined).join(' ');
}

/** Control planes first, then workers, then the next version: a turn begins only when those before it have nothing left to do. */
function turnOf(state: PlanState): Turn {
  const { desired, seen } = state;
  if (desired.paused === true) return { ...EMPTY_TURN, held: [{ reason: 'the cluster is paused' }] };
  if (!seen.complete)
    return { ...EMPTY_TURN, held: [{ reason: 'the nodes of the cluster could not be listed completely' }] };
  const { version } = state.lists;
  // Drained for its next version, a control plane looks like one that has just got its present one.
  const isDrained = state.lists.controlPlanes.some((one) => one.cordon === 'curlew' && one.apiServer === version);
  const ahead = isDrained && version !== undefined ? nextVersion(state, version).to : undefined;
  const current = controlPlaneTurn(state, version, ahead);
  if (current.chains.length > 0 || current.held.length > 0 || version === undefined) return current;
  const replaced = replaceControlPlane(state, version);
  if (replaced.chains.length > 0) return replaced;
  const workers = workersTurn(state, version);
  if (workers.chains.length > 0) return workers;
  if (workers.isBehind) return { ...workers, held: [...replaced.held, ...workers.held] };
  const next = nextVersion(state, version);
  const held = [...replaced.held, ...workers.held, ...next.held];
  if (next.chains.length > 0 || next.to === undefined) return { ...next, held };
  const control = controlPlaneTurn(state, next.to);
  return { ...control, held: [...held, ...control.held] };
}

/** The add-ons that move before the control plane does, and the version to which that is. */
function nextVersion(
  state: PlanState,
  current: string,
): Turn & { readonly to?: string | undefined; readonly refused?: readonly Held[] } {
  const { desired, policy, addons: installed } = state;
  const { entries = [], compat = 'native', allowGap = false } = policy;
  const skipped = policy.available === undefined ? skippedMinor(current, desired.version) : undefined;
  if (skipped !== undefined) return { ...EMPTY_TURN, refused: [{ reason: skipped }] };
  try {
    const kubernetes = kubernetesSteps(current, desired.version, policy.available ?? []);
    const cpPlan = kubernetes.slice(1);
    workerSteps({ desired: desired.version, controlPlane: current, minWorkers: state.lists.lowestWorker, cpPlan });
    const { steps, gaps } = planUpgrade(entries, { kubernetes, installed, compat, allowGap });
    if (gaps.length > 0)
      return {
        ...EMPTY_TURN,
        held: gaps.map(({ message, hint }) => ({ reason: [message, hint ?? []].flat().join('; ') })),
      };
    const moves: Action[] = [];
    for (const step of steps) {
      if (step.type === 'kubernetes') break;
      const { addon, entry, because } = step;
      moves.push({ phase: 'addon', addon, to: entry.version ?? '', reason: because });
    }
    return { chains: moves.length > 0 ? [moves] : [], held: [], to: kubernetes[1] };
  } catch (error) {
    return { ...EMPTY_TURN, refused: [{ reason: refusalReason(error) }] };
  }
}
