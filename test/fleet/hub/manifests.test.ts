/** What `curlew hub manifests` prints: schemas that an API server takes, few rights, and a controller only on demand. */
import { readFile } from 'node:fs/promises';
import { fleetApiPage } from '../../../scripts/docs/fleet-api.ts';
import { printHubManifests } from '../../../src/app/hub-manifests.ts';
import { definitionOf, hubManifests, type Manifest } from '../../../src/fleet/hub/manifests.ts';
import { apiClient } from '../../support/api-client.ts';
import { startMemoryApiServer } from '../../support/api-server/server.ts';
import * as assert from '../../support/assert.ts';
import { hubAddon, hubCluster, hubClusterAddon } from '../../support/hub-objects.ts';
import { runCommand } from '../../support/run-command.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('fleet/hub/manifests');
const KINDS = ['Cluster', 'FleetAddon', 'ClusterAddon'] as const;

test('docs/fleet-api.md is what the schemas make of it (npm run docs)', async () => {
  assert.is(await readFile('docs/fleet-api.md', 'utf8'), fleetApiPage());
});

test('each part of a schema has a type and a bound', () => {
  const isSound = (node: unknown, path: string): void => {
    if (typeof node !== 'object' || node === null) return;
    const { type, properties, additionalProperties, items, ...rest } = node as Record<string, unknown>;
    const isEither = rest['x-kubernetes-int-or-string'] === true;
    assert.ok(isEither || ['object', 'array', 'string', 'integer', 'boolean'].includes(String(type)), path);
    assert.ok(type !== 'array' || rest['maxItems'] !== undefined, path);
    const isOpen = rest['x-kubernetes-preserve-unknown-fields'] === true;
    assert.ok(type !== 'object' || isOpen || properties !== undefined || additionalProperties !== undefined, path);
    for (const [key, one] of Object.entries(properties ?? {})) isSound(one, `${path}.${key}`);
    if (additionalProperties !== undefined) isSound(additionalProperties, `${path}{}`);
    if (items !== undefined) isSound(items, `${path}[]`);
  };
  for (const kind of KINDS) {
    const { spec } = definitionOf(kind) as {
      readonly spec: { readonly versions: readonly [{ readonly schema: { readonly openAPIV3Schema: object } }] };
    };
    const { properties } = spec.versions[0].schema.openAPIV3Schema as {
      readonly properties: { readonly spec: object; readonly status: object };
    };
    isSound(properties.spec, `${kind}.spec`);
    isSound(properties.status, `${kind}.status`);
  }
});

test('an add-on may name each cluster of a fleet, and have values for each', () => {
  const schema = JSON.stringify(definitionOf('FleetAddon'));
  assert.is(schema.match(/"values":\{"maxItems":5000,/g)?.length, 3);
  assert.match(schema, /"groups":\{"maxItems":5000,/);
});

test('an API server takes the kinds and their objects, and nothing else has their names', async () => {
  await using server = await startMemoryApiServer();
  const client = apiClient(server.kubeconfig);
  for (const kind of KINDS) {
    const { status } = await client.create(
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
      definitionOf(kind),
    );
    assert.is(status, 201);
  }
  await client.create('/api/v1/namespaces', { metadata: { name: 'fleet-paris' } });
  const root = '/apis/fleet.curlew.dev/v1alpha1';
  const own = `${root}/namespaces/fleet-paris`;
  assert.is((await client.create(`${own}/clusters`, hubCluster('paris'))).status, 201);
  assert.is((await client.create(`${root}/fleetaddons`, hubAddon('web'))).status, 201);
  assert.is((await client.create(`${own}/clusteraddons`, hubClusterAddon('web', 'paris'))).status, 201);
  assert.is((await client.create(`${root}/fleetaddons`, hubAddon('x', { source: 'x' }))).status, 422);
});

interface Named {
  readonly name: string;
}

test('the controller may read clusters and hold deleted ones, and neither write their status nor read Secrets', () => {
  const role = hubManifests().find(({ kind }) => kind === 'ClusterRole') as unknown as {
    readonly rules: readonly { readonly resources: readonly string[]; readonly verbs: readonly string[] }[];
  };
  const verbsOf = (resource: string): readonly string[] =>
    role.rules.filter(({ resources }) => resources.includes(resource)).flatMap(({ verbs }) => verbs);
  assert.equal(verbsOf('clusters'), ['get', 'list', 'watch', 'patch']);
  assert.equal(verbsOf('clusters/status'), []);
  assert.equal(verbsOf('secrets'), []);
  assert.ok(!role.rules.some(({ resources, verbs }) => [...resources, ...verbs].includes('*')));
});

test('Secrets are readable only in the namespaces of the clusters that the controller delivers to', async () => {
  const named = (objects: readonly Manifest[], kind: string): readonly unknown[] =>
    objects.flatMap((one) => (one['kind'] === kind ? [one['metadata']] : []));
  const objects = await printHubManifests({ push: ['oslo'] });
  const labels = (named(hubManifests(), 'ServiceAccount')[0] as { readonly labels: object }).labels;
  assert.equal(named(objects, 'RoleBinding').slice(1), [
    { name: 'curlew-controller-push', namespace: 'fleet-oslo', labels },
  ]);
  assert.equal(named(objects, 'ClusterRoleBinding'), named(hubManifests(), 'ClusterRoleBinding'));
  await assert.rejectsWith(printHubManifests({ push: ['Oslo'] }), 'USAGE', /no name of a cluster/);
});

test('the controller may read the Secrets and ConfigMaps with values that are named, and no other of its namespace', async () => {
  const objects = await printHubManifests({ valuesSecret: ['web-1', 'web-2'], valuesConfigMap: ['sites'] });
  const [role, binding] = objects.filter(({ metadata }) => (metadata as Named).name === 'curlew-controller-values');
  assert.equal(
    [role?.['kind'], role?.['rules']],
    [
      'Role',
      [
        { apiGroups: [''], resources: ['secrets'], resourceNames: ['web-1', 'web-2'], verbs: ['get'] },
        { apiGroups: [''], resources: ['configmaps'], resourceNames: ['sites'], verbs: ['get'] },
      ],
    ],
  );
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'curlew-controller-values' };
  assert.equal([binding?.['kind'], binding?.['roleRef']], ['RoleBinding', roleRef]);
  await assert.rejectsWith(printHubManifests({ valuesSecret: ['Web'] }), 'USAGE', /no name of a Secret/);
  await assert.rejectsWith(printHubManifests({ valuesConfigMap: ['Web'] }), 'USAGE', /no name of a ConfigMap/);
});

test('the controller may sign only for the signers that are named, and read only their Secrets', async () => {
  const signer = ['example.com/agents=hub/agents-ca', 'example.com/others=hub/others-ca'];
  const objects = await printHubManifests({ signer });
  const own = objects.filter(({ metadata }) => (metadata as Named).name === 'curlew-controller-signers');
  assert.equal(
    own.map((one) => one['kind']),
    ['ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding'],
  );
  const group = { apiGroups: ['certificates.k8s.io'] };
  const resourceNames = ['example.com/agents', 'example.com/others'];
  assert.equal(own[0]?.['rules'], [
    { ...group, resources: ['signers'], resourceNames, verbs: ['approve', 'sign'] },
    { ...group, resources: ['certificatesigningrequests/status'], verbs: ['patch'] },
  ]);
  assert.match(JSON.stringify(own[2]?.['metadata']), '"namespace":"hub"');
  assert.equal(own[2]?.['rules'], [
    { apiGroups: [''], resources: ['secrets'], resourceNames: ['agents-ca', 'others-ca'], verbs: ['get'] },
  ]);
  for (const wrong of ['example.com/agents', 'agents=hub/ca', 'example.com/agents=ca', 'example.com/agents=Hub/ca'])
    await assert.rejectsWith(printHubManifests({ signer: [wrong] }), 'USAGE', /no signer with a Secret/);
  await assert.rejectsWith(printHubManifests({ signer: ['kubernetes.io/kubelet-serving=hub/ca'] }), 'USAGE');
});

test('the rights to take objects of other programs are printed only for those that are asked for', async () => {
  const role = (objects: readonly Manifest[]): string =>
    JSON.stringify(objects.find(({ metadata }) => (metadata as Named).name === 'curlew-controller-upstream') ?? {});
  assert.is(role(await printHubManifests({})), '{}');
  const proxies = role(await printHubManifests({ reconcile: [['helmchartproxies']] }));
  assert.match(proxies, /"helmchartproxies\/status".*"secrets"/);
  assert.not(proxies.includes('open-cluster-management'));
  const image = 'registry.example.com/curlew';
  const both = await printHubManifests({ reconcile: [['clustermanagementaddons', 'helmchartproxies']], image });
  assert.match(JSON.stringify(both.at(-1)), /"--reconcile","clustermanagementaddons,helmchartproxies"/);
});

test('there is a Deployment only with an image', async () => {
  const kindsOf = (objects: readonly Manifest[]): readonly unknown[] => objects.map(({ kind }) => kind);
  assert.not(kindsOf(await printHubManifests({})).includes('Deployment'));
  const objects = await printHubManifests({ image: 'registry.example.com/curlew@sha256:0f' });
  assert.ok(kindsOf(objects).includes('Deployment'));
  await assert.rejectsWith(printHubManifests({ image: 'a b' }), 'USAGE', /not a reference of an image/);
});

test('what is printed are documents for kubectl', async () => {
  await using box = await tree();
  const { stdout } = await runCommand(['hub', 'manifests'], box.path);
  const documents = stdout.split(/^---$/m).slice(1);
  assert.equal(
    documents.map((text): unknown => JSON.parse(text)),
    JSON.parse(JSON.stringify(hubManifests())),
  );
});

test.run();
