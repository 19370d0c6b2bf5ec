/** Finds the network interface with an address, and the one with the default route. */
import { networkInterfaces } from 'node:os';
import { isIP } from 'node:net';
import { CurlewError } from '../../core/errors.ts';
import { readText } from './files.ts';

/** Normalizes an address: IPv6 has several notations. */
function plainAddress(address: string): string {
  if (isIP(address) === 4) return address;
  const { hostname } = new URL(`http://[${address}]/`);
  const [, high = '', low = ''] = /^\[::ffff:([\da-f]{1,4}):([\da-f]{1,4})\]$/.exec(hostname) ?? [];
  if (high === '') return hostname;
  const bytes = [high, low].flatMap((half) => [Number.parseInt(half, 16) >> 8, Number.parseInt(half, 16) & 255]);
  return bytes.join('.');
}

/** The interface of this machine with this address, IPv4 or IPv6. */
export function interfaceOfAddress(
  address: string,
  interfaces: ReturnType<typeof networkInterfaces> = networkInterfaces(),
): string {
  if (isIP(address) === 0 || address.includes('%')) {
    throw new CurlewError('USAGE', `kurl netutil iface-from-ip: ${JSON.stringify(address)} is not an IP address`);
  }
  const normalized = plainAddress(address);
  for (const [name, addresses = []] of Object.entries(interfaces)) {
    if (addresses.some((one) => plainAddress(one.address.replace(/%.*$/, '')) === normalized)) return name;
  }
  throw new CurlewError('NOT_FOUND', `kurl netutil iface-from-ip: no interface of this machine has address ${address}`);
}

const [UP, REJECT] = [0x1, 0x200];

/** The interface of the first default route of the kernel's IPv4 table (proc(5), /proc/net/route); undefined without one. */
export function defaultInterface(table: string): string | undefined {
  for (const line of table.split('\n').slice(1)) {
    const [name, destination, , flags = '0', , , , mask] = line.trim().split(/\s+/);
    if (destination === '00000000' && mask === '00000000' && isUsable(flags)) return name;
  }
  return undefined;
}

/** The same for IPv6 (/proc/net/ipv6_route), where the kernel has a default route that rejects everything. */
export function defaultInterface6(table: string): string | undefined {
  for (const line of table.split('\n')) {
    const [destination, size, , , , , , , flags = '0', name] = line.trim().split(/\s+/);
    if (destination === '0'.repeat(32) && size === '00' && isUsable(flags)) return name;
  }
  return undefined;
}

function isUsable(flags: string): boolean {
  const bits = Number.parseInt(flags, 16);
  return (bits & UP) !== 0 && (bits & REJECT) === 0;
}

/** The interface of this machine's default route. */
export async function defaultGatewayInterface(ipv6: boolean): Promise<string> {
  const device = ipv6
    ? defaultInterface6(await readText('/proc/net/ipv6_route'))
    : defaultInterface(await readText('/proc/net/route'));
  if (device !== undefined) return device;
  const what = `this machine has no default ${ipv6 ? 'IPv6 ' : ''}route`;
  throw new CurlewError('NOT_FOUND', `kurl netutil default-gateway-iface: ${what}`);
}
