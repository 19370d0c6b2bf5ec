/** Notations of Go and Kubernetes in specs: quantities, booleans, and durations as Go prints them. Pure. */

/** Nanoseconds as Go prints a duration: `1.5ms`, `2m0.5s`, `0s`. */
export function formatDuration(ns: number): string {
  if (ns === 0) return '0s';
  const sign = ns < 0 ? '-' : '';
  const size = Math.abs(ns);
  if (size < 1e3) return `${sign}${size}ns`;
  if (size < 1e6) return `${sign}${trimmed(size / 1e3)}µs`;
  if (size < 1e9) return `${sign}${trimmed(size / 1e6)}ms`;
  const hours = Math.floor(size / 3600e9);
  const minutes = Math.floor((size % 3600e9) / 60e9);
  const seconds = `${trimmed((size % 60e9) / 1e9)}s`;
  if (hours > 0) return `${sign}${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${sign}${minutes}m${seconds}` : `${sign}${seconds}`;
}

function trimmed(number: number): string {
  return number.toFixed(9).replace(/\.?0+$/, '');
}

const BINARY: readonly string[] = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];
const DECIMAL: readonly string[] = ['k', 'M', 'G', 'T', 'P', 'E'];

/** The integer value of a Kubernetes quantity such as `30Gi`, `4G` or `2e9`; undefined if it is invalid. */
export function parseQuantity(text: string): number | undefined {
  const [, number, unit = ''] =
    /^([+-]?(?:\d{1,20}\.?\d{0,20}|\.\d{1,20}))(|[KMGTPE]i|[numkMGTPE]|[eE][+-]?\d{1,2})$/.exec(text) ?? [];
  if (number === undefined) return undefined;
  const value = Number(number) * factorOf(unit);
  const whole = Math.round(value);
  return Math.abs(whole - value) < 1e-6 ? whole : undefined;
}

function factorOf(unit: string): number {
  if (unit === '') return 1;
  if (BINARY.includes(unit)) return 1024 ** (BINARY.indexOf(unit) + 1);
  if (DECIMAL.includes(unit)) return 1000 ** (DECIMAL.indexOf(unit) + 1);
  const small = ['m', 'u', 'n'].indexOf(unit);
  return small === -1 ? 10 ** Number(unit.slice(1)) : 1000 ** -(small + 1);
}

const TRUE: readonly string[] = ['1', 't', 'T', 'TRUE', 'true', 'True'];
const FALSE: readonly string[] = ['0', 'f', 'F', 'FALSE', 'false', 'False'];

/** Go's strconv.ParseBool; undefined for anything else. */
export function parseTruth(text: string): boolean | undefined {
  if (TRUE.includes(text)) return true;
  return FALSE.includes(text) ? false : undefined;
}
