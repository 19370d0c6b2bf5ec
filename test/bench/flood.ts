/** What clients that ask for more than they read cost `curlew serve`, and the others that it serves meanwhile. */
import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { readFile, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { startDaemon, type Daemon } from '../components/support/daemon.ts';
import { publishTestPackages, specOf } from '../support/bundles.ts';
import { freePort } from '../support/ports.ts';
import { keepSpec } from '../support/served.ts';
import { keptTree } from '../support/tree.ts';
import { spread } from './measure.ts';
import { figure, range, type Section, type Target } from './report.ts';
import { CURLEW } from './ways.ts';

const FEW = 10;
/** The young generation of V8 grows in steps of 17 MB: between fewer connections a step would count as theirs. */
const MANY = 100;
const FLOOD_MS = 10_000;
const PROBE_MS = 100;
const AFTER_MS = 2000;
const SMALL = 1000;
const LARGE_BYTES = 100 << 20;
const HEAD_BYTES = 15_000;
/** For a connection. */
const MAX_MB = 0.5;
const ASK = 'HTTP/1.1\r\nHost: x\r\n';

interface Options {
  readonly say: (text: string) => void;
}

interface Served extends Daemon {
  readonly port: number;
}

/** One package that no buffer holds, and a thousand small ones; a spec of the first. */
async function makeStore(folder: string): Promise<void> {
  const box = await keptTree(folder);
  const small = Array.from({ length: SMALL }, (_, at) => ({
    name: `p${at}`,
    version: '1.0',
    files: Array.from({ length: 10 }, (_unused, file) => ({ path: `files/${file}`, data: randomBytes(500) })),
  }));
  const large = { name: 'large', version: '1.0', files: [{ path: 'images/layer', data: randomBytes(LARGE_BYTES) }] };
  await publishTestPackages(box, [large, ...small], new AbortController().signal);
  await rm(box.at('out'), { recursive: true });
  await keepSpec(box, 'large', specOf({ large: '1.0' }));
}

async function startServing(folder: string): Promise<Served> {
  const port = await freePort();
  const daemon = await startDaemon({
    command: process.execPath,
    args: [CURLEW, 'serve', '--store', join(folder, 'store'), '--listen', `127.0.0.1:${port}`, '--log', 'none'],
    logFile: join(folder, 'serve.log'),
    ready: async () => (await fetch(`http://127.0.0.1:${port}/healthz`)).ok,
  });
  return { ...daemon, port };
}

/** Memory of a process now, in MB. */
async function memoryOf(pid: number): Promise<number> {
  const [, kilobytes = 'NaN'] = /^VmRSS:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) / 1024;
}

/** A head of the largest size, for packages in an order of its own. */
function plannedHead(at: number): string {
  const names = Array.from({ length: 25 }, (_, step) => `p${(at * 7 + step * 31) % SMALL}-1.0`);
  const start = `HEAD /bundle/large/packages/${names.join(',')}.tar.gz ${ASK}X-Padding: `;
  return `${start}${'x'.repeat(HEAD_BYTES - start.length)}\r\n\r\n`;
}

const UNREAD = `GET /bundle/large.tar.gz ${ASK}\r\n`;
const HEALTH = `HEAD /healthz ${ASK}\r\n`;
const OBJECT = `GET /dist/VERSION ${ASK}\r\n`;
const LONG_BYTES = 6_000_000;

const LONG = Buffer.from(UNREAD + HEALTH.repeat(Math.ceil(LONG_BYTES / HEALTH.length)));
const OBJECTS = Buffer.from(OBJECT.repeat(Math.ceil(LONG_BYTES / OBJECT.length)));

/** What one connection sends. */
const FLOODS: Readonly<Record<string, (connection: number) => Buffer>> = {
  'a bundle, 6 MB of HEAD /healthz': () => LONG,
  '6 MB of GET /dist/VERSION': () => OBJECTS,
  '150 HEADs of 15 KB': (own) =>
    Buffer.from(Array.from({ length: 150 }, (_, at) => plannedHead(own * 150 + at)).join('')),
  'a bundle, 99 HEADs of 15 KB': (own) =>
    Buffer.from(UNREAD + Array.from({ length: 99 }, (_, at) => plannedHead(own * 99 + at)).join('')),
};

interface Crowd {
  readonly connections: number;
  /** Whether they take their answers. */
  readonly reads: boolean;
  readonly bytes: (connection: number) => Buffer;
}

/** Sends the bytes on a connection, on another one whenever the server closes it, until the signal fires. */
async function flood(port: number, bytes: Buffer, { reads }: Crowd, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    let socket: Socket | undefined;
    const open = (): void => {
      if (signal.aborted) return resolve();
      socket = connect(port, '127.0.0.1');
      if (reads) socket.resume();
      else socket.pause();
      socket.on('error', () => undefined);
      socket.once('close', () => setTimeout(open, 10));
      socket.write(bytes);
    };
    signal.addEventListener('abort', () => socket?.destroy(), { once: true });
    open();
  });
}

interface Meanwhile {
  /** Milliseconds that others waited, by what they asked. */
  readonly waits: Readonly<Record<string, number[]>>;
  /** Answers that said that too much is asked for at once. */
  refused: number;
  /** MB. */
  peak: number;
}

/** What another client asks every so often, each time over a connection of its own. */
function probe(server: Served, signal: AbortSignal): { readonly found: Meanwhile; readonly over: Promise<unknown> } {
  let asked = 0;
  const ways: Readonly<Record<string, () => string>> = {
    '/healthz': () => '/healthz',
    'an object': () => '/dist/VERSION',
    'a plan': () => {
      asked += 1;
      return `/bundle/large/packages/p${asked % SMALL}-1.0,p${(asked * 13 + 1) % SMALL}-1.0.tar.gz`;
    },
  };
  const waits = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
  const found: Meanwhile = { waits, refused: 0, peak: 0 };
  const ask = async (name: string, path: string): Promise<void> => {
    const start = performance.now();
    const answer = await fetch(`http://127.0.0.1:${server.port}${path}`, { headers: { connection: 'close' } });
    await answer.arrayBuffer();
    if (answer.status === 503) found.refused += 1;
    else if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
    else found.waits[name]?.push(performance.now() - start);
  };
  const repeat = async (work: () => Promise<void>): Promise<void> => {
    while (!signal.aborted) await Promise.all([work(), pause(PROBE_MS)]);
  };
  const look = async (): Promise<void> => {
    found.peak = Math.max(found.peak, await memoryOf(server.pid));
  };
  const asks = Object.entries(ways).map(async ([name, path]) => repeat(async () => ask(name, path())));
  return { found, over: Promise.all([repeat(look), ...asks]) };
}

async function watched(server: Served, crowd: Crowd): Promise<Meanwhile> {
  const ended = new AbortController();
  const { signal } = ended;
  setMaxListeners(0, signal);
  const { found, over } = probe(server, signal);
  const bytes = Array.from({ length: crowd.connections }, (_, at) => crowd.bytes(at));
  const floods = bytes.map(async (own) => flood(server.port, own, crowd, signal));
  await pause(FLOOD_MS);
  ended.abort();
  await Promise.all([over, ...floods]);
  return found;
}

export async function benchFlood(home: string, { say }: Options): Promise<Section> {
  const folder = join(home, 'flood');
  await makeStore(folder);
  const rows: string[][] = [];
  const targets: Target[] = [];
  interface Measured {
    readonly peak: number;
    /** Milliseconds. */
    readonly longest: number;
  }
  const measured = async (name: string, crowd: Crowd): Promise<Measured> => {
    await using server = await startServing(folder);
    const { waits, refused, peak } = await watched(server, crowd);
    await pause(AFTER_MS);
    const spreads = Object.values(waits).map((values) => spread(values));
    const after = await memoryOf(server.pid);
    rows.push([name, figure(peak), figure(after), ...spreads.map(range), String(refused)]);
    say(rows.at(-1)?.join(' | ') ?? '');
    return { peak, longest: Math.max(...spreads.map(({ most }) => most)) };
  };
  const target = (name: string, value: number, most: number): void => {
    targets.push({ name, wanted: `≤ ${most}`, measured: figure(value), met: value <= most });
  };
  const quiet = await measured('nothing', { connections: 0, reads: true, bytes: () => LONG });
  for (const [name, bytes] of Object.entries(FLOODS)) {
    const read = await measured(`${name}; ${FEW} that read`, { connections: FEW, reads: true, bytes });
    const few = await measured(`${name}; ${FEW} that do not`, { connections: FEW, reads: false, bytes });
    const many = await measured(`${name}; ${MANY} that do not`, { connections: MANY, reads: false, bytes });
    target(`${name}: MB for each further connection`, Math.max(0, many.peak - few.peak) / (MANY - FEW), MAX_MB);
    target(`${name}: MB a connection more than readers`, Math.max(0, few.peak - read.peak) / FEW, MAX_MB);
    target(`${name}: MB a connection more than a quiet server`, Math.max(0, few.peak - quiet.peak) / FEW, MAX_MB);
    target(`${name}: longest wait with readers, ms`, read.longest, 1000);
    target(`${name}: longest wait with clients that do not read, ms`, few.longest, 1000);
  }
  await rm(folder, { recursive: true, force: true });
  return {
    title: 'Serving clients during a flood',
    about: `Connections send requests for ${FLOOD_MS / 1000} s, and reconnect when they are closed; those that do not read take no byte of a response. Another client sends three requests every ${PROBE_MS} ms; the table shows its waiting times in milliseconds, and its 503 responses: the server makes two plans at a time, the others wait for half a minute at most. Memory is that of the whole process. V8 and the plans, which have one limit for all clients, use memory under any load: a comparison with a quiet server includes it, comparisons with reading clients and between numbers of connections above ${FEW}th.`,
    table: [['flood', 'MB, most', 'MB after', '/healthz', 'an object', 'a plan', '503'], ...rows],
    targets,
  };
}
