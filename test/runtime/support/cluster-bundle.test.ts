/** A support bundle of a cluster: its objects and logs, without the values of Secrets, and what analyzers say. */
import { parseSupportSpecs } from '../../../src/runtime/preflight/parse-preflight.ts';
import { planClusterItems, type CollectedCluster } from '../../../src/runtime/support/cluster-items.ts';
import { clusterVerdicts } from '../../../src/runtime/support/verdicts.ts';
import { redactor } from '../../../src/runtime/support/redact.ts';
import { writeSupportBundle } from '../../../src/runtime/support/write-bundle.ts';
import * as assert from '../../support/assert.ts';
import { never, noReport } from '../../support/context.ts';
import { startKubeServer, statusReply } from '../../support/kube-server.ts';
import { suite } from '../../support/suite.ts';
import { readBundle } from '../../support/support-bundles.ts';
import { tree } from '../../support/tree.ts';

const test = suite('runtime/support/cluster-bundle', { timeoutMs: 60_000 });

const CANARY = 'c4n4ry-9f8e7d';
const WRITE = { about: 'one', tool: '1.0.0', report: noReport, signal: never };

const spec = (collectors: string, analyzers: string): string => `apiVersion: troubleshoot.sh/v1beta2
kind: SupportBundle
metadata: {name: web}
spec: {collectors: [${collectors}], analyzers: [${analyzers}]}
`;
const pod = {
  metadata: {
    name: 'web-1',
    namespace: 'web',
    labels: { app: 'web' },
    annotations: { 'kubectl.kubernetes.io/last-applied-configuration': CANARY },
  },
  spec: { containers: [{ name: 'web', env: [{ name: 'GREETING', value: CANARY }], args: [`--password=${CANARY}`] }] },
  status: {
    phase: 'Running',
    conditions: [{ type: 'Ready', status: 'False' }],
    containerStatuses: [{ name: 'web', ready: false, state: { waiting: { reason: 'CrashLoopBackOff' } } }],
  },
};
const node = {
  metadata: { name: 'one' },
  status: {
    capacity: { cpu: '4', memory: '8Gi' },
    conditions: [{ type: 'Ready', status: 'False' }],
    nodeInfo: { containerRuntimeVersion: 'containerd://2.2.6' },
  },
};
const values = { data: { greeting: Buffer.from('a phrase of the cluster').toString('base64') } };
const LISTS: Readonly<Record<string, readonly object[]>> = {
  '/api/v1/namespaces': [{ metadata: { name: 'web' } }],
  '/api/v1/nodes': [node],
  '/api/v1/pods': [pod],
  '/api/v1/secrets': [{ metadata: { name: 'web', namespace: 'web' }, ...values }],
  '/api/v1/configmaps': [{ metadata: { name: 'web', namespace: 'web' }, data: { 'app.conf': CANARY } }],
  '/apis/apps/v1/deployments': [{ metadata: { name: 'web', namespace: 'web' }, status: { readyReplicas: 0 } }],
  '/apis/storage.k8s.io/v1/storageclasses': [],
};

async function server() {
  return startKubeServer(({ path }) => {
    const [at = ''] = path.split('?');
    if (at === '/version') return { json: { gitVersion: 'v1.34.4' } };
    if (at.endsWith('/log')) {
      if (path.includes('previous')) return statusReply(400, 'BadRequest');
      return { status: 200, body: `it says a phrase of the cluster\ntoken=${CANARY}\n` };
    }
    if (at === '/api/v1/events') return statusReply(403, 'Forbidden', 'events are forbidden');
    return { json: { metadata: {}, items: LISTS[at] ?? [] } };
  });
}

const OUTCOMES = 'outcomes: [{fail: {when: "< 1", message: no}}, {pass: {message: yes}}]';
const SPEC = spec(
  '{logs: {name: web/logs, namespace: web, selector: [app=web]}}, {exec: {name: odd}}',
  `{deploymentStatus: {name: web, namespace: web, ${OUTCOMES}}}, {goldpinger: {checkName: Odd, ${OUTCOMES}}}`,
);

test('a cluster is dumped without secrets, and its analyzers are evaluated', async () => {
  await using box = await tree();
  await using api = await server();
  const { specs } = parseSupportSpecs('troubleshoot.yaml', SPEC);
  await using files = await tree({ kubeconfig: api.kubeconfig() });
  const collectors = specs.flatMap(({ cluster }) => cluster.collectors);
  const env = { KUBECONFIG: files.at('kubeconfig') };
  const { items, facts, secrets } = await planClusterItems(collectors, { env, signal: never });
  const verdicts = async () =>
    Promise.resolve(
      clusterVerdicts(
        specs.map(({ cluster }) => cluster),
        facts,
      ),
    );
  const parts = { items, verdicts, redactor: redactor(secrets) };
  const { file, index } = await writeSupportBundle(box.at('x.tar.gz'), parts, WRITE);
  const { files: there, whole } = await readBundle(file);
  assert.not.match(whole, /c4n4ry|a phrase of/);
  assert.equal(JSON.parse(there.get('cluster-info/cluster_version.json') ?? '').string, 'v1.34.4');
  assert.is(JSON.parse(there.get('cluster-resources/nodes.json') ?? '').items[0].metadata.name, 'one');
  assert.match(there.get('cluster-resources/secrets/web.json') ?? '', /"greeting": "\[left out\]"/);
  assert.match(
    there.get('cluster-resources/pods/logs/web/web-1/web.log') ?? '',
    /^it says \[secret\]\ntoken=\[secret\]\n$/,
  );
  assert.ok(there.has('web/logs/web-1/web.log'));
  assert.equal(
    index.results.map(({ title, verdict }) => [title, verdict]),
    [['deploymentStatus web', 'fail']],
  );
  assert.match(index.notEvaluated[0]?.reason ?? '', /goldpinger is not known/);
  const missing = index.files.filter(({ state }) => state === 'failed').map(({ path }) => path);
  assert.equal(missing.toSorted(), ['cluster-resources/events/web.json', 'exec/odd']);
});

test('logs are those of the pods that a selector of Kubernetes has', async () => {
  await using api = await server();
  await using files = await tree({ kubeconfig: api.kubeconfig() });
  const chosen = async (...selector: readonly string[]): Promise<number> => {
    const one = spec(`{logs: {name: own, selector: ${JSON.stringify(selector)}}}`, '');
    const collectors = parseSupportSpecs('troubleshoot.yaml', one).specs.flatMap(({ cluster }) => cluster.collectors);
    const { items } = await planClusterItems(collectors, {
      env: { KUBECONFIG: files.at('kubeconfig') },
      signal: never,
    });
    return items.filter(({ path }) => path.startsWith('own/')).length;
  };
  for (const selector of ['app=web', 'app', 'app in (db, web),tier!=x', 'app!=db', '!tier', 'app notin (db)'])
    assert.is(await chosen(selector), 1, selector);
  for (const selector of ['app=db', 'app!=web', 'tier', 'app in (db)', '!app', 'app >'])
    assert.is(await chosen(selector), 0, selector);
  assert.equal([await chosen('app', 'app=web'), await chosen('app', 'tier')], [1, 0]);
});

test('with the API server down, the bundle says so, and no analyzer passes', async () => {
  const env = { KUBECONFIG: '/nonexistent/kubeconfig' };
  const { items, facts } = await planClusterItems([], { env, signal: never });
  assert.equal(
    items.map(({ path }) => path),
    ['cluster-resources'],
  );
  const { specs } = parseSupportSpecs('troubleshoot.yaml', SPEC);
  const { results, notEvaluated } = clusterVerdicts(
    specs.map(({ cluster }) => cluster),
    facts,
  );
  assert.equal([results.length, notEvaluated.length], [0, 2]);
});

const FACTS: CollectedCluster = {
  version: 'v1.34.4',
  objects: new Map([
    ['Namespace', []],
    ['Node', [{ ...node, metadata: { ...EMPTY(), name: 'one' } }]],
    ['Pod', [{ ...pod, metadata: { ...EMPTY(), name: 'web-1', namespace: 'web' } }]],
    ['Deployment', [{ metadata: { ...EMPTY(), name: 'web', namespace: 'web' }, status: { readyReplicas: 2 } }]],
    ['StorageClass', []],
    ['Secret', [{ metadata: { ...EMPTY(), name: 's', namespace: 'web' }, data: { key: 'x' } }]],
  ]),
};

function EMPTY() {
  return {
    uid: '',
    resourceVersion: '',
    labels: {},
    annotations: {},
    finalizers: [],
    ownerReferences: [],
    managedFields: [],
  };
}

/** The verdict of an analyzer with one condition, or why it is not evaluated. */
function judged(kind: string, settings: string, when: string): string {
  const outcomes = `outcomes: [{fail: {when: ${JSON.stringify(when)}, message: no}}, {pass: {message: yes}}]`;
  const { specs } = parseSupportSpecs('x', spec('', `{${kind}: {${settings}${outcomes}}}`));
  const { results, notEvaluated } = clusterVerdicts(
    specs.map(({ cluster }) => cluster),
    FACTS,
  );
  return results[0]?.verdict ?? notEvaluated[0]?.reason ?? 'nothing';
}

test('an API server that takes requests and answers none is not asked a second time', async () => {
  await using api = await startKubeServer(() => ({ status: 200, sending: 'never' }));
  await using box = await tree({ kubeconfig: api.kubeconfig() });
  const env = { KUBECONFIG: box.at('kubeconfig') };
  const { items, facts } = await planClusterItems([], { env, signal: never, answerMs: 1000 });
  assert.equal(
    items.map(({ path }) => path),
    ['cluster-resources'],
  );
  assert.equal([facts.problem, api.log.length], ['cannot list namespaces: no response in 1 s', 1]);
});

test('analyzers of the cluster judge its objects', () => {
  for (const [kind, settings, when, expected] of [
    ['clusterVersion', '', '< 1.30.0', 'pass'],
    ['clusterVersion', '', '>= 1.30.0', 'fail'],
    ['nodeResources', '', 'count() < 3', 'fail'],
    ['nodeResources', '', '< 1', 'pass'],
    ['nodeResources', '', 'sum(cpuCapacity) < 8', 'fail'],
    ['nodeResources', '', 'min(memoryCapacity) < 8Gi', 'pass'],
    ['nodeResources', 'filters: {cpuCapacity: "6"}, ', 'count() == 0', 'fail'],
    ['nodeResources', '', 'nodeCondition(Ready) == False', 'fail'],
    ['deploymentStatus', 'name: web, namespace: web, ', '< 2', 'pass'],
    ['deploymentStatus', 'name: gone, ', '< 2', 'fail'],
    ['deploymentStatus', 'name: gone, ', 'absent', 'fail'],
    ['deploymentStatus', 'name: web, namespace: web, ', 'available < 1', 'fail'],
    ['clusterPodStatuses', 'namespaces: [web], ', '!= Healthy', 'fail'],
    ['clusterPodStatuses', 'namespaces: [web], ', '== CrashLoopBackOff', 'fail'],
    ['clusterPodStatuses', 'namespaces: [other], ', '!= Healthy', 'pass'],
    ['containerRuntime', '', '!= containerd', 'pass'],
    ['storageClass', 'storageClassName: fast, ', '', 'fail'],
    ['secret', 'secretName: s, namespace: web, key: key, ', '', 'pass'],
    ['secret', 'secretName: s, namespace: web, key: other, ', '', 'fail'],
  ] as const) {
    assert.is(judged(kind, settings, when), expected, `${kind} ${settings} ${when}`);
  }
  assert.match(judged('ingress', 'ingressName: x, ', ''), /Ingress were not collected/);
  assert.match(judged('nodeResources', '', 'odd'), /condition "odd" is not known/);
});

test.run();
