/** A bundle out of `curlew serve` beside the same bytes as a file behind nginx: one client, a hundred, the first byte. */
import { execa } from 'execa';
import { randomBytes } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../support/ports.ts';
import { startDaemon, type Daemon } from '../components/support/daemon.ts';
import { startNginx } from '../components/support/nginx.ts';
import { keepSpec } from '../support/served.ts';
import { publishTestPackages, specOf } from '../support/bundles.ts';
import { keptTree } from '../support/tree.ts';
import { measure, pairwise, spread, type Sample } from './measure.ts';
import { figure, range, type Section } from './report.ts';
import { CURLEW } from './ways.ts';

const PACKAGES = 5;
const PACKAGE_SIZE = 200 << 20;
const CLIENTS = 100;
const FIRST_BYTES = 20;

interface Options {
  readonly rounds: number;
  readonly say: (text: string) => void;
}

/** Random bytes, as compressed layers are: nothing in them can be deflated. */
async function makeStore(folder: string): Promise<void> {
  const box = await keptTree(folder);
  const packages = Array.from({ length: PACKAGES }, (_, at) => ({
    name: `part${at}`,
    version: '1.0',
    files: [{ path: 'images/layer', data: randomBytes(PACKAGE_SIZE) }],
  }));
  await publishTestPackages(box, packages, new AbortController().signal);
  await rm(box.at('out'), { recursive: true });
  await keepSpec(box, 'all', specOf(Object.fromEntries(packages.map(({ name }) => [name, '1.0']))));
}

async function startServing(folder: string): Promise<Daemon & { readonly url: string }> {
  const host = `127.0.0.1:${await freePort()}`;
  const daemon = await startDaemon({
    command: process.execPath,
    args: [CURLEW, 'serve', '--store', join(folder, 'store'), '--listen', host],
    logFile: join(folder, 'serve.log'),
    ready: async () => (await fetch(`http://${host}/healthz`)).ok,
  });
  return { ...daemon, url: `http://${host}/bundle/all.tar.gz` };
}

/** Milliseconds until curl has the first byte. */
async function firstByte(url: string): Promise<number> {
  const args = ['--silent', '--output', '/dev/null', '--range', '0-999', '--write-out', '%{time_starttransfer}', url];
  return Number((await execa('curl', args)).stdout) * 1000;
}

/** Most memory that a process had so far, in MB. */
async function peakOf(pid: number): Promise<number> {
  const [, kilobytes = 'NaN'] = /^VmHWM:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) / 1024;
}

export async function benchServe(home: string, { rounds, say }: Options): Promise<Section> {
  const folder = join(home, 'serve');
  await makeStore(folder);
  const started: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    await using fresh = await startServing(folder);
    started.push(await firstByte(fresh.url));
  }
  await using server = await startServing(folder);
  await execa('curl', ['--silent', '--output', join(folder, 'all.tar.gz'), server.url]);
  await using nginx = await startNginx(join(folder, 'nginx'), folder, ['sendfile on; tcp_nopush on;']);
  const known: number[] = [];
  for (let round = 0; round < FIRST_BYTES; round += 1) known.push(await firstByte(server.url));
  const urls = { nginx: `${nginx.url}/all.tar.gz`, 'curlew serve': server.url } as const;
  const samples = { nginx: [] as Sample[], 'curlew serve': [] as Sample[] };
  for (let round = 0; round < rounds; round += 1) {
    for (const name of ['nginx', 'curlew serve'] as const) {
      const sample = await measure('curl --fail --silent --output /dev/null "$1"', [urls[name]], home);
      samples[name].push(sample);
      say(`${name}: ${sample.seconds} s`);
    }
  }
  const line = `seq ${CLIENTS} | xargs -P ${CLIENTS} -I{} curl --fail --silent --output /dev/null "$1"`;
  const many = await measure(line, [server.url], home);
  const memory = await peakOf(server.pid);
  await rm(folder, { recursive: true, force: true });
  const seconds = (name: keyof typeof samples): readonly number[] => samples[name].map((sample) => sample.seconds);
  const speed = pairwise(seconds('nginx'), seconds('curlew serve'));
  const [first, next] = [spread(started), spread(known)];
  return {
    title: 'Serving a bundle',
    about: `A bundle of a gigabyte in ${PACKAGES} packages from a folder store, sent to curl on loopback, compared with the same bytes as a file behind nginx with sendfile.`,
    table: [
      ['method', 'seconds'],
      ['nginx, one client', range(spread(seconds('nginx')))],
      ['curlew serve, one client', range(spread(seconds('curlew serve')))],
      [`curlew serve, ${CLIENTS} clients at once`, figure(many.seconds)],
      ['first byte after a start, ms', range(first)],
      ['first byte, plan in memory, ms', range(next)],
    ],
    targets: [
      { name: 'first byte after a start, ms', wanted: '< 50', measured: range(first), met: first.median < 50 },
      { name: 'first byte, ms', wanted: '< 50', measured: range(next), met: next.median < 50 },
      { name: 'speed ÷ nginx', wanted: '≥ 0.7', measured: range(speed), met: speed.median >= 0.7 },
      { name: `memory, ${CLIENTS} clients, MB`, wanted: '≤ 250', measured: figure(memory), met: memory <= 250 },
    ],
  };
}
