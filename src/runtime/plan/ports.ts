/** Known ports that the add-ons of a run need, and whether another program uses them. Pure. */
import type { Records } from './records.ts';
import type { RunPlan } from './run-plan.ts';

export type Protocol = 'tcp' | 'udp';

export interface PortInUse {
  readonly protocol: Protocol;
  readonly port: number;
  /** Name of the program, if this process may see it. */
  readonly process: string | undefined;
}

export interface PortNeed {
  readonly addon: string;
  readonly protocol: Protocol;
  readonly port: number;
  /** The program that listens on it. */
  readonly what: string;
}

export interface PortPlan extends PortNeed {
  readonly state: 'free' | 'in use';
  /** The program that uses it, if this user can see it. */
  readonly process: string | undefined;
  /** False if the installed add-on itself uses the port. */
  readonly conflict: boolean;
}

/** The ports of kURL's built-in host preflights (kurl.md 8.3); ports of other add-ons are not documented. */
const KNOWN: Readonly<Record<string, readonly (readonly [port: number, what: string])[]>> = {
  kubernetes: [
    [2379, 'etcd, clients'],
    [2380, 'etcd, peers'],
    [2381, 'etcd, metrics'],
    [6443, 'API server'],
    [10_248, 'kubelet, health'],
    [10_250, 'kubelet'],
    [10_257, 'controller manager'],
    [10_259, 'scheduler'],
  ],
};

/** None for an add-on that leaves: its programs end. */
export function portsNeeded({ addons }: Pick<RunPlan, 'addons'>): readonly PortNeed[] {
  return addons.flatMap(({ ref: { name }, mode }) => {
    if (mode === 'remove' || mode === 'leave') return [];
    const known = Object.hasOwn(KNOWN, name) ? (KNOWN[name] ?? []) : [];
    return known.map(([port, what]) => ({ addon: name, protocol: 'tcp' as const, port, what }));
  });
}

/** An add-on in the records, even if it is only partially installed, may use its ports itself. */
export function planPorts(
  needs: readonly PortNeed[],
  inUse: readonly PortInUse[],
  { applied }: Pick<Records, 'applied'>,
): readonly PortPlan[] {
  return needs.map((need) => {
    const listener = inUse.find(({ protocol, port }) => protocol === need.protocol && port === need.port);
    const own = Object.hasOwn(applied, need.addon);
    const state = listener === undefined ? 'free' : 'in use';
    return { ...need, state, process: listener?.process, conflict: listener !== undefined && !own };
  });
}

/** One sentence for each port that another program uses. */
export function portConflicts(ports: readonly PortPlan[]): readonly string[] {
  return ports
    .filter(({ conflict }) => conflict)
    .map(({ port, addon, process }) => {
      return `port ${port}, which ${addon} needs, is in use by ${process ?? 'another program'}`;
    });
}
