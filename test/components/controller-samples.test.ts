/** HelmChartProxies as the samples of Cluster API's add-on provider for Helm have them, by a controller and the real helm on a real API server. */
import { createHash } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { hubManifests } from '../../src/fleet/hub/manifests.ts';
import { apiClient, at, textAt, type ApiClient } from '../support/api-client.ts';
import { isMap } from '../support/api-server/fields.ts';
import * as assert from '../support/assert.ts';
import { startCurlew } from '../support/curlew.ts';
import { eventually } from '../support/hub-scene.ts';
import { suite } from '../support/suite.ts';
import { tarOf } from '../support/tar-file.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree } from '../support/tree.ts';
import { CAPI_KINDS, definitionsOf } from '../support/upstream-kinds.ts';
import { startServer } from '../support/web-server.ts';
import { API_SERVER_PROGRAMS, startApiServer } from './support/api-server.ts';
import { HELMS } from './support/chart-scene.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/controller-samples', { timeoutMs: 240_000 });
const helm = HELMS[0]?.helm ?? '';
const reason = cannotRun(...API_SERVER_PROGRAMS, helm);
const TITLE = 'each HelmChartProxy installs its chart on the clusters that it selects, with its values';
const FOLDER = 'test/fixtures/helm-chart-proxies';
const PROXIES = '/apis/addons.cluster.x-k8s.io/v1alpha1/namespaces/default/helmchartproxies';
/** What each release writes down: its chart, and the values that it got. */
const SHOWN = `apiVersion: v1
kind: ConfigMap
metadata: {name: shown-{{ .Chart.Name }}}
data:
  chart: {{ .Chart.Version | quote }}
  values: {{ .Values | toJson | quote }}
`;
/** The newer version is for a sample that names the older one. */
const VERSIONS = ['1.26.5', '1.27.0'];

/** Charts of these names, as in the samples, in repositories at any path. */
function chartFiles(names: readonly string[]): ReadonlyMap<string, Buffer | string> {
  const files = new Map<string, Buffer | string>();
  const entries = names.map((name) => {
    const all = VERSIONS.map((version) => {
      const about = `apiVersion: v2\nname: ${name}\nversion: ${version}\n`;
      const items = { 'Chart.yaml': about, 'templates/shown.yaml': SHOWN };
      const archive = gzipSync(tarOf(Object.entries(items).map(([path, data]) => ({ path: `${name}/${path}`, data }))));
      files.set(`${name}-${version}.tgz`, archive);
      const digest = createHash('sha256').update(archive).digest('hex');
      return { apiVersion: 'v2', name, version, urls: [`${name}-${version}.tgz`], digest };
    });
    return [name, all] as const;
  });
  files.set('index.yaml', JSON.stringify({ apiVersion: 'v1', entries: Object.fromEntries(entries) as object }));
  return files;
}

async function isReady(client: ApiClient, name: string): Promise<boolean> {
  const all = at((await client.get(`${PROXIES}/${name}`)).body, 'status.conditions');
  return (Array.isArray(all) ? all.filter(isMap) : []).some(
    (one) => one['type'] === 'Ready' && one['status'] === 'True',
  );
}

if (reason === undefined) {
  const opened = createOpened();
  test.after(opened.close);
  test(TITLE, async () => {
    const box = opened.keep(await tree());
    const certificate = await makeCertificate();
    await writeFile(box.at('ca.pem'), certificate.ca);
    const samples = await Promise.all(
      (await readdir(FOLDER))
        .filter((name) => name.endsWith('.yaml'))
        .map(async (name) => readFile(`${FOLDER}/${name}`, 'utf8')),
    );
    const files = chartFiles(samples.map((text) => /^ {2}chartName: (.*)$/m.exec(text)?.[1] ?? ''));
    const repository = opened.keep(
      await startServer(
        ({ path }) => {
          const body = files.get(path.split('/').at(-1) ?? '');
          return body === undefined ? { status: 404 } : { status: 200, body };
        },
        { tls: certificate },
      ),
    );
    const server = opened.keep(await startApiServer(box.at('server')));
    const admin = await readFile(server.kubeconfig, 'utf8');
    const client = apiClient(admin);
    const apply = async (...objects: readonly object[]): Promise<string> =>
      server.kubectl(['apply', '-f', '-'], objects.map((one) => JSON.stringify(one)).join('\n---\n'));
    await apply(...hubManifests({ reconcile: ['helmchartproxies'] }), ...definitionsOf(CAPI_KINDS));
    await server.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s']);
    const token = await server.kubectl(['create', 'token', 'curlew-controller', '-n', 'curlew-system']);
    const users = [{ name: 'admin', user: { token: token.trim() } }];
    await writeFile(box.at('controller.conf'), JSON.stringify({ ...(JSON.parse(admin) as object), users }));
    const namespace = 'default';
    const labels = {
      cloudProviderChart: 'enabled',
      BalancerChart: 'enabled',
      webEntryChart: 'enabled',
      'cluster.x-k8s.io/cluster-name': 'oslo',
    };
    const controlPlaneRef = {
      apiVersion: 'controlplane.cluster.x-k8s.io/v1beta1',
      kind: 'KubeadmControlPlane',
      name: 'oslo-control-plane',
    };
    await apply(
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'oslo-kubeconfig', namespace },
        data: { value: Buffer.from(admin).toString('base64') },
      },
      {
        apiVersion: controlPlaneRef.apiVersion,
        kind: controlPlaneRef.kind,
        metadata: { name: controlPlaneRef.name, namespace },
        spec: {},
      },
      {
        apiVersion: 'cluster.x-k8s.io/v1beta1',
        kind: 'Cluster',
        metadata: { name: 'oslo', namespace, labels },
        spec: { clusterNetwork: { pods: { cidrBlocks: ['192.168.0.0/16'] } }, controlPlaneRef },
      },
      // It has no label of a sample, and no kubeconfig.
      { apiVersion: 'cluster.x-k8s.io/v1beta1', kind: 'Cluster', metadata: { name: 'bern', namespace }, spec: {} },
    );
    const words = ['--reconcile', 'helmchartproxies', '--helm', helm, '--ca-file', 'ca.pem'];
    const controller = startCurlew(['controller', '--kubeconfig', 'controller.conf', ...words], { cwd: box.path });
    opened.keep({
      [Symbol.asyncDispose]: async () => {
        controller.kill('SIGKILL');
        await controller;
      },
    });
    const local = (text: string): string => text.replace('repoURL: https:/', `repoURL: ${repository.url}`);
    const all = samples.map(local);
    const network = all.find((text) => text.includes('name: pod-network')) ?? '';
    const others = all.filter((text) => text !== network);
    await server.kubectl(['apply', '-f', '-'], others.join('\n---\n'));
    const names = ['cloud-provider-chart', 'balancer', 'database-operator', 'web-entry'];
    for (const name of names) {
      await eventually(async () => isReady(client, name));
      const matching = at((await client.get(`${PROXIES}/${name}`)).body, 'status.matchingClusters');
      assert.equal(
        (matching as readonly { readonly name: string }[]).map((one) => one.name),
        ['oslo'],
        name,
      );
    }
    // It selects all clusters.
    await server.kubectl(['delete', 'clusters.cluster.x-k8s.io', 'bern']);
    await server.kubectl(['apply', '-f', '-'], network);
    await eventually(async () => isReady(client, 'pod-network'));
    const shown = async (where: string, chart: string): Promise<unknown> => {
      const { body } = await client.get(`/api/v1/namespaces/${where}/configmaps/shown-${chart}`);
      return [textAt(body, 'data.chart'), JSON.parse(textAt(body, 'data.values') || '{}')];
    };
    assert.equal(await shown('default', 'cloud-provider'), [
      '1.26.5',
      { cloud: { cluster: 'oslo' }, manager: { podRanges: '192.168.0.0/16' } },
    ]);
    assert.equal(await shown('default', 'balancer'), ['1.27.0', {}]);
    assert.equal(await shown('database', 'database-operator'), ['1.27.0', {}]);
    const allowed = '127.0.0.1,::1,192.168.0.0/16';
    assert.equal(await shown('default', 'web-entry'), [
      '1.27.0',
      { proxy: { name: 'oslo-control-plane-entry', status: { allowed } } },
    ]);
    const pool = { block: '192.168.0.0/16', masquerade: 'yes', nodes: 'all()' };
    assert.equal(await shown('kube-system', 'network-operator'), [
      '1.27.0',
      { network: { plugin: 'bridge', mtu: 1400, pools: [pool] } },
    ]);
    await server.kubectl(['delete', 'helmchartproxies', '--all', '--timeout=120s']);
    for (const [where, chart] of [
      ['default', 'balancer'],
      ['database', 'database-operator'],
      ['kube-system', 'network-operator'],
    ])
      assert.is((await client.get(`/api/v1/namespaces/${where}/configmaps/shown-${chart}`)).status, 404, chart);
  });
} else test.skip(TITLE, reason);

test.run();
