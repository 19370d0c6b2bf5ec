/** Versions of Kubernetes on the machines of a cluster: which may follow which, and which fit together. Pure. */
import { parse } from 'semver';
import { CurlewError } from '../core/errors.ts';

/** Minors that a kubelet may be behind its API server (kubernetes.io, version skew policy). */
const KUBELET_SKEW = 3;

export function isSemver(text: string | undefined): boolean {
  return parse(text) !== null;
}

/** A parsed version. Declared here, so that the types of the library need no other package. */
interface Version {
  readonly raw: string;
  readonly major: number;
  readonly minor: number;
  readonly build: readonly string[];
  /** Below, equal (0) or above 0; builds do not count. */
  readonly compare: (other: string) => number;
}

/** A version with its pre-release and build; `USAGE` for any other text. */
export function requireVersion(text: string): Version {
  const version = parse(text);
  if (version !== null) return version;
  throw new CurlewError('USAGE', `not a version of Kubernetes: ${text.slice(0, 60)}`, { hint: 'write it as v1.30.2' });
}

/**
 * Below, equal (0) or above 0; undefined if they differ only in parts of their builds that have no order, such as commits. Numbers of a
 * build come before words, and a longer build after a shorter one.
 */
function compareBuilds(a: Version, b: Version): number | undefined {
  const order = a.compare(b.raw);
  if (order !== 0) return order;
  for (const [at, left] of a.build.entries()) {
    const right = b.build[at];
    if (right === undefined) return 1;
    const [isCount, isOther] = [/^\d+$/.test(left), /^\d+$/.test(right)];
    if (isCount !== isOther) return isCount ? -1 : 1;
    if (isCount && Number(left) !== Number(right)) return Number(left) - Number(right);
    if (!isCount && left !== right) return undefined;
  }
  return a.build.length - b.build.length;
}

/** May a control plane move from one version to the other? One minor up at most, and never down, which kubeadm cannot. */
export function mayMove(from: string, to: string): boolean {
  const [old, next] = [requireVersion(from), requireVersion(to)];
  return next.major === old.major && next.minor < old.minor + 2 && next.compare(old.raw) >= 0;
}

/** Why a cluster may not go from one version to the other: it would miss a minor. Undefined if it may. */
export function skippedMinor(from: string, to: string): string | undefined {
  if (mayMove(from, to) || requireVersion(to).compare(from) < 0) return undefined;
  const { major, minor } = requireVersion(from);
  return `${to} skips a minor version: ${from} goes to ${major}.${minor + 1} first`;
}

export type Skew = 'KubernetesVersionSkew' | 'KubeadmVersionSkew';

/** Why a worker does not fit its control plane; `kubeadm`: it is about to join by it. Only minors count. */
export function skewsOf(
  controlPlane: string,
  worker: string,
  { kubeadm }: { readonly kubeadm: boolean },
): readonly Skew[] {
  const behind = requireVersion(controlPlane).minor - requireVersion(worker).minor;
  const skews: Skew[] = [];
  if (behind < 0 || behind > KUBELET_SKEW) skews.push('KubernetesVersionSkew');
  if (kubeadm && behind !== 0) skews.push('KubeadmVersionSkew');
  return skews;
}

export interface VersionRoute {
  readonly desired: string;
  readonly controlPlane: string;
  /** The lowest version of a worker; undefined without workers. */
  readonly minWorkers?: string | undefined;
  /** Versions of the control plane after its present one. */
  readonly cpPlan: readonly string[];
  /** The same for workers; by default as few as the skew allows. */
  readonly workersPlan?: readonly string[];
}

/**
 * The versions that workers pass on the way to the desired one, in order. `USAGE` for a route that leaves out a minor, goes down, does not
 * end at the desired version, or has steps where there is nothing to do.
 */
export function workerSteps(route: VersionRoute): readonly string[] {
  const { desired, controlPlane, minWorkers, cpPlan, workersPlan = [] } = route;
  const order = new Map([[controlPlane, -1]]);
  const minors = new Map([[requireVersion(controlPlane).minor, controlPlane]]);
  checkSteps('control plane', cpPlan, { from: controlPlane, desired, apart: 1, order });
  for (const [at, text] of cpPlan.entries()) {
    order.set(text, at);
    minors.set(requireVersion(text).minor, text);
  }
  const isDone = minWorkers === undefined || compareBuilds(requireVersion(minWorkers), requireVersion(desired)) === 0;
  const strange = cpPlan.length === 0 ? undefined : workersPlan.find((text) => !order.has(text));
  if (strange !== undefined && !isDone)
    throw wrong('workers', strange, 'the control plane does not have this version on its way');
  if (isDone || workersPlan.length > 0) {
    checkSteps('workers', workersPlan, { from: minWorkers ?? desired, desired, apart: KUBELET_SKEW, order });
    return workersPlan;
  }
  const [first, last] = [requireVersion(minWorkers).minor, requireVersion(desired).minor];
  const steps: string[] = [];
  for (let minor = first + KUBELET_SKEW; minor < last; minor += KUBELET_SKEW) {
    const step = minors.get(minor);
    if (step === undefined) {
      throw wrong(
        'workers',
        minWorkers,
        `no version of the minor ${minor} is on the way, and they cannot go without it`,
      );
    }
    steps.push(step);
  }
  if (steps.at(-1) !== desired) steps.push(desired);
  checkSteps('workers', steps, { from: minWorkers, desired, apart: KUBELET_SKEW, order });
  return steps;
}

function wrong(what: string, version: string, why: string): CurlewError {
  return new CurlewError('USAGE', `cannot plan the upgrade of the ${what} at ${version}: ${why}`);
}

/** Steps rise, by at most so many minors, and end at the desired version. */
function checkSteps(
  what: string,
  steps: readonly string[],
  limits: {
    readonly from: string;
    readonly desired: string;
    readonly apart: number;
    /** Decides between versions that differ only in their builds. */
    readonly order: ReadonlyMap<string, number>;
  },
): void {
  const { from, desired, apart, order } = limits;
  if (steps.length > 0 && compareBuilds(requireVersion(from), requireVersion(desired)) === 0) {
    throw wrong(what, from, 'it is the desired version, so no steps are left');
  }
  let current = from;
  for (const step of steps) {
    const [old, next] = [requireVersion(current), requireVersion(step)];
    const rise = compareBuilds(next, old) ?? (order.get(step) ?? Infinity) - (order.get(current) ?? -Infinity);
    if (rise <= 0) throw wrong(what, current, `${step} is not above it`);
    if (next.minor - old.minor > apart) throw wrong(what, current, `${step} is more than ${apart} minor above it`);
    current = step;
  }
  if (compareBuilds(requireVersion(current), requireVersion(desired)) !== 0) {
    throw wrong(what, current, `the steps do not end at ${desired}`);
  }
}
