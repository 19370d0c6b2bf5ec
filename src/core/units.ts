/** Numbers formatted for people. */

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'] as const;

/** Decimal units with three significant digits: `653 MB`. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const text = unit === 0 ? String(value) : value.toPrecision(3);
  return `${Number(text)} ${UNITS[unit] ?? ''}`;
}

/** Durations in whole units: `8 s`, `75 s`, `12 min`, `3 h`. */
export function formatSeconds(seconds: number): string {
  if (seconds < 120) return `${Math.max(1, Math.round(seconds))} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`;
}
