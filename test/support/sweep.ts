/**
 * Sweeps over more points than a run of the tests has time for. Each run takes a sample that its seed chooses, so that a few
 * dozen runs reach every point; `scripts/soak` takes all. `scripts/test --seed N` takes the sample of another run again.
 */

/** One point of so many, by tier. */
const SHARES: Readonly<Record<string, number>> = { fast: 24, default: 24, all: 3, soak: 1 };
/** How many times more random cases a soak tries. */
const SOAK_FACTOR = 100;

const tier = process.env['CURLEW_TEST_TIER'] ?? 'default';
const seed = Number(process.env['CURLEW_TEST_SEED'] ?? '0');

/** This run takes what only nights have time for. */
export const isNightly: boolean = tier === 'all';

/** The points of this run's sample, in their order. */
export function sampleOf<Point>(points: readonly Point[]): readonly Point[] {
  const share = SHARES[tier] ?? 1;
  return points.filter((_, index) => index % share === seed % share);
}

/** Parameters for fast-check: so many cases, from the seed of this run. */
export function cases(numRuns: number): { readonly numRuns: number; readonly seed: number } {
  return { numRuns: tier === 'soak' ? numRuns * SOAK_FACTOR : numRuns, seed };
}
