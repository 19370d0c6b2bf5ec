/**
 * Brings one file here from the first of several places that has it whole. What arrives stays, whatever happens; what is
 * wrong is asked for again, alone; the file gets its name when all of it is there, proved and on disk.
 */
import { basename } from 'node:path';
import { CurlewError } from '../core/errors.ts';
import { reportStep } from '../core/events.ts';
import { claim } from '../platform/files/claim.ts';
import { allFailed, isPlaceError, type FetchPlace } from '../store/places.ts';
import { fromPlace, mayBeAny, type Pull, type Pulled, type PullOptions } from './from-place.ts';
import { openPlace } from './open-place.ts';

/** Rounds over all places that bring nothing new end it; so do so many replaced files. */
const MOST_RESTARTS = 3;
/** A failure of these kinds may be over soon. */
const PASSING: readonly string[] = ['FETCH_FAILED', 'STORE_CONFLICT'];

/**
 * Fetches to `file`, whose folder exists. `places` are asked in their order; never empty. What the first of them has
 * rules: one that has something else is told and left out. Throws what the last place said when none can help,
 * `FILE_EXISTS`, `NO_SPACE`, `BUSY` while another process fetches the same, and what `check` throws.
 */
export async function pull(places: readonly FetchPlace[], file: string, options: PullOptions): Promise<Pulled> {
  const { report, signal } = options;
  await using _claimed = await claim(file);
  const id = 'pull';
  const onBytes = (bytes: number, total?: number): void => report({ type: 'step-progress', id, bytes, total });
  const run: Pull = {
    file,
    options,
    onBytes,
    filling: undefined,
    fetched: 0,
    from: new Set(),
    changed: new Set(),
  };
  try {
    return await reportStep(
      report,
      { id, title: `pull ${basename(file)}` },
      async () => inTurn(run, places),
      ({ fetched }) => (fetched === 0 ? 'there already' : 'whole and proved'),
    );
  } catch (error) {
    // A disk that is full takes no note either: what the last one says still holds.
    await run.filling?.file.checkpoint().catch(() => undefined);
    throw signal.aborted ? stopped(run) : error;
  } finally {
    await run.filling?.file[Symbol.asyncDispose]();
  }
}

function stopped({ file, filling }: Pull): CurlewError {
  const { have, source } = filling?.file ?? {};
  const there = have === undefined ? 'before anything came' : `with ${have.bytes()} of ${source?.size} bytes there`;
  return new CurlewError('CANCELLED', `pull ${basename(file)}: stopped ${there}`, {
    hint: 'the same command resumes where it stopped',
  });
}

async function inTurn(run: Pull, places: readonly FetchPlace[]): Promise<Pulled> {
  const { report, signal } = run.options;
  const failures = new Map<FetchPlace, CurlewError>();
  const slow = new Set<FetchPlace>();
  let left = places;
  for (let rest = MOST_RESTARTS; ;) {
    const before = run.fetched;
    const queue = [...left];
    const again: FetchPlace[] = [];
    for (let place = queue.shift(); place !== undefined; place = queue.shift()) {
      try {
        const opened = await openPlace(place, { anyFile: mayBeAny(run), signal });
        if (!opened.ranged && queue.length > 0 && !slow.has(place)) {
          slow.add(place);
          queue.push(place);
          continue;
        }
        return await fromPlace(run, opened);
      } catch (error) {
        signal.throwIfAborted();
        if (!isPlaceError(error)) throw error;
        failures.set(place, error);
        if (error.code === 'STORE_CONFLICT') run.changed.add(place);
        if (PASSING.includes(error.code)) again.push(place);
        if (queue.length > 0) {
          report({ type: 'note', level: 'warning', text: `${error.message}; the next place is asked` });
        }
      }
    }
    rest -= run.changed.size > 0 ? 1 : 0;
    const moved = run.fetched > before || run.changed.size > 0;
    if (again.length === 0 || !moved || rest < 0) throw allFailed([...failures.values()]);
    left = again;
  }
}
