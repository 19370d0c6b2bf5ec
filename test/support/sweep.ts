/**
 * Sweeps over more points than a run of the tests has time for. Each run takes a sample that its seed chooses, so that a few
 * dozen runs reach every point; `scripts/soak` takes all. `scripts/test --seed N` takes the sample of another run again.
 */

/** Prime: runs that take one of two or three runtimes in turn, too, come to each point with each of them. */
const SAMPLE = 47;
/** How many times as many points as usually. */
const DENSITY: Readonly<Record<string, number>> = { fast: 1, default: 1, all: 16, soak: Number.POSITIVE_INFINITY };
/** How many times more random cases a soak tries. */
const SOAK_FACTOR = 100;

const tier = process.env['CURLEW_TEST_TIER'] ?? 'default';
const seed = Number(process.env['CURLEW_TEST_SEED'] ?? '0');

/** This run takes what only nights have time for. */
export const isNightly: boolean = tier === 'all';

/** The points of this run's sample, in their order: usually one of `every`, all of them after so many runs. */
export function sampleOf<Point>(points: readonly Point[], every = SAMPLE): readonly Point[] {
  const share = Math.max(1, Math.ceil(every / (DENSITY[tier] ?? 1)));
  return points.filter((_, index) => index % share === seed % share);
}

/**
 * The same for one of several sweeps that runs take in turn: more points of it, so that about as many runs reach all points of
 * all sweeps. The share has no divisor in common with the number of sweeps, so each point of each sweep meets its turn.
 */
export function sampleInTurn<Point>(points: readonly Point[], sweeps: number): readonly Point[] {
  const takesAll = (DENSITY[tier] ?? 1) >= sweeps;
  return sampleOf(points, takesAll ? SAMPLE : Math.ceil(SAMPLE / sweeps ** 2) * sweeps + 1);
}

/** Why a suite leaves one of several kinds (of servers, runtimes, runs) to other runs, or undefined where this run takes it. */
export function leftToOtherRuns<Kind>(kind: Kind, kinds: readonly Kind[]): string | undefined {
  return sampleOf(kinds, kinds.length).includes(kind)
    ? undefined
    : 'over one of several servers, runtimes or kinds of runs in each run, by its seed; over all: scripts/test --all';
}

/** Parameters for fast-check: so many cases, from the seed of this run. */
export function cases(numRuns: number): { readonly numRuns: number; readonly seed: number } {
  return { numRuns: tier === 'soak' ? numRuns * SOAK_FACTOR : numRuns, seed };
}
