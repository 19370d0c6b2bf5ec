/** What is asked of a run, and what it would find and do. */
import type { Digest } from '../../core/digest.ts';
import type { AddonRef } from '../../core/ref.ts';
import type { Installer } from '../../spec/installer.ts';
import type { OfferedPackage } from './along.ts';
import type { ClusterRequest, ClusterView } from '../cluster/consult.ts';
import type { Now } from './continue-plan.ts';
import type { LastRun } from './last-run.ts';
import type { NodePlace } from '../node/node-place.ts';
import type { PlacedState } from '../node/placed-package.ts';
import type { Records } from '../node/records.ts';
import type { AlongFacts, PackageFacts, RunKind, RunPlan } from './run-plan.ts';
import type { ShellVariable } from '../hooks/settings.ts';
import type { SourcePackage } from '../node/source.ts';

export interface WantedPackage {
  readonly source: SourcePackage;
  readonly settings: unknown;
}

/** What stops a run: what failed; warnings, too; nothing. */
export const CHECK_MODES = ['enforce', 'enforce-warnings', 'ignore'] as const;

export type CheckMode = (typeof CHECK_MODES)[number];

export interface CheckRequest {
  readonly mode: CheckMode;
  /** Titles of checks whose results do not count. */
  readonly ignored: readonly string[];
  readonly installer: Installer;
  /** With the checks that are built in. */
  readonly builtIn: boolean;
  /** Version of curlew. */
  readonly tool: string;
}

/** What a run removes, and how. */
export interface Removal {
  /** Those whose hooks run, with the settings they were installed with. */
  readonly packages: readonly WantedPackage[];
  /** Names of others, of which only records and files are removed. */
  readonly forgotten: readonly string[];
  /** A hook that fails is reported, and the run continues. */
  readonly keepGoing: boolean;
  /** Hooks are asked to leave data alone. */
  readonly keepData: boolean;
  /** Images that no other add-on has are removed from the container runtime, too. */
  readonly pruneImages: boolean;
}

export interface RunRequest {
  readonly kind: RunKind;
  readonly place: NodePlace;
  /** Folder with hook-runner.sh, cap-log.sh and lib/. */
  readonly scripts: string;
  readonly packages: readonly WantedPackage[];
  /** What is removed; absent: nothing. */
  readonly removal?: Removal | undefined;
  /** What else the source has to offer. */
  readonly offered?: readonly OfferedPackage[] | undefined;
  readonly variables: readonly ShellVariable[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly reapply: boolean;
  /** An older version may take the place of a newer one; absent: it may not. */
  readonly allowDowngrade?: boolean | undefined;
  /** Packages that others take the place of stay for a rollback; absent: they do. */
  readonly keepsPrevious?: boolean | undefined;
  /** Why images are not to be loaded; undefined when they are. */
  readonly skipImages: string | undefined;
  /** Seconds that each hook may take, where neither its add-on's settings nor its author say otherwise. */
  readonly hookLimit: number | undefined;
  /** JSON that is kept with the run: how whoever asks can ask for the same again. */
  readonly command: unknown;
  /** What the machine is asked before anything is changed; absent: nothing. */
  readonly checks?: CheckRequest | undefined;
  /** Where what is applied is noted in the cluster; absent when that is to be left alone. */
  readonly cluster?: ClusterRequest | undefined;
}

/** A package that comes along, with what the plan knows of it. */
export interface AlongPackage extends AlongFacts {
  readonly source: SourcePackage;
}

/** What a run would find and do now. */
export interface RunView {
  readonly request: RunRequest;
  readonly records: Records;
  readonly view: ClusterView;
  readonly last: LastRun | undefined;
  readonly packages: readonly PackageFacts[];
  /** Those of the offered packages that come along. */
  readonly along: readonly AlongPackage[];
  readonly plan: RunPlan;
  readonly now: Now;
  /** How the places of these packages were found, and of those that come along. */
  readonly placed: readonly { readonly ref: AddonRef; readonly state: PlacedState }[];
  /** Variables that hooks begin with, where the plan resumes another run. */
  readonly carried: { readonly path: string; readonly digest: Digest } | undefined;
}
