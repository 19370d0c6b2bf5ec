/** The request of a run, and the view of the node that its plan is made from. */
import type { Digest } from '../../core/digest.ts';
import type { AddonRef } from '../../core/ref.ts';
import type { Installer } from '../../spec/installer.ts';
import type { OfferedPackage, SourcePackage } from '../node/source.ts';
import type { ClusterRequest, ClusterView } from '../cluster/consult.ts';
import type { RunFingerprint, LastRun } from '../plan/continue-plan.ts';
import type { NodePlace } from '../node/node-place.ts';
import type { PlacedState } from '../node/placed-package.ts';
import type { Records } from '../plan/records.ts';
import type { CompanionFacts, PackageFacts, RunKind, RunPlan } from '../plan/run-plan.ts';
import type { ShellVariable } from '../../spec/variables.ts';

export interface RequestedPackage {
  readonly source: SourcePackage;
  readonly settings: unknown;
}

/** Which check results stop a run: failures, failures and warnings, none. */
export const CHECK_MODES = ['enforce', 'enforce-warnings', 'ignore'] as const;

export type CheckMode = (typeof CHECK_MODES)[number];

export interface CheckRequest {
  readonly mode: CheckMode;
  /** Titles of checks whose results are ignored. */
  readonly ignored: readonly string[];
  readonly installer: Installer;
  /** Include the built-in checks. */
  readonly builtIn: boolean;
  /** Version of curlew. */
  readonly tool: string;
}

/** The add-ons that a run removes, and how. */
export interface PlannedRemoval {
  /** Packages whose hooks run, with the settings that they were installed with. */
  readonly packages: readonly RequestedPackage[];
  /** Names of other add-ons, whose records and files are removed without running hooks. */
  readonly forgotten: readonly string[];
  /** A failed hook is reported and the run continues. */
  readonly keepGoing: boolean;
  /** Hooks must not remove data. */
  readonly keepData: boolean;
  /** Also remove images that no other add-on has from the container runtime. */
  readonly pruneImages: boolean;
}

export interface RunRequest {
  readonly kind: RunKind;
  /** It restores the state of an add-on before its last change. */
  readonly isRollback?: true | undefined;
  readonly place: NodePlace;
  /** Folder with hook-runner.sh, cap-log.sh and lib/. */
  readonly scripts: string;
  readonly packages: readonly RequestedPackage[];
  /** Absent if nothing is removed. */
  readonly removal?: PlannedRemoval | undefined;
  /** Companion packages that the source has. */
  readonly offered?: readonly OfferedPackage[] | undefined;
  readonly variables: readonly ShellVariable[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly reapply: boolean;
  /** An older version may replace a newer one; default: false. */
  readonly allowDowngrade?: boolean | undefined;
  /** Replaced packages are kept for a rollback; default: true. */
  readonly keepsPrevious?: boolean | undefined;
  /** Why images are not loaded; undefined if they are. */
  readonly skipImages: string | undefined;
  /** Default time limit of each hook in seconds; settings or the package of an add-on may override it. */
  readonly hookLimit: number | undefined;
  /** JSON that is saved with the run, so that the caller can repeat the request. */
  readonly command: unknown;
  /** Host checks before any change; absent: none. */
  readonly checks?: CheckRequest | undefined;
  /** How to reach the cluster, to record applied add-ons in it; absent if it must not be changed. */
  readonly cluster?: ClusterRequest | undefined;
}

/** A companion package with its facts for the plan. */
export interface CompanionPackage extends CompanionFacts {
  readonly source: SourcePackage;
}

/** The state of the node for a run, and its plan. */
export interface RunView {
  readonly request: RunRequest;
  readonly records: Records;
  readonly view: ClusterView;
  readonly last: LastRun | undefined;
  readonly packages: readonly PackageFacts[];
  /** Offered companion packages that the run needs. */
  readonly companions: readonly CompanionPackage[];
  /** The packages of the spec and the companions, by the labels that the actions of the plan use. */
  readonly sources: readonly { readonly label: string; readonly source: SourcePackage }[];
  readonly plan: RunPlan;
  readonly fingerprint: RunFingerprint;
  /** State of the packages in place, including companion packages. */
  readonly placed: readonly { readonly ref: AddonRef; readonly state: PlacedState }[];
  /** Variables for the first hook if the plan resumes another run. */
  readonly carried: { readonly path: string; readonly digest: Digest } | undefined;
}
