/**
 * The library: one function per use case. Each takes a request, which is JSON-safe and has the same meaning as the options of
 * the command, and a {@link Context}, and returns the document that the command prints with `--json`. Failures are
 * {@link CurlewError}s. Nothing is printed, and only `createContext` reads the process. docs/library.md has examples.
 */
import { setMaxListeners } from 'node:events';
import { dirname, join } from 'node:path';
import { env, execPath, geteuid } from 'node:process';
import type { Context } from './core/context.ts';
import { ownScripts } from './own/scripts.ts';
import { workingFolder } from './platform/files/working-folder.ts';

/**
 * A context of this process: its environment, working directory and user. Progress is not reported, questions of hooks get
 * their default answer, and nothing aborts the work; `changes` replace what should differ. Parallel work listens to the
 * signal many times: it gets no limit of listeners.
 */
export function createContext(changes: Partial<Context> = {}): Context {
  const { signal = new AbortController().signal } = changes;
  setMaxListeners(0, signal);
  return {
    report: () => undefined,
    env: { ...env },
    cwd: workingFolder(),
    user: geteuid?.(),
    program: () => {
      const root = dirname(ownScripts());
      return { command: [execPath, join(root, 'dist/cli/main.js')], files: [execPath, root] };
    },
    ...changes,
    signal,
  };
}

export type { Context, Program } from './core/context.ts';
export { CurlewError, ERROR_CODES, type ErrorCode } from './core/errors.ts';
export type { Diagnostic, Place } from './core/diagnostic.ts';
export type { ProgressEvent, Report } from './core/events.ts';
export type { Digest } from './core/digest.ts';
export { packageDigest, parseAddonJson, type AddonJson, type PackageFile } from './core/package.ts';

// Add-ons and packages.
export { newAddon, type NewAddon } from './app/new.ts';
export { generate, listTemplates, type GeneratedAddon } from './app/generate.ts';
export { lint, type Linted } from './app/lint.ts';
export { build, planBuild, type Built } from './app/build.ts';
export type { BuildPlan } from './build/plan.ts';
export { dev, watchDev, type Developed } from './app/dev.ts';
export { outdated } from './app/outdated.ts';
export type { OutdatedAddon } from './build/outdated.ts';
export { inspect, type Inspected } from './app/inspect.ts';
export { sbom, writeSbom, writeSbomsBeside, type WrittenSbom } from './app/sbom.ts';
export { importRepository, type Imported } from './app/import.ts';

// Stores and releases.
export { publish, planPublish, type PublishPlan } from './app/publish.ts';
export type { PublishResult } from './ship/release/publish.ts';
export { changed, type ChangedAddons } from './app/changed.ts';
export { promote } from './app/promote.ts';
export type { PromoteResult } from './ship/release/promote.ts';
export { versions, type Versions } from './app/versions.ts';
export { prune } from './app/prune.ts';
export type { PruneResult } from './ship/release/prune.ts';
export { reindex } from './app/reindex.ts';
export type { ReindexResult } from './ship/release/reindex.ts';
export { importExternal } from './app/import-external.ts';
export type { ImportResult } from './ship/release/import-external.ts';
export { serve } from './app/serve.ts';
export type { ServedTotals } from './ship/serve/server.ts';

// Bundles.
export { bundle, type BundleResult } from './app/bundle.ts';
export { split, type SplitResult } from './app/split.ts';
export {
  checkBundleParts,
  joinBundleParts,
  readBundleParts,
  type CheckedParts,
  type JoinedParts,
} from './app/join-parts.ts';
export { inventory, type CreatedInventory } from './app/inventory.ts';
export { apply, type Applied } from './app/apply.ts';
export { planPullFile, pullFile, type PlannedFile, type PulledFile } from './app/pull.ts';

// Signatures and provenance.
export { keygen } from './app/keygen.ts';
export { signFiles, signRelease, type SignedFile } from './app/sign.ts';
export type { SignedStore } from './ship/release/sign-release.ts';
export { verify, verifyInstalled, type Verified } from './app/verify.ts';
export type { VerifiedNode } from './runtime/history/verify-placed.ts';
export { provenance, type Stated } from './app/provenance.ts';

// Channels.
export { applyChannels, previewChannels, type AddonResult, type ChannelPass } from './app/channel-apply.ts';
export { watchChannels } from './app/channel-watch.ts';
export { channelStatus, type ChannelStatus } from './app/channel-status.ts';
export { planRemoval, removeFromCluster, type ChannelRemoval } from './app/channel-remove.ts';
export { checkChannels, type CheckedChannels } from './app/channel-check.ts';
export { explainChannels, type ExplainedAddon } from './app/channel-explain.ts';
export { planChannels, type ChannelPlan } from './app/channel-plan.ts';

// Fleets and clusters.
export { diffClusters, type ClusterDiff } from './app/cluster-diff.ts';
export { checkFleet, type CheckedFleet } from './app/fleet-check.ts';
export { applyFleet, type FleetPass } from './app/fleet-apply.ts';
export { planFleets, type FleetPlan } from './app/fleet-plan.ts';
export { printHubManifests } from './app/hub-manifests.ts';
export type { Manifest } from './fleet/hub/manifests.ts';
export { runController } from './app/controller.ts';

// Installer specs.
export {
  mergeSpecs,
  resolveSpec,
  specId,
  specVariables,
  validateSpec,
  type Merged,
  type ResolvedSpec,
  type Identified,
  type Environment,
  type Validated,
} from './app/installer.ts';

// Nodes.
export { install, planInstall } from './app/install.ts';
export type { NodeResult } from './app/install-result.ts';
export { preflight, type PreflightReport } from './app/preflight.ts';
export { loadImages, type LoadResult } from './app/load-images.ts';
export { resume, type ResumeResult } from './app/resume.ts';
export { planRollback, rollback } from './app/rollback.ts';
export type { DryRun } from './runtime/run/dry-run.ts';
export type { RunResult } from './runtime/run/run-result.ts';
export { planUninstall, uninstall } from './app/uninstall.ts';
export { planReset, reset, type ResetResult } from './app/reset.ts';
export { status, type Status } from './app/status.ts';
export { logs, type Logs } from './app/logs.ts';
export { why } from './app/why.ts';
export type { AddonHistory } from './runtime/history/why.ts';
export { inspectSupport, type InspectedSupport } from './app/inspect-support.ts';
export { planSupportBundle, supportBundle, type PlannedSupportBundle } from './app/support-bundle.ts';
export type { WrittenBundle } from './runtime/support/write-bundle.ts';

// Requests.
/** The request of a function: `RequestFor<typeof publish>`. */
export type RequestFor<Function extends (request: never, ...rest: never) => unknown> = Parameters<Function>[0];
