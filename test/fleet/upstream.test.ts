import { readFleet, type ReadFleet } from '../../src/fleet/read.ts';
import { unrenderedIn } from '../../src/fleet/unrendered.ts';
import { differencesIn } from '../../src/fleet/differences.ts';
import * as assert from '../support/assert.ts';
import { addon, cluster, documents } from '../support/fleet-files.ts';
import { addOnTemplate, managementAddOn, placement } from '../support/ocm-files.ts';
import { suite } from '../support/suite.ts';

const test = suite('fleet/upstream');

const CHART = { chartName: 'cni', repoURL: 'https://charts.example.com/stable', version: '3.1.0' };
const ALL = { matchLabels: {} };

function proxy(name: string, spec: object = {}, namespace?: string): object {
  const metadata = { name, ...(namespace !== undefined && { namespace }) };
  const apiVersion = 'addons.cluster.x-k8s.io/v1alpha1';
  return { apiVersion, kind: 'HelmChartProxy', metadata, spec: { clusterSelector: ALL, ...CHART, ...spec } };
}

function capi(name: string, spec: object = {}, kind = 'Cluster'): object {
  return { apiVersion: 'cluster.x-k8s.io/v1beta1', kind, metadata: { name, labels: { cni: 'on' } }, spec };
}

function read(...all: readonly object[]): ReadFleet {
  return readFleet([{ path: 'fleet/all.yaml', folder: 'fleet', text: documents(...all) }]);
}

function found(...all: readonly object[]): readonly string[] {
  return read(...all).diagnostics.map(({ severity, code, message }) => `${severity} ${code}: ${message}`);
}

function chartOf(one: ReadFleet['addons'][number] | undefined) {
  const { source } = one?.entry ?? {};
  if (source?.type !== 'chart') throw new Error('the add-on has no chart');
  return source.chart;
}

test('a HelmChartProxy is an add-on with its chart, its values and its mode', () => {
  const selector = { matchExpressions: [{ key: 'cni', operator: 'In', values: ['on'] }] };
  const values = 'mtu: 1350';
  const fleet = read(
    capi('paris'),
    proxy('net', {
      clusterSelector: selector,
      releaseName: 'cni',
      namespace: 'network',
      valuesTemplate: values,
      reconcileStrategy: 'InstallOnce',
      options: { wait: true, atomic: true, install: { createNamespace: true } },
      rolloutStepSize: '25%',
    }),
  );
  assert.equal(fleet.diagnostics, []);
  const [net] = fleet.addons;
  const { releaseName, namespace, name, version, wait, atomic } = chartOf(net);
  assert.equal([releaseName, namespace, name, version, wait, atomic], ['cni', 'network', 'cni', '3.1.0', true, true]);
  assert.equal(net?.fields.spec, {
    source: {},
    clusterSelector: selector,
    valuesTemplate: values,
    mode: 'InstallOnce',
    rollout: { type: 'Progressive', maxConcurrency: '25%' },
  });
});

test('a release has the name of its proxy and the namespace default, and a registry is joined with the chart', () => {
  const [net] = read(capi('paris'), proxy('net', { repoURL: 'oci://registry.example.com/charts/' })).addons;
  const { oci, releaseName, namespace } = chartOf(net);
  assert.equal([oci, releaseName, namespace], ['oci://registry.example.com/charts/cni', 'net', 'default']);
});

test('only a HelmChartProxy may select all clusters', () => {
  assert.equal(found(capi('paris'), proxy('net')), []);
  assert.match(found(capi('paris'), addon('net', { clusterSelector: ALL }))[0] ?? '', /empty selector/);
});

test('each field without an effect is named, and one that does not exist is an error', () => {
  const options = { timeout: '5m', upgrade: { maxHistory: 3 }, install: { createNamespace: false }, colour: 'red' };
  const spec = {
    options,
    tlsConfig: { caSecret: { name: 'ca' } },
    version: '',
    valuesTemplate: 'a: {{ .InfraCluster.kind }}',
  };
  assert.equal(found(capi('paris'), proxy('net', spec)), [
    'warning fleet/ignored: options.timeout has no effect: rollout.progressDeadline of a FleetAddon is its time',
    'warning fleet/ignored: options.upgrade.maxHistory has no effect: helm keeps its own number of revisions',
    'warning fleet/ignored: options.install.createNamespace has no effect: a missing namespace is created',
    'error fleet/unknown-field: "colour" is not a field',
    'warning fleet/version: no version: each cluster gets the newest cni of its first day, and keeps it; the provider upgrades it',
    'warning fleet/ignored: tlsConfig has no effect: no Secret default/ca among the files has a text in ca.crt',
  ]);
  assert.match(found(capi('paris'), proxy('net', { step: 1 }))[0] ?? '', /unknown-field/);
  for (const repoURL of ['http://charts.example.com', 'charts.example.com', 'OCI://registry.example.com', 'https://']) {
    assert.match(found(capi('paris'), proxy('net', { repoURL }))[0] ?? '', /error fleet\/value: spec.repoURL must be/);
  }
});

function secretOf(name: string, namespace: string, fields: object): object {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, ...fields };
}

test('credentials are those of a Secret in the namespace of the proxy by default (HS4)', () => {
  const spec = {
    credentials: { secret: { name: 'creds' } },
    tlsConfig: { caSecret: { name: 'ca', namespace: 'ns2' } },
  };
  const own = proxy('net', spec, 'ns1');
  const logins = secretOf('creds', 'ns1', { stringData: { 'config.json': '{}' } });
  const data = { 'ca.crt': Buffer.from('authorities').toString('base64') };
  const authorities = secretOf('ca', 'ns2', { data });
  const other = secretOf('creds', 'default', { stringData: { 'config.json': 'other' } });
  const expected = { logins: '{}', authorities: 'authorities', trustsAll: undefined };
  for (const all of [
    [other, logins, authorities],
    [{ apiVersion: 'v1', kind: 'List', items: [logins, authorities] }],
  ]) {
    const fleet = read(capi('paris'), own, ...all);
    assert.equal([fleet.diagnostics, fleet.addons[0]?.access], [[], expected]);
  }
  const missing = [
    'warning fleet/ignored: credentials has no effect: no Secret ns1/creds among the files has a text in config.json',
    'warning fleet/ignored: tlsConfig has no effect: no Secret ns2/ca among the files has a text in ca.crt',
  ];
  assert.equal(found(capi('paris'), own, other, secretOf('ca', 'ns2', { data: { 'ca.crt': '-' } })), missing);
  const insecure = read(capi('paris'), proxy('net', { tlsConfig: { insecureSkipTLSVerify: true } }));
  assert.is(insecure.addons[0]?.access?.trustsAll, true);
});

test('a Cluster of Cluster API has its kubeconfig next to its file, and its networks and pause', () => {
  const clusterNetwork = { pods: { cidrBlocks: ['10.1.0.0/16', '10.2.0.0/16'] }, serviceDomain: 'cluster.local' };
  const fleet = read(capi('paris', { paused: true, clusterNetwork, topology: { version: 'v1.31.2' } }), proxy('net'));
  assert.equal(fleet.diagnostics, []);
  const [paris] = fleet.clusters;
  assert.is(paris?.kubeconfig, 'fleet/paris.kubeconfig');
  assert.equal(paris?.labels, { cni: 'on', 'fleet.curlew.dev/cluster': 'paris' });
  const networks = { pods: '10.1.0.0/16', domain: 'cluster.local' };
  assert.equal(paris?.fields.spec, { paused: true, networks, access: { kubeconfig: 'paris.kubeconfig' } });
  assert.match(found(capi('../paris'))[0] ?? '', /metadata.name must be/);
});

test('templates see the control plane of a cluster if it is among the files', () => {
  const reference = { kind: 'KubeadmControlPlane', name: 'paris-cp' };
  const plane = {
    apiVersion: 'controlplane.cluster.x-k8s.io/v1beta1',
    kind: 'KubeadmControlPlane',
    metadata: { name: 'paris-cp' },
    spec: { version: 'v1.31.2' },
  };
  const uses = proxy('net', { valuesTemplate: 'version: {{ .ControlPlane.spec.version }}' });
  const owner = capi('paris', { controlPlaneRef: reference });
  assert.equal(read(owner, plane, uses).clusters[0]?.roots, { ControlPlane: plane });
  assert.equal(found(owner, plane, uses), []);
  assert.equal(unrenderedIn(read(owner, plane, uses)), []);
  assert.equal(
    unrenderedIn(read(owner, uses)).map(({ message }) => message),
    ['cannot render the values: unknown field .ControlPlane (paris)'],
  );
});

test('a Secret of Cluster API has the kubeconfig of its cluster, or is refused', () => {
  const secret = (data: object) => {
    return {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'cluster.x-k8s.io/secret',
      metadata: { name: 'paris-kubeconfig' },
      data,
    };
  };
  assert.is(read(capi('paris'), secret({ value: Buffer.from('a: 1').toString('base64') })).clusters[0]?.secret, 'a: 1');
  assert.equal(found(capi('paris'), secret({ value: '*' })), [
    'error fleet/kubeconfig: the Secret paris-kubeconfig has no kubeconfig in data.value',
  ]);
  assert.is(
    read(cluster('paris'), secret({ value: Buffer.from('a: 1').toString('base64') })).clusters[0]?.secret,
    undefined,
  );
});

test('an annotation selects the rules of the program that a document is from', () => {
  const annotated = (value: string) => {
    const one = proxy('net') as { readonly metadata: object };
    return { ...one, metadata: { ...one.metadata, annotations: { 'curlew.dev/compat': value } } };
  };
  assert.is(read(capi('paris'), annotated('caaph')).addons[0]?.compat, 'caaph');
  assert.is(read(capi('paris'), proxy('net')).addons[0]?.compat, undefined);
  assert.equal(found(capi('paris'), annotated('helm')), [
    'error fleet/compat: curlew.dev/compat must be one of caaph, ocm, native',
  ]);
});

test('items of a List are read like documents, with their places', () => {
  const unknown = proxy('bad', { chart: 'x' });
  const items = [cluster('lyon'), addon('web'), capi('paris'), proxy('net'), placement('all'), unknown];
  const text = JSON.stringify(
    { apiVersion: 'v1', kind: 'List', metadata: { resourceVersion: '' }, items },
    undefined,
    2,
  );
  const { addons, clusters, diagnostics } = readFleet([
    { path: 'fleet/all.yaml', folder: 'fleet', text: `# a\n${text}` },
  ]);
  assert.equal(
    [clusters, addons].flat().map(({ name }) => name),
    ['lyon', 'paris', 'web', 'net'],
  );
  const line = `# a\n${text}`.split('\n').findIndex((one) => one.includes('"chart": "x"')) + 1;
  assert.equal(
    diagnostics.map(({ place, message }) => `${place.line}:${place.column}: ${message}`),
    [`${line}:9: spec.chart: unknown field`],
  );
});

test('of a List, what is not of a fleet is left alone, and a Channel is refused', () => {
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'paris-kubeconfig' }, type: 'Opaque', data: {} };
  const channel = { apiVersion: 'fleet.curlew.dev/v1alpha1', kind: 'Channel', metadata: { name: 'stable' } };
  const list = (...items: readonly object[]): object => ({ apiVersion: 'v1', kind: 'List', items });
  assert.equal(found(list(capi('paris'), secret)), []);
  assert.equal(found(list({ apiVersion: 'v1', kind: 'ConfigMap', nested: { a: 1 } })), []);
  assert.equal(found(list(cluster('lyon'), channel)), ['error fleet/kind: a Channel cannot be read from a List']);
});

test('the rules that documents of other programs follow are one line, unless an annotation selects them', () => {
  const annotated = (one: object, value: string): object => ({
    ...one,
    metadata: { ...(one as { readonly metadata: object }).metadata, annotations: { 'curlew.dev/compat': value } },
  });
  const OCM = [cluster('paris'), addOnTemplate('web-1', []), placement('all'), managementAddOn({ all: {} })];
  const { addons } = read(addon('net2'), annotated(proxy('dns'), 'caaph'), proxy('net'), proxy('ui'), ...OCM);
  const all = differencesIn(addons);
  assert.equal(
    all.map(({ code, severity, message }) => `${severity} ${code}: ${message}`),
    [
      'info fleet/rules: each HelmChartProxy and each ClusterManagementAddOn without the annotation curlew.dev/compat follows the rules of curlew',
    ],
  );
  const chosen = read(
    cluster('paris'),
    annotated(proxy('net'), 'native'),
    addOnTemplate('web-1', []),
    placement('all'),
    managementAddOn({ all: {} }, {}, { 'curlew.dev/compat': 'ocm' }),
  );
  assert.equal([chosen.addons.length, differencesIn(chosen.addons)], [2, []]);
});

test('no document of a group that is read is ignored: each kind is a warning with what does the same', () => {
  const ocm = (group: string, kind: string, name: string): object => {
    return { apiVersion: `${group}.open-cluster-management.io/v1`, kind, metadata: { name } };
  };
  const own = (prefix: string, kind: string): object => ({
    ...capi('x', {}, kind),
    apiVersion: `${prefix}.cluster.x-k8s.io/v1beta2`,
  });
  const plane = own('controlplane', 'KubeadmControlPlane');
  const text = [
    documents(
      capi('paris', { controlPlaneRef: { kind: 'KubeadmControlPlane', name: 'x' } }),
      plane,
      ...['md', 'mt'].map((name) => capi(name, {}, 'MachineDeployment')),
      own('bootstrap', 'KubeadmConfigTemplate'),
      own('addons', 'HelmReleaseProxy'),
      ...['a', 'b', 'c'].map((name) => ocm('work', 'ManifestWork', name)),
      { apiVersion: 'v1', kind: 'List', items: [ocm('work', 'ManifestWorkReplicaSet', 'd')] },
      ocm('operator', 'Klusterlet', 'e'),
      ocm('policy', 'Governance', 'f'),
      // Another document is none of theirs, whatever is in it.
      { kind: 'ConfigMap', apiVersion: 'v1', data: ocm('work', 'ManifestWork', 'g') },
    ),
    'apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nspec: {{ toYaml .Values.spec }}',
  ].join('\n---\n');
  const { clusters, diagnostics } = readFleet([{ path: 'fleet/all.yaml', folder: 'fleet', text }]);
  assert.equal(clusters[0]?.roots, { ControlPlane: plane });
  assert.equal(
    diagnostics.map(({ severity, message }) => `${severity}: ${message}`).toSorted(),
    [
      'HelmReleaseProxy of Cluster API is left alone',
      'Klusterlet of Open Cluster Management is left alone',
      'KubeadmConfigTemplate of Cluster API is left alone',
      'MachineDeployment of Cluster API is left alone, like 1 more of this kind',
      'ManifestWork of Open Cluster Management is left alone, like 2 more of this kind',
      'ManifestWorkReplicaSet of Open Cluster Management is left alone',
      'Placement of Open Cluster Management is left alone: it is a template of a chart',
      'Governance of Open Cluster Management is left alone',
    ]
      .map((one) => `warning: this ${one}`)
      .toSorted(),
  );
  const hints = new Set(diagnostics.map(({ hint }) => hint));
  assert.ok([...hints].some((one) => one?.includes('that selects its cluster')));
});

test.run();
