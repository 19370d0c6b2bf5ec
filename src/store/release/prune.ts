/**
 * Removal of old releases. Each loses its catalogue first, so that no catalogue ever names what is not there, and its
 * mark last, so that a removal cut off anywhere goes on with the next run.
 */
import { CATALOGUE_LIMIT } from '../../core/catalogue.ts';
import { canonicalJson } from '../../core/digest.ts';
import { eachLimited } from '../../platform/limit/each.ts';
import { CurlewError } from '../../core/errors.ts';
import { reportStep, type Report } from '../../core/events.ts';
import { storeKey } from '../../core/layout.ts';
import { currentRelease, findCatalogue } from '../catalogue.ts';
import type { ListedObject, Store } from '../store.ts';
import { SIGNATURE_LIMIT } from '../../formats/signing/signature.ts';
import { readRelease } from './release-statement.ts';
import { keysBelow } from './previous.ts';
import { choosePruned, pruneMark, surveyOf, type PruneChoice, type PruneRule, type Survey } from './prune-plan.ts';

export interface PruneOptions extends PruneRule {
  readonly dryRun: boolean;
  /** Objects at once. */
  readonly jobs: number;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** Nobody sends a package for a week, nor comes back after one to go on. */
const UPLOAD_AGE = 7 * 24 * 60 * 60 * 1000;

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
  /** Unversioned copies that no release is left for. */
  readonly latest: readonly string[];
  readonly kept: readonly string[];
  /** Uploads by parts that were begun long ago and never ended, given up. */
  readonly uploads: number;
  /** What should go and could not. */
  readonly left: readonly { readonly release: string; readonly why: string }[];
}

/** Removes what the rule lets go. Publishing and promoting may go on meanwhile. */
export async function prune(store: Store, options: PruneOptions): Promise<PruneResult> {
  const { signal, report, dryRun } = options;
  const current = await requireCurrent(store, signal);
  const survey = surveyOf((await keysBelow(store, '', signal)).values());
  const choice = choosePruned(survey, { current, signed: await signedCurrent(store, signal) }, options);
  const orphans = orphansOf(survey, choice);
  const pruned: PrunedRelease[] = [];
  const left: { release: string; why: string }[] = [];
  for (const one of choice.go) {
    const { release, because, objects } = one;
    const row = { release, because, objects: objects.length, bytes: objects.reduce((sum, { size }) => sum + size, 0) };
    const why = dryRun
      ? await whyNot(store, one, signal)
      : await reportStep(
          report,
          { id: release, title: release },
          () => removeRelease(store, one, { ...options, survey, orphans }),
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

/** What cannot be swept costs storage, and is no reason to fail behind releases that are gone. */
async function sweep(store: Store, { now, dryRun, report, signal }: PruneOptions): Promise<number> {
  try {
    return (await store.sweepUploads?.(new Date(now.getTime() - UPLOAD_AGE), { dryRun, signal })) ?? 0;
  } catch (error) {
    if (!(error instanceof CurlewError) || !['AUTH_FAILED', 'UNSUPPORTED', 'FETCH_FAILED'].includes(error.code))
      throw error;
    report({ type: 'note', level: 'warning', text: `${error.message}: uploads that never ended are left there` });
    return 0;
  }
}

async function requireCurrent(store: Store, signal: AbortSignal): Promise<string> {
  const current = await currentRelease(store, { signal });
  if (current !== undefined) return current.release;
  throw new CurlewError('NOT_FOUND', `${store.address}: no release is current, so nothing says what readers use`, {
    hint: 'publish or promote one first',
  });
}

/** Whoever asks for signatures takes this one for the current release, whatever `VERSION` says. */
async function signedCurrent(store: Store, signal: AbortSignal): Promise<string | undefined> {
  const found = await store.read(storeKey.versionSignature, { limit: SIGNATURE_LIMIT, signal });
  const text = found === undefined ? '' : Buffer.from(found.data).toString();
  return readRelease(text, storeKey.versionSignature)?.release;
}

function filesOf({ releases }: Survey, release: string): readonly string[] {
  return (releases.get(release)?.objects ?? []).map(({ key }) => key.slice(release.length + 1));
}

/** Unversioned copies of packages that only releases to be removed have. */
function orphansOf(survey: Survey, { go, stay }: PruneChoice): ReadonlySet<string> {
  const needed = new Set(stay.flatMap((release) => filesOf(survey, release)));
  const files = go.flatMap(({ release }) => filesOf(survey, release));
  return new Set(files.filter((file) => survey.latest.has(file) && !needed.has(file)));
}

type Removable = PruneChoice['go'][number];

/** A place whose catalogue cannot be read may be no release at all. */
async function whyNot(
  store: Store,
  { release, catalogue }: Removable,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (catalogue === undefined) return undefined;
  try {
    await findCatalogue(store, release, { signal });
    return undefined;
  } catch (error) {
    if (!(error instanceof CurlewError) || error.hint === undefined) throw error;
    return `${error.message}; ${error.hint}`;
  }
}

interface RemoveOptions extends PruneOptions {
  readonly survey: Survey;
  readonly orphans: ReadonlySet<string>;
}

/** Removes a release; says why when it could not go. */
async function removeRelease(
  store: Store,
  one: Removable,
  { jobs, signal, survey, orphans }: RemoveOptions,
): Promise<string | undefined> {
  const { release, marked } = one;
  const problem = await whyNot(store, one, signal);
  if (problem !== undefined) return problem;
  const mark = pruneMark(release);
  if (!marked) await store.put(mark, Buffer.from(`${canonicalJson({ format: 1, release })}\n`), { signal });
  const key = storeKey.catalogue(release);
  const catalogue = await store.read(key, { limit: CATALOGUE_LIMIT, signal });
  await store.delete(key, { signal });
  // Whoever made it current before now needs it whole; whoever does so later finds no catalogue and writes it anew.
  const now = await requireCurrent(store, signal);
  if (now === release) {
    if (catalogue !== undefined) await store.put(key, catalogue.data, { ifNoneMatch: '*', signal });
    await store.delete(mark, { signal });
    return 'it has become the current release meanwhile';
  }
  const needed = survey.releases.has(now)
    ? new Set<string>()
    : new Set((await keysBelow(store, `${now}/`, signal)).keys());
  const copies = filesOf(survey, release).filter((file) => orphans.has(file) && !needed.has(`${now}/${file}`));
  const rest = [...(await keysBelow(store, `${release}/`, signal)).values()].filter((object) => object.key !== mark);
  await deleteAll(store, [...copies, ...rest.map((object: ListedObject) => object.key)], jobs, signal);
  await store.delete(mark, { signal });
  return undefined;
}

async function deleteAll(store: Store, keys: readonly string[], jobs: number, signal: AbortSignal): Promise<void> {
  await eachLimited(keys, async (key, context) => store.delete(key, { signal: context.signal }), {
    width: jobs,
    signal,
  });
}
