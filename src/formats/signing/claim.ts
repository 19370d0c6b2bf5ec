/** The common part of signed statements about releases and archives: an increasing version, and times. Pure. */

export interface Claim {
  /** Increases with each statement about the same subject; a positive integer. */
  readonly version: number;
  readonly signed: Date;
  /** Undefined for a statement that does not expire. */
  readonly expires: Date | undefined;
}

/** Formats a claim as fields of a predicate. */
export function claimFields({ version, signed, expires }: Claim): Readonly<Record<string, unknown>> {
  return { version, signed: secondsOf(signed), ...(expires === undefined ? {} : { expires: secondsOf(expires) }) };
}

/** Parses a claim from fields of a predicate; undefined for any other form. */
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

/** How far clocks may differ, in milliseconds. */
export const DAY: number = 24 * 60 * 60 * 1000;

/** `early` if the clock is more than a day before the signature, and so is unusable; `expired` after the end of validity. */
export function untimely({ signed, expires }: Omit<Claim, 'version'>, now: Date): 'early' | 'expired' | undefined {
  if (signed.getTime() > now.getTime() + DAY) return 'early';
  return expires === undefined || expires.getTime() > now.getTime() ? undefined : 'expired';
}
