/** Compares what the directives of add-ons resolve to now with their locks. Builds no package. */
import { rm } from 'node:fs/promises';
import { mapLimited } from '../platform/limit/each.ts';
import { requireRefusal, type CurlewError } from '../core/errors.ts';
import { makeFolder } from '../platform/files/make-folder.ts';
import type { AddonRef } from '../core/ref.ts';
import { lockChanges, type LockChange } from '../manifest/lock-changes.ts';
import type { ImageStep } from '../manifest/step.ts';
import { removeBodies } from './assets.ts';
import { readSource } from './build-addon.ts';
import { makeScratch } from './cache.ts';
import { readCommittedLock } from './committed-lock.ts';
import { finishedPackage } from './earlier-package.ts';
import { resolveImages } from './images.ts';
import type { AddonPlan, BuildPlan } from './plan.ts';
import type { BuildPorts } from './ports.ts';
import { resolveSteps, stepsOf } from './resolve.ts';

export interface OutdatedAddon {
  readonly ref: AddonRef;
  /** Source of the lock; undefined if there is none to compare with. */
  readonly lockedBy: 'committed lock' | 'package' | undefined;
  readonly changes: readonly LockChange[];
  /** Why it cannot be compared, such as an asset that no longer has the digest in the Manifest; undefined if it was. */
  readonly problem?: Pick<CurlewError, 'code' | 'message' | 'hint'> | undefined;
}

/**
 * Resolves everything again: checks or fetches manifests, assets and packages, but not image layers. What is wrong with one
 * add-on is in its row.
 */
export async function findOutdated(
  plan: BuildPlan,
  ports: BuildPorts,
  { jobs, signal }: { readonly jobs: number; readonly signal: AbortSignal },
): Promise<readonly OutdatedAddon[]> {
  await makeFolder(ports.cache);
  const outdated = await mapLimited(
    plan.addons,
    async (addon, within) =>
      outdatedAddon(addon, plan, ports, within).catch((error: unknown): OutdatedAddon => {
        requireRefusal(error, within.signal);
        const { code, message, hint } = error;
        return { ref: addon.ref, lockedBy: undefined, changes: [], problem: { code, message, hint } };
      }),
    { width: jobs, signal },
  );
  await removeBodies(ports);
  return outdated;
}

async function outdatedAddon(
  addon: AddonPlan,
  { arch }: BuildPlan,
  ports: BuildPorts,
  { signal }: { readonly signal: AbortSignal },
): Promise<OutdatedAddon> {
  const { ref, steps, root } = addon;
  const earlier = await finishedPackage(ports.out, ref, arch, { signal });
  const committed = await readCommittedLock(root);
  const lock = committed ?? earlier?.lock;
  if (lock === undefined) return { ref, lockedBy: undefined, changes: [] };
  const source = await readSource(addon, { signal });
  const scratch = await makeScratch(ports.cache);
  try {
    const images = await resolveImages(stepsOf<ImageStep>(steps, 'image'), ports, { root, arch, scratch, signal });
    const silent = { onBytes: () => undefined, onExpected: () => undefined };
    const resolving = { source, steps, arch, scratch, images, earlier, ...silent };
    const resolved = await resolveSteps(resolving, ports, { signal });
    const lockedBy = committed === undefined ? 'package' : 'committed lock';
    return { ref, lockedBy, changes: lockChanges(lock, resolved.lock, arch) };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}
