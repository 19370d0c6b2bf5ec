/** Add-ons that stay on a cluster that they no longer select: only their record goes. Pure. */
import type { RolloutAction } from './action.ts';
import type { Cluster, ClusterAddon, FleetAddon } from './fleet.ts';

interface Member {
  readonly run: { readonly addon: FleetAddon };
  readonly cluster: Cluster;
  readonly action: RolloutAction;
  readonly record: ClusterAddon | undefined;
}

interface Ordered {
  readonly remove?: { readonly onFailure?: string | undefined } | undefined;
}

/** Is it to stay, or under way to that? Whoever deletes the add-on or the cluster removes it. */
export function isLeft({ run: { addon }, cluster, action, record }: Member): boolean {
  if (action !== 'delete') return leaves(record?.spec);
  return addon.remove?.onUnselect === 'Leave' && addon.deleting !== true && cluster.deleting === undefined;
}

/** The order says so in a field whose other words every agent reads, so that an older one refuses it and removes nothing. */
export function leaves({ remove }: Ordered = {}): boolean {
  return remove?.onFailure === 'Leave';
}

/** Does a removal that has failed keep its record? */
export function blocks({ remove }: Pick<FleetAddon, 'remove'>, ordered: Ordered): boolean {
  return !leaves(ordered) && (remove?.onFailure ?? 'Block') === 'Block';
}
