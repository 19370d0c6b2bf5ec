/** Is what renews a Lease alive? Pure. */
import type { Condition } from './hub-kinds.ts';

/** What has not renewed its Lease is silent after this time: five times the interval at which Leases are renewed. */
export const GRACE_S = 300;

/** Is a component available, by the age of its Lease? Undefined if there is none. */
export function leaseStatus(ageSeconds: number | undefined): Condition['status'] {
  if (ageSeconds === undefined) return 'Unknown';
  return ageSeconds < GRACE_S ? 'True' : 'False';
}
