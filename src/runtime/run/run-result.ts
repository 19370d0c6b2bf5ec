/** The result of a run. */
import type { Reporting } from '../../core/cancellable.ts';
import type { Ask } from '../../core/context.ts';
import type { HostChecks } from '../host/host-checks.ts';

export interface FailedRemoval {
  readonly addon: string;
  readonly function: string;
  readonly message: string;
}

export interface RunResult {
  readonly run: string;
  readonly addons: readonly {
    readonly name: string;
    readonly version: string;
    readonly outcome: 'installed' | 'already applied' | 'joined' | 'upgraded' | 'removed';
    readonly because: string;
    /** The version that it replaces; absent if it was not installed, or in this version. */
    readonly replaces?: string | undefined;
    /** The version that `curlew rollback` restores now; absent if there is none, or nothing was replaced. */
    readonly back?: string | undefined;
    /** Time of its hooks in this run; absent if none ran. */
    readonly seconds?: number | undefined;
    /** The leftovers of its removal; absent if it has a hook for that, or was not removed. */
    readonly leaves?: string | undefined;
  }[];
  readonly images: {
    readonly loaded: readonly string[];
    readonly skipped: string | undefined;
    /** Images that were removed from the container runtime; absent if that was not requested. */
    readonly removed?: readonly string[] | undefined;
  };
  /** Failed hooks of add-ons that were removed anyway; absent if there are none. */
  readonly failed?: readonly FailedRemoval[] | undefined;
  /** Messages of outro hooks for the operator, in their order; empty ones are left out. */
  readonly messages: readonly { readonly addon: string; readonly text: string }[];
  /** Results of the host checks; absent if there were none. */
  readonly checks?: HostChecks['counts'] | undefined;
  readonly seconds: number;
}

export interface RunOptions extends Reporting {
  /** Answers the questions of hooks; absent if there is no terminal. */
  readonly ask?: Ask | undefined;
  /** Absent where the run changes nothing on the node that its pods would notice. */
  readonly node?: NodeSteps | undefined;
}

export interface NodeStep {
  /** Its purpose. */
  readonly because: string;
  readonly title: string;
  readonly perform: () => Promise<void>;
}

/** Steps of an upgrade around the hooks of the run. */
export interface NodeSteps {
  /** The add-on that is upgraded. */
  readonly addon: string;
  /** Once all packages and images are on the node, before the first hook; absent if its pods notice nothing of what is left to do. */
  readonly drain?: NodeStep | undefined;
  /** After the last hook. */
  readonly uncordon: NodeStep;
}
