/** Selects the proxy of a request by the customary environment variables. Pure. */
import { BlockList, isIP, isIPv6 } from 'node:net';
import { CurlewError } from '../../core/errors.ts';
import { isLoopbackHost } from './address.ts';

/** Environment variables, passed as data. */
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

/** True for an address in a network such as `10.0.0.0/8`; names are not resolved. */
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
 * The proxy for an address, or undefined for a direct connection. The address' scheme selects `HTTPS_PROXY` or `HTTP_PROXY`;
 * the lower-case variable takes precedence. `NO_PROXY` lists names (subdomains included), `name:port`, networks such as
 * `10.0.0.0/8`, or `*`. Connections to this machine never use a proxy.
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
    throw new CurlewError('USAGE', `${name} is not the URL of an http or https proxy`);
  }
  return proxy;
}

/** `Proxy-Authorization` for the user info of a proxy's address, or undefined if it has none. */
export function proxyToken(proxy: URL): string | undefined {
  if (proxy.username === '' && proxy.password === '') return undefined;
  return `Basic ${Buffer.from(`${decoded(proxy.username)}:${decoded(proxy.password)}`).toString('base64')}`;
}

/** Percent-decoded user info; invalid encodings are returned unchanged. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
