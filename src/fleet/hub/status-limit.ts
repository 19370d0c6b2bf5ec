/** What the status of an add-on lists: as much as has room, and how many more clusters wait. Pure. */
import type { FleetAddonStatus, Values } from '../rollout/fleet.ts';
import type { Condition } from './hub-kinds.ts';
import { contentBytes, textOf } from './write.ts';

/** Bytes of JSON: all writers and readers of the object get them each time. */
const MAX_STATUS = 12_288;
const MAX_WAITING = 8192;
/** The limit for a condition, which repeats what the status says elsewhere. */
const SHORT_TEXT = 256;

/**
 * A status with as much of its lists as the rest leaves room for: at least a third is for the batch, and the first cluster that waits is
 * there in any case: where that has no room, messages of conditions are cut. `reasons` counts all that wait.
 */
export function withinLimit(whole: Values, reasons: FleetAddonStatus['reasons']): Values {
  const total = Object.values(reasons).reduce((sum, count) => sum + count, 0);
  const known = whole['waiting'] as readonly unknown[];
  const roomIn = (one: Values, waiting: readonly unknown[]): number =>
    MAX_STATUS - contentBytes({ ...one, batch: [], waiting, moreWaiting: total });
  const status =
    roomIn(whole, known.slice(0, 1)) < 0 ? { ...whole, conditions: shortened(whole['conditions']) } : whole;
  const room = Math.max(0, roomIn(status, []));
  const first = firstOf(known, Math.min(MAX_WAITING, (room * 2) / 3));
  const waiting = first.length > 0 ? first : known.slice(0, 1);
  const batch = firstOf(status['batch'] as readonly unknown[], room - contentBytes(waiting));
  const more = total - waiting.length;
  return { ...status, batch, waiting, ...(more > 0 && { moreWaiting: more }) };
}

function shortened(conditions: unknown): readonly Condition[] {
  return (conditions as readonly Condition[]).map(({ message = '', ...one }) => {
    return { ...one, message: textOf(message, SHORT_TEXT) };
  });
}

function firstOf(all: readonly unknown[], most: number): readonly unknown[] {
  let bytes = 2;
  const end = all.findIndex((one) => (bytes += contentBytes(one) + 1) > most);
  return end === -1 ? all : all.slice(0, end);
}
