/**
 * Removal of old releases. The catalog is deleted first, so that no catalog lists missing packages, and the
 * marker last, so that the next run resumes an interrupted removal.
 */
import type { Reporting } from '../../core/cancellable.ts';
import { firstOf } from '../../core/counted.ts';
import { CATALOG_LIMIT } from '../../core/catalog.ts';
import { canonicalJson } from '../../core/digest.ts';
import { eachLimited, mapLimited } from '../../platform/limit/each.ts';
import { CurlewError } from '../../core/errors.ts';
import { reportStep } from '../../core/events.ts';
import { storeKey } from '../../core/layout.ts';
import { currentRelease, findCatalog, publishedAt } from '../store/read-catalog.ts';
import type { ListedObject, Store } from '../store/store.ts';
import { SIGNATURE_LIMIT } from '../../formats/signing/signature.ts';
import { readUnverified } from './release-statement.ts';
import { keysBelow } from './previous-release.ts';
import { writeUnversionedCopies } from './unversioned-copies.ts';
import {
  choosePruned,
  pruneMarkerKey,
  surveyOf,
  type PruneChoice,
  type PruneRule,
  type StayingRelease,
  type Usage,
} from './prune-plan.ts';

export interface PruneOptions extends Omit<PruneRule, 'published'>, Reporting {
  readonly dryRun: boolean;
  /** Number of concurrent deletions. */
  readonly jobs: number;
}

/** Age in milliseconds after which an unfinished upload counts as abandoned. */
const UPLOAD_AGE = 7 * 24 * 60 * 60 * 1000;

/** Releases that a message names. */
const MAX_NAMED = 10;

interface PrunedRelease {
  readonly release: string;
  readonly because: string;
  readonly objects: number;
  readonly bytes: number;
}

export interface PruneResult {
  readonly store: string;
  readonly current: string;
  readonly dryRun: boolean;
  readonly pruned: readonly PrunedRelease[];
  /** Unversioned copies of packages that are in no remaining release. */
  readonly latest: readonly string[];
  readonly kept: readonly StayingRelease[];
  /** Number of aborted multipart uploads that were started long ago and never finished. */
  readonly uploads: number;
  /** Releases that could not be removed. */
  readonly left: readonly { readonly release: string; readonly why: string }[];
}

/** Removes the releases that the rule selects. Safe while others publish and promote. */
export async function prune(store: Store, options: PruneOptions): Promise<PruneResult> {
  const { signal, report, dryRun } = options;
  const current = await requireCurrent(store, signal);
  const survey = surveyOf((await keysBelow(store, '', signal)).values());
  const published = await publishedIn(store, survey, options);
  const rule = { ...options, published };
  const choice = choosePruned(survey, { current, signed: await signedCurrent(store, signal) }, rule);
  const orphans = orphansOf(survey, choice);
  const pruned: PrunedRelease[] = [];
  const left: { release: string; why: string }[] = [];
  for (const one of choice.go) {
    const { release, because, objects } = one;
    const row = { release, because, objects: objects.length, bytes: objects.reduce((sum, { size }) => sum + size, 0) };
    const lower = choice.doubtful.get(release);
    if (lower !== undefined) {
      const why = `by the times in the store it is older than ${lower}; a copy of a store has other times: delete ${release}/ manually if it is old`;
      left.push({ release, why });
      continue;
    }
    const why = dryRun
      ? await removalProblem(store, one, signal)
      : await reportStep(
          report,
          { id: release, title: release },
          () => removeRelease(store, one, { ...options, survey, orphans, current }),
          (reason) => reason ?? 'removed',
        );
    if (why === undefined) pruned.push(row);
    else left.push({ release, why });
  }
  const uploads = await sweep(store, options);
  const gone = new Set(pruned.flatMap(({ release }) => filesOf(survey, release)));
  const latest = [...orphans].filter((file) => gone.has(file));
  return { store: store.address, current, dryRun, pruned, latest, uploads, kept: choice.stay, left };
}

/** The times in the catalogs, and a warning about releases without one. */
async function publishedIn(
  store: Store,
  { releases }: Usage,
  { jobs, report, signal }: PruneOptions,
): Promise<ReadonlyMap<string, Date>> {
  const finished = [...releases.values()].flatMap(({ release, catalog }) => (catalog === undefined ? [] : [release]));
  const times = await mapLimited(
    finished,
    async (release, context) => [release, await publishedAt(store, release, context)] as const,
    { width: jobs, signal },
  );
  const published = new Map(times.flatMap(([release, time]) => (time === undefined ? [] : [[release, time] as const])));
  const others = finished.filter((release) => !published.has(release));
  if (others.length > 0) {
    const text = `older releases do not have their time in index.json, so that of the store counts: ${firstOf(others, MAX_NAMED)}`;
    report({ type: 'note', level: 'warning', text });
  }
  return published;
}

/** Aborts abandoned uploads. A failure is only a warning: the uploads cost storage, but the releases are removed. */
async function sweep(store: Store, { now, dryRun, report, signal }: PruneOptions): Promise<number> {
  try {
    return (await store.sweepUploads?.(new Date(now.getTime() - UPLOAD_AGE), { dryRun, signal })) ?? 0;
  } catch (error) {
    if (!(error instanceof CurlewError) || !['AUTH_FAILED', 'UNSUPPORTED', 'FETCH_FAILED'].includes(error.code))
      throw error;
    report({ type: 'note', level: 'warning', text: `${error.message}: unfinished uploads are kept` });
    return 0;
  }
}

async function requireCurrent(store: Store, signal: AbortSignal): Promise<string> {
  const current = await currentRelease(store, { signal });
  if (current !== undefined) return current.release;
  throw new CurlewError(
    'NOT_FOUND',
    `${store.address}: the store has no current release, so it is unknown which release readers use`,
    { hint: 'publish or promote a release first' },
  );
}

/** The release that is signed as current. Clients that verify signatures use it, even if `VERSION` names another one. */
async function signedCurrent(store: Store, signal: AbortSignal): Promise<string | undefined> {
  const stored = await store.read(storeKey.versionSignature, { limit: SIGNATURE_LIMIT, signal });
  const text = stored === undefined ? '' : Buffer.from(stored.data).toString();
  return readUnverified(text, storeKey.versionSignature)?.release;
}

function filesOf({ releases }: Usage, release: string): readonly string[] {
  return (releases.get(release)?.objects ?? []).map(({ key }) => key.slice(release.length + 1));
}

/** Unversioned copies of packages that are only in releases to be removed. */
function orphansOf(survey: Usage, { go }: PruneChoice): ReadonlySet<string> {
  const going = new Set(go.map(({ release }) => release));
  const others = [...survey.releases.keys()].filter((release) => !going.has(release));
  const needed = new Set(others.flatMap((release) => filesOf(survey, release)));
  const files = go.flatMap(({ release }) => filesOf(survey, release));
  return new Set(files.filter((file) => survey.latest.has(file) && !needed.has(file)));
}

type Removable = PruneChoice['go'][number];

/** Why a release must not be removed; undefined if it may be. A prefix with an unreadable catalog may not be a release. */
async function removalProblem(
  store: Store,
  { release, catalog }: Removable,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (catalog === undefined) return undefined;
  try {
    await findCatalog(store, release, { signal });
    return undefined;
  } catch (error) {
    if (!(error instanceof CurlewError) || error.hint === undefined) throw error;
    return `${error.message}; ${error.hint}`;
  }
}

interface RemoveOptions extends PruneOptions {
  readonly survey: Usage;
  readonly orphans: ReadonlySet<string>;
  /** The current release at the survey. */
  readonly current: string;
}

/** Removes a release. Returns the reason if that is not possible. */
async function removeRelease(
  store: Store,
  one: Removable,
  { jobs, signal, survey, orphans, current }: RemoveOptions,
): Promise<string | undefined> {
  const { release, marked } = one;
  const problem = await removalProblem(store, one, signal);
  if (problem !== undefined) return problem;
  const mark = pruneMarkerKey(release);
  if (!marked) await store.put(mark, Buffer.from(`${canonicalJson({ format: 1, release })}\n`), { signal });
  const key = storeKey.catalog(release);
  const catalog = await store.read(key, { limit: CATALOG_LIMIT, signal });
  await store.delete(key, { signal });
  // If it became current before this point, it must be restored. A later promotion finds no catalog and writes it again.
  const now = await requireCurrent(store, signal);
  if (now === release) {
    if (catalog !== undefined) await store.put(key, catalog.data, { ifNoneMatch: '*', signal });
    await store.delete(mark, { signal });
    return 'it has become the current release';
  }
  // The survey may have seen another one before it was whole.
  const needed = now === current ? new Set<string>() : new Set((await keysBelow(store, `${now}/`, signal)).keys());
  const copies = filesOf(survey, release).filter((file) => orphans.has(file) && !needed.has(`${now}/${file}`));
  const rest = [...(await keysBelow(store, `${release}/`, signal)).values()].filter((object) => object.key !== mark);
  const all = [...copies, ...rest.map((object: ListedObject) => object.key)];
  await eachLimited(all, async (one, context) => store.delete(one, { signal: context.signal }), {
    width: jobs,
    signal,
  });
  const then = await requireCurrent(store, signal);
  // A release that became current meanwhile has these copies too, and whoever published it may have written them before they went.
  if (marked || then !== now) {
    const present = await findCatalog(store, then, { signal });
    if (present !== undefined) await writeUnversionedCopies(store, present, { before: undefined, jobs, signal });
  }
  await store.delete(mark, { signal });
  return undefined;
}
