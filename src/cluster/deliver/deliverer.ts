/** How add-ons of one kind of source are delivered: what differs between manifests and charts. */
import type { AddonRecord, RecordedKind } from '../channel/record.ts';
import type { LiveState } from '../channel/pass.ts';
import type { CurlewError } from '../../core/errors.ts';
import type { Task } from './addon.ts';
import type { ChannelCluster } from './channel-cluster.ts';
import type { Delivery } from './delivery.ts';
import type { AddonObject } from './addon-objects.ts';
import type { ChangedObject, Outcome } from './outcome.ts';
import type { Orphans, Pruned } from './prune.ts';
import type { AppliedObject, ObjectRef } from './records.ts';
import type { ReleaseTools } from './release.ts';
import type { Reporting } from './request.ts';

/** What an add-on is to be on this cluster; nothing has been changed for it. */
export interface Desired extends AsyncDisposable {
  /** Hash of its content in hex; empty if it has none. */
  readonly hash: string;
  /** What a delivery may leave behind, wherever it ends. */
  readonly begun: { readonly objects: readonly ObjectRef[]; readonly release?: AddonRecord['release'] };
  /** Why the cluster would refuse it: then nothing of it is changed. */
  readonly refused: readonly CurlewError[];
}

/** What a delivery has left in the cluster. */
export interface Delivered {
  /** Whose health is waited for. */
  readonly applied?: readonly AppliedObject[];
  /** All that the add-on consists of. */
  readonly objects?: readonly AddonObject[];
  readonly changes?: readonly ChangedObject[];
  readonly orphans?: Outcome['orphans'];
  /** What failed. The rest has been done. */
  readonly errors?: readonly CurlewError[];
  /** Keys of the objects that are gone. */
  readonly gone?: ReadonlySet<string>;
  /** For the record. */
  readonly kinds?: readonly RecordedKind[];
  readonly orphanKinds?: readonly RecordedKind[] | undefined;
  readonly release?: AddonRecord['release'];
  /** Nothing of it is in the cluster. */
  readonly isNowhere?: boolean;
  /** The program that applied it was killed: the next pass continues. */
  readonly isCut?: boolean;
}

export type RemovalTools = Pick<ReleaseTools, 'cluster' | 'request' | 'helm'>;

export interface Deliverer<D extends Desired = Desired> {
  /** Finds out, and changes nothing. The caller disposes the result. */
  readonly desired: (delivery: Delivery, task: Task) => Promise<D>;
  /** What delivering it would change; of an add-on that stays as it is: how it differs. */
  readonly preview: (delivery: Delivery, task: Task) => Promise<Outcome>;
  /** Applies it, and deletes what it no longer has. */
  readonly deliver: (delivery: Delivery, task: Task, how: { readonly desired: D } & Reporting) => Promise<Delivered>;
  /** Deletes what was found of it, and waits until that is gone. */
  readonly remove: (tools: RemovalTools, record: Pick<AddonRecord, 'release'>, pruning: Orphans) => Promise<Pruned>;
  /** How what is recorded differs from what is there, by the key of the record. */
  readonly observe: (
    cluster: Pick<ChannelCluster, 'call' | 'signal' | 'warnings'>,
    records: readonly AddonRecord[],
  ) => Promise<ReadonlyMap<string, LiveState>>;
}
