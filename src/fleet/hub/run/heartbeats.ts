/** Which agents are silent: a Lease that does not change any more says so, whatever clocks say, while the hub itself is heard. */
import { GRACE_S } from '../lease.ts';
import { clusterOf } from '../observe.ts';
import type { LiveObject } from '../../../cluster/kube/objects.ts';

const GRACE_MS = GRACE_S * 1000;

interface Beat {
  readonly version: string;
  /** Milliseconds by {@link performance.now}. */
  readonly at: number;
}

export class Heartbeats {
  readonly #beats = new Map<string, Beat>();
  readonly #onReturn: () => void;
  readonly #now: () => number;
  /** When the hub was no longer heard; undefined while it is, since then. */
  #deafAt: number | undefined;
  #heardAt: number;

  /** `onReturn`: called when an agent that was silent is back. `now`: a clock in milliseconds. */
  constructor(onReturn: () => void, now: () => number = () => performance.now()) {
    this.#onReturn = onReturn;
    this.#now = now;
    this.#heardAt = now();
    this.#deafAt = now();
  }

  /** Takes a Lease as a watch brings it. One that no agent has renewed yet says nothing. */
  see({ metadata: { namespace, resourceVersion: version }, spec }: LiveObject): void {
    const cluster = clusterOf(namespace);
    const isHeld = typeof spec === 'object' && spec !== null && 'holderIdentity' in spec && spec.holderIdentity !== '';
    if (cluster === undefined || !isHeld || this.#beats.get(cluster)?.version === version) return;
    const wasSilent = this.silence(cluster) !== undefined;
    this.#beats.set(cluster, { version, at: this.#now() });
    if (wasSilent) this.#onReturn();
  }

  /** Says whether all of the hub is seen. While it was not, no agent could renew its Lease: those that were there then count as there. */
  hears(isWhole: boolean): void {
    const now = this.#now();
    if (!isWhole) this.#deafAt ??= now;
    if (!isWhole || this.#deafAt === undefined) return;
    for (const [cluster, beat] of this.#beats) {
      if (this.#deafAt - beat.at < GRACE_MS) this.#beats.set(cluster, { ...beat, at: now });
    }
    this.#deafAt = undefined;
    this.#heardAt = now;
  }

  /** For how many seconds the hub has been heard without a break. */
  get heardFor(): number {
    return Math.floor((this.#now() - this.#heardAt) / 1000);
  }

  /** Does an agent renew its Lease? */
  isThere(cluster: string): boolean {
    return this.#beats.has(cluster) && this.silence(cluster) === undefined;
  }

  /** For how many seconds an agent has counted as silent; undefined for one that is not, or that never came. */
  silence(cluster: string): number | undefined {
    const beat = this.#beats.get(cluster);
    const silentMs = beat === undefined ? -1 : this.#now() - beat.at - GRACE_MS;
    return silentMs < 0 ? undefined : Math.floor(silentMs / 1000);
  }

  /** Milliseconds until the next agent may count as silent. */
  get nextMs(): number {
    const waits = [...this.#beats.values()].map(({ at }) => at + GRACE_MS - this.#now()).filter((ms) => ms > 0);
    return Math.min(Infinity, ...waits);
  }
}
