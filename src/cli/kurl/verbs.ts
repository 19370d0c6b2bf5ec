/** kURL's program `kurl`: the verbs that add-ons call. kURL implements them in `pkg/cli`. */
import { isIPv6 } from 'node:net';
import { CurlewError } from '../../core/errors.ts';
import { KURL_VERBS } from '../../kurl/compatibility/programs.ts';
import type { VerbContext } from './cluster-calls.ts';
import { notSupported, requiredFlag, parseGoFlags, type GoFlags, type GoFlagSpec } from './go-flags.ts';

interface Verb {
  readonly flags: GoFlagSpec;
  /** Minimum and maximum number of operands. */
  readonly operands: readonly [min: number, max: number];
  /** Returns the output. */
  readonly run: (flags: GoFlags, context: VerbContext) => Promise<string> | string;
}

const NO_FLAGS: GoFlagSpec = { values: [], switches: [], anywhere: true };

const formatAddress: Verb = {
  flags: NO_FLAGS,
  operands: [1, 1],
  run: ({ operands: [address = ''] }) => (isIPv6(address) ? `[${address}]` : address),
};

const waitForVersion = (what: 'Rook' | 'Ceph'): Verb => ({
  flags: { values: ['timeout'], switches: [], anywhere: true },
  operands: [1, 1],
  run: async ({ values, operands: [version = ''] }, context) => {
    const seconds = secondsOf(values.get('timeout') ?? '0');
    const wait = { what, version, seconds: seconds === 0 ? undefined : seconds };
    return (await import('./ceph.ts')).waitForVersion(wait, context);
  },
});

const HEALTH_FLAGS: GoFlagSpec = { values: ['ignore-checks'], switches: [], anywhere: true };

function secondsOf(text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new CurlewError('USAGE', `kurl: ${JSON.stringify(text)} is not a whole number of seconds`);
}

function ignoredChecks({ values }: GoFlags): readonly string[] {
  return (values.get('ignore-checks') ?? '').split(',');
}

const VERBS: Readonly<Record<string, Verb>> = {
  'format-address': formatAddress,
  'netutil format-ip-address': formatAddress,
  'netutil iface-from-ip': {
    flags: NO_FLAGS,
    operands: [1, 1],
    run: async ({ operands: [address = ''] }) => (await import('./interfaces.ts')).interfaceOfAddress(address),
  },
  'netutil default-gateway-iface': {
    flags: { values: [], switches: ['ipv6'], anywhere: true },
    operands: [0, 0],
    run: async ({ switches }) => (await import('./interfaces.ts')).defaultGatewayInterface(switches.has('ipv6')),
  },
  'netutil nodes-connectivity': {
    flags: { values: ['port', 'proto', 'namespace', 'image', 'udp-attempts'], switches: ['verbose'], anywhere: true },
    operands: [0, 0],
    run: connectivity,
  },
  'rook health': {
    flags: HEALTH_FLAGS,
    operands: [0, 0],
    run: async (flags, context) => (await import('./ceph.ts')).health(ignoredChecks(flags), context),
  },
  'rook wait-for-health': {
    flags: HEALTH_FLAGS,
    operands: [0, 1],
    run: async (flags, context) => {
      const seconds = flags.operands[0] === undefined ? undefined : secondsOf(flags.operands[0]);
      return (await import('./ceph.ts')).waitForCephHealth(seconds, ignoredChecks(flags), context);
    },
  },
  'rook wait-for-rook-version': waitForVersion('Rook'),
  'rook wait-for-ceph-version': waitForVersion('Ceph'),
  'cluster check-free-disk-space': {
    flags: {
      values: ['storageclass', 'bigger-than', 'openebs-image', 'openebs-node-name'],
      switches: ['debug'],
      anywhere: true,
    },
    operands: [0, 0],
    run: async ({ values }, context) => {
      const of = (name: string): string => values.get(name) ?? '';
      const check = { storageClass: of('storageclass'), biggerThan: of('bigger-than'), node: of('openebs-node-name') };
      return (await import('./free-space.ts')).checkFreeSpace({ ...check, image: of('openebs-image') }, context);
    },
  },
};

async function connectivity(flags: GoFlags, context: VerbContext): Promise<string> {
  const tool = 'kurl netutil nodes-connectivity';
  const proto = (flags.values.get('proto') ?? 'tcp').toLowerCase();
  const [port, attempts] = [Number(requiredFlag(tool, flags, 'port')), Number(flags.values.get('udp-attempts') ?? '5')];
  if (proto !== 'tcp' && proto !== 'udp')
    throw new CurlewError('USAGE', `curlew kurl ${tool}: --proto must be tcp or udp`);
  for (const [name, value, max] of [
    ['port', port, 65_535],
    ['udp-attempts', attempts, 100],
  ] as const) {
    if (Number.isInteger(value) && value >= 1 && value <= max) continue;
    throw new CurlewError('USAGE', `curlew kurl ${tool}: --${name} must be a number from 1 to ${max}`);
  }
  const namespace = flags.values.get('namespace') ?? 'default';
  const image = requiredFlag(tool, flags, 'image');
  return (await import('./connectivity.ts')).nodesConnectivity({ port, proto, namespace, image, attempts }, context);
}

/** Runs the verb that matches the most leading arguments. Does not support kURL's debugging output. */
export async function runVerb(args: readonly string[], context: VerbContext): Promise<string> {
  const count = Object.hasOwn(VERBS, args.slice(0, 2).join(' ')) ? 2 : 1;
  const name = args.slice(0, count).join(' ');
  const verb = Object.hasOwn(VERBS, name) ? VERBS[name] : undefined;
  if (verb === undefined) throw unsupported(args);
  const tool = `kurl ${name}`;
  const flags = parseGoFlags(tool, args.slice(count), verb.flags);
  const [min, max] = verb.operands;
  const { length } = flags.operands;
  if (length < min || length > max) {
    const expected = min === max ? `${min}` : `${min} to ${max}`;
    throw new CurlewError('USAGE', `curlew kurl ${tool}: expected ${expected} operands, got ${length}`);
  }
  return `${await verb.run(flags, context)}\n`;
}

function unsupported(args: readonly string[]): CurlewError {
  const name = args
    .filter((arg) => !arg.startsWith('-'))
    .slice(0, 2)
    .join(' ');
  const row = KURL_VERBS.find((one) => one.name === name);
  return notSupported(`kurl ${name}`, row && `${name}: ${row.note}`);
}
