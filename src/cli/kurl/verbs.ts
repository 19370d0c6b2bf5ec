/** kURL's program `kurl`: its verbs that add-ons call. What each stands for in kURL: its `pkg/cli`. */
import { isIPv6 } from 'node:net';
import { CurlewError } from '../../core/errors.ts';
import { KURL_VERBS } from '../../kurl/compatibility/programs.ts';
import type { VerbContext } from './cluster-calls.ts';
import { needed, readWords, type Words, type WordsKnown } from './words.ts';

interface Verb {
  readonly words: WordsKnown;
  /** How many operands it takes, least and most. */
  readonly operands: readonly [least: number, most: number];
  /** What is printed at the end. */
  readonly run: (words: Words, context: VerbContext) => Promise<string> | string;
}

const NO_WORDS: WordsKnown = { values: [], switches: [], anywhere: true };

const formatAddress: Verb = {
  words: NO_WORDS,
  operands: [1, 1],
  run: ({ rest: [address = ''] }) => (isIPv6(address) ? `[${address}]` : address),
};

const waitForVersion = (what: 'Rook' | 'Ceph'): Verb => ({
  words: { values: ['timeout'], switches: [], anywhere: true },
  operands: [1, 1],
  run: async ({ values, rest: [version = ''] }, context) => {
    const seconds = secondsOf(values.get('timeout') ?? '0');
    const wait = { what, version, seconds: seconds === 0 ? undefined : seconds };
    return (await import('./ceph.ts')).waitForVersion(wait, context);
  },
});

const HEALTH_WORDS: WordsKnown = { values: ['ignore-checks'], switches: [], anywhere: true };

function secondsOf(text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new CurlewError('USAGE', `kurl: ${JSON.stringify(text)} is no whole number of seconds`);
}

function checksIgnored({ values }: Words): readonly string[] {
  return (values.get('ignore-checks') ?? '').split(',');
}

const VERBS: Readonly<Record<string, Verb>> = {
  'format-address': formatAddress,
  'netutil format-ip-address': formatAddress,
  'netutil iface-from-ip': {
    words: NO_WORDS,
    operands: [1, 1],
    run: async ({ rest: [address = ''] }) => (await import('./interfaces.ts')).interfaceOfAddress(address),
  },
  'netutil default-gateway-iface': {
    words: { values: [], switches: ['ipv6'], anywhere: true },
    operands: [0, 0],
    run: async ({ switches }) => (await import('./interfaces.ts')).defaultGatewayInterface(switches.has('ipv6')),
  },
  'netutil nodes-connectivity': {
    words: { values: ['port', 'proto', 'namespace', 'image', 'udp-attempts'], switches: ['verbose'], anywhere: true },
    operands: [0, 0],
    run: connectivity,
  },
  'rook health': {
    words: HEALTH_WORDS,
    operands: [0, 0],
    run: async (words, context) => (await import('./ceph.ts')).health(checksIgnored(words), context),
  },
  'rook wait-for-health': {
    words: HEALTH_WORDS,
    operands: [0, 1],
    run: async (words, context) => {
      const seconds = words.rest[0] === undefined ? undefined : secondsOf(words.rest[0]);
      return (await import('./ceph.ts')).waitForHealth(seconds, checksIgnored(words), context);
    },
  },
  'rook wait-for-rook-version': waitForVersion('Rook'),
  'rook wait-for-ceph-version': waitForVersion('Ceph'),
  'cluster check-free-disk-space': {
    words: {
      values: ['storageclass', 'bigger-than', 'openebs-image', 'openebs-node-name'],
      switches: ['debug'],
      anywhere: true,
    },
    operands: [0, 0],
    run: async ({ values }, context) => {
      const of = (name: string): string => values.get(name) ?? '';
      const question = {
        storageClass: of('storageclass'),
        biggerThan: of('bigger-than'),
        node: of('openebs-node-name'),
      };
      return (await import('./free-space.ts')).checkFreeSpace({ ...question, image: of('openebs-image') }, context);
    },
  },
};

async function connectivity(words: Words, context: VerbContext): Promise<string> {
  const tool = 'kurl netutil nodes-connectivity';
  const proto = (words.values.get('proto') ?? 'tcp').toLowerCase();
  const [port, attempts] = [Number(needed(tool, words, 'port')), Number(words.values.get('udp-attempts') ?? '5')];
  if (proto !== 'tcp' && proto !== 'udp') throw new CurlewError('USAGE', `curlew kurl ${tool}: --proto is tcp or udp`);
  for (const [name, value, most] of [
    ['port', port, 65_535],
    ['udp-attempts', attempts, 100],
  ] as const) {
    if (Number.isInteger(value) && value >= 1 && value <= most) continue;
    throw new CurlewError('USAGE', `curlew kurl ${tool}: --${name} is a number from 1 to ${most}`);
  }
  const namespace = words.values.get('namespace') ?? 'default';
  const image = needed(tool, words, 'image');
  return (await import('./connectivity.ts')).nodesConnectivity({ port, proto, namespace, image, attempts }, context);
}

/** The verb is the longest beginning of the words that is one; debugging output, which kURL's program has, is not made. */
export async function runVerb(words: readonly string[], context: VerbContext): Promise<string> {
  const count = Object.hasOwn(VERBS, words.slice(0, 2).join(' ')) ? 2 : 1;
  const name = words.slice(0, count).join(' ');
  const verb = Object.hasOwn(VERBS, name) ? VERBS[name] : undefined;
  if (verb === undefined) throw notAnswered(words);
  const tool = `kurl ${name}`;
  const read = readWords(tool, words.slice(count), verb.words);
  const [least, most] = verb.operands;
  if (read.rest.length < least || read.rest.length > most) {
    const wanted = least === most ? `${least}` : `${least} to ${most}`;
    throw new CurlewError('USAGE', `curlew kurl ${tool}: takes ${wanted} words, got ${read.rest.length}`);
  }
  return `${await verb.run(read, context)}\n`;
}

function notAnswered(words: readonly string[]): CurlewError {
  const name = words
    .filter((word) => !word.startsWith('-'))
    .slice(0, 2)
    .join(' ');
  const row = KURL_VERBS.find((one) => one.name === name);
  const hint = row === undefined ? undefined : `${name}: ${row.note}`;
  return new CurlewError(
    'UNSUPPORTED',
    `kurl ${name}: not supported, put kURL's own program into bin of the install folder`,
    { hint },
  );
}
