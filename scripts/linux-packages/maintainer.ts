/** Who answers for the packages of Linux distributions. */

/** Debian requires an address that mail reaches, which only the one who releases can name; anything else is an error. */
export function readMaintainer(given = ''): string {
  if (/^[^<>\p{Cc}]*[^<>\p{Cc} ] <[^<>@\s]+@[^<>@\s]+>$/u.test(given) && !given.endsWith('.invalid>')) return given;
  throw new Error('set CURLEW_MAINTAINER to the name and the mail address of who releases, as: NAME <MAIL>');
}
