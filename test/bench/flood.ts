/** What clients that ask for more than they read cost `curlew serve`, and the others that it serves meanwhile. */
import { randomBytes } from 'node:crypto';
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

const CONNECTIONS = 10;
const FLOOD_MS = 10_000;
const PROBE_MS = 100;
const AFTER_MS = 2000;
const SMALL = 1000;
const LARGE_BYTES = 100 << 20;
const HEAD_BYTES = 15_000;
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

/** What one connection sends, beyond what the answers to it are read. */
const FLOODS: Readonly<Record<string, ((connection: number) => string) | undefined>> = {
  nothing: undefined,
  'a bundle that is not read, 6 MB of HEAD /healthz': () =>
    UNREAD + HEALTH.repeat(Math.ceil(6_000_000 / HEALTH.length)),
  '150 HEADs of 15 KB': (own) => Array.from({ length: 150 }, (_, at) => plannedHead(own * 150 + at)).join(''),
  'a bundle that is not read, 99 HEADs of 15 KB': (own) =>
    UNREAD + Array.from({ length: 99 }, (_, at) => plannedHead(own * 99 + at)).join(''),
};

/** Sends the bytes on a connection that never reads, on another one whenever the server closes it, until told to stop. */
async function flood(port: number, bytes: Buffer, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    let socket: Socket | undefined;
    const open = (): void => {
      if (signal.aborted) return resolve();
      socket = connect(port, '127.0.0.1').pause();
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
  const found: Meanwhile = { waits: Object.fromEntries(Object.keys(ways).map((name) => [name, []])), peak: 0 };
  const ask = async (name: string, path: string): Promise<void> => {
    const start = performance.now();
    const answer = await fetch(`http://127.0.0.1:${server.port}${path}`, { headers: { connection: 'close' } });
    await answer.arrayBuffer();
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
    found.waits[name]?.push(performance.now() - start);
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

async function watched(server: Served, attack: (signal: AbortSignal) => Promise<void>): Promise<Meanwhile> {
  const ended = new AbortController();
  const { found, over } = probe(server, ended.signal);
  const attacks = attack(ended.signal);
  await pause(FLOOD_MS);
  ended.abort();
  await Promise.all([over, attacks]);
  return found;
}

export async function benchFlood(home: string, { say }: Options): Promise<Section> {
  const folder = join(home, 'flood');
  await makeStore(folder);
  const rows: string[][] = [];
  const targets: Target[] = [];
  let quiet = Number.NaN;
  for (const [name, bytes] of Object.entries(FLOODS)) {
    await using server = await startServing(folder);
    const found = await watched(server, async (signal) => {
      if (bytes === undefined) return;
      const floods = Array.from({ length: CONNECTIONS }, (_, at) => flood(server.port, Buffer.from(bytes(at)), signal));
      await Promise.all(floods);
    });
    await pause(AFTER_MS);
    const waits = Object.values(found.waits).map((values) => spread(values));
    rows.push([name, figure(found.peak), figure(await memoryOf(server.pid)), ...waits.map(range)]);
    say(rows.at(-1)?.join(' | ') ?? '');
    if (bytes === undefined) {
      quiet = found.peak;
      continue;
    }
    const each = Math.max(0, found.peak - quiet) / CONNECTIONS;
    const longest = Math.max(...waits.map(({ most }) => most));
    targets.push(
      { name: `${name}: MB a connection`, wanted: '≤ 0.5', measured: figure(each), met: each <= 0.5 },
      { name: `${name}: longest wait, ms`, wanted: '≤ 1000', measured: figure(longest), met: longest <= 1000 },
    );
  }
  await rm(folder, { recursive: true, force: true });
  return {
    title: 'Serving others while some flood',
    about: `${CONNECTIONS} connections send requests and read no answer for ${FLOOD_MS / 1000} s, and come back when they are closed. Another client asks for three things every ${PROBE_MS} ms meanwhile; its waits are in milliseconds. Memory a connection is what a server without floods, asked the same, has less; for the 150 HEADs it is plans, of which all clients together have a bounded number in memory.`,
    table: [['flood', 'MB, most', 'MB after', '/healthz', 'an object', 'a plan'], ...rows],
    targets,
  };
}
