/** What becomes of objects that a content no longer has. Pure. */
import type { ClusterAddon, FleetAddon, Pruning } from './fleet.ts';
import { reportOf } from './reported.ts';

/** Why a content is skipped that would delete most objects. */
export const DELETIONS = 'Deletions';

/** Does its content wait on the cluster for an approval of deletions? */
export function asks(record: Partial<ClusterAddon> | undefined): boolean {
  const { state, reason } = reportOf(record) ?? {};
  return state === 'Skipped' && reason === DELETIONS;
}

/** What a content that begins now may delete. What was good has been there. */
export function pruningOf(
  { addon, orders }: { readonly addon: Pick<FleetAddon, 'prune'>; readonly orders: FleetAddon['orders'] },
  isBack: boolean,
): Pruning {
  if (addon.prune === 'None') return 'None';
  return isBack || orders?.deletions === true ? 'All' : undefined;
}
