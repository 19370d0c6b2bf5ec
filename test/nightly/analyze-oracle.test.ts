/** Support bundles beside Troubleshoot's own `analyze`: it opens them, and its verdicts are those that `curlew inspect` shows. */
import * as assert from '../support/assert.ts';
import { NODE, onNode, put } from '../support/kept-node.ts';
import { startKubeServer } from '../support/kube-server.ts';
import { unless } from '../support/needs.ts';
import { specOf } from '../support/node-bundles.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { cannotRun, oracle, run } from '../components/support/programs.ts';

const test = suite('support bundles beside Troubleshoot', { timeoutMs: 300_000 });

/** The name of a check, its analyzer with settings, and a condition of the outcome that fails; else it warns or passes. */
type Row = readonly [kind: string, settings: string, when: string, warnsElse?: true];

const HOST: readonly Row[] = [
  ['cpu', '', 'count < 1'],
  ['cpu', '', 'count >= 1'],
  ['memory', '', '< 1Gi'],
  ['memory', '', '> 1Mi', true],
  ['hostOS', '', 'debian < 1'],
  ['time', '', 'timezone != UTC'],
  ['ipv4Interfaces', '', 'count == 0'],
  ['blockDevices', '', '.* == 0', true],
  ['diskUsage', 'collectorName: root-disk', 'total < 1Gi'],
  ['diskUsage', 'collectorName: root-disk', 'used/total < 101%'],
  ['sysctl', '', 'net.ipv4.ip_forward = 2'],
  ['kernelModules', '', 'surely_not_there == loaded', true],
  ['tcpConnect', 'collectorName: nobody', 'connection-refused'],
  ['tcpPortStatus', 'collectorName: port', 'connected', true],
  ['certificate', 'collectorName: pair', 'key-pair-missing'],
  ['http', 'collectorName: web', 'error'],
];
const HOST_COLLECTORS = `
    - cpu: {}
    - memory: {}
    - hostOS: {}
    - time: {}
    - ipv4Interfaces: {}
    - blockDevices: {}
    - sysctl: {}
    - kernelModules: {}
    - diskUsage: {collectorName: root-disk, path: /}
    - tcpConnect: {collectorName: nobody, address: '127.0.0.1:1', timeout: 5s}
    - tcpPortStatus: {collectorName: port, port: 47653, interface: lo}
    - certificate: {collectorName: pair, certificatePath: /nosuch/a.crt, keyPath: /nosuch/a.key}
    - http: {collectorName: web, get: {url: 'http://127.0.0.1:1/'}}`;

const CLUSTER: readonly Row[] = [
  ['clusterVersion', '', '< 1.30.0'],
  ['clusterVersion', '', '>= 1.30.0'],
  ['nodeResources', '', 'count() < 3'],
  ['nodeResources', '', '< 1', true],
  ['nodeResources', '', 'sum(cpuCapacity) < 8'],
  ['nodeResources', '', 'min(memoryCapacity) < 8Gi'],
  ['nodeResources', '', 'max(memoryAllocatable) > 1Gi'],
  ['nodeResources', 'filters: {cpuCapacity: "6"}', 'count() == 0'],
  ['nodeResources', 'filters: {selector: {matchLabel: {disk: fast}}}', 'count() == 1'],
  ['nodeResources', '', 'nodeCondition(Ready) == False'],
  ['deploymentStatus', 'name: web, namespace: web', '< 1'],
  ['deploymentStatus', 'name: done, namespace: web', '< 1'],
  ['deploymentStatus', 'name: done, namespace: web', '>= 3', true],
  ['deploymentStatus', 'name: gone, namespace: web', '< 2'],
  ['deploymentStatus', 'name: gone, namespace: web', 'absent'],
  ['statefulsetStatus', 'name: db, namespace: web', '== 1'],
  ['replicasetStatus', 'name: web, namespace: web', 'ready = 0'],
  ['replicasetStatus', 'name: web, namespace: web', 'available > 0'],
  ['jobStatus', 'name: once, namespace: web', 'succeeded = 0'],
  ['jobStatus', 'name: once, namespace: web', 'failed < 1', true],
  ['clusterPodStatuses', 'namespaces: [web]', '!= Healthy'],
  ['clusterPodStatuses', 'namespaces: [web]', '== CrashLoopBackOff', true],
  ['clusterPodStatuses', 'namespaces: [web]', '== Pending', true],
  ['containerRuntime', '', '!= containerd'],
  ['containerRuntime', '', '== docker', true],
  ['storageClass', 'storageClassName: fast', ''],
  ['storageClass', 'storageClassName: slow', ''],
  ['customResourceDefinition', 'customResourceDefinitionName: webs.example.com', ''],
  ['customResourceDefinition', 'customResourceDefinitionName: gone.example.com', ''],
  ['ingress', 'ingressName: web, namespace: web', ''],
];

function analyzers(rows: readonly Row[], group: string): string {
  return rows
    .map(([kind, settings, when, warnsElse], at) => {
      const name = `${group} ${String(at).padStart(2, '0')} ${kind}`;
      const fails = `fail: {${when === '' ? '' : `when: ${JSON.stringify(when)}, `}message: "${name} fails"}`;
      const outcomes = `outcomes: [{${fails}}, {${warnsElse === true ? 'warn' : 'pass'}: {message: "${name} is well"}}]`;
      return `\n    - ${kind}: {checkName: "${name}", ${[settings, outcomes].filter((one) => one !== '').join(', ')}}`;
    })
    .join('');
}

const SPEC = `apiVersion: troubleshoot.sh/v1beta2
kind: SupportBundle
metadata: {name: aaa}
spec:
  hostCollectors:${HOST_COLLECTORS}
  hostAnalyzers:${analyzers(HOST, 'host')}
  collectors: [{clusterInfo: {}}, {clusterResources: {}}]
  analyzers:${analyzers(CLUSTER, 'cluster')}
`;

const meta = (name: string, more: object = {}) => ({ metadata: { name, namespace: 'web', ...more } });
const pod = (name: string, phase: string, status: object) => ({
  ...meta(name),
  spec: { containers: [{ name: 'web' }] },
  status: { phase, ...status },
});
const node = (name: string, cpu: string, labels: object, ready: string) => ({
  metadata: { name, labels },
  status: {
    capacity: { cpu, memory: '8Gi', pods: '110' },
    allocatable: { cpu, memory: '7Gi', pods: '110' },
    conditions: [{ type: 'Ready', status: ready }],
    nodeInfo: { containerRuntimeVersion: 'containerd://2.2.6' },
  },
});
const waiting = { ready: false, restartCount: 3, state: { waiting: { reason: 'CrashLoopBackOff' } } };
const LISTS: Readonly<Record<string, readonly object[]>> = {
  '/api/v1/namespaces': [{ metadata: { name: 'web' } }],
  '/api/v1/nodes': [node('one', '4', { disk: 'fast' }, 'True'), node('two', '2', {}, 'False')],
  '/api/v1/pods': [
    pod('crashes', 'Running', {
      conditions: [{ type: 'Ready', status: 'False' }],
      containerStatuses: [{ name: 'web', ...waiting }],
    }),
    pod('waits', 'Pending', { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }] }),
    pod('done', 'Succeeded', {
      containerStatuses: [{ name: 'web', ready: false, state: { terminated: { exitCode: 0, reason: 'Completed' } } }],
    }),
    pod('well', 'Running', {
      conditions: [{ type: 'Ready', status: 'True' }],
      containerStatuses: [{ name: 'web', ready: true, restartCount: 0, state: { running: {} } }],
    }),
  ],
  '/apis/apps/v1/deployments': [
    { ...meta('web'), status: { readyReplicas: 0 } },
    { ...meta('done'), status: { readyReplicas: 2 } },
  ],
  '/apis/apps/v1/statefulsets': [{ ...meta('db'), status: { readyReplicas: 1 } }],
  '/apis/apps/v1/replicasets': [{ ...meta('web'), status: {} }],
  '/apis/batch/v1/jobs': [{ ...meta('once'), status: { succeeded: 1 } }],
  '/apis/storage.k8s.io/v1/storageclasses': [{ metadata: { name: 'fast' }, provisioner: 'x' }],
  '/apis/networking.k8s.io/v1/ingresses': [meta('web')],
  '/apis/apiextensions.k8s.io/v1/customresourcedefinitions': [{ metadata: { name: 'webs.example.com' } }],
};

interface Result {
  readonly spec: string;
  readonly verdict: string;
  readonly message: string;
}

/** The name of each check is in its message: for a workload they show another title. */
function shown(verdict: string, message: string): string {
  return `${verdict}: ${message}`.toLowerCase();
}

/** `Pass: title` and its message in the next line; without analyzers that could not read what they evaluate. */
function theirVerdicts(text: string): readonly string[] {
  return [...text.matchAll(/^(Pass|Warn|Fail): .*\n (.*)$/gm)]
    .map(([, verdict = '', message = '']) => shown(verdict, message))
    .toSorted();
}

unless(cannotRun(oracle('analyze')), test)('analyze reads a bundle, and agrees with curlew inspect', async () => {
  await using box = await tree();
  await using api = await startKubeServer(({ path }) => {
    const [at = ''] = path.split('?');
    return { json: at === '/version' ? { gitVersion: 'v1.34.4' } : { metadata: {}, items: LISTS[at] ?? [] } };
  });
  await using files = await tree({ kubeconfig: api.kubeconfig(), 'spec.yaml': SPEC });
  const aaa = { name: 'aaa', version: '1.0.0' };
  await put(
    box,
    [{ ...aaa, files: { Manifest: '', 'install.sh': 'aaa() { :; }', 'troubleshoot.yaml': SPEC } }],
    specOf([aaa]),
  );
  assert.is((await onNode(box, 'install', '--bundle', box.at('b.tar.gz'), '--skip-images')).exitCode, 0);
  const env = { KUBECONFIG: files.at('kubeconfig'), PATH: process.env['PATH'] ?? '' };
  const words = ['support-bundle', '--install-dir', box.at(NODE), '-o', box.at('x.tar.gz')];
  const { exitCode, stderr } = await runCommand(words, box.path, env);
  assert.ok([0, 2].includes(exitCode), stderr);
  const inspected = await runCommand(['inspect', 'x.tar.gz', '--json'], box.path);
  const { support } = JSON.parse(inspected.stdout);
  const ours = support.results
    .filter(({ spec }: Result) => spec === 'aaa')
    .map(({ verdict, message }: Result) => shown(verdict, message));
  // What could not be collected here, such as modules of a kernel without /proc/modules, fails there.
  const missing = support.notEvaluated.map(({ title }: { readonly title: string }) => title.split(' ').at(-1));
  const theirs = theirVerdicts(
    await run(oracle('analyze'), ['--analyzers', files.at('spec.yaml'), box.at('x.tar.gz')]),
  );
  const evaluated = theirs.filter((one) => !/^fail: analyzer failed: .*not found$/.test(one));
  assert.equal(evaluated, ours.toSorted(), missing.join(' '));
  assert.ok(ours.length >= HOST.length + CLUSTER.length - missing.length, `${ours.length} verdicts`);
  assert.ok(missing.length <= 3, missing.join(' '));
});

test.run();
