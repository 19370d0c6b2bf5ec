/** A run as a list of actions, and what it is planned from. */
import type { Digest } from '../../core/digest.ts';
import type { PackageImage } from '../../core/package.ts';
import type { AddonRef } from '../../core/ref.ts';
import type { Hook } from '../hooks/hooks.ts';
import type { FileDifference } from '../node/placed-files.ts';
import type { ShellVariable } from '../hooks/settings.ts';

/** What the plan needs to know of a package. */
export interface PackageFacts {
  readonly ref: AddonRef;
  readonly digest: Digest;
  readonly requires: readonly string[];
  readonly fulfills: readonly string[];
  readonly images: readonly PackageImage[];
  readonly hasInstallScript: boolean;
  /** The add-on's settings in the installer spec. */
  readonly settings: unknown;
  /** Folders of operating systems that were left out of the package. */
  readonly omitted?: readonly string[] | undefined;
  /** Digest of the package whose files are in the install folder, all that this one has, whatever the records say. */
  readonly inPlace: Digest | undefined;
  /** What differs from this package in the folder where it should be; absent for nothing, or where there is no such folder. */
  readonly differs?: readonly FileDifference[] | undefined;
  /** The package is elsewhere, and has to be brought here before it can be extracted. */
  readonly remote: boolean;
  /** Seconds that one of its hooks may take; undefined for as long as it likes. */
  readonly hookLimit: number | undefined;
}

/** What the plan needs to know of a package beside those of the spec. */
export interface AlongFacts extends Pick<
  PackageFacts,
  'ref' | 'digest' | 'images' | 'omitted' | 'inPlace' | 'differs' | 'remote'
> {
  /** What its actions call it: an add-on of the spec may have the same name. */
  readonly label: string;
  readonly because: string;
  readonly isStep: boolean;
}

/** What add-ons learn about the load balancer when kubernetes is installed with another address of it. */
export interface LoadBalancerMove {
  readonly before: string;
  readonly now: string;
  /** The cluster has nodes beside this one, which know the former address. */
  readonly others: boolean;
}

export interface PlannedAddon {
  readonly ref: AddonRef;
  readonly digest: Digest;
  readonly settings: Digest;
  /**
   * `join` for what is only joined: on a node beside the primary, all but the container runtime. `remove` from cluster and
   * node, `leave` from this node only.
   */
  readonly mode: 'install' | 'already applied' | 'join' | 'remove' | 'leave';
  readonly because: string;
  readonly hasInstallScript: boolean;
}

export type PlannedAction = { readonly id: string; readonly because: string } & (
  | { readonly kind: 'fetch'; readonly addon: string }
  | { readonly kind: 'extract'; readonly addon: string }
  | { readonly kind: 'images'; readonly addon: string }
  | {
      readonly kind: 'hook';
      readonly addon: string;
      readonly hook: Hook;
      readonly function: string;
      /** What it is called with; absent for nothing. */
      readonly words?: readonly string[] | undefined;
      /** Seconds that it may take; absent for as long as it likes. */
      readonly limit?: number | undefined;
    }
);

export interface DoneAction {
  readonly action: string;
  /** The run that did it. */
  readonly run: string;
}

/**
 * `install` is for a primary, `join` and `upgrade` are for the nodes beside it; `uninstall` removes some add-ons, `reset`
 * everything from a node.
 */
export type RunKind = 'install' | 'join' | 'upgrade' | 'uninstall' | 'reset';

/** Kinds of runs that carry out a spec. */
export type SpecKind = Exclude<RunKind, 'uninstall' | 'reset'>;

export interface RunPlan {
  readonly format: 1;
  readonly kind: RunKind;
  /** The run that this one resumes, and which of the hooks are done. */
  readonly continues?: { readonly run: string; readonly done: readonly DoneAction[] } | undefined;
  /** In the order of the run, each once. */
  readonly addons: readonly PlannedAddon[];
  readonly actions: readonly PlannedAction[];
}

export interface PlanOptions {
  /** Install everything, whatever the records say. */
  readonly reapply: boolean;
  /** An older version may take the place of a newer one. */
  readonly allowDowngrade?: boolean | undefined;
  readonly images: boolean;
  /** Shell variables of the spec: some of them ask for special hooks. */
  readonly variables: readonly ShellVariable[];
  /** The cluster's load balancer gets another address. */
  readonly loadBalancer?: LoadBalancerMove | undefined;
  /** Packages beside those of the spec that come along. */
  readonly along?: readonly AlongFacts[] | undefined;
  /** Packages of add-ons that are removed. */
  readonly removed?: readonly PackageFacts[] | undefined;
  /** Names of those among them that leave the cluster, too. */
  readonly leaving?: ReadonlySet<string> | undefined;
  /** Their hooks are asked to leave data alone. */
  readonly keepData?: boolean | undefined;
}
