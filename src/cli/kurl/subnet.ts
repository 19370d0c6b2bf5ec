/** kURL's program `subnet`: a free IPv4 network, which meets neither a route of this machine nor one that is excluded. */
import { CurlewError } from '../../core/errors.ts';
import { readText } from './files.ts';
import { readWords } from './words.ts';

/** First and last address, as numbers. */
interface Network {
  readonly first: number;
  readonly last: number;
}

const ROUTES = '/proc/net/route';

/** `a.b.c.d/size`, or undefined when it is none. */
export function parseNetwork(text: string): Network | undefined {
  const [, address = '', size = ''] = /^(\d{1,3}(?:\.\d{1,3}){3})\/(\d{1,2})$/.exec(text) ?? [];
  const parts = address.split('.').map(Number);
  if (parts.length !== 4 || parts.some((part) => part > 255) || Number(size) > 32) return undefined;
  return networkAt(
    parts.reduce((sum, part) => sum * 256 + part, 0),
    Number(size),
  );
}

/** The network of that size that holds an address. */
function networkAt(address: number, size: number): Network {
  const count = 2 ** (32 - size);
  const first = Math.floor(address / count) * count;
  return { first, last: first + count - 1 };
}

/** Networks of the kernel's table (proc(5)); the default route is none. */
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

/** The first network of this size within a range that meets none of those taken; undefined when there is none. */
export function freeNetwork(range: Network, size: number, taken: readonly Network[]): string | undefined {
  const count = 2 ** (32 - size);
  for (let at = networkAt(range.first, size).first; at >= range.first && at + count - 1 <= range.last;) {
    const met = taken.find(({ first, last }) => first <= at + count - 1 && last >= at);
    if (met === undefined) return `${[24, 16, 8, 0].map((bits) => Math.floor(at / 2 ** bits) % 256).join('.')}/${size}`;
    // Past what is in the way, at the next place where a network of this size begins.
    at = (Math.floor(met.last / count) + 1) * count;
  }
  return undefined;
}

/** `[--cidr-range SIZE] [--subnet-alloc-range NETWORK] [--exclude-subnet NETWORK,…]`, by default /22 of 10.0.0.0/8. */
export async function subnet(given: readonly string[]): Promise<string> {
  const values = ['cidr-range', 'subnet-alloc-range', 'exclude-subnet'];
  const words = readWords('subnet', given, { values, switches: ['debug'] }).values;
  const size = Number(words.get('cidr-range') ?? '22');
  const usage = (what: string): CurlewError => new CurlewError('USAGE', `curlew kurl subnet: ${what}`);
  if (!Number.isInteger(size) || size < 1 || size > 32) throw usage('-cidr-range is a number from 1 to 32');
  const network = (name: string, text: string): Network => {
    const parsed = parseNetwork(text);
    if (parsed === undefined) throw usage(`-${name}: not an IPv4 network`);
    return parsed;
  };
  const range = words.get('subnet-alloc-range') ?? '10.0.0.0/8';
  const excluded = (words.get('exclude-subnet') ?? '').split(',').filter((one) => one !== '');
  const taken = [...parseRoutes(await readText(ROUTES)), ...excluded.map((one) => network('exclude-subnet', one))];
  const found = freeNetwork(network('subnet-alloc-range', range), size, taken);
  if (found === undefined) throw new CurlewError('NOT_FOUND', `subnet: no free network /${size} within ${range}`);
  return found;
}
