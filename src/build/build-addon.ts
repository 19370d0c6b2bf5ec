/** Builds one add-on: reuses its unchanged package or builds it again, and compares it with the committed lock. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Cancellable } from '../core/cancellable.ts';
import { partialPath } from '../formats/archive/write.ts';
import { CurlewError } from '../core/errors.ts';
import { MANIFEST_LOCK, packageFileName } from '../core/layout.ts';
import { refOf } from '../core/package.ts';
import { formatRef } from '../core/ref.ts';
import type { ManifestLock } from '../manifest/lock.ts';
import { lockChanges, mergeLocks } from '../manifest/lock-changes.ts';
import { readAddon, type AddonSource } from '../manifest/read-addon.ts';
import { makeScratch } from './cache.ts';
import { claim } from '../platform/files/claim.ts';
import { readCommittedLock, writeCommittedLock, type LockMode } from './committed-lock.ts';
import { finishedPackage, whyForeign, type FinishedPackage } from './earlier-package.ts';
import { inputsOfBuild, inputsOfPackage, currentInputs, type PackageInputs } from './build-inputs.ts';
import { makePackage } from './make-package.ts';
import type { AddonPlan, BuildPlan } from './plan.ts';
import type { BuildPorts } from './ports.ts';
import { requireLocked } from './resolve.ts';
import { differenceOf, type QueryPorts } from './unchanged-package.ts';

export interface BuiltPackage extends FinishedPackage {
  readonly size: number;
  readonly outcome: 'unchanged' | 'built';
  /** Why it was built. */
  readonly because: string;
  /** Bytes fetched over the network. */
  readonly fetched: number;
  readonly inputs: PackageInputs;
}

export async function buildAddon(
  addon: AddonPlan,
  plan: BuildPlan,
  ports: BuildPorts,
  { lock: mode, signal }: { readonly lock: LockMode; readonly signal: AbortSignal },
): Promise<BuiltPackage> {
  const { ref } = addon;
  const target = join(ports.out, packageFileName(ref, plan.arch));
  await using _held = await claim(target);
  try {
    const source = await readSource(addon, { signal });
    const committed = mode === 'require' ? await requireCommitted(source) : undefined;
    // If other users could have written the package, its metadata is not trusted.
    const foreign = await whyForeign(target);
    const finished = foreign === undefined ? await finishedPackage(ports.out, ref, plan.arch, { signal }) : undefined;
    const seen = finished === undefined ? undefined : inputsOfPackage(finished);
    const because =
      foreign === undefined
        ? await whyBuild(seen, { addon, source, plan, mode }, ports, { signal })
        : `the existing package is not trusted: ${foreign}`;
    const made =
      finished !== undefined && because === undefined
        ? await takeUnchanged(finished, { target, committed, plan }, ports)
        : { ...(await make({ addon, source, plan, target, finished, committed }, ports, { signal })), path: target };
    await settleLock(source, made.lock, plan, { mode, report: ports.report });
    const outcome = because === undefined ? 'unchanged' : 'built';
    const known = { steps: addon.steps, imageFormat: plan.imageFormat, lock: made.lock, cache: ports.cache };
    const inputs = await inputsOfBuild(source, known, { signal });
    return { ...made, size: made.index.size, outcome, because: because ?? 'unchanged', inputs };
  } catch (error) {
    throw named(error, formatRef(ref));
  }
}

/** Adds the add-on to the message, since several are built at once. */
export function named(error: unknown, id: string): unknown {
  const before = `${id}: `;
  if (!(error instanceof CurlewError) || error.code === 'CANCELLED' || error.message.startsWith(before)) return error;
  return error.with({ message: before + error.message });
}

interface AddonInput {
  readonly addon: AddonPlan;
  readonly source: AddonSource;
  readonly plan: BuildPlan;
}

/** Why the package must be built; undefined if a build would produce the package that `seen` describes. */
export async function whyBuild(
  seen: PackageInputs | undefined,
  { addon, source, plan, mode }: AddonInput & { readonly mode: LockMode },
  ports: QueryPorts,
  { signal }: Cancellable,
): Promise<string | undefined> {
  if (seen === undefined) return 'no earlier package';
  // Only resolving them shows what a repository has now.
  if (mode === 'update' && seen.lock.hostPackages.some(({ inputs }) => inputs !== '')) return 'the lock is updated';
  const { steps, root } = addon;
  const { arch, imageFormat } = plan;
  const current = { arch, imageFormat, root, top: source.root, steps, ...currentInputs(source) };
  return differenceOf(seen, current, ports, { signal });
}

interface Untouched {
  readonly target: string;
  readonly committed: ManifestLock | undefined;
  readonly plan: BuildPlan;
}

async function takeUnchanged(
  { path, addon, index, lock }: FinishedPackage,
  { target, committed, plan }: Untouched,
  { report }: BuildPorts,
): Promise<Omit<BuiltPackage, 'size' | 'outcome' | 'because' | 'inputs'>> {
  if (committed !== undefined) requireLocked(committed, lock, plan.arch);
  // Left by a build of other content, which is obsolete.
  await rm(partialPath(target), { force: true });
  const id = formatRef(refOf(addon));
  report({ type: 'step-started', id, title: id });
  report({ type: 'step-done', id, outcome: 'unchanged' });
  return { path, addon, index, lock, fetched: 0 };
}

async function make(
  {
    addon: { steps },
    source,
    plan,
    target,
    finished,
    committed,
  }: AddonInput & {
    readonly target: string;
    readonly finished: FinishedPackage | undefined;
    readonly committed: ManifestLock | undefined;
  },
  ports: BuildPorts,
  { signal }: Cancellable,
): Promise<Awaited<ReturnType<typeof makePackage>>> {
  const scratch = await makeScratch(ports.cache);
  try {
    const request = { source, steps, plan, target, scratch, earlier: finished, required: committed };
    return await makePackage(request, ports, { signal });
  } finally {
    // What cannot be removed here, the next build sweeps.
    await rm(scratch, { recursive: true, force: true }).catch(() => undefined);
  }
}

export async function requireCommitted({ folder }: AddonSource): Promise<ManifestLock> {
  const lock = await readCommittedLock(folder);
  if (lock !== undefined) return lock;
  throw new CurlewError('LOCK_MISMATCH', `${folder} has no ${MANIFEST_LOCK}`, {
    hint: 'write it with curlew build --update-lock, then commit it',
  });
}

/** After a build: updates the committed lock, or reports differences. */
export async function settleLock(
  { ref, folder }: AddonSource,
  made: ManifestLock,
  { arch }: BuildPlan,
  { mode, report }: { readonly mode: LockMode; readonly report: BuildPorts['report'] },
): Promise<void> {
  if (mode === 'require') return;
  const unreadable = (error: unknown): undefined => {
    if (!(error instanceof CurlewError)) throw error;
    if (mode === 'compare') report({ type: 'note', level: 'warning', text: error.message });
    return undefined;
  };
  const committed = await readCommittedLock(folder).catch(unreadable);
  if (mode === 'update') {
    if (!(await writeCommittedLock(folder, mergeLocks(committed, made, arch)))) return;
    report({ type: 'note', level: 'info', text: `${formatRef(ref)}: ${join(folder, MANIFEST_LOCK)} written` });
    return;
  }
  const changes = committed === undefined ? [] : lockChanges(committed, made, arch);
  if (changes.length === 0) return;
  const names = changes.slice(0, 5).map(({ kind, name }) => `${kind} ${name}`);
  const more = changes.length > names.length ? `, and ${changes.length - names.length} more` : '';
  const text = `${formatRef(ref)} differs from its ${MANIFEST_LOCK}: ${names.join(', ')}${more}`;
  report({ type: 'note', level: 'warning', text });
}

export async function readSource({ ref, root }: AddonPlan, { signal }: Cancellable): Promise<AddonSource> {
  const source = await readAddon({ ...ref, folder: root, root: join(root, '../../..'), shown: root }, { signal });
  const errors = source.diagnostics.filter(({ severity }) => severity === 'error');
  if (errors.length === 0) return source;
  throw new CurlewError('MANIFEST_INVALID', `${formatRef(ref)}: ${errors.length} errors in ${root}`, {
    diagnostics: errors,
    hint: 'show them with curlew lint',
  });
}
