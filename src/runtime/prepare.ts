/** What a run is to do, found out without doing any of it: the lock, the records, what the last run left, the plan. */
import { rmdir } from 'node:fs/promises';
import { INSTALL_SH } from '../core/layout.ts';
import { makeFolder } from '../files/make-folder.ts';
import { hookLimit } from './hook-limit.ts';
import { earlierAttempts } from './last-run.ts';
import { lockFolder } from './lock.ts';
import type { NodePlace } from './node-place.ts';
import { planRun, type PackageFacts, type RunKind, type RunPlan } from './plan.ts';
import { digestInPlace } from './put-in-place.ts';
import { readRecords, type Records } from './records.ts';
import type { ShellVariable } from './settings.ts';
import type { SourcePackage } from './source.ts';

interface WantedPackage {
  readonly source: SourcePackage;
  readonly settings: unknown;
}

export interface RunRequest {
  readonly kind: RunKind;
  readonly place: NodePlace;
  /** Folder with hook-runner.sh and lib/. */
  readonly scripts: string;
  readonly packages: readonly WantedPackage[];
  readonly variables: readonly ShellVariable[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly reapply: boolean;
  /** Why images are not to be loaded; undefined when they are. */
  readonly skipImages: string | undefined;
  /** Seconds that each hook may take, where neither its add-on's settings nor its author say otherwise. */
  readonly hookLimit: number | undefined;
}

/** A run that can begin. The install folder is locked until it is disposed of. */
export interface PreparedRun extends AsyncDisposable {
  readonly request: RunRequest;
  readonly records: Records;
  /** How often each action was begun by earlier runs without being done. */
  readonly attempts: ReadonlyMap<string, number>;
  readonly packages: readonly PackageFacts[];
  readonly plan: RunPlan;
}

/**
 * Locks the install folder and plans. Nothing else is changed, and a folder that was made for the lock goes away with it
 * when nothing was put there. `BUSY` when another run is at work on the folder.
 */
export async function prepare(request: RunRequest): Promise<PreparedRun> {
  const { directory } = request.place;
  await makeFolder(directory);
  const lock = await lockFolder(directory);
  const free = async (): Promise<void> => {
    await lock[Symbol.asyncDispose]();
    // A folder that is in use is not empty.
    await rmdir(directory).catch(() => undefined);
  };
  try {
    const records = await readRecords(directory);
    const attempts = await earlierAttempts(directory, records);
    const packages = await Promise.all(request.packages.map(async (wanted) => factsOf(request, wanted)));
    const { kind, reapply, skipImages } = request;
    const plan = planRun(kind, packages, records, {
      reapply,
      images: skipImages === undefined,
      variables: request.variables,
    });
    return { request, records, attempts, packages, plan, [Symbol.asyncDispose]: free };
  } catch (error) {
    await free();
    throw error;
  }
}

async function factsOf(
  { place: { directory }, hookLimit: general }: RunRequest,
  { source, settings }: WantedPackage,
): Promise<PackageFacts> {
  const { ref, addon, files } = source;
  return {
    ref,
    digest: addon.digest,
    requires: addon.requires,
    fulfills: addon.fulfills,
    images: addon.images,
    hasInstallScript: files.some(({ path }) => path === INSTALL_SH),
    settings,
    inPlace: await digestInPlace(directory, ref),
    remote: source.fetch !== undefined,
    hookLimit: hookLimit(addon, settings, general),
  };
}
