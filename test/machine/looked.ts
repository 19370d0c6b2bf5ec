/** A cluster of a file, and a look at it in which all of its machines work. */
import type { SeenMachine } from '../../src/machine/cluster.ts';
import type { HostFacts } from '../../src/machine/facts.ts';
import type { WrittenCluster, WrittenHost } from '../../src/machine/run/cluster-file.ts';
import type { BundleFacts, ClusterLook, HostLook } from '../../src/machine/run/look.ts';

export const VERSION = 'v1.34.4';
export const bundle: BundleFacts = { digest: 'sha256:b', size: 1, arch: 'x86_64', kubernetes: VERSION };

export type More = Partial<SeenMachine>;

export function given(names: readonly string[]): WrittenCluster {
  const machines = names.map((name): WrittenHost => {
    const role = name.startsWith('cp') ? 'control-plane' : 'worker';
    const address = `10.0.0.${names.indexOf(name) + 1}`;
    const ssh = { name, address, hostKey: 'x' };
    return { name, role, address, ssh, machine: { name, role, address, ssh: { hostKey: 'x' } } };
  });
  const installer = { kubernetes: { loadBalancerAddress: '10.0.0.100:6443' } };
  return { name: 'paris', version: VERSION, machines, file: '/paris.yaml', kubeconfig: '/paris.conf', installer };
}

const READY: Partial<HostFacts> = { skewS: 0, ports: [], missing: [] };
/** Machines that all work, but for `more`. */
export function look({ machines }: WrittenCluster, more: Readonly<Record<string, More>> = {}): ClusterLook {
  const seen = machines.map(({ name, role }): SeenMachine => {
    const versions = role === 'worker' ? { kubelet: VERSION } : { kubelet: VERSION, apiServer: VERSION };
    const host = { answers: true, hostId: `${name}-id`, cluster: 'paris', images: [VERSION] };
    return { name, role, joined: true, ready: true, ...versions, ...host, ...more[name] };
  });
  const hosts = machines.map((host, at): HostLook => {
    if (seen[at]?.answers === false) return { host };
    return {
      host,
      facts: {
        hostname: host.name,
        os: 'debian 12',
        arch: 'x86_64',
        memoryMiB: 4000,
        ...READY,
        isControlPlane: host.role !== 'worker',
        bundle: 'sha256:b',
        broken: [] as readonly string[],
      } as HostFacts,
    };
  });
  const control = seen.filter(({ role }) => role === 'control-plane');
  const members = control.map(({ name, ready }) => ({ name, healthy: ready === true }));
  const none = { refused: [], extras: [], held: [], busy: [], unasked: [] };
  return {
    ...none,
    hosts,
    seen: { complete: true, machines: seen, members },
    isListed: true,
    speaker: machines[0],
    silent: undefined,
  };
}
