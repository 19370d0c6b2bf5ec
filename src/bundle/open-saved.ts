/** The sources of a saved plan: opened only where they still are what it says. */
import type { ArchiveIndex, PlacedEntry } from '../formats/archive/entry.ts';
import { headerSize, paddingSize } from '../formats/archive/place.ts';
import { readIndex } from '../formats/archive/read.ts';
import { indexOfContents } from '../formats/archive/recreate.ts';
import { mapLimited } from '../platform/limit/each.ts';
import { digestOf } from '../core/digest.ts';
import { CurlewError } from '../core/errors.ts';
import { BUNDLE_SCRIPTS, DELTA_CONTENTS, KURL_FOLDER, ownerOf, prefixOf } from '../core/layout.ts';
import { OS_IDS } from '../core/os.ts';
import { openStoreSource } from '../store/source.ts';
import type { Store } from '../store/store.ts';
import { keptPart } from './other-systems.ts';
import type { SavedBundlePlan } from './plan-file.ts';
import type { OpenPlan, PlanFromOptions, PlanSource } from './plan-from.ts';
import { checkPackage, type BundlePlan, type PlannedSource } from './plan.ts';
import type { ResolvedPackage } from './resolve.ts';
import { openExecutable, readRootFiles } from './root-files.ts';

const AT_ONCE = 8;
const ANEW = 'make the plan anew: curlew bundle installer.yaml --from STORE --plan --out FILE';

/**
 * Opens what the plan copies from. In the store that it was made from each object must have the etag of then, in any other
 * one the same size and table of contents: else `STORE_CONFLICT`. Another tool for nodes than the plan's, or other scripts,
 * is `PLAN_CHANGED`; entries that are not where the plan says, and packages that are not whole in it but for folders of
 * systems that it leaves out, `FILE_UNUSABLE`.
 */
export async function openSavedPlan(
  { store: address, plan }: SavedBundlePlan,
  store: Store,
  { executables, signal }: Pick<PlanFromOptions, 'executables' | 'signal'>,
): Promise<OpenPlan> {
  const isSame = address === store.address;
  const resolved = [...plan.packages, ...plan.beside];
  const packages = plan.sources.slice(0, resolved.length);
  const contents = packageContents(plan, resolved);
  const kept = plan.bundle.os?.kept ?? OS_IDS;
  const sources = await mapLimited(
    packages.map((planned, at) => ({ planned, at })),
    async ({ planned, at }, context): Promise<PlanSource> => {
      const source = await openStoreSource(store, planned.key, context);
      const changed = source.size !== planned.size || (isSame && source.object.etag !== planned.etag);
      if (changed) throw conflict(source.name);
      const index = await checkedIndex(source, planned, signal);
      checkEntries(index, plan, at, source.name);
      checkContents(index, resolved[at], { contents, kept });
      return source;
    },
    { width: AT_ONCE, signal },
  );
  if (plan.bundle.layout === 'kurl') return { plan, sources, [Symbol.asyncDispose]: async () => undefined };
  await checkScripts(plan);
  const executable = await openExecutable(plan.bundle.arch, { folder: executables, signal });
  const close = async (): Promise<void> => executable[Symbol.asyncDispose]();
  try {
    const { tocDigest } = executable.index;
    const at = packages.length;
    if (plan.sources[at]?.tocDigest !== tocDigest || plan.sources[at].size !== executable.index.size) {
      throw otherTool(plan, 'another tool for nodes');
    }
    checkEntries(executable.index, plan, at, executable.source.name);
    return { plan, sources: [...sources, executable.source], [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}

function otherTool({ bundle }: BundlePlan, what: string): CurlewError {
  const made = `curlew ${bundle.tool.slice(0, 40)}, which made it`;
  return new CurlewError('PLAN_CHANGED', `carry out the plan: this curlew has ${what} than ${made}`, {
    hint: `use that curlew, or ${ANEW}`,
  });
}

function strange(what: string, cause?: unknown): CurlewError {
  return new CurlewError('FILE_UNUSABLE', `carry out the plan: ${what}`, { hint: ANEW, cause });
}

/** The scripts that people run come with the tool, not from whoever wrote the plan. */
async function checkScripts(plan: BundlePlan): Promise<void> {
  const own = new Map((await readRootFiles()).map(({ path, data }) => [path, digestOf(data)]));
  for (const { path, data } of plan.files) {
    if (BUNDLE_SCRIPTS.includes(path) && own.get(path) !== digestOf(data)) throw otherTool(plan, `another ${path}`);
  }
}

/** The table of contents of the bundle that the plan makes, or that its delta makes. */
function wholeContents({ bundle: { delta }, files, splice }: BundlePlan): readonly PlacedEntry[] {
  if (delta === undefined) return splice.index.entries;
  const json = files.find(({ path }) => path === DELTA_CONTENTS)?.data;
  if (json === undefined || digestOf(json) !== delta.contents) throw strange(`its ${DELTA_CONTENTS} is another one`);
  return indexOfContents(json, delta.size, DELTA_CONTENTS).entries;
}

type Contents = ReadonlyMap<string, ReadonlyMap<string, PlacedEntry>>;

/** What the plan has of each package, by prefix and path: of no other ones than its `bundle.json` names. */
function packageContents(plan: BundlePlan, packages: readonly ResolvedPackage[]): Contents {
  const below = plan.bundle.layout === 'kurl' ? KURL_FOLDER : '';
  const found = new Map(packages.map((one) => [prefixOf(one), new Map<string, PlacedEntry>()] as const));
  for (const entry of wholeContents(plan)) {
    const path = entry.path.startsWith(below) ? entry.path.slice(below.length) : entry.path;
    const owner = ownerOf(path);
    if (owner === undefined) continue;
    const contents = found.get(prefixOf(owner));
    if (contents === undefined) throw strange(`${entry.path} is of no package that it names`);
    contents.set(path, entry);
  }
  return found;
}

/** Below its prefix the plan must have the files of a package and no others, wherever it takes them from. */
function checkContents(
  index: ArchiveIndex,
  resolved: ResolvedPackage | undefined,
  { contents, kept }: { readonly contents: Contents; readonly kept: readonly string[] },
): void {
  if (resolved === undefined) throw new Error('there is a source for each package');
  try {
    checkPackage(resolved, index);
  } catch (error) {
    throw strange(`its ${resolved.key} is not the package that it describes`, error);
  }
  const planned = contents.get(prefixOf(resolved));
  const { select, notes } = keptPart(resolved, index, { kept, below: undefined });
  const said = notes.map(({ path, mode, data }) => ({ path, mode, size: data.byteLength, digest: digestOf(data) }));
  const wanted = [...index.entries.filter(select), ...said];
  for (const { path, mode, size, digest } of wanted) {
    const found = planned?.get(path);
    if (found?.mode !== mode || found.size !== size || found.digest !== digest) {
      throw strange(`${path} is not that of ${resolved.key}`);
    }
  }
  if (planned?.size !== wanted.length)
    throw strange(`it has files for ${prefixOf(resolved)} that ${resolved.key} has not`);
}

function conflict(name: string): CurlewError {
  return new CurlewError('STORE_CONFLICT', `${name}: has changed since the plan was made`, { hint: ANEW });
}

async function checkedIndex(source: PlanSource, planned: PlannedSource, signal: AbortSignal): Promise<ArchiveIndex> {
  const index = await readIndex(source, { signal });
  if (index.tocDigest !== planned.tocDigest) throw conflict(source.name);
  return index;
}

/** What the plan copies of source `number` must be whole entries of that archive. */
function checkEntries({ entries }: ArchiveIndex, { bundle, splice }: BundlePlan, number: number, name: string): void {
  const below = bundle.layout === 'kurl' ? KURL_FOLDER : '';
  const known = new Map<number, PlacedEntry>();
  let at = 0;
  for (const entry of entries) {
    const header = headerSize(entry);
    // Where the path is another one, only what follows the header is copied.
    known.set(below === '' ? at : at + header, entry);
    at += header + (entry.packed === 0 ? 0 : entry.packed + paddingSize(entry.size));
  }
  for (const [index, origin] of splice.origins.entries()) {
    const planned = splice.index.entries[index];
    if (origin?.source !== number || planned === undefined) continue;
    const found = known.get(origin.offset);
    if (found !== undefined && describe(found, below) === describe(planned, '')) continue;
    throw strange(`${planned.path} is not where it says in ${name}`);
  }
}

function describe(entry: PlacedEntry, below: string): string {
  const { path, mode, size, digest, linkTo, packed, stored, packedDigest } = entry;
  const target = linkTo === undefined ? undefined : below + linkTo;
  return JSON.stringify([below + path, mode, size, digest, target, packed, stored, packedDigest]);
}
