/** The commands of the pages for users of other programs, which give their objects back. */
import { readFile } from 'node:fs/promises';
import * as assert from '../../support/assert.ts';
import { unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { CAPI_KINDS, definitionsOf, OCM_KINDS } from '../../support/upstream-kinds.ts';
import { noPageMachine, pageMachine, type Machine } from '../support/page-machine.ts';
import { CLUSTER_PROGRAMS, HUB_PROGRAMS, startCluster, startHub } from '../support/page-servers.ts';

const test = suite('components/pages/from-pages', { timeoutMs: 180_000 });
const HUB = 'hub.example.com';
const OCM = 'open-cluster-management.io';
/** Kinds of OCM that curlew does not read. */
const OTHER_KINDS = [
  { group: `operator.${OCM}`, version: 'v1', plural: 'clustermanagers', kind: 'ClusterManager', scope: 'Cluster' },
  { group: `operator.${OCM}`, version: 'v1', plural: 'klusterlets', kind: 'Klusterlet', scope: 'Cluster' },
  { group: `work.${OCM}`, version: 'v1', plural: 'manifestworks', kind: 'ManifestWork' },
] as const;
const OF_CURLEW = 'curlew:addon:paris:web:clusterrole:web-reader';

/** Applies objects as soon as the server has their kinds. */
async function apply(machine: Machine, definitions: readonly object[], objects: readonly object[]): Promise<void> {
  const list = (items: readonly object[]): string => JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
  await machine.run(`cat >definitions.json <<'END'
${list(definitions)}
END
cat >objects.json <<'END'
${list(objects)}
END
kubectl apply -f definitions.json
kubectl wait --for=condition=Established --all crd
until kubectl apply -f objects.json; do sleep 0.2; done`);
}

function held(apiVersion: string, kind: string, name: string): object {
  return { apiVersion, kind, metadata: { name, finalizers: ['fleet.curlew.dev/addon'] } };
}

unless(noPageMachine(...CLUSTER_PROGRAMS), test)('a HelmChartProxy that a controller holds is released', async () => {
  await using machine = await pageMachine('docs/from-helm-chart-proxy.md');
  await using cluster = await startCluster(machine);
  const proxy = held('addons.cluster.x-k8s.io/v1alpha1', 'HelmChartProxy', 'calico');
  await apply(machine, definitionsOf(CAPI_KINDS), [proxy]);
  await machine.run('kubectl delete --wait=false -f objects.json');
  const left = ['get', 'helmchartproxies.addons.cluster.x-k8s.io', '-o', 'name', '-A'];
  assert.match(await cluster.kubectl(left), 'calico');
  await machine.block('kubectl patch');
  assert.is(await cluster.kubectl(left), '');
  assert.equal(machine.left(), []);
});

unless(noPageMachine(...HUB_PROGRAMS), test)('a hub of OCM is moved, and moved back', async () => {
  const page = 'docs/from-open-cluster-management.md';
  await using machine = await pageMachine(page, { hosts: [HUB] });
  await using hub = await startHub(machine, HUB);
  const binding = (name: string, labels: object): object => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name, namespace: 'paris', labels: { [`${OCM}/addon-name`]: 'web', ...labels } },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'web-reader' },
  });
  await apply(machine, definitionsOf([...OCM_KINDS, ...OTHER_KINDS]), [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'paris' } },
    held(`addon.${OCM}/v1alpha1`, 'ClusterManagementAddOn', 'hello'),
    { apiVersion: `operator.${OCM}/v1`, kind: 'ClusterManager', metadata: { name: 'cluster-manager' }, spec: {} },
    { apiVersion: `operator.${OCM}/v1`, kind: 'Klusterlet', metadata: { name: 'klusterlet' }, spec: {} },
    {
      apiVersion: `work.${OCM}/v1`,
      kind: 'ManifestWork',
      metadata: { name: 'addon-hello-deploy-0', namespace: 'paris', labels: { [`${OCM}/addon-name`]: 'hello' } },
      spec: { deleteOption: { propagationPolicy: 'Foreground' } },
    },
    binding('open-cluster-management:web:clusterrole:agent', { [`${OCM}/addon-template-name`]: '' }),
    binding(OF_CURLEW, { 'fleet.curlew.dev/cluster': 'paris' }),
  ]);
  const [, saving = ''] = /^ {3}```bash\n(.*?)^ {3}```$/ms.exec(await readFile(page, 'utf8')) ?? [];
  await machine.run(`cp ~/.kube/config paris.conf && mkdir fleet\n${saving}`);
  assert.match(await machine.run('cat fleet/hub.yaml'), 'kind: ClusterManagementAddOn');
  const modes = [
    'get',
    `clustermanagers.operator.${OCM},klusterlets.operator.${OCM}`,
    '-o',
    'jsonpath={.items[*].spec}',
  ];

  await machine.block('kubectl wait --for=delete');
  await machine.block('Disable');
  const off = await hub.kubectl(modes);
  assert.is(off.split('{"feature":"AddonManagement","mode":"Disable"}').length, 3, off);
  await machine.block('>works.txt');
  const condition = { type: 'Applied', observedGeneration: 2, status: 'True' };
  const status = JSON.stringify({ status: { conditions: [{ type: 'Available' }, condition] } });
  await machine.run(
    `kubectl patch manifestworks -n paris addon-hello-deploy-0 --type=merge --subresource=status -p '${status}'`,
  );
  assert.match(await machine.block('GENERATION'), /^paris +addon-hello-deploy-0 +2 +2 +True$/m);
  const work = ['get', `manifestworks.work.${OCM}`, '-A', '-o', 'jsonpath={.items[*].spec.deleteOption}'];
  assert.is(await hub.kubectl(work), '{"propagationPolicy":"Orphan"}');
  await machine.block('kubectl delete manifestworks');
  assert.is(await hub.kubectl(work), '');
  await machine.block('kubectl get rolebindings');
  const bindings = ['get', 'rolebindings', '-n', 'paris', '-o', 'name'];
  assert.is((await hub.kubectl(bindings)).trim(), `rolebinding.rbac.authorization.k8s.io/${OF_CURLEW}`);

  await machine.run(`kubectl delete --wait=false clustermanagementaddons hello`);
  const addons = ['get', `clustermanagementaddons.addon.${OCM}`, '-o', 'name'];
  assert.match(await hub.kubectl(addons), 'hello');
  await machine.block('kubectl patch clustermanagementaddons');
  assert.is(await hub.kubectl(addons), '');

  await machine.block('curlew hub manifests --reconcile');
  const registered = machine.block('curlew agent register');
  await machine.run('until kubectl get csr | grep Pending; do sleep 0.2; done');
  const accepted = await machine.block('curlew fleet accept paris');
  assert.match(await registered, /SHA256:\S+/.exec(accepted)?.[0] ?? 'a key');
  await machine.run('kill -0 $(</run/agent.pid)');
  const leads = 'kubectl get leases -n curlew-system curlew-controller -o jsonpath={.spec.holderIdentity}';
  await machine.run(`until [[ "$(${leads})" ]]; do sleep 0.2; done`);
  await machine.run('kill $(</run/controller.pid)');

  await machine.block('kubectl create clusterrole');
  const controller = '--as=system:serviceaccount:curlew-system:curlew-controller';
  const may = ['auth', 'can-i', 'bind', 'clusterroles/web-reader', controller];
  assert.is((await hub.kubectl(may)).trim(), 'yes');
  assert.match(
    await machine.run('kubectl get clusterroles,clusterrolebindings,roles,rolebindings -A | grep curlew-bind-'),
    /clusterrole.*web-reader[^]*clusterrolebinding.*web-reader/,
  );
  await machine.run('openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=agents -keyout ca.key -out ca.crt');
  await machine.block('curlew hub manifests --signer');
  for (const [what, answer] of [
    [['get', 'secrets/agents-ca', '-n', 'open-cluster-management-hub'], 'yes'],
    [['get', 'secrets/other', '-n', 'open-cluster-management-hub'], 'no'],
  ] as const) {
    const said = await hub.kubectl(['auth', 'can-i', ...what, controller]).catch(() => 'no');
    assert.is(said.trim(), answer, what.join(' '));
  }

  await machine.run(`kubectl create -f - <<'END'
{"apiVersion": "addon.${OCM}/v1alpha1", "kind": "ClusterManagementAddOn", "metadata": {"name": "hello"}}
END`);
  await machine.block('kubectl annotate');
  const on = await hub.kubectl(modes);
  assert.is(on.split('{"feature":"AddonManagement","mode":"Enable"}').length, 3, on);
  assert.equal(machine.left(), []);
});

test.run();
