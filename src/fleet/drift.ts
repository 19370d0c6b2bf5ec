/** Objects of an add-on that are not as they were applied, and when they are restored. Pure. */
import type { Target } from './rollout/target.ts';
import type { LiveState } from '../cluster/channel/pass.ts';
import { recordKey } from '../cluster/channel/record.ts';
import { driftOn, type Look, type WrittenFleet } from './fleet.ts';
import { isHandedOver, ownRecord, recordsOf } from './observe.ts';

/** What is to be restored of an add-on on a cluster, for people; undefined if nothing is. */
export type DriftOf = (cluster: string, addon: string) => string | undefined;

/**
 * What the looks show: deleted objects return, changed ones as `drift` says. Warnings are about those that stay changed; `addedTo` is
 * what others have added and `Revert` leaves.
 */
export function driftIn(
  { addons, channels }: Pick<WrittenFleet, 'addons' | 'channels'>,
  looks: ReadonlyMap<string, Look>,
): {
  readonly driftOf: DriftOf;
  readonly addedTo: (cluster: string, addon: string) => readonly string[] | undefined;
  readonly warnings: readonly string[];
} {
  const drifts = new Map<string, string>();
  const additions = new Map<string, readonly string[]>();
  const warnings: string[] = [];
  for (const [cluster, look] of looks) {
    if ('problem' in look || look.live === undefined) continue;
    const records = recordsOf(look);
    for (const addon of addons) {
      const record = ownRecord(records, addon.name);
      if (record === undefined || isHandedOver(record, records)) continue;
      const live = look.live.get(recordKey(record.namespace, record.addon));
      if (live === undefined) continue;
      const { changed, added = [] } = live;
      const drift = driftOn(addon, { channels }, look.kubernetes);
      const key = `${cluster} ${addon.name}`;
      if (added.length > 0 && drift === 'Revert') additions.set(key, added);
      const what = returning(live, drift);
      if (what !== undefined) drifts.set(key, what);
      else if (changed.length > 0 && drift !== 'Keep')
        warnings.push(`${cluster}: ${addon.name} was changed by others: ${changed.join(', ')}`);
    }
  }
  return {
    driftOf: (cluster, addon) => drifts.get(`${cluster} ${addon}`),
    addedTo: (cluster, addon) => additions.get(`${cluster} ${addon}`),
    warnings,
  };
}

/** Which objects return, for people; undefined if none does. */
export function returning({ missing, changed }: LiveState, drift: string): string | undefined {
  if (missing.length > 0) return `missing: ${missing.join(', ')}`;
  return changed.length > 0 && drift === 'Revert' ? `changed by others: ${changed.join(', ')}` : undefined;
}

/** What is to be restored of a settled target, and why it waits; undefined if nothing is. */
export function driftAt(
  { run: { addon, fleet, strategy }, cluster, wants, state, record }: Target,
  driftOf: DriftOf,
): { readonly what: string; readonly reason?: string; readonly message?: string } | undefined {
  const isSettled = !wants && state === 'Succeeded' && record?.spec.action === 'Install';
  const what = isSettled && addon.mode !== 'InstallOnce' ? driftOf(cluster.name, addon.name) : undefined;
  if (what === undefined) return undefined;
  if (addon.paused === true || cluster.paused === true) return { what, reason: 'Paused', message: what };
  const closed = fleet.closed(cluster.windows) ?? fleet.closed(strategy.windows);
  return closed === undefined ? { what } : { what, reason: 'Window', message: `${what}; ${closed}` };
}
