/** Mistakes of a cluster as it is desired or seen, because of which nothing may be changed. Pure. */
import { CurlewError } from '../core/errors.ts';
import type { DesiredCluster, Held, SeenCluster, SeenMachine } from './cluster.ts';
import { survived } from './etcd.ts';
import { changedSettings, namedSettings } from './settings.ts';
import { isSemver, mayMove, skewsOf, requireVersion } from './versions.ts';

export interface Refusals {
  /** With one of them nothing is changed. */
  readonly shared: readonly Held[];
  /** Mistakes of a worker: nothing is changed on it, and the others continue as if it did not answer. */
  readonly own: readonly Held[];
}

/** Each of them with its reason. */
export function refusalsOf(desired: DesiredCluster, seen: SeenCluster): Refusals {
  const { shared: control, own } = splitRefusals(hostRefusals(desired, seen), desired.machines, seen.machines);
  const shared = [...desiredRefusals(desired), ...strangeVersions(seen), ...fixedSettings(desired, seen), ...control];
  // Versions are compared only once all of them can be read.
  return { shared: shared.length > 0 ? shared : versionRefusals(desired, seen.machines), own };
}

/** Mistakes of hosts, by their roles. */
export function splitRefusals(
  refusals: readonly Held[],
  ...machines: readonly (readonly Pick<SeenMachine, 'name' | 'role'>[])[]
): Refusals {
  const control = new Set(machines.flat().flatMap(({ name, role }) => (role === 'control-plane' ? name : [])));
  const isShared = ({ host }: Held): boolean => host === undefined || control.has(host);
  return { shared: refusals.filter(isShared), own: refusals.filter((one) => !isShared(one)) };
}

/** The cluster where nothing can be done on these machines. */
export function withoutHosts(seen: SeenCluster, refused: readonly Held[]): SeenCluster {
  const names = new Set(refused.map(({ host }) => host));
  const machines = seen.machines.map((one) => {
    return names.has(one.name) ? { ...one, answers: false, cluster: undefined, toCreate: undefined } : one;
  });
  return { ...seen, machines };
}

function desiredRefusals({ version, machines }: DesiredCluster): readonly Held[] {
  const refusals: Held[] = [];
  if (!isSemver(version)) refusals.push({ reason: `unknown version: ${version} is not a version of Kubernetes` });
  const control = machines.filter(({ role }) => role === 'control-plane');
  if (control.length === 0) refusals.push({ reason: 'the last control plane cannot be removed' });
  else if (control.length % 2 === 0) {
    refusals.push({
      reason: `${control.length} control planes survive ${survived(control.length)}, like ${control.length - 1}: add or remove one`,
    });
  }
  const addresses = new Map<string, string>();
  const names = new Set<string>();
  for (const { name, address, role, kubeletVersion } of machines) {
    const twin = address === undefined ? undefined : addresses.get(address);
    if (names.has(name)) refusals.push({ host: name, reason: 'the name is there twice' });
    else if (twin !== undefined) refusals.push({ host: name, reason: `${twin} has the same address ${address ?? ''}` });
    names.add(name);
    if (address !== undefined) addresses.set(address, twin ?? name);
    if (kubeletVersion === undefined) continue;
    if (!isSemver(kubeletVersion)) refusals.push({ host: name, reason: `unknown version: ${kubeletVersion}` });
    else if (role === 'control-plane')
      refusals.push({ host: name, reason: 'a control plane has the version of its cluster' });
    else if (
      isSemver(version) &&
      (!mayMove(kubeletVersion, version) || requireVersion(kubeletVersion).compare(version) > 0)
    ) {
      refusals.push({
        host: name,
        reason: `skew: ${kubeletVersion} must be that of the cluster, ${version}, or one minor below`,
      });
    }
  }
  return refusals;
}

function hostRefusals(desired: DesiredCluster, { machines }: SeenCluster): readonly Held[] {
  const roles = new Map(desired.machines.map(({ name, role }) => [name, role]));
  return machines.flatMap((machine): readonly Held[] => {
    const { name: host, cluster, joined, role } = machine;
    const wanted = roles.get(host);
    if (cluster !== undefined && cluster !== desired.name)
      return [{ host, reason: `it belongs to the cluster ${cluster}` }];
    if (!joined) return [];
    if (wanted === undefined || wanted === role) return [];
    return [
      {
        host,
        reason: `it is a ${role ?? 'machine without role'} and cannot become a ${wanted}: remove it, then add it again`,
      },
    ];
  });
}

function strangeVersions({ machines }: SeenCluster): readonly Held[] {
  return machines.flatMap(({ name: host, joined, kubelet = '', apiServer = kubelet }) => {
    const strange = [kubelet, apiServer].find((text) => !isSemver(text));
    if (!joined || strange === undefined) return [];
    return [{ host, reason: `unknown version: ${strange || 'its kubelet reports none'}` }];
  });
}

/** Each is said once, by what any control plane has of it. */
function fixedSettings({ settings = {} }: DesiredCluster, { machines }: SeenCluster): readonly Held[] {
  const joined = machines.filter(({ joined: isNode }) => isNode);
  const fixed = new Set(joined.flatMap((machine) => changedSettings(settings, machine).fixed));
  if (fixed.size === 0) return [];
  const names = namedSettings([...fixed]);
  return [
    {
      reason: `the file has another ${names}, which stays as it was when the cluster was made: take the change back, or make a new cluster`,
    },
  ];
}

function versionRefusals({ version }: DesiredCluster, machines: readonly SeenMachine[]): readonly Held[] {
  const running = machines.flatMap(({ joined, apiServer }) => (joined && apiServer !== undefined ? [apiServer] : []));
  const [lowest, highest] = [running.toSorted(byVersion)[0], running.toSorted(byVersion).at(-1)];
  if (lowest === undefined || highest === undefined) return [];
  const refusals: Held[] = [];
  if (requireVersion(version).compare(highest) < 0) {
    refusals.push({ reason: `downgrade: the cluster has ${highest}, and kubeadm cannot return to ${version}` });
  }
  if (!mayMove(lowest, highest)) {
    refusals.push({
      reason: `skew: control planes have ${lowest} and ${highest}, which are more than one minor apart`,
    });
  }
  for (const { name: host, joined, role, kubelet = highest, apiServer } of machines) {
    const server = role === 'control-plane' ? apiServer : lowest;
    if (!joined || server === undefined || skewsOf(server, kubelet, { kubeadm: false }).length === 0) continue;
    refusals.push({
      host,
      reason: `skew: its kubelet ${kubelet} does not work with the API server ${server}: reset it and join it again`,
    });
  }
  return refusals;
}

export function byVersion(a: string, b: string): number {
  return requireVersion(a).compare(b);
}

/** The message of an error of ours; others are thrown again. */
export function refusalReason(error: unknown): string {
  if (error instanceof CurlewError) return error.message;
  throw error;
}
