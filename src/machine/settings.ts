/** Settings of add-ons that a machine has, next to those of its file: what a run on it applies, and what no run can. Pure. */
import type { RecordedSettings, SeenMachine, MachineSettings } from './cluster.ts';

interface ChangedSettings {
  /** A run on the machine applies them. */
  readonly able: readonly string[];
  /** kubeadm uses them only where it makes the machine a node. */
  readonly once: readonly string[];
  /** Settings of the cluster since it was made. */
  readonly fixed: readonly string[];
  /** The file no longer has them. Alone they are no reason for a run, as in the file of an existing cluster; a run drops them. */
  readonly dropped: readonly string[];
}

/** kubeadm does not change them in a cluster that there is. */
const FIXED =
  /^(?:kubernetes\.(?:clusterName|serviceCIDR|serviceCidrRange|loadBalancerAddress|clusterConfiguration\.(?:networking|clusterName|controlPlaneEndpoint|certificatesDir|etcd))|[^.]+\.podCIDR(?:Range)?)$/i;
const ONCE = /^kubernetes\.(init|join)Configuration\./;
/** Only a control plane uses them. */
const CONTROL =
  /^kubernetes\.(?:(?:cluster|kubeProxy)Configuration(?:\.|$)|useStandardNodePortRange$|certificateRenewal$)/;
/** Settings of kubernetes that a machine which joins has from the file; it takes the others from its cluster. */
export const OWN_SETTINGS = ['certificateRenewal', 'joinConfiguration'];

const NONE: ChangedSettings = { able: [], once: [], fixed: [], dropped: [] };

/** None where it is not known what the machine has. */
export function changedSettings(
  wanted: MachineSettings,
  { settings: recorded, role }: Pick<SeenMachine, 'settings' | 'role'>,
): ChangedSettings {
  if (recorded === undefined) return NONE;
  const { by, digests } = recorded;
  const changed = [...new Set([...Object.keys(wanted), ...Object.keys(digests)])]
    .filter((path) => wanted[path] !== digests[path])
    .filter((path) => role === 'control-plane' || !(CONTROL.test(path) || FIXED.test(path)))
    .toSorted();
  const isApplied = (path: string): boolean => !ONCE.test(path) && !FIXED.test(path);
  const set = changed.filter((path) => wanted[path] !== undefined);
  const able = set.filter(isApplied);
  return {
    able,
    once: set.filter((path) => ONCE.exec(path)?.[1] === (by ?? '')),
    fixed: (able.length > 0 ? changed : set).filter((path) => FIXED.test(path)),
    dropped: changed.filter((path) => wanted[path] === undefined && isApplied(path)),
  };
}

/** The settings of a machine after a run; undefined where they are not known. `others` are the control planes of its cluster. */
export function settingsAfter(
  phase: 'init' | 'join' | 'upgrade',
  wanted: MachineSettings,
  { own, others }: { readonly own: RecordedSettings | undefined; readonly others: readonly SeenMachine[] },
): RecordedSettings | undefined {
  if (phase === 'init') return { by: phase, digests: wanted };
  if (phase === 'upgrade')
    return { by: own?.by, digests: mixed(wanted, own?.digests ?? {}, (path) => ONCE.test(path)) };
  const known = others.filter(({ settings }) => settings !== undefined);
  // The first of them to have other settings has brought these to the cluster.
  const leading = known.find((one) => changedSettings(wanted, one).able.length === 0) ?? known[0];
  if (leading?.settings === undefined) return undefined;
  const isShared = (path: string): boolean =>
    path.startsWith('kubernetes.') && !OWN_SETTINGS.includes(path.split('.')[1] ?? '');
  return { by: phase, digests: mixed(wanted, leading.settings.digests, isShared) };
}

/** The settings of `rest` where `isRest`, otherwise those of `wanted`. */
function mixed(wanted: MachineSettings, rest: MachineSettings, isRest: (path: string) => boolean): MachineSettings {
  const some = (of: MachineSettings, isOne: (path: string) => boolean) =>
    Object.entries(of).filter(([path]) => isOne(path));
  return Object.fromEntries([...some(wanted, (path) => !isRest(path)), ...some(rest, isRest)]);
}

/** Whether no control plane has the settings yet: the first one brings them to the cluster. */
export function isFirstWith(wanted: MachineSettings, machines: readonly SeenMachine[]): boolean {
  const control = machines.filter(({ joined, role }) => joined && role === 'control-plane');
  return control.every((one) => one.settings === undefined || changedSettings(wanted, one).able.length > 0);
}

/** Notes of a plan about settings without a step for them. */
export function settingNotes(wanted: MachineSettings, machines: readonly SeenMachine[]): readonly string[] {
  // A host that is not part of the cluster is a new one in the place of its node.
  const nodes = machines.filter(({ joined, answers, cluster }) => joined && answers && cluster !== undefined);
  const names = (of: readonly SeenMachine[]): string => of.map(({ name }) => name).join(', ');
  const unknown = Object.keys(wanted).length === 0 ? [] : nodes.filter(({ settings }) => settings === undefined);
  const kept = nodes.filter((one) => {
    const { able, dropped } = changedSettings(wanted, one);
    return able.length === 0 && dropped.length > 0;
  });
  const dropped = namedSettings([...new Set(kept.flatMap((one) => changedSettings(wanted, one).dropped))]);
  const how = (does: string): string => `the next upgrade ${does}, or curlew machine upgrade of each`;
  return [
    ...(unknown.length > 0
      ? [
          `settings of ${names(unknown)} are not compared, since it is not recorded which they have: ${how('records them')}`,
        ]
      : []),
    ...(kept.length > 0
      ? [`${names(kept)}: the file no longer has ${dropped}: ${how('or another change drops that')}`]
      : []),
  ];
}

const MAX_NAMED = 4;

export function namedSettings(paths: readonly string[]): string {
  const others = paths.length - MAX_NAMED;
  const named = paths.slice(0, MAX_NAMED).join(', ');
  return others > 0 ? `${named} and ${others} others` : named;
}
