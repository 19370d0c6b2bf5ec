/** The reasons why a host cannot become a node, by the rules of its own checks and of kubeadm: known before the first step. Pure. */
import type { HostFacts } from './facts.ts';
import type { Role } from './cluster.ts';

/** kubeadm's own check of a control plane; a kubelet and containerd take about half a GiB. */
const MIN_MIB = { 'control-plane': 1700, worker: 700 } as const;
/** Ports that kubeadm wants free: the kubelet; the API server, etcd, the scheduler and the controller manager. */
const PORTS = { worker: [10_250], 'control-plane': [2379, 2380, 6443, 10_250, 10_257, 10_259] } as const;
/** A certificate that is made now is not valid yet for a clock that is behind by more than kubeadm dates it back. */
const MAX_SKEW_S = 300;
/** Title of the host preflight of the add-on kubernetes, for `--ignore`. */
export const SWAP = 'Swap';

/** `passed` are errors that kubeadm ignores, in lower case; `swaps`: the kubelet may run with it. */
export function unreadyReasons(
  facts: Pick<HostFacts, 'isPart' | 'isUnfinished' | 'memoryMiB' | 'swap' | 'skewS' | 'ports' | 'missing'>,
  role: Role,
  { passed, swaps }: { readonly passed: readonly string[]; readonly swaps: boolean },
): readonly string[] {
  if (facts.isPart || facts.isUnfinished) return [];
  const { memoryMiB, swap, skewS, ports, missing } = facts;
  const isPassed = (error: string): boolean => passed.includes('all') || passed.includes(error);
  const taken = PORTS[role].filter((port) => ports.includes(port) && !isPassed(`port-${port}`));
  const skew = Math.abs(skewS);
  return [
    ...(memoryMiB < MIN_MIB[role] ? [`it has ${memoryMiB} MiB of memory, and a ${role} needs ${MIN_MIB[role]}`] : []),
    ...(swap && !swaps
      ? [`its swap is on: swapoff -a, and remove it from /etc/fstab; --ignore ${SWAP} passes this`]
      : []),
    ...(skew > MAX_SKEW_S
      ? [
          `its clock is ${skew} s ${skewS < 0 ? 'behind' : 'ahead of'} that of this machine: timedatectl set-ntp true on the one that is wrong`,
        ]
      : []),
    ...(taken.length > 0
      ? [`port ${taken.join(', ')} is in use there, and Kubernetes needs it: ss -ltnp names the program`]
      : []),
    ...(missing.length > 0 ? [`${missing.join(', ')} is missing: install it`] : []),
  ];
}
