/**
 * Transfers one file from the first of several places that has all of it. Bytes that have arrived are kept, whatever fails; wrong
 * ones are fetched again, alone; the file gets its name when it is complete, verified and on disk.
 */
import { basename } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { reportStep } from '../../core/events.ts';
import { openFileSource } from '../../formats/archive/read.ts';
import { claim } from '../../platform/files/claim.ts';
import { allFailed, isPlaceError, tryPlaces as tryEach, type FetchPlace } from '../store/places.ts';
import { NoLength } from '../store/web.ts';
import { completeHere, endOf, inspectExisting, requireFreeName } from './existing-file.ts';
import {
  acceptsAnyFile,
  fromPlace,
  placeIdentity,
  type Pulled,
  type Transfer,
  type TransferOptions,
} from './from-place.ts';
import { fetchUrl } from './from-url.ts';
import { openPlace } from './open-place.ts';
import { inspectPartial, pathsBeside, removeFinished } from './partial-file.ts';

/** The transfer ends after this many rounds over all places that bring nothing new, and after this many replaced files. */
const MAX_RESTARTS = 3;
/** Failures that may be temporary. */
const TEMPORARY: readonly string[] = ['FETCH_FAILED', 'STORE_CONFLICT'];

/**
 * A limit in bytes a second for all connections together: the function returns after each chunk how many milliseconds to wait
 * before the next one is read. `now` is a clock in milliseconds. Time in which nothing arrived is not made up for.
 */
export function createPace(bytesPerSecond: number, now: () => number): (bytes: number) => number {
  let due = now();
  return (bytes) => {
    const at = now();
    due = Math.max(due, at) + (bytes / bytesPerSecond) * 1000;
    return due - at;
  };
}

export type PullOptions = Omit<TransferOptions, 'doing' | 'elsewhere' | 'onBytes'>;

/** {@link transfer} as a step of its own. `BUSY` while another process fetches the same file. */
export async function pull(places: readonly FetchPlace[], file: string, options: PullOptions): Promise<Pulled> {
  const { report, signal } = options;
  await using _claimed = await claim(file);
  const id = 'pull';
  const doing = `pull ${basename(file)}`;
  let [size, progress] = [0, 'before any bytes arrived'];
  const onBytes = (bytes: number, total?: number): void => {
    report({ type: 'step-progress', id, bytes, total });
    if (total !== undefined) size = total;
    progress = `after ${bytes} of ${size} bytes`;
  };
  try {
    return await reportStep(
      report,
      { id, title: doing },
      async () => transfer(places, file, { ...options, doing, elsewhere: 'fetch it from another place', onBytes }),
      ({ fetched }) => (fetched === 0 ? 'already exists' : 'complete and verified'),
    );
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new CurlewError('CANCELLED', `${doing}: stopped ${progress}`, {
      hint: 'run the same command again to resume',
    });
  }
}

export interface PullPlan extends Pick<Pulled, 'file' | 'size' | 'contents'> {
  /** Bytes that are not on disk yet; damaged ones are only found while they are verified. */
  readonly missing: number;
  /** The first place that has the file. */
  readonly from: string;
}

/** Plans {@link pull}; writes nothing. Throws what it throws before the first byte. */
export async function planPull(
  places: readonly FetchPlace[],
  file: string,
  { sha256, check, force, report, signal }: Pick<PullOptions, 'sha256' | 'check' | 'force' | 'report' | 'signal'>,
): Promise<PullPlan> {
  return tryEach(
    places,
    async (place) => {
      const anyFile = sha256 !== undefined && check === undefined;
      const opened = await openPlace(place, { anyFile, unpinned: false, signal });
      if (opened.end !== undefined) await check?.(opened.end.toc, opened);
      const existing = await inspectExisting(file, opened, { sha256, check, force, report, signal });
      const { size } = opened.object;
      const { bytes } = await inspectPartial(pathsBeside(file), placeIdentity(opened));
      const present = existing === undefined ? bytes : typeof existing === 'number' ? existing : size;
      const contents = opened.end?.index.tocDigest;
      return { file, size, contents, missing: Math.max(0, size - present), from: opened.name };
    },
    { report, signal },
  );
}

/**
 * Fetches to `file`, whose folder exists. `places` are tried in order; never empty. Without a digest, the first place determines
 * which file it is, and places that have another one are skipped with a warning. Throws the last error if all places fail,
 * `FILE_EXISTS`, `NO_SPACE`, and what `check` throws.
 */
export async function transfer(places: readonly FetchPlace[], file: string, options: TransferOptions): Promise<Pulled> {
  const { sha256, size, check } = options;
  await removeFinished(pathsBeside(file));
  if (sha256 !== undefined && check === undefined) {
    const existing = await completeHere(file, { sha256, size }, options);
    if (existing !== undefined) return { file, ...existing, fetched: 0, from: [] };
  }
  const run: Transfer = { file, options, filling: undefined, fetched: 0, from: new Set(), changed: new Set() };
  try {
    return await tryPlaces(run, places);
  } finally {
    await run.filling?.file[Symbol.asyncDispose]();
  }
}

async function tryPlaces(run: Transfer, places: readonly FetchPlace[]): Promise<Pulled> {
  const { report, signal } = run.options;
  const failures = new Map<FetchPlace, CurlewError>();
  const slow = new Set<FetchPlace>();
  let candidates = places;
  for (let rest = MAX_RESTARTS; ;) {
    const before = run.fetched;
    const queue = [...candidates];
    const again: FetchPlace[] = [];
    for (let place = queue.shift(); place !== undefined; place = queue.shift()) {
      try {
        const unpinned = run.changed.has(place);
        const opening = openPlace(place, { anyFile: acceptsAnyFile(run), unpinned, signal });
        const opened = await opening.catch((error: unknown) => withoutLength(run, error));
        if (!('ranged' in opened && opened.ranged) && queue.length > 0 && !slow.has(place)) {
          slow.add(place);
          queue.push(place);
          continue;
        }
        return await (opened instanceof NoLength ? inOneStream(run, place, opened) : fromPlace(run, opened));
      } catch (error) {
        signal.throwIfAborted();
        if (!isPlaceError(error)) throw error;
        failures.set(place, error);
        if (error.code === 'STORE_CONFLICT') run.changed.add(place);
        if (TEMPORARY.includes(error.code)) again.push(place);
        if (queue.length > 0) {
          report({ type: 'note', level: 'warning', text: `${error.message}; trying the next place` });
        }
      }
    }
    rest -= run.changed.size > 0 ? 1 : 0;
    const moved = run.fetched > before || run.changed.size > 0;
    if (again.length === 0 || !moved || rest < 0) throw allFailed([...failures.values()]);
    candidates = again;
  }
}

const NEEDS_DIGEST =
  'without a length, the table of contents that verifies a bundle cannot be found: give the digest of the file with --sha256 HEX, or fetch it from another place';

/** A place that does not report the length of the file is of use only if the digest shows that all of it has come. */
function withoutLength({ options: { sha256, check, elsewhere } }: Transfer, error: unknown): NoLength {
  if (!(error instanceof NoLength)) throw error;
  if (sha256 !== undefined && check === undefined) return error;
  const hint = check === undefined ? NEEDS_DIGEST : `its signature cannot be checked without a length: ${elsewhere}`;
  throw error.with({ hint, cause: error });
}

/** From a place that does not report the length of the file, whose digest is known. */
async function inOneStream(run: Transfer, { store, key }: FetchPlace, { http, url }: NoLength): Promise<Pulled> {
  const { file, options } = run;
  const { doing, sha256: digest, size: limit, force, isPrivate, pace, elsewhere, signal } = options;
  if (!force) await requireFreeName(file);
  await run.filling?.file[Symbol.asyncDispose]();
  run.filling = undefined;
  const name = `${store.address}/${key}`;
  const check = (actual: Digest): void => {
    if (actual === digest) return;
    throw new CurlewError('DIGEST_MISMATCH', `${name}: has the sha256 ${actual}, not ${digest}`, {
      hint: `check the sha256, or ${elsewhere}`,
    });
  };
  let [bytes, total]: [number, number | undefined] = [0, limit];
  await fetchUrl(
    http,
    { doing, url, paths: pathsBeside(file), digest, check, limit, force, isPrivate },
    {
      signal,
      onSize: (size) => void (total = size),
      onBytes: (more) => options.onBytes((bytes += more), total),
      onFetched: async (more) => {
        run.fetched += more;
        run.from.add(name);
        const wait = pace?.(more) ?? 0;
        if (wait > 0) await delay(wait, undefined, { signal });
      },
    },
  );
  await using source = await openFileSource(file);
  return { file, ...(await endOf(source, { signal })), fetched: run.fetched, from: [...run.from] };
}
