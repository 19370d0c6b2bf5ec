/** What signed statements of releases and of archives have in common: a version that grows, and times. Pure. */

export interface Claim {
  /** Grows with each statement about the same thing; a positive integer. */
  readonly version: number;
  readonly signed: Date;
  /** Undefined for what holds forever. */
  readonly expires: Date | undefined;
}

/** As the fields of a predicate. */
export function claimFields({ version, signed, expires }: Claim): Readonly<Record<string, unknown>> {
  return { version, signed: secondsOf(signed), ...(expires === undefined ? {} : { expires: secondsOf(expires) }) };
}

/** From the fields of a predicate; undefined for anything that is not written just so. */
export function parseClaim(predicate: Readonly<Record<string, unknown>>): Claim | undefined {
  const { version } = predicate;
  const signed = dateOf(predicate['signed']);
  const expires = dateOf(predicate['expires']);
  if (signed === undefined || (expires === undefined && predicate['expires'] !== undefined)) return undefined;
  return isVersionNumber(version) ? { version, signed, expires } : undefined;
}

export function isVersionNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1;
}

/** A time in UTC, to the second. */
export function secondsOf(date: Date): string {
  return date.toISOString().replace(/\.\d+Z$/, 'Z');
}

function dateOf(value: unknown): Date | undefined {
  if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(value)) return undefined;
  const date = new Date(value);
  return Number.isNaN(date.getTime()) ? undefined : date;
}

/** How far clocks may differ. */
export const DAY: number = 24 * 60 * 60 * 1000;

/** `early` when the clock stands so far before the signature that it says nothing; `expired` when the statement is over. */
export function untimely({ signed, expires }: Omit<Claim, 'version'>, now: Date): 'early' | 'expired' | undefined {
  if (signed.getTime() > now.getTime() + DAY) return 'early';
  return expires === undefined || expires.getTime() > now.getTime() ? undefined : 'expired';
}
