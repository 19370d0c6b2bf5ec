/** A fleet as it is observed, and what one step writes. Times are seconds since 1970. Pure. */
import type { Candidate, Entry } from '../../cluster/channel/channel.ts';
import type { Labels, Selector } from './groups.ts';
import type { Rules } from './limits.ts';
import type { State, Strategy } from './strategy.ts';
import type { Window } from './windows.ts';

export type Values = Readonly<Record<string, unknown>>;

export interface Cluster {
  readonly name: string;
  readonly labels: Labels;
  readonly paused?: boolean;
  readonly windows?: readonly Window[];
  readonly available: boolean;
  /** When `available` last changed. */
  readonly since?: number;
  /** `v1.31.2` */
  readonly kubernetes: string;
  /** What templates see, with name, labels and version. A change of facts alone renders nothing again. */
  readonly networks?: Values;
  readonly facts?: Values;
  readonly server?: string;
  /** What templates also see in `.Cluster`, such as the object of Cluster API. */
  readonly object?: Values;
  /** Other objects that templates see, such as `.ControlPlane`. */
  readonly roots?: Values;
  /** When it was deleted: it goes when its add-ons are gone. */
  readonly deleting?: number;
  /** What its own records say is installed, by {@link FleetAddon.identity}. The owner of this engine is `fleet:NAME`. */
  readonly installed?: Readonly<Record<string, { readonly owner: string }>>;
}

/** An entry of a channel in a hub, whose content is there by digest. */
export interface Alternative extends Candidate {
  readonly kubernetesVersion: string;
  readonly content: Values;
  /** Instead of those of the add-on: entries of several kinds differ in them. */
  readonly identity?: string;
  readonly namespace?: string;
}

export interface FleetAddon {
  readonly name: string;
  /** Grows with each change by people. */
  readonly generation: number;
  /**
   * What cannot exist twice in a cluster, such as `release:NAMESPACE/NAME`. A change of it removes, and then installs. The bare name of
   * the add-on if it cannot be read, so that it is unknown.
   */
  readonly identity: string;
  readonly namespace?: string;
  /** A package, manifest or chart by digest; or a channel, whose entry that fits the Kubernetes of a cluster is chosen. */
  readonly source:
    | { readonly content: Values; readonly version?: string }
    | { readonly channel: readonly (Entry | Alternative)[]; readonly addon: string };
  /** Undefined if it cannot be read: it selects no cluster, and may be meant for any. */
  readonly clusterSelector: Selector | undefined;
  readonly paused?: boolean;
  /** It is removed from all clusters. One that vanishes instead stays installed. */
  readonly deleting?: boolean;
  /** The last layer wins: default, matching groups, template, a ClusterAddon's own. */
  readonly config?: {
    readonly default?: Values;
    readonly groups?: readonly { readonly selector: Selector; readonly values: Values }[];
  };
  readonly valuesTemplate?: string;
  /**
   * What its source has besides on a cluster of this name; a text says why there is no content there. When an answer changes, so does
   * `source`: by that, a rollout begins.
   */
  readonly sourceOn?: (cluster: string) => Values | string;
  /** Why no cluster can take a content with these values. */
  readonly refuses?: (values: Values) => string | undefined;
  readonly dependsOn?: readonly string[];
  readonly mode?: 'Continuous' | 'InstallOnce';
  /** Whose rules its rollout and its values follow; curlew's by default. */
  readonly compat?: Rules;
  /** Takes over what another owner has installed. */
  readonly adopt?: boolean;
  /** What becomes of objects that its content no longer has; `Auto` by default: they are deleted. */
  readonly prune?: 'Auto' | 'None';
  /** Which fields of it do nothing, and why. */
  readonly idle?: string;
  readonly rollout?: Strategy;
  readonly remove?: Removal;
  readonly orders?: Orders;
  /** Orders for another content, which do not count. */
  readonly lapsed?: Omit<Orders, 'generation'>;
  readonly status?: FleetAddonStatus;
  /** Why it cannot be read. It stays where and as it is until it can be, except on clusters that are deleted. */
  readonly problem?: string;
}

interface Removal {
  /** What becomes of a removal that fails or takes longer than `timeout`: it stays, or its record is dropped. */
  readonly onFailure?: 'Block' | 'Skip' | 'Orphan';
  /** What becomes of it where it is no longer selected: it is removed, or stays and only its record goes. */
  readonly onUnselect?: 'Delete' | 'Leave';
  readonly timeout?: string;
}

/** What a person lets pass. */
export interface Approval {
  readonly at: number;
  /** Groups that may begin. Of one that is not in {@link Strategy.approval}, it says the same as `unproven`. */
  readonly groups?: readonly string[];
  /** Mandatory groups after which the others may begin although no cluster of them has proven what is rolled out. */
  readonly unproven?: readonly string[];
  /** Up to this number of removals may pass the brake. */
  readonly removals?: number;
  /** A content may take most objects of what is there with it. */
  readonly deletions?: boolean;
  /** Clusters may get a lower version than the one that began there before, such as after they were rebuilt. */
  readonly downgrade?: boolean;
  /** When that was approved, if it was after {@link Approval.at}. */
  readonly downgradeAt?: number;
}

/** What a person asked for. Void if the generation is another one, or a rollout began later; it counts from its time on. */
export interface Orders extends Approval {
  readonly generation: number;
  /** When it was ordered: what failed before is tried again. */
  readonly retry?: number;
  /** The time that the order gives, if it counts as one of the present rollout, which began later. */
  readonly retryGiven?: number;
  /** When it was ordered: every cluster goes back to what was known as good. */
  readonly rollback?: number;
}

export interface Waiting {
  readonly cluster: string;
  readonly reason: string;
  readonly message: string;
  readonly since: number;
}

export interface FailedClusters {
  /**
   * Clusters on which an add-on has failed, with the group of each; at most 100, and 4 KiB. One counts until it has succeeded, also if it
   * goes or is to get something else.
   */
  readonly clusters: Readonly<Record<string, string>>;
  /** How many more have failed: those that are not seen any more count in the last group. */
  readonly more?: number;
}

/** Removals without an approval: that from a cluster, or so many of about the same time. */
export interface Removed {
  readonly at: number;
  readonly begun: number;
  readonly cluster?: string;
}

export interface FleetAddonStatus {
  readonly observedGeneration: number;
  /** Hash of source and configuration. */
  readonly revision: string;
  /** When the rollout of this revision began. */
  readonly since: number;
  /** How many of its stages are done, also of those without clusters. Clusters that come later into these are the last. */
  readonly reached: number;
  readonly rolledBack: boolean;
  /**
   * Clusters on which what began has not lasted {@link Strategy.minSuccessTime} yet, and when a step first saw its success, or 0: a site
   * may date back what it reports. At most 100, and 5 KiB.
   */
  readonly soaking?: Readonly<Record<string, number>>;
  /** Until a retry is ordered that is newer than this one. */
  readonly failed?: FailedClusters & { readonly retry: number };
  /** The order to retry that counts, and when a step first saw it: what had failed by then, and is not tried again, was not meant. */
  readonly retry?: { readonly at: number; readonly seen: number };
  /**
   * How many removals have begun under the approval of that time. `clusters`: at most 100 of the last step; what is
   * still installed there has not begun, since its order was not written.
   */
  readonly removals?: { readonly at: number; readonly begun: number; readonly clusters?: readonly string[] };
  /** Removals that have begun without an approval within {@link Strategy.removalsWithin}; at most 100 entries. */
  readonly removed?: readonly Removed[];
  /** Why nothing new begins. */
  readonly stopped?: string;
  /** Why it goes back to what was known as good, whatever has come of that. */
  readonly wentBack?: string;
  /** What a person is asked to do: of the first cluster that waits for that, and about an order that does not count, or a field. */
  readonly asks?: string;
  readonly counts: Readonly<Partial<Record<State, number>>>;
  /** How many clusters wait, by reason. */
  readonly reasons: Readonly<Record<string, number>>;
  /** Clusters with a place in the batch; at most 100. */
  readonly batch: readonly string[];
  /** The first ones, at most 20. */
  readonly waiting: readonly Waiting[];
}

/** What is installed, and the hash by which a change is found. */
export interface AddonContent {
  readonly source: Values;
  readonly version?: string;
  readonly values: Values;
  readonly specHash: string;
  /** Hash of what its template saw. While it is the same, nothing is rendered again, even if facts have changed. */
  readonly inputs?: string;
}

interface Key {
  readonly cluster: string;
  readonly addon: string;
}

/** One add-on on one cluster. */
export interface ClusterAddon extends Key {
  readonly spec: ClusterAddonSpec;
  /** The cluster's own configuration, which people write. */
  readonly config?: Values;
  /** The agent writes it. A state counts only for the revision and hash that were applied. */
  readonly status?: {
    readonly applied: { readonly revision: number; readonly hash: string };
    readonly state: State;
    readonly since: number;
    /** Why, in one word. */
    readonly reason?: string;
    /** Why, for people. */
    readonly message?: string;
  };
  /** Why it could not go back to `knownGood`, if `spec` is still what it was to leave. */
  readonly backFailure?: string;
}

/**
 * What becomes of objects that a content no longer has: `None` leaves them, `All` deletes them. Without either, they are deleted, unless they
 * are so many that a person must approve it.
 */
export type Pruning = 'None' | 'All' | undefined;

export interface ClusterAddonSpec extends AddonContent {
  /** Only grows. */
  readonly revision: number;
  readonly identity: string;
  readonly action: 'Install' | 'Remove';
  /** When this revision was written. */
  readonly startedAt: number;
  readonly knownGood?: AddonContent;
  /** `Leave`: nothing is removed, and only the record goes. */
  readonly remove?: { readonly onFailure?: Removal['onFailure'] | 'Leave'; readonly timeout?: string };
  readonly prune?: Pruning;
}

export interface Observed {
  /** False: a list failed or is partial, so nothing is written. */
  readonly complete: boolean;
  readonly clusters: readonly Cluster[];
  /** There is no cluster, because all are known to have gone. */
  readonly emptied?: boolean;
  readonly addons: readonly FleetAddon[];
  readonly clusterAddons: readonly ClusterAddon[];
  /** Since when clusters can report, if they do so by themselves: nothing was late before. */
  readonly heardSince?: number;
}

/** A removed add-on is gone; others stay installed. */
export type DropReason = 'Removed' | 'HandedOver' | 'Orphaned' | 'ClusterGone';

export interface Writes {
  /** Created, or replaced but for `config` and `status`. */
  readonly put: (Key & Pick<ClusterAddon, 'spec'>)[];
  /** Records that are deleted. */
  readonly drop: (Key & { readonly reason: DropReason })[];
  /** Only statuses that changed. */
  readonly status: { readonly addon: string; readonly status: FleetAddonStatus }[];
  /** Add-ons that are deleted and have left every cluster. */
  readonly released: string[];
  /** Clusters that are deleted and have no add-on of the fleet any more. */
  readonly left: string[];
  /** Not written: records whose add-on has vanished, and which stay as they are. */
  readonly detached: Key[];
  /** Seconds after which time alone changes something. */
  recheckAfter?: number;
}
