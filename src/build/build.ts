/** Carries out a build plan: several add-ons at once, each either unchanged or made anew. */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ArchiveIndex } from '../archive/entry.ts';
import { partialPath } from '../archive/write.ts';
import { mapLimited } from '../core/each.ts';
import { CurlewError, errnoOf, fileError } from '../core/errors.ts';
import { packageFileName } from '../core/layout.ts';
import type { AddonJson } from '../core/package.ts';
import { formatRef } from '../core/ref.ts';
import { readAddon, type AddonSource } from '../manifest/read-addon.ts';
import { clearShelf } from './assets.ts';
import { makeScratch, pruneCache } from './cache.ts';
import { claim } from './claim.ts';
import { makePackage } from './make.ts';
import { sweepOut } from './out-folder.ts';
import type { AddonPlan, BuildPlan } from './plan.ts';
import type { BuildPorts } from './ports.ts';
import { aboutOf, aboutWanted, ownFiles } from './about.ts';
import { differenceOf, finishedPackage } from './unchanged.ts';

export interface BuiltPackage {
  readonly path: string;
  readonly addon: AddonJson;
  readonly index: ArchiveIndex;
  readonly size: number;
  readonly outcome: 'unchanged' | 'built';
  /** Why it was built. */
  readonly because: string;
  /** Bytes that came over the network. */
  readonly fetched: number;
}

export interface BuildOptions {
  /** Add-ons at once. */
  readonly jobs: number;
  readonly signal: AbortSignal;
}

/** Builds every add-on of the plan; the first failure stops the rest and is the one thrown. */
export async function buildAddons(
  plan: BuildPlan,
  ports: BuildPorts,
  { jobs, signal }: BuildOptions,
): Promise<readonly BuiltPackage[]> {
  await makeFolder(ports.out, 'packages');
  await makeFolder(ports.cache, 'the cache');
  await sweepOut(ports.out, Date.now());
  const built = await mapLimited(plan.addons, async (addon, { signal }) => buildAddon(addon, plan, ports, { signal }), {
    width: jobs,
    signal,
  });
  // After a failure the bodies stay: the next run need not fetch them again.
  await clearShelf(ports.shelf);
  if (built.some(({ outcome }) => outcome === 'built')) await pruneCache(ports.cache, Date.now());
  return built;
}

async function makeFolder(path: string, what: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true });
  } catch (error) {
    const errno = errnoOf(error);
    if (errno !== 'EEXIST' && errno !== 'ENOTDIR') throw fileError(`make the folder for ${what} ${path}`, error);
    throw new CurlewError('FILE_UNUSABLE', `make the folder for ${what}: a file stands in the way of ${path}`);
  }
}

/** Builds one add-on; the message of a failure begins with its name. */
async function buildAddon(
  addon: AddonPlan,
  plan: BuildPlan,
  ports: BuildPorts,
  options: { readonly signal: AbortSignal },
): Promise<BuiltPackage> {
  try {
    return await buildClaimed(addon, plan, ports, options);
  } catch (error) {
    const before = `${formatRef(addon.ref)}: `;
    if (!(error instanceof CurlewError) || error.code === 'CANCELLED' || error.message.startsWith(before)) throw error;
    const { code, message, hint, cause, diagnostics } = error;
    throw new CurlewError(code, `${before}${message}`, { hint, cause, diagnostics });
  }
}

async function buildClaimed(
  addon: AddonPlan,
  plan: BuildPlan,
  ports: BuildPorts,
  { signal }: { readonly signal: AbortSignal },
): Promise<BuiltPackage> {
  const { ref, steps, root } = addon;
  const id = formatRef(ref);
  const target = join(ports.out, packageFileName(ref, plan.arch));
  await using _held = await claim(target);
  const source = await readSource(addon, { signal });
  const finished = await finishedPackage(ports.out, ref, plan.arch, { signal });
  const wanted = { ref, ...plan, root, steps, own: ownFiles(source), about: aboutWanted(source, steps) };
  const because =
    finished === undefined ? 'not built yet' : await differenceOf(finished, wanted, aboutOf, ports, { signal });
  if (finished !== undefined && because === undefined) {
    const { path, addon: made, index } = finished;
    // Begun by a build of something else, which nobody wants any more.
    await rm(partialPath(target), { force: true });
    ports.report({ type: 'step-started', id, title: id });
    ports.report({ type: 'step-done', id, outcome: 'unchanged' });
    return { path, addon: made, index, size: index.size, outcome: 'unchanged', because: 'unchanged', fetched: 0 };
  }
  const scratch = await makeScratch(ports.cache, id);
  try {
    const made = await makePackage({ source, steps, plan, target, scratch }, ports, { signal });
    return { ...made, path: target, size: made.index.size, outcome: 'built', because: because ?? '' };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function readSource(
  { ref, root }: AddonPlan,
  { signal }: { readonly signal: AbortSignal },
): Promise<AddonSource> {
  const source = await readAddon({ ...ref, folder: root, root: join(root, '../../..'), shown: root }, { signal });
  const errors = source.diagnostics.filter(({ severity }) => severity === 'error');
  if (errors.length === 0) return source;
  const count = errors.length === 1 ? '1 error' : `${errors.length} errors`;
  throw new CurlewError('MANIFEST_INVALID', `${formatRef(ref)}: ${count} in ${root}`, {
    diagnostics: errors,
    hint: 'curlew lint shows them with their lines',
  });
}
