/** Clusters that a status names, and how many more of them have failed. Pure. */
import type { FailedClusters, FleetAddon, FleetAddonStatus } from './fleet.ts';

/** Names of clusters in a status. */
export const MAX_NAMES = 100;
/** Bytes of JSON: all readers of the object get them each time. */
const MAX_BYTES = 4096;

export type Failure = readonly [cluster: string, group: string];

/** What counts of the failures before, as much as has room by name. */
export function failedBefore(
  { deleting }: FleetAddon,
  { failed }: Pick<FleetAddonStatus, 'failed'>,
  retry: number,
): FailedClusters {
  if (failed === undefined || deleting === true || retry > failed.retry) return { clusters: {} };
  const named = new Names<string>();
  const unnamed = Object.entries(failed.clusters).filter((one) => !named.add(one)).length;
  const more = (failed.more ?? 0) + unnamed;
  return { clusters: named.clusters, ...(more > 0 && { more }) };
}

/** Clusters that a status names, as many as have room. */
export class Names<Note extends string | number> {
  readonly clusters: Record<string, Note> = {};
  #count = 0;
  #bytes = 2;

  /** False if it has no room. */
  add([cluster, note]: readonly [cluster: string, note: Note]): boolean {
    const bytes = Buffer.byteLength(JSON.stringify([cluster, note]));
    if (this.#count >= MAX_NAMES || this.#bytes + bytes > MAX_BYTES) return false;
    this.clusters[cluster] = note;
    this.#count += 1;
    this.#bytes += bytes;
    return true;
  }
}
