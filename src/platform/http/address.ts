/** Which addresses may be contacted: schemes, plain http, and targets of redirects. Pure. */
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { CurlewError } from '../../core/errors.ts';

/** Hosts that may be contacted over plain http: `name` or `name:port`, in lower case. */
export interface AddressRules {
  readonly allowHttp: ReadonlySet<string>;
}

/** True for 127.0.0.0/8, ::1, `localhost` and names below it; `hostname` as a URL has it. */
export function isLoopbackHost(hostname: string): boolean {
  const name = hostname.toLowerCase();
  if (name === 'localhost' || name.endsWith('.localhost') || name === '[::1]') return true;
  return isIPv4(name) && name.startsWith('127.');
}

/**
 * Networks of this machine, of its link, and of the metadata services of clouds, which serve secrets among other things
 * (Amazon and others 169.254.169.254, Alibaba 100.100.100.200, Azure 168.63.129.16, Oracle 192.0.0.192).
 */
const INTERNAL_IPV4 = [
  ['0.0.0.0', 8],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['100.100.100.200', 32],
  ['168.63.129.16', 32],
  ['192.0.0.192', 32],
] as const;
/** The last two are the IPv6 metadata services of Amazon and Google. */
const INTERNAL_IPV6 = [
  ['::', 127],
  ['fe80::', 10],
  ['fd00:ec2::', 32],
  ['fd20:ce::254', 128],
] as const;
/** IPv6 prefixes of IPv4 addresses: the old form (RFC 4291), and those of translators (RFC 6052, RFC 8215). */
const BEFORE_IPV4 = ['::', '64:ff9b::', '64:ff9b:1::'];

function internalNetworks(): BlockList {
  const list = new BlockList();
  for (const [address, bits] of INTERNAL_IPV4) {
    list.addSubnet(address, bits, 'ipv4');
    for (const before of BEFORE_IPV4) list.addSubnet(`${before}${address}`, 96 + bits, 'ipv6');
    // 6to4, RFC 3056.
    const hex = address.split('.').map((part) => Number(part).toString(16).padStart(2, '0'));
    list.addSubnet(`2002:${hex.slice(0, 2).join('')}:${hex.slice(2).join('')}::`, 16 + bits, 'ipv6');
  }
  for (const [address, bits] of INTERNAL_IPV6) list.addSubnet(address, bits, 'ipv6');
  return list;
}

const INTERNAL = internalNetworks();

/** True for addresses of this machine, its link or its cloud: no answer from outside may point there. */
export function isInternalAddress(address: string): boolean {
  const plain = address.replace(/^\[(.*)\]$/, '$1').replace(/%.*$/, '');
  if (isIPv4(plain)) return INTERNAL.check(plain, 'ipv4');
  return isIPv6(plain) && INTERNAL.check(plain, 'ipv6');
}

function namedFor(url: URL, rules: AddressRules): boolean {
  return rules.allowHttp.has(url.hostname.toLowerCase()) || rules.allowHttp.has(url.host.toLowerCase());
}

/** True when plain http to this address is allowed: for this machine and for hosts allowed by name. */
export function allowsPlainHttp(url: URL, rules: AddressRules): boolean {
  return isLoopbackHost(url.hostname) || namedFor(url, rules);
}

/**
 * Parses an address and checks its scheme. Throws `FETCH_FAILED` for anything but https and allowed http.
 * `doing` begins the message.
 */
export function checkedAddress(text: string, base: URL | undefined, doing: string, rules: AddressRules): URL {
  let url: URL;
  try {
    url = new URL(text, base);
  } catch {
    throw new CurlewError('FETCH_FAILED', `cannot ${doing}: not a valid URL: ${JSON.stringify(text.slice(0, 200))}`);
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new CurlewError(
      'FETCH_FAILED',
      `cannot ${doing}: the scheme of ${url.protocol}//… is neither https nor http`,
    );
  }
  if (url.protocol === 'http:' && !allowsPlainHttp(url, rules)) {
    throw new CurlewError('FETCH_FAILED', `cannot ${doing}: plain http to ${url.host} is not allowed`, {
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
 * Checks an address that a response from `from` named. Returns whether name lookups must be restricted (see
 * {@link isInternalAddress}); throws if the address itself is internal. Hosts allowed by name and redirects within this
 * machine are trusted.
 */
export function checkNamedBy(from: URL, to: URL, doing: string, rules: AddressRules): boolean {
  const trusted = isLoopbackHost(from.hostname) || from.hostname === to.hostname || namedFor(to, rules);
  if (trusted) return false;
  if (isLoopbackHost(to.hostname) || isInternalAddress(to.hostname)) throw internalRefused(doing, from.host, to.host);
  return true;
}

export function internalRefused(doing: string, from: string, to: string): CurlewError {
  return new CurlewError(
    'FETCH_FAILED',
    `cannot ${doing}: ${from} points to ${to}, a loopback, link-local or cloud metadata address`,
    { hint: `if this is intended, allow it by name: --allow-http ${to}` },
  );
}
