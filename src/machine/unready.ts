/** What keeps a host that is no node yet from becoming one, by the rules of its own checks and of kubeadm: known before the first step. Pure. */
import { fieldsOf } from '../core/json.ts';
import type { HostFacts } from './facts.ts';
import type { Role } from './order.ts';

/** kubeadm's own check of a control plane; a kubelet and containerd take about half a GiB. */
const MIN_MIB = { 'control-plane': 1700, worker: 700 } as const;
/** What kubeadm wants free: the kubelet; the API server, etcd, the scheduler and the controller manager. */
const PORTS = { worker: [10_250], 'control-plane': [2379, 2380, 6443, 10_250, 10_257, 10_259] } as const;
/** A certificate that is made now is not valid yet for a clock that is behind by more than kubeadm dates it back. */
const MAX_SKEW_S = 300;
/** Title of the host preflight of the add-on kubernetes, for `--ignore`. */
const SWAP = 'Swap';

/** `kubernetes` are the settings of that add-on, and `ignore` titles of host preflights that a person passes. */
export function unreadyReasons(
  facts: Pick<HostFacts, 'isPart' | 'isUnfinished' | 'memoryMiB' | 'swap' | 'skewS' | 'ports' | 'missing'>,
  role: Role,
  { kubernetes, ignore }: { readonly kubernetes: unknown; readonly ignore: readonly string[] },
): readonly string[] {
  if (facts.isPart || facts.isUnfinished) return [];
  const { memoryMiB, swap, skewS, ports, missing } = facts;
  const { kubeletConfiguration, initIgnorePreflightErrors } = fieldsOf(kubernetes);
  const passed = textOf(initIgnorePreflightErrors).split(',');
  const mayExist = /failSwapOn: false/.test(textOf(kubeletConfiguration)) || ignore.includes(SWAP);
  const taken = PORTS[role].filter((port) => ports.includes(port) && !passed.includes(`Port-${port}`));
  const skew = Math.abs(skewS);
  return [
    ...(memoryMiB < MIN_MIB[role] ? [`it has ${memoryMiB} MiB of memory, and a ${role} needs ${MIN_MIB[role]}`] : []),
    ...(swap && !mayExist
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

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
