/** Times in texts. */

/** The last one that a date can have. */
const MAX_S = 8.64e12;

/** Whole seconds since 1970; 0 for what is no time. */
export function secondsOf(time: string): number {
  return Math.floor(Date.parse(time) / 1000) || 0;
}

/** Seconds since 1970 as `2026-01-02T03:04:05Z`. */
export function timeOf(seconds: number): string {
  return new Date(Math.min(seconds, MAX_S) * 1000).toISOString().replace('.000Z', 'Z');
}
