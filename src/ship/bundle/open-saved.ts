/** Opens the sources of a saved plan, if they still match it. */
import type { ArchiveIndex, PlacedEntry } from '../../formats/archive/entry.ts';
import { headerSize, paddingSize } from '../../formats/archive/place.ts';
import { readIndex } from '../../formats/archive/read.ts';
import { indexOfContents } from '../../formats/archive/recreate.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { digestOf } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { BUNDLE_SCRIPTS, DELTA_CONTENTS, INSTALLER_YAML, KURL_FOLDER, ownerOf, prefixOf } from '../../core/layout.ts';
import { OS_IDS } from '../../core/os.ts';
import { parseInstaller } from '../../spec/parse.ts';
import { openStoreSource } from '../store/source.ts';
import type { Store } from '../store/store.ts';
import { type OpenPackage, readSchemas, secretsOfSpec } from './open-packages.ts';
import { keptPart } from './other-systems.ts';
import type { SavedBundlePlan } from './plan-file.ts';
import type { OpenPlan, PlanFromOptions, PlanSource } from './plan-from.ts';
import { checkPackage, type BundlePlan, type PlannedSource } from './bundle-plan.ts';
import type { ResolvedPackage } from './resolve.ts';
import { openExecutable, readRootFiles } from '../../own/root-files.ts';

const CONCURRENCY = 8;
const REPLAN_HINT = 'create the plan again: curlew bundle installer.yaml --from STORE --dry-run --out FILE';

/**
 * Opens the sources of a plan. In the store of the plan each object must have the recorded etag, in any other store the same
 * size and table of contents, otherwise `STORE_CONFLICT`. A different tool for nodes, or different scripts, are `PLAN_CHANGED`.
 * Entries that are not at the planned offsets, and packages that are incomplete, except for omitted systems, are `FILE_UNUSABLE`.
 */
export async function openSavedPlan(
  { store: address, plan }: SavedBundlePlan,
  store: Store,
  {
    executables,
    executable: open = openExecutable,
    signal,
  }: Pick<PlanFromOptions, 'executables' | 'executable' | 'signal'>,
): Promise<OpenPlan> {
  const isSame = address === store.address;
  const resolved = [...plan.packages, ...plan.extras];
  const packages = plan.sources.slice(0, resolved.length);
  const contents = packageContents(plan, resolved);
  const systems = plan.bundle.os?.kept ?? OS_IDS;
  const opened = await mapLimited(
    packages.map((planned, at) => ({ planned, at })),
    async ({ planned, at }, context): Promise<Pick<OpenPackage, 'source' | 'index'>> => {
      const source = await openStoreSource(store, planned.key, context);
      const changed = source.size !== planned.size || (isSame && source.object.etag !== planned.etag);
      if (changed) throw conflict(source.name);
      const index = await checkedIndex(source, planned, signal);
      checkEntries(index, plan, at, source.name);
      checkContents(index, resolved[at], { contents, kept: systems });
      return { source, index };
    },
    { width: CONCURRENCY, signal },
  );
  const sources = opened.map(({ source }): PlanSource => source);
  const addons = plan.packages.flatMap((one, at) =>
    opened[at] === undefined ? [] : [{ resolved: one, ...opened[at] }],
  );
  const secrets = await secretsOfPlan(plan, addons, signal);
  if (plan.bundle.layout === 'kurl') return { plan, sources, secrets, [Symbol.asyncDispose]: async () => undefined };
  await checkScripts(plan);
  const executable = await open(plan.bundle.arch, { folder: executables, signal });
  const close = async (): Promise<void> => executable[Symbol.asyncDispose]();
  try {
    const { tocDigest } = executable.index;
    const at = packages.length;
    if (plan.sources[at]?.tocDigest !== tocDigest || plan.sources[at].size !== executable.index.size) {
      throw differentTool(plan, 'a different tool for nodes');
    }
    checkEntries(executable.index, plan, at, executable.source.name);
    return { plan, sources: [...sources, executable.source], secrets, [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The parts with secrets of the spec in a saved plan; without packages, their schemas do not count. */
export async function secretsOfPlan(
  { files }: BundlePlan,
  packages: Parameters<typeof readSchemas>[1],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const spec = files.find(({ path }) => path === INSTALLER_YAML)?.data ?? new Uint8Array();
  const { readable } = parseInstaller(INSTALLER_YAML, Buffer.from(spec).toString());
  return secretsOfSpec(spec, readable === undefined ? [] : await readSchemas(readable, packages, { signal }));
}

function differentTool({ bundle }: BundlePlan, what: string): CurlewError {
  const planner = `curlew ${bundle.tool.slice(0, 40)}, which created the plan`;
  return new CurlewError('PLAN_CHANGED', `cannot execute the plan: this curlew has ${what} than ${planner}`, {
    hint: `use that curlew, or ${REPLAN_HINT}`,
  });
}

function invalidPlan(what: string, cause?: unknown): CurlewError {
  return new CurlewError('FILE_UNUSABLE', `cannot execute the plan: ${what}`, { hint: REPLAN_HINT, cause });
}

/** Users run the scripts, so they must be those of this tool rather than those in the plan file. */
async function checkScripts(plan: BundlePlan): Promise<void> {
  const own = new Map((await readRootFiles()).map(({ path, data }) => [path, digestOf(data)]));
  for (const { path, data } of plan.files) {
    if (BUNDLE_SCRIPTS.includes(path) && own.get(path) !== digestOf(data))
      throw differentTool(plan, `a different ${path}`);
  }
}

/** The entries of the planned bundle, or of the bundle that the planned delta recreates. */
function wholeContents({ bundle: { delta }, files, splice }: BundlePlan): readonly PlacedEntry[] {
  if (delta === undefined) return splice.index.entries;
  const json = files.find(({ path }) => path === DELTA_CONTENTS)?.data;
  if (json === undefined || digestOf(json) !== delta.contents)
    throw invalidPlan(`its ${DELTA_CONTENTS} does not match`);
  return indexOfContents(json, delta.size, DELTA_CONTENTS).entries;
}

type Contents = ReadonlyMap<string, ReadonlyMap<string, PlacedEntry>>;

/** The plan's entries of each package, by prefix and path. All packages must be in its `bundle.json`. */
function packageContents(plan: BundlePlan, packages: readonly ResolvedPackage[]): Contents {
  const below = plan.bundle.layout === 'kurl' ? KURL_FOLDER : '';
  const byPackage = new Map(packages.map((one) => [prefixOf(one), new Map<string, PlacedEntry>()] as const));
  for (const entry of wholeContents(plan)) {
    const path = entry.path.startsWith(below) ? entry.path.slice(below.length) : entry.path;
    const owner = ownerOf(path);
    if (owner === undefined) continue;
    const contents = byPackage.get(prefixOf(owner));
    if (contents === undefined) throw invalidPlan(`${entry.path} belongs to no package in it`);
    contents.set(path, entry);
  }
  return byPackage;
}

/** The plan must have exactly the files of a package under its prefix, from any source. */
function checkContents(
  index: ArchiveIndex,
  resolved: ResolvedPackage | undefined,
  { contents, kept }: { readonly contents: Contents; readonly kept: readonly string[] },
): void {
  if (resolved === undefined) throw new Error('a package has no source');
  try {
    checkPackage(resolved, index);
  } catch (error) {
    throw invalidPlan(`${resolved.key} is not the package in the plan`, error);
  }
  const planned = contents.get(prefixOf(resolved));
  const { select, notes } = keptPart(resolved, index, { kept, below: undefined });
  const generated = notes.map(({ path, mode, data }) => ({
    path,
    mode,
    size: data.byteLength,
    digest: digestOf(data),
  }));
  const expected = [...index.entries.filter(select), ...generated];
  for (const { path, mode, size, digest } of expected) {
    const saved = planned?.get(path);
    if (saved?.mode !== mode || saved.size !== size || saved.digest !== digest) {
      throw invalidPlan(`${path} is not the file of ${resolved.key}`);
    }
  }
  if (planned?.size !== expected.length)
    throw invalidPlan(`it has files for ${prefixOf(resolved)} that are not in ${resolved.key}`);
}

function conflict(name: string): CurlewError {
  return new CurlewError('STORE_CONFLICT', `${name}: has changed since the plan was created`, { hint: REPLAN_HINT });
}

async function checkedIndex(source: PlanSource, planned: PlannedSource, signal: AbortSignal): Promise<ArchiveIndex> {
  const index = await readIndex(source, { signal });
  if (index.tocDigest !== planned.tocDigest) throw conflict(source.name);
  return index;
}

/** The ranges that the plan copies from source `number` must be whole entries of that archive. */
function checkEntries({ entries }: ArchiveIndex, { bundle, splice }: BundlePlan, number: number, name: string): void {
  const below = bundle.layout === 'kurl' ? KURL_FOLDER : '';
  const known = new Map<number, PlacedEntry>();
  let at = 0;
  for (const entry of entries) {
    const header = headerSize(entry);
    // If the path differs, only the bytes after the header are copied.
    known.set(below === '' ? at : at + header, entry);
    at += header + (entry.packed === 0 ? 0 : entry.packed + paddingSize(entry.size));
  }
  for (const [index, origin] of splice.origins.entries()) {
    const planned = splice.index.entries[index];
    if (origin?.source !== number || planned === undefined) continue;
    const current = known.get(origin.offset);
    if (current !== undefined && describe(current, below) === describe(planned, '')) continue;
    throw invalidPlan(`${planned.path} is not at the planned offset in ${name}`);
  }
}

function describe(entry: PlacedEntry, below: string): string {
  const { path, mode, size, digest, linkTo, packed, stored, packedDigest } = entry;
  const target = linkTo === undefined ? undefined : below + linkTo;
  return JSON.stringify([below + path, mode, size, digest, target, packed, stored, packedDigest]);
}
