/** The clusters that wait in the status of an add-on: a part of them, and how many more there are. Pure. */
import type { FleetAddonStatus, Values } from '../rollout/fleet.ts';

/** Bytes of JSON: all writers and readers of the object get it each time. */
const MAX_BYTES = 8192;

/** A status with as many of its waiting clusters as have room, the first one in any case; `reasons` counts all. */
export function withinLimit(status: Values, reasons: FleetAddonStatus['reasons']): Values {
  const all = status['waiting'] as readonly object[];
  const total = Object.values(reasons).reduce((sum, count) => sum + count, 0);
  let bytes = 0;
  const end = all.findIndex((one, at) => (bytes += Buffer.byteLength(JSON.stringify(one))) > MAX_BYTES && at > 0);
  const waiting = end === -1 ? all : all.slice(0, end);
  const more = total - waiting.length;
  return { ...status, waiting, ...(more > 0 && { moreWaiting: more }) };
}
