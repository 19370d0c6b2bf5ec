/** The sources of a saved plan: opened only where they still are what it says. */
import type { ArchiveIndex, PlacedEntry } from '../archive/entry.ts';
import { headerMember, paddingMember } from '../archive/place.ts';
import { readIndex } from '../archive/read.ts';
import { mapLimited } from '../core/each.ts';
import { CurlewError } from '../core/errors.ts';
import { KURL_FOLDER } from '../core/layout.ts';
import { openStoreSource } from '../store/source.ts';
import type { Store } from '../store/store.ts';
import type { SavedBundlePlan } from './plan-file.ts';
import type { OpenPlan, PlanFromOptions, PlanSource } from './plan-from.ts';
import type { BundlePlan, PlannedSource } from './plan.ts';
import { openExecutable } from './root-files.ts';

const AT_ONCE = 8;
const ANEW = 'make the plan anew: curlew bundle installer.yaml --from STORE --plan --out FILE';

/**
 * Opens what the plan copies from. In the store that it was made from each object must have the etag of then, in any other
 * one the same size and table of contents: else `STORE_CONFLICT`. Another tool for nodes than the plan's is `PLAN_CHANGED`;
 * entries that are not where the plan says, `FILE_UNUSABLE`.
 */
export async function openSavedPlan(
  { store: address, plan }: SavedBundlePlan,
  store: Store,
  { executables, signal }: Pick<PlanFromOptions, 'executables' | 'signal'>,
): Promise<OpenPlan> {
  const isSame = address === store.address;
  const packages = plan.sources.slice(0, plan.packages.length + plan.beside.length);
  const sources = await mapLimited(
    packages.map((planned, at) => ({ planned, at })),
    async ({ planned, at }, context): Promise<PlanSource> => {
      const source = await openStoreSource(store, planned.key, context);
      const changed = source.size !== planned.size || (isSame && source.object.etag !== planned.etag);
      if (changed) throw conflict(source.name);
      checkEntries(await checkedIndex(source, planned, signal), plan, at, source.name);
      return source;
    },
    { width: AT_ONCE, signal },
  );
  if (plan.bundle.layout === 'kurl') return { plan, sources, [Symbol.asyncDispose]: async () => undefined };
  const executable = await openExecutable(plan.bundle.arch, { folder: executables, signal });
  const close = async (): Promise<void> => executable[Symbol.asyncDispose]();
  try {
    const { tocDigest } = executable.index;
    const at = packages.length;
    if (plan.sources[at]?.tocDigest !== tocDigest || plan.sources[at].size !== executable.index.size) {
      throw new CurlewError(
        'PLAN_CHANGED',
        `carry out the plan: this curlew has another tool for nodes than curlew ${plan.bundle.tool.slice(0, 40)}, which made it`,
        { hint: `use that curlew, or ${ANEW}` },
      );
    }
    checkEntries(executable.index, plan, at, executable.source.name);
    return { plan, sources: [...sources, executable.source], [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
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
    const header = headerMember(entry).byteLength;
    // Where the path is another one, only what follows the header is copied.
    known.set(below === '' ? at : at + header, entry);
    at += header + (entry.packed === 0 ? 0 : entry.packed + paddingMember(entry.size).byteLength);
  }
  for (const [index, origin] of splice.origins.entries()) {
    const planned = splice.index.entries[index];
    if (origin?.source !== number || planned === undefined) continue;
    const found = known.get(origin.offset);
    if (found !== undefined && describe(found, below) === describe(planned, '')) continue;
    throw new CurlewError('FILE_UNUSABLE', `carry out the plan: ${planned.path} is not where it says in ${name}`, {
      hint: ANEW,
    });
  }
}

function describe(entry: PlacedEntry, below: string): string {
  const { path, mode, size, digest, linkTo, packed, stored, packedDigest } = entry;
  const target = linkTo === undefined ? undefined : below + linkTo;
  return JSON.stringify([below + path, mode, size, digest, target, packed, stored, packedDigest]);
}
