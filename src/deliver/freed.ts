/** Objects that are not valid only because of another one that is about to be pruned: it has their port or their address. */
import { isObject } from '../core/json.ts';
import { Refused } from '../kube/call.ts';
import { getObject, type LiveObject } from '../kube/objects.ts';
import type { ObjectPreview } from './apply-addon.ts';
import type { ChannelCluster } from './cluster.ts';
import type { Orphan } from './prune.ts';

/** `Invalid value: 30017: provided port is already allocated` */
const TAKEN = /\bprovided (?:port|IP) is already allocated\b/;

/**
 * Such objects without their error: they are applied after that has been deleted, which is the order of kops. Any other refusal
 * remains, and then nothing of the add-on is changed.
 */
export async function withoutFreed(
  { call }: Pick<ChannelCluster, 'call'>,
  previews: readonly ObjectPreview[],
  orphans: readonly Orphan[],
): Promise<readonly ObjectPreview[]> {
  const causes = ({ error }: ObjectPreview): Refused['causes'] => (error instanceof Refused ? error.causes : []);
  if (!previews.some((one) => causes(one).some(({ message }) => TAKEN.test(message)))) return previews;
  const services = orphans.filter(({ kind, stays }) => kind === 'Service' && stays === undefined);
  const freed = new Set<string>();
  for (const { resource, ...named } of services)
    for (const one of takenBy(await getObject(call, resource, named))) freed.add(one);
  const isFree = ({ message }: { readonly message: string }): boolean =>
    TAKEN.test(message) && message.split(/[\s"[\],]+|:(?:\s|$)/).some((word) => freed.has(word));
  return previews.map((one) =>
    causes(one).length > 0 && causes(one).every(isFree) ? { ...one, error: undefined } : one,
  );
}

/** Ports and addresses that only one Service may have. */
function takenBy(service: LiveObject | undefined): readonly string[] {
  const spec = isObject(service?.['spec']) ? service['spec'] : {};
  const list = (field: string): readonly unknown[] => (Array.isArray(spec[field]) ? (spec[field] as unknown[]) : []);
  const ports = list('ports').map((port) => (isObject(port) ? port['nodePort'] : undefined));
  return [...ports, spec['healthCheckNodePort'], ...list('clusterIPs')].flatMap((one) =>
    typeof one === 'string' || typeof one === 'number' ? [String(one)] : [],
  );
}
