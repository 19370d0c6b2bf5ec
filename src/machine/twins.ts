/** Machines of a file that are one host, or clones of one. Pure. */
import type { Held } from './cluster.ts';
import type { HostFacts } from './facts.ts';

export interface NamedHost {
  readonly name: string;
  /** The text in the file. */
  readonly hostKey: string;
  readonly facts: Pick<HostFacts, 'hostname' | 'machineId' | 'productId' | 'isPart'>;
}

/** A machine id alone does not decide: clones of a template of VMs share it. */
export function refusedTwins(hosts: readonly NamedHost[]): readonly Held[] {
  const known = new Map<string, NamedHost>();
  return hosts.flatMap((host): readonly Held[] => {
    const { machineId } = host.facts;
    const other = machineId === '' ? undefined : known.get(machineId);
    if (other === undefined) {
      known.set(machineId, host);
      return [];
    }
    const differs = differencesOf(host, other);
    if (differs.length === 0) {
      // The entry whose name is another one is the wrong one.
      const [wrong, right] = host.facts.hostname === host.name ? [other, host] : [host, other];
      const reason = `it is the same host as ${right.name}: both have the hostname ${host.facts.hostname} and the machine-id ${machineId}; correct its address`;
      return [{ host: wrong.name, reason }];
    }
    // A node keeps what it has joined with.
    const [clone, origin] = host.facts.isPart ? [other, host] : [host, other];
    if (clone.facts.isPart) return [];
    const reason = `it has the machine-id of ${origin.name}, ${machineId}, and another ${differs.join(' and ')}, as a clone of the same template: on it, rm /etc/machine-id, systemd-machine-id-setup and a restart give it one of its own`;
    return [{ host: clone.name, reason }];
  });
}

function differencesOf(a: NamedHost, b: NamedHost): readonly string[] {
  const [kind, other] = [a, b].map(({ hostKey }) => hostKey.split(/[ :]/)[0]);
  const [id, otherId] = [a.facts.productId, b.facts.productId];
  return [
    ...(a.facts.hostname === b.facts.hostname ? [] : ['hostname']),
    ...(id === undefined || otherId === undefined || id === otherId ? [] : ['product_uuid']),
    // A fingerprint and a key, or keys of two types, can be of one host.
    ...(kind !== other || a.hostKey === b.hostKey ? [] : ['host key']),
  ];
}
