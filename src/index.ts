/**
 * The library: one function per use case. Each takes a request, which is JSON-safe and has the same meaning as the options of
 * the command, and a {@link Context}, and returns the document that the command prints with `--json`. Failures are
 * {@link CurlewError}s. Nothing is printed, and only `createContext` reads the process. docs/library.md has examples.
 */
import { setMaxListeners } from 'node:events';
import { dirname, join } from 'node:path';
import { env, cwd, execPath, geteuid } from 'node:process';
import type { Context } from './core/context.ts';
import { ownScripts } from './own/scripts.ts';

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
    cwd: cwd(),
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
export { newAddon, type NewAddon, type NewAddonRequest } from './app/new.ts';
export { generate, listTemplates, type GenerateRequest } from './app/generate.ts';
export { lint, type LintRequest } from './app/lint.ts';
export { build, planBuild, type BuildAddonsRequest, type Built } from './app/build.ts';
export { outdated, type OutdatedRequest } from './app/outdated.ts';
export { inspect, type InspectRequest } from './app/inspect.ts';
export { sbom, writeSbom, writeSbomsBeside, type SbomRequest } from './app/sbom.ts';
export { importRepository, type ImportRequest } from './app/import.ts';

// Stores and releases.
export { publish, planPublish, type PublishPlan, type PublishRequest } from './app/publish.ts';
export { changed, type ChangedAddons, type ChangedRequest } from './app/changed.ts';
export { promote } from './app/promote.ts';
export { versions, type Versions } from './app/versions.ts';
export { prune } from './app/prune.ts';
export { reindex } from './app/reindex.ts';
export { importExternal } from './app/import-external.ts';
export type {
  ImportExternalRequest,
  PromoteRequest,
  PruneRequest,
  ReindexRequest,
  VersionsRequest,
} from './app/requests/release.ts';
export { serve, type ServeRequest } from './app/serve.ts';

// Bundles.
export { bundle, type BundleRequest, type BundleResult } from './app/bundle.ts';
export { split, type SplitRequest, type SplitResult } from './app/split.ts';
export { checkBundleParts, joinBundleParts, readBundleParts, type JoinRequest } from './app/join-parts.ts';
export { inventory, type InventoryRequest } from './app/inventory.ts';
export { apply, type Applied, type ApplyRequest } from './app/apply.ts';
export { pullFile, type PulledFile, type PullRequest } from './app/pull.ts';

// Signatures and provenance.
export { keygen, type KeygenRequest } from './app/keygen.ts';
export { signFiles, signRelease, type SignFilesRequest, type SignReleaseRequest } from './app/sign.ts';
export { verify, verifyInstalled, type Verified, type VerifyRequest } from './app/verify.ts';
export { provenance, type ProvenanceRequest } from './app/provenance.ts';

// Channels.
export {
  applyChannels,
  previewChannels,
  type AddonResult,
  type ChannelApplyRequest,
  type ChannelPass,
} from './app/channel-apply.ts';
export { watchChannels, type ChannelWatchRequest } from './app/channel-watch.ts';
export { channelStatus, type ChannelStatus, type ChannelStatusRequest } from './app/channel-status.ts';
export {
  planRemoval,
  removeFromCluster,
  type ChannelRemoval,
  type ChannelRemoveRequest,
} from './app/channel-remove.ts';
export { checkChannels, type CheckedChannels } from './app/channel-check.ts';
export { explainChannels, type ExplainChannelsRequest, type ExplainedAddon } from './app/channel-explain.ts';
export { planChannels, type ChannelPlan, type PlanChannelsRequest } from './app/channel-plan.ts';
export type { ChannelsRequest } from './app/ports/channel-files.ts';

// Installer specs.
export { mergeSpecs, resolveSpec, specId, specVariables, validateSpec } from './app/installer.ts';
export type {
  EnvironmentRequest,
  InstallerRequest,
  InstallerSourceRequest,
  MergeRequest,
} from './app/requests/installer.ts';

// Nodes.
export { install, planInstall, type NodeResult } from './app/install.ts';
export { preflight, type PreflightReport } from './app/preflight.ts';
export { loadImages, type LoadResult } from './app/load-images.ts';
export { resume, type ResumeResult } from './app/resume.ts';
export { rollback } from './app/rollback.ts';
export { planUninstall, uninstall } from './app/uninstall.ts';
export { planReset, reset, type ResetResult } from './app/reset.ts';
export { status } from './app/status.ts';
export { logs, type Logs } from './app/logs.ts';
export { why } from './app/why.ts';
export type {
  FolderRequest,
  InstallRequest,
  LoadImagesRequest,
  LogsRequest,
  PlanRequest,
  PreflightRequest,
  ResetRequest,
  ResumeRequest,
  RollbackRequest,
  UninstallRequest,
  WhyRequest,
} from './app/requests/node.ts';
