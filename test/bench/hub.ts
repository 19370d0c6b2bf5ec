/** A controller as a process over a real API server: how long it takes, what it writes and how much memory it needs. */
import { readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { join } from 'node:path';
import { hubManifests } from '../../src/fleet/hub/manifests.ts';
import { mapLimited } from '../../src/platform/limit/each.ts';
import { startApiServer } from '../components/support/api-server.ts';
import { apiClient, at, textAt } from '../support/api-client.ts';
import type { JsonObject } from '../support/api-server/fields.ts';
import { startCurlew } from '../support/curlew.ts';
import { freePort } from '../support/ports.ts';
import { hubAddon, hubChart, hubCluster } from '../support/hub-objects.ts';
import type { Section } from './report.ts';

const ROOT = '/apis/fleet.curlew.dev/v1alpha1';
const AT_ONCE = 8;
const THEN = '2026-01-02T03:04:05Z';
const never = new AbortController().signal;

interface Size {
  readonly clusters: number;
  readonly addons: number;
}

export interface HubFigures {
  /** Seconds from the start of the controller until each ClusterAddon is there. */
  readonly firstPass: number;
  /** CPU seconds of the controller until then. */
  readonly firstCpu: number;
  /** Its writes until then, for each ClusterAddon. */
  readonly firstWrites: number;
  /** Milliseconds and bytes of `GET /metrics`, and the requests to the hub that it costs. */
  readonly scrape: { readonly ms: number; readonly bytes: number; readonly requests: number };
  /** Objects that change while nothing is to do, after the controller was started again. */
  readonly idleWrites: number;
  /** ClusterAddons that change with the version of one add-on. */
  readonly changed: number;
  /** The most that either process had, in MB. */
  readonly megabytes: number;
}

/** `folder` is for the server; an idle controller, of the command `main`, is watched for `idleMs`. */
export async function measureHub(
  folder: string,
  { clusters, addons, idleMs, main }: Size & { readonly idleMs: number; readonly main?: string },
): Promise<HubFigures> {
  await using server = await startApiServer(folder);
  const documents = hubManifests().map((one) => JSON.stringify(one));
  await server.kubectl(['apply', '-f', '-'], documents.join('\n---\n'));
  await server.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s']);
  const client = apiClient(await readFile(server.kubeconfig, 'utf8'));
  const each = async <T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> => {
    await mapLimited(items, work, { width: AT_ONCE, signal: never });
  };
  const list = async (kind: string): Promise<readonly JsonObject[]> =>
    ((await client.get(`${ROOT}/${kind}`)).body['items'] ?? []) as readonly JsonObject[];
  /** Without reading them all, which would be a load of its own. */
  const countOf = async (kind: string): Promise<number> => {
    const { body } = await client.get(`${ROOT}/${kind}?limit=1`);
    return Number(at(body, 'metadata.remainingItemCount') ?? 0) + (body['items'] as readonly unknown[]).length;
  };
  const versions = async (kinds: readonly string[]): Promise<ReadonlyMap<string, string>> => {
    const all = (await Promise.all(kinds.map(list))).flat();
    return new Map(all.map((one) => [textAt(one, 'metadata.uid'), textAt(one, 'metadata.resourceVersion')]));
  };
  const differing = async (before: ReadonlyMap<string, string>, kinds: readonly string[]): Promise<number> =>
    [...(await versions(kinds))].filter(([uid, version]) => before.get(uid) !== version).length;
  await each([...Array(clusters).keys()], async (index) => {
    const name = `c${index}`;
    await client.create('/api/v1/namespaces', { metadata: { name: `fleet-${name}` } });
    await client.create(`${ROOT}/namespaces/fleet-${name}/clusters`, hubCluster(name, { env: 'prod' }));
    const conditions = [{ type: 'Available', status: 'True', reason: 'Answers', lastTransitionTime: THEN }];
    const status = { facts: { version: 'v1.34.1' }, conditions };
    await client.merge(`${ROOT}/namespaces/fleet-${name}/clusters/${name}/status`, { status });
  });
  const sourceOf = (index: number, version: string) => ({
    chart: { ...hubChart(version).chart, releaseName: `a${index}` },
  });
  await each([...Array(addons).keys()], async (index) =>
    client.create(`${ROOT}/fleetaddons`, hubAddon(`a${index}`, { source: sourceOf(index, '1.0.0') })),
  );
  const port = await freePort();
  /** Requests that the API server has answered; without those that are a question of this. */
  const requestsOf = async (verbs: RegExp): Promise<number> => {
    const text = await server.kubectl(['get', '--raw', '/metrics']);
    const lines = text.split('\n').filter((line) => line.startsWith('apiserver_request_total{') && verbs.test(line));
    return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
  };
  let megabytes = 0;
  const run = async <T>(body: (pid: number) => Promise<T>): Promise<T> => {
    const words = ['controller', '--kubeconfig', server.kubeconfig, '--metrics', String(port)];
    const controller = startCurlew(words, { cwd: folder, ...(main !== undefined && { main }) });
    const ended = controller.then(({ stderr }) => {
      throw new Error(`curlew controller ended: ${stderr}`);
    });
    try {
      return await Promise.race([body(controller.pid ?? 0), ended]);
    } finally {
      const status = await readFile(`/proc/${controller.pid ?? 0}/status`, 'utf8').catch(() => '');
      megabytes = Math.max(megabytes, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? Infinity) / 1000);
      controller.kill('SIGTERM');
      await ended.catch(() => undefined);
    }
  };
  const total = clusters * addons;
  const WRITES = /verb="(?:POST|PUT|PATCH|APPLY|DELETE)"/;
  const before = await requestsOf(WRITES);
  const began = performance.now();
  const first = await run(async (pid) => {
    while ((await countOf('clusteraddons')) < total) await wait(1000);
    const firstPass = (performance.now() - began) / 1000;
    const firstCpu = await cpuOf(pid);
    const firstWrites = ((await requestsOf(WRITES)) - before) / total;
    await each(await list('clusteraddons'), async (one) => {
      const [namespace, name] = [textAt(one, 'metadata.namespace'), textAt(one, 'metadata.name')];
      const applied = { revision: at(one, 'spec.revision'), hash: at(one, 'spec.specHash') };
      const status = { applied, state: 'Succeeded', since: THEN };
      await client.merge(`${ROOT}/namespaces/${namespace}/clusteraddons/${name}/status`, { status });
    });
    await server.kubectl(['wait', '--for=condition=Available', 'fleetaddon', '--all', '--timeout=120s']);
    return { firstPass, firstCpu, firstWrites };
  });
  const all = ['clusters', 'fleetaddons', 'clusteraddons'];
  const settled = await versions(all);
  const rest = await run(async () => {
    await wait(idleMs);
    const idleWrites = await differing(settled, all);
    const scrape = await scraped(`http://127.0.0.1:${port}/metrics`, async () => requestsOf(FLEET));
    const before = await versions(['clusteraddons']);
    await client.merge(`${ROOT}/fleetaddons/a0`, { spec: { source: sourceOf(0, '1.1.0') } });
    while ((await differing(before, ['clusteraddons'])) < clusters) await wait(1000);
    await wait(idleMs);
    return { idleWrites, scrape, changed: await differing(before, ['clusteraddons']) };
  });
  return { ...first, ...rest, megabytes };
}

const FLEET = /group="fleet\.curlew\.dev".*verb="(?:GET|LIST|POST|PUT|PATCH|APPLY|DELETE)"/;
const SCRAPES = 10;
const TICKS = 100;

/** User and system time of a process, in seconds. */
async function cpuOf(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}

/** One of several scrapes. */
async function scraped(url: string, requests: () => Promise<number>): Promise<HubFigures['scrape']> {
  const before = await requests();
  const began = performance.now();
  let bytes = 0;
  for (let round = 0; round < SCRAPES; round += 1) bytes = (await (await fetch(url)).text()).length;
  const ms = (performance.now() - began) / SCRAPES;
  return { ms, bytes, requests: (await requests()) - before };
}

export async function benchHub({
  work,
  say,
  main,
}: {
  readonly work: string;
  readonly main: string;
  readonly say: (text: string) => void;
}): Promise<Section> {
  const size = { clusters: 200, addons: 20 };
  const { firstPass, firstCpu, firstWrites, scrape, idleWrites, changed, megabytes } = await measureHub(
    join(work, 'hub'),
    {
      ...size,
      idleMs: 20_000,
      main,
    },
  );
  say(`hub, first pass: ${firstPass.toFixed(0)} s`);
  const figures = [
    { name: 'first pass', wanted: '≤ 120 s', measured: `${firstPass.toFixed(0)} s`, met: firstPass <= 120 },
    {
      name: 'writes of the first pass for each add-on of a cluster',
      wanted: '≤ 1.2',
      measured: firstWrites.toFixed(2),
      met: firstWrites <= 1.2,
    },
    { name: 'writes of an idle controller', wanted: '0', measured: String(idleWrites), met: idleWrites === 0 },
    { name: 'objects that one changed add-on writes', wanted: '200', measured: String(changed), met: changed === 200 },
    {
      name: 'memory of the controller',
      wanted: '≤ 150 MB',
      measured: `${megabytes.toFixed(0)} MB`,
      met: megabytes <= 150,
    },
  ];
  return {
    title: 'Hubs',
    about: `A controller and an API server with ${size.clusters} clusters × ${size.addons} add-ons, at 50 requests a second.`,
    table: [
      ['what', 'measured'],
      ...figures.map(({ name, measured }) => [name, measured]),
      ['CPU time of the first pass', `${firstCpu.toFixed(1)} s`],
      ['GET /metrics', `${scrape.ms.toFixed(1)} ms, ${scrape.bytes} bytes, ${scrape.requests} requests to the hub`],
    ],
    targets: figures,
  };
}
