/** Which addresses may be talked to: schemes, plain http, and where an answer may send us. Pure. */
import { isIPv4, isIPv6 } from 'node:net';
import { CurlewError } from '../core/errors.ts';

/** Says whether plain http to a host is allowed; hosts are `name` or `name:port`, in lower case. */
export interface AddressRules {
  readonly allowHttp: ReadonlySet<string>;
}

/** True for 127.0.0.0/8, ::1, `localhost` and names below it; `hostname` as a URL has it. */
export function isLoopbackHost(hostname: string): boolean {
  const name = hostname.toLowerCase();
  if (name === 'localhost' || name.endsWith('.localhost') || name === '[::1]') return true;
  return isIPv4(name) && name.startsWith('127.');
}

/** True for addresses that mean this machine or its link: an answer from outside has no business there. */
export function isInternalAddress(address: string): boolean {
  const plain = address.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  if (isIPv4(plain)) return /^(?:127|0)\./.test(plain) || plain.startsWith('169.254.');
  if (!isIPv6(plain)) return false;
  if (/^fe[89ab]/.test(plain)) return true;
  const canonical = new URL(`http://[${plain}]/`).hostname.slice(1, -1);
  if (canonical === '::' || canonical === '::1') return true;
  const [, high = '', low = ''] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(canonical) ?? [];
  if (high === '' || low === '') return false;
  const bits = Number.parseInt(high, 16) * 65_536 + Number.parseInt(low, 16);
  return isInternalAddress([24, 16, 8, 0].map((shift) => (bits / 2 ** shift) & 255).join('.'));
}

function namedFor(url: URL, rules: AddressRules): boolean {
  return rules.allowHttp.has(url.hostname.toLowerCase()) || rules.allowHttp.has(url.host.toLowerCase());
}

/** True when plain http to this address is allowed: to this machine, or to a host allowed by name. */
export function allowsPlainHttp(url: URL, rules: AddressRules): boolean {
  return isLoopbackHost(url.hostname) || namedFor(url, rules);
}

/**
 * Parses an address and applies the rule of schemes. Throws `FETCH_FAILED` for anything but https and allowed http.
 * `doing` begins the message.
 */
export function checkedAddress(text: string, base: URL | undefined, doing: string, rules: AddressRules): URL {
  let url: URL;
  try {
    url = new URL(text, base);
  } catch {
    throw new CurlewError('FETCH_FAILED', `${doing}: not an address: ${JSON.stringify(text.slice(0, 200))}`);
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new CurlewError('FETCH_FAILED', `${doing}: the scheme of ${url.protocol}//… is neither https nor http`);
  }
  if (url.protocol === 'http:' && !allowsPlainHttp(url, rules)) {
    throw new CurlewError('FETCH_FAILED', `${doing}: plain http to ${url.host} is not allowed`, {
      hint: `use https, or allow it by name: --allow-http ${url.host}`,
    });
  }
  return url;
}

/** Scheme, host and port: what headers with secrets are bound to. */
export function sameOrigin(a: URL, b: URL): boolean {
  return a.origin === b.origin;
}

/**
 * Checks an address that the answer of `from` named. Returns whether names must be looked up with care
 * (see {@link isInternalAddress}); throws when the address itself is of that kind. Hosts allowed by name and moves
 * within this machine are trusted.
 */
export function checkNamedBy(from: URL, to: URL, doing: string, rules: AddressRules): boolean {
  const trusted = isLoopbackHost(from.hostname) || from.hostname === to.hostname || namedFor(to, rules);
  if (trusted) return false;
  if (isLoopbackHost(to.hostname) || isInternalAddress(to.hostname)) throw internalRefused(doing, from.host, to.host);
  return true;
}

export function internalRefused(doing: string, from: string, to: string): CurlewError {
  return new CurlewError('FETCH_FAILED', `${doing}: ${from} points to ${to}, an address of this machine or its link`, {
    hint: `if that is meant, allow it by name: --allow-http ${to}`,
  });
}
