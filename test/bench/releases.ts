/** Releases of a chart on one cluster by HelmChartProxies, beside `helm upgrade` in a loop. */
import { execa } from 'execa';
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { hubManifests } from '../../src/fleet/hub/manifests.ts';
import { startApiServer } from '../components/support/api-server.ts';
import { chartOf, HELMS } from '../components/support/chart-scene.ts';
import { apiClient, at, textAt } from '../support/api-client.ts';
import { isMap, type JsonObject } from '../support/api-server/fields.ts';
import { startCurlew } from '../support/curlew.ts';
import { makeCertificate, type TestCertificate } from '../support/tls.ts';
import { CAPI_KINDS, definitionsOf } from '../support/upstream-kinds.ts';
import { startServer } from '../support/web-server.ts';
import type { Section } from './report.ts';

const RELEASES = 20;
const VERSIONS = ['1.0.0', '1.1.0'] as const;
const PAGE = `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {version: {{ .Chart.Version | quote }}}
`;
const PROXIES = '/apis/addons.cluster.x-k8s.io/v1alpha1/namespaces/default/helmchartproxies';
const METADATA = { namespace: 'default' };

/** A repository of charts. */
async function startRepository(tls: TestCertificate) {
  const files = new Map<string, Buffer | string>(
    VERSIONS.map((version) => [`/web-${version}.tgz`, chartOf(version, { page: PAGE })]),
  );
  const entries = VERSIONS.map((version) => {
    const digest = createHash('sha256')
      .update(files.get(`/web-${version}.tgz`) ?? '')
      .digest('hex');
    return { apiVersion: 'v2', name: 'web', version, urls: [`web-${version}.tgz`], digest };
  });
  files.set('/index.yaml', JSON.stringify({ apiVersion: 'v1', entries: { web: entries } }));
  return startServer(
    ({ path }) => {
      const body = files.get(path);
      return body === undefined ? { status: 404 } : { status: 200, body };
    },
    { tls },
  );
}

/** `main` is the command under test; `folder` is for the server. */
export async function benchReleases({
  folder,
  say,
  main,
}: {
  readonly folder: string;
  readonly main: string;
  readonly say: (text: string) => void;
}): Promise<Section> {
  await using server = await startApiServer(folder);
  const certificate = await makeCertificate();
  await using repository = await startRepository(certificate);
  const authority = join(folder, 'repository.pem');
  await writeFile(authority, certificate.ca);
  const helm = HELMS.at(-1)?.helm ?? '';
  const apply = async (objects: readonly object[]): Promise<string> =>
    server.kubectl(['apply', '-f', '-'], objects.map((one) => JSON.stringify(one)).join('\n---\n'));
  await apply([...hubManifests({ reconcile: ['helmchartproxies'] }), ...definitionsOf(CAPI_KINDS)]);
  await server.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s']);
  const admin = await readFile(server.kubeconfig, 'utf8');
  const client = apiClient(admin);
  await apply([
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { ...METADATA, name: 'oslo-kubeconfig' },
      data: { value: Buffer.from(admin).toString('base64') },
    },
    {
      apiVersion: 'cluster.x-k8s.io/v1beta1',
      kind: 'Cluster',
      metadata: { ...METADATA, name: 'oslo', labels: { web: 'yes' } },
      spec: {},
    },
  ]);
  const numbers = [...Array(RELEASES).keys()];
  const loop = async (version: string): Promise<void> => {
    for (const number of numbers) {
      const chart = ['web', '--repo', repository.url, '--ca-file', authority, '--version', version];
      const place = ['--namespace', 'loop', '--create-namespace', '--kubeconfig', server.kubeconfig];
      await execa(helm, ['upgrade', '--install', `web-${number}`, ...chart, ...place], {
        env: { HOME: folder },
        stdin: 'ignore',
      });
    }
  };
  const isReady = (proxy: JsonObject): boolean => {
    const all = at(proxy, 'status.conditions');
    return (Array.isArray(all) ? all.filter(isMap) : []).some(
      (one) => one['type'] === 'Ready' && one['status'] === 'True',
    );
  };
  const itemsAt = async (path: string): Promise<readonly JsonObject[]> => {
    const all = at((await client.get(path)).body, 'items');
    return Array.isArray(all) ? all.filter(isMap) : [];
  };
  const proxies = async (version: string): Promise<void> => {
    const spec = {
      clusterSelector: { matchLabels: { web: 'yes' } },
      repoURL: repository.url,
      chartName: 'web',
      version,
    };
    await apply(
      numbers.map((number) => ({
        apiVersion: 'addons.cluster.x-k8s.io/v1alpha1',
        kind: 'HelmChartProxy',
        metadata: { ...METADATA, name: `web-${number}` },
        spec: { ...spec, releaseName: `web-${number}`, namespace: 'page' },
      })),
    );
    for (;;) {
      const maps = await itemsAt('/api/v1/namespaces/page/configmaps');
      const done = maps.filter((one) => textAt(one, 'data.version') === version).length;
      if (done === RELEASES && (await itemsAt(PROXIES)).every(isReady)) return;
      await wait(250);
    }
  };
  const words = ['controller', '--kubeconfig', server.kubeconfig, '--reconcile', 'helmchartproxies', '--helm', helm];
  const controller = startCurlew([...words, '--ca-file', authority], { cwd: folder, main });
  const ended = controller.then(({ stderr }) => {
    throw new Error(`curlew controller ended: ${stderr}`);
  });
  try {
    const rows: { what: string; ours: number; theirs: number }[] = [];
    for (const [index, version] of VERSIONS.entries()) {
      const what = index === 0 ? `${RELEASES} releases installed` : `${RELEASES} releases upgraded`;
      const theirs = await seconds(async () => loop(version));
      const ours = await seconds(async () => Promise.race([proxies(version), ended]));
      say(`${what}: curlew ${ours.toFixed(1)} s, a loop ${theirs.toFixed(1)} s`);
      rows.push({ what, ours, theirs });
    }
    return {
      title: 'Releases of charts',
      about:
        'HelmChartProxies on one cluster until each is Ready, next to `helm upgrade --install` in a loop, with the same helm, chart and API server.',
      table: [
        ['what', 'curlew, seconds', 'loop, seconds'],
        ...rows.map(({ what, ours, theirs }) => [what, ours.toFixed(1), theirs.toFixed(1)]),
      ],
      targets: rows.map(({ what, ours, theirs }) => {
        const ratio = ours / theirs;
        return { name: what, wanted: '≤ 1.3 × the loop', measured: `${ratio.toFixed(2)} ×`, met: ratio <= 1.3 };
      }),
    };
  } finally {
    controller.kill('SIGTERM');
    await ended.catch(() => undefined);
  }
}

async function seconds(work: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1000;
}
