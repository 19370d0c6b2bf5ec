/** What came of a run. */
import type { Report } from '../../core/events.ts';
import type { HostChecks } from '../host/host-checks.ts';
import type { Ask } from '../hooks/questions.ts';

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
  }[];
  readonly images: {
    readonly loaded: readonly string[];
    readonly skipped: string | undefined;
    /** Those that were removed from the container runtime; absent when that was not asked for. */
    readonly removed?: readonly string[] | undefined;
  };
  /** Hooks that failed while an add-on was removed all the same; absent when there are none. */
  readonly failed?: readonly FailedRemoval[] | undefined;
  /** Messages of outros for the operator, in their order; those that said nothing are left out. */
  readonly messages: readonly { readonly addon: string; readonly text: string }[];
  /** How the checks of the machine came out; absent when there were none. */
  readonly checks?: HostChecks['counts'] | undefined;
  readonly seconds: number;
}

export interface RunOptions {
  readonly report: Report;
  /** Who answers the questions of hooks; absent when nobody is there. */
  readonly ask?: Ask | undefined;
  readonly signal: AbortSignal;
}
