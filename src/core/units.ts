/** Amounts as people write and read them. Pure. */

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

const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

/** Milliseconds of a duration such as `10ms`, `1m30s` or `0` (Go's time.ParseDuration); undefined if it is invalid. */
export function parseDuration(text: string): number | undefined {
  const [, sign = '', rest = ''] = /^([+-]?)(.{1,100})$/s.exec(text) ?? [];
  if (rest === '0') return 0;
  if (!/^(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/.test(rest)) return undefined;
  let sum = 0;
  for (const [, number = '', unit = ''] of rest.matchAll(/([\d.]+)([a-zµμ]+)/g))
    sum += Number(number) * (UNIT_MS[unit] ?? 0);
  return sign === '-' ? -sum : sum;
}
