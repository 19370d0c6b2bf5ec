/** When a certificate expires, for people. */

const DAY_MS = 24 * 3_600_000;

/** `expires` in ISO 8601: `expires in 300 days, on 2027-01-01`. */
export function expiryText(expires: string): string {
  const days = Math.floor((Date.parse(expires) - Date.now()) / DAY_MS);
  const date = expires.slice(0, 10);
  return days < 0 ? `expired on ${date}` : `expires in ${days} days, on ${date}`;
}
