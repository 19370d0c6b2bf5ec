/** Which proxy a request goes through, by the customary variables. Pure. */
import { BlockList, isIP, isIPv6 } from 'node:net';
import { CurlewError } from '../../core/errors.ts';
import { isLoopbackHost } from './address.ts';

/** Variables of the process, given as data. */
export type Environment = Readonly<Record<string, string | undefined>>;

function variable(env: Environment, name: string): string | undefined {
  const value = env[name.toLowerCase()] ?? env[name];
  return value === undefined || value.trim() === '' ? undefined : value.trim();
}

function matches(entry: string, url: URL): boolean {
  if (entry === '*') return true;
  if (entry.includes('/')) return isWithin(entry, url.hostname.replace(/^\[(.*)\]$/, '$1'));
  const [, name = '', port] = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(entry) ?? [];
  if (name === '') return false;
  if (port !== undefined && port !== (url.port === '' ? defaultPort(url) : url.port)) return false;
  const suffix = name.replace(/^\*?\./, '');
  return url.hostname === suffix || url.hostname === `[${suffix}]` || url.hostname.endsWith(`.${suffix}`);
}

/** True for an address of a network such as `10.0.0.0/8`; names are not looked up for this. */
function isWithin(network: string, host: string): boolean {
  const [, address = '', prefix = ''] = /^([0-9a-f.:]+)\/(\d{1,3})$/.exec(network) ?? [];
  const family = isIPv6(host) ? 'ipv6' : 'ipv4';
  if (isIP(host) === 0 || isIP(address) !== isIP(host) || Number(prefix) > (family === 'ipv6' ? 128 : 32)) return false;
  const list = new BlockList();
  list.addSubnet(address, Number(prefix), family);
  return list.check(host, family);
}

function defaultPort(url: URL): string {
  return url.protocol === 'https:' ? '443' : '80';
}

/**
 * The proxy for an address, or undefined for a direct connection. `HTTPS_PROXY` and `HTTP_PROXY` are chosen by the
 * address' scheme, lower case wins. `NO_PROXY` lists names with all below them, `name:port`, networks such as
 * `10.0.0.0/8`, or `*`. This machine itself is never asked through a proxy.
 */
export function proxyFor(url: URL, env: Environment): URL | undefined {
  if (isLoopbackHost(url.hostname)) return undefined;
  const name = url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const value = variable(env, name);
  if (value === undefined) return undefined;
  const exceptions = (variable(env, 'NO_PROXY') ?? '').toLowerCase().split(/[\s,]+/);
  if (exceptions.some((entry) => matches(entry, url))) return undefined;
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? value : `http://${value}`;
  const proxy = URL.canParse(text) ? new URL(text) : undefined;
  if (proxy === undefined || (proxy.protocol !== 'http:' && proxy.protocol !== 'https:')) {
    throw new CurlewError('USAGE', `${name} is not the address of an http or https proxy`);
  }
  return proxy;
}

/** `Proxy-Authorization` for the user info of a proxy's address, or undefined when it has none. */
export function proxyToken(proxy: URL): string | undefined {
  if (proxy.username === '' && proxy.password === '') return undefined;
  return `Basic ${Buffer.from(`${decoded(proxy.username)}:${decoded(proxy.password)}`).toString('base64')}`;
}

/** Percent-decoded user info; what is no valid encoding stays as it is. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
