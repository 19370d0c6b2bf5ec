/** kURL's program `subnet`: finds a free IPv4 network that overlaps no route of this machine and no excluded network. */
import { CurlewError, errorAbout } from '../../core/errors.ts';
import { readText } from './files.ts';
import { parseGoFlags } from './go-flags.ts';

/** First and last address, as numbers. */
interface Network {
  readonly first: number;
  readonly last: number;
}

const ROUTES = '/proc/net/route';

/** Parses `a.b.c.d/size`; undefined for anything else. */
export function parseNetwork(text: string): Network | undefined {
  const [, address = '', size = ''] = /^(\d{1,3}(?:\.\d{1,3}){3})\/(\d{1,2})$/.exec(text) ?? [];
  const parts = address.split('.').map(Number);
  if (parts.length !== 4 || parts.some((part) => part > 255) || Number(size) > 32) return undefined;
  return networkAt(
    parts.reduce((sum, part) => sum * 256 + part, 0),
    Number(size),
  );
}

/** The network of this size that contains an address. */
function networkAt(address: number, size: number): Network {
  const count = 2 ** (32 - size);
  const first = Math.floor(address / count) * count;
  return { first, last: first + count - 1 };
}

/** Networks in the kernel's routing table (proc(5)), without the default route. */
export function parseRoutes(table: string): readonly Network[] {
  return table.split('\n').flatMap((line) => {
    const [, destination = '', , , , , , mask = ''] = line.trim().split(/\s+/);
    if (!/^[0-9A-F]{8}$/.test(destination) || !/^[0-9A-F]{8}$/.test(mask) || mask === '00000000') return [];
    const size = [...Buffer.from(mask, 'hex')].reduce(
      (bits, byte) => bits + byte.toString(2).replaceAll('0', '').length,
      0,
    );
    return [networkAt(Buffer.from(destination, 'hex').readUInt32LE(0), size)];
  });
}

/** The first network of this size in a range that overlaps none of `taken`; undefined if there is none. */
export function freeNetwork(range: Network, size: number, taken: readonly Network[]): string | undefined {
  const count = 2 ** (32 - size);
  for (let at = networkAt(range.first, size).first; at >= range.first && at + count - 1 <= range.last;) {
    const overlapping = taken.find(({ first, last }) => first <= at + count - 1 && last >= at);
    if (overlapping === undefined)
      return `${[24, 16, 8, 0].map((bits) => Math.floor(at / 2 ** bits) % 256).join('.')}/${size}`;
    // Continues at the next aligned address after the overlapping network.
    at = (Math.floor(overlapping.last / count) + 1) * count;
  }
  return undefined;
}

/** `[--cidr-range SIZE] [--subnet-alloc-range NETWORK] [--exclude-subnet NETWORK,…]`; default is a /22 in 10.0.0.0/8. */
export async function subnet(args: readonly string[]): Promise<string> {
  const values = ['cidr-range', 'subnet-alloc-range', 'exclude-subnet'];
  const flags = parseGoFlags('subnet', args, { values, switches: ['debug'] }).values;
  const size = Number(flags.get('cidr-range') ?? '22');
  const usage = errorAbout('USAGE', `curlew kurl subnet`);
  if (!Number.isInteger(size) || size < 1 || size > 32) throw usage('-cidr-range must be a number from 1 to 32');
  const network = (name: string, text: string): Network => {
    const parsed = parseNetwork(text);
    if (parsed === undefined) throw usage(`-${name}: not an IPv4 network`);
    return parsed;
  };
  const range = flags.get('subnet-alloc-range') ?? '10.0.0.0/8';
  const excluded = (flags.get('exclude-subnet') ?? '').split(',').filter((one) => one !== '');
  const taken = [...parseRoutes(await readText(ROUTES)), ...excluded.map((one) => network('exclude-subnet', one))];
  const free = freeNetwork(network('subnet-alloc-range', range), size, taken);
  if (free === undefined) throw new CurlewError('NOT_FOUND', `subnet: no free network /${size} within ${range}`);
  return free;
}
