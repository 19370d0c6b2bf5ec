/** A run as a list of actions, and the inputs of its plan. */
import * as v from 'valibot';
import type { Digest } from '../../core/digest.ts';
import type { PackageImage } from '../../core/package.ts';
import type { AddonRef } from '../../core/ref.ts';
import { addonName, fits, tree, version } from '../../core/schema.ts';
import type { HookKind } from './hooks.ts';

import { runId } from './records.ts';
import type { ShellVariable } from '../../spec/variables.ts';

/** How a file differs from its package; `owner`: it belongs neither to root nor to the current user. */
export type Difference = 'missing' | 'type' | 'owner' | 'mode' | 'size' | 'digest';

export interface FileDifference {
  /** Relative to the package's folder. A folder ends with a slash; `./` is the package's folder itself. */
  readonly path: string;
  readonly what: readonly Difference[];
  /** The bytes are right and no other user can write to them: only mode bits differ that a hook may have set. */
  readonly harmless: boolean;
}

/** Facts about a package for the plan. */
export interface PackageFacts {
  readonly ref: AddonRef;
  readonly digest: Digest;
  readonly requires: readonly string[];
  readonly fulfills: readonly string[];
  readonly images: readonly PackageImage[];
  readonly hasInstallScript: boolean;
  /** The add-on's settings in the installer spec. */
  readonly settings: unknown;
  /** Folders of operating systems that the package omits. */
  readonly omitted?: readonly string[] | undefined;
  /** Digest of the package if all its files are in the install folder, regardless of the records. */
  readonly inPlace: Digest | undefined;
  /** Differences of the files in place from this package; absent if there are none or its folder does not exist. */
  readonly differs?: readonly FileDifference[] | undefined;
  /** The package must be fetched before it can be extracted. */
  readonly remote: boolean;
  /** Time limit of each of its hooks in seconds; undefined for no limit. */
  readonly hookLimit: number | undefined;
}

/** Facts about a companion package for the plan. */
export interface CompanionFacts extends Pick<
  PackageFacts,
  'ref' | 'digest' | 'images' | 'omitted' | 'inPlace' | 'differs' | 'remote'
> {
  /** Its name in actions: an add-on of the spec may have the same name as the package. */
  readonly label: string;
  readonly because: string;
  readonly isStep: boolean;
}

/** A change of the load balancer's address. */
export interface LoadBalancerMove {
  readonly before: string;
  readonly now: string;
  /** The cluster has other nodes, which use the former address. */
  readonly others: boolean;
}

export interface PlannedAddon {
  readonly ref: AddonRef;
  readonly digest: Digest;
  readonly settings: Digest;
  /**
   * `join`: on other nodes than the primary, all add-ons except the container runtime. `remove`: from cluster and node. `leave`:
   * only from this node.
   */
  readonly mode: 'install' | 'already applied' | 'join' | 'remove' | 'leave';
  readonly because: string;
  /** The version that it replaces; absent if it was not installed, or in this version, and in plans of older versions of curlew. */
  readonly replaces?: string | undefined;
  readonly hasInstallScript: boolean;
}

export type PlannedAction = { readonly id: string; readonly because: string } & (
  | { readonly kind: 'fetch'; readonly addon: string }
  | { readonly kind: 'extract'; readonly addon: string }
  | { readonly kind: 'images'; readonly addon: string }
  /** Steps on the node that an upgrade of this add-on needs. */
  | { readonly kind: 'node'; readonly addon: string }
  | {
      readonly kind: 'hook';
      readonly addon: string;
      readonly hook: HookKind;
      readonly function: string;
      /** Arguments of the function; absent for none. */
      readonly words?: readonly string[] | undefined;
      /** Time limit in seconds; absent for no limit. */
      readonly limit?: number | undefined;
    }
);

export type HookAction = Extract<PlannedAction, { kind: 'hook' }>;

export interface DoneAction {
  readonly action: string;
  /** The run that did it. */
  readonly run: string;
}

/**
 * `install` is for a primary, `join` and `upgrade` are for the other nodes; `uninstall` removes some add-ons, `reset` removes
 * everything from a node.
 */
export type RunKind = 'install' | 'join' | 'upgrade' | 'uninstall' | 'reset';

/** Kinds of runs that apply a spec. */
export type SpecKind = Exclude<RunKind, 'uninstall' | 'reset'>;

export interface RunPlan {
  readonly format: 1;
  readonly kind: RunKind;
  /** It restores the state of an add-on before its last change. */
  readonly isRollback?: true | undefined;
  /** The run that this one resumes, and the actions that are done. */
  readonly continues?: { readonly run: string; readonly done: readonly DoneAction[] } | undefined;
  /** Add-ons in the order of the run, each once. */
  readonly addons: readonly PlannedAddon[];
  readonly actions: readonly PlannedAction[];
}

/** The command that a run is known by. */
export type RunName = RunKind | 'rollback';

export function runName({ kind, isRollback }: Pick<RunPlan, 'kind' | 'isRollback'>): RunName {
  return isRollback === true ? 'rollback' : kind;
}

/** Names in a plan become paths of folders whose scripts are run and which are removed, so they are checked. */
const action = { id: v.string(), addon: v.string(), because: v.string() };
const runPlan = v.object({
  kind: v.string(),
  addons: v.array(v.object({ ref: v.object({ tree, name: addonName, version }), replaces: v.optional(version) })),
  actions: v.array(
    v.union([
      v.object({ ...action, kind: v.literal('hook'), hook: v.string(), function: v.string() }),
      v.object({ ...action, kind: v.pipe(v.string(), v.notValue('hook')) }),
    ]),
  ),
  continues: v.optional(v.object({ done: v.array(v.object({ action: v.string(), run: runId })) })),
});

/** True for a plan from a journal, of this version or another one. */
export function isRunPlan(value: unknown): value is RunPlan {
  return fits(runPlan, value);
}

export interface PlanOptions {
  /** Install everything, regardless of the records. */
  readonly reapply: boolean;
  /** An older version may replace a newer one. */
  readonly allowDowngrade?: boolean | undefined;
  readonly images: boolean;
  /** Shell variables of the spec: some hooks are called only if a variable is set. */
  readonly variables: readonly ShellVariable[];
  /** Set if the address of the cluster's load balancer changes. */
  readonly loadBalancer?: LoadBalancerMove | undefined;
  /** Companion packages that the run needs. */
  readonly companions?: readonly CompanionFacts[] | undefined;
  /** Packages of add-ons that are removed. */
  readonly removed?: readonly PackageFacts[] | undefined;
  /** Names of removed add-ons that are also removed from the cluster. */
  readonly leaving?: ReadonlySet<string> | undefined;
  /** Their hooks must not remove data. */
  readonly keepData?: boolean | undefined;
}
