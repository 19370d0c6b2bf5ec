/** Documents of Open Cluster Management that nothing in their folder uses. */
import { readFleet } from '../../src/fleet/read.ts';
import * as assert from '../support/assert.ts';
import { cluster, documents } from '../support/fleet-files.ts';
import {
  addOnTemplate,
  binding,
  clusterSet,
  configOf,
  decision,
  deploymentConfig,
  managedCluster,
  managementAddOn,
  onCluster,
  placement,
} from '../support/ocm-files.ts';
import { suite } from '../support/suite.ts';

const test = suite('fleet/unused');

function found(...all: readonly object[]): readonly string[] {
  const { diagnostics } = readFleet([{ path: 'fleet/all.yaml', folder: 'fleet', text: documents(...all) }]);
  return diagnostics.map(({ severity, code, message }) => `${severity} ${code}: ${message}`);
}

test('what no add-on uses is named once for each kind, unless a document cannot be read', () => {
  const everyone = clusterSet('global', { clusterSelector: { selectorType: 'LabelSelector', labelSelector: {} } });
  const all = [cluster('nice', { env: 'prod' }), managedCluster('nice'), addOnTemplate('web-1', [])];
  const used = [binding(), ...all, everyone, placement('prod'), deploymentConfig('small', {}), onCluster('nice')];
  const web = managementAddOn({ prod: { configs: [configOf('small')] } });
  assert.equal(found(...used, web), []);
  const elsewhere = { name: 'blue', namespace: 'elsewhere' };
  const others = [
    ...['a', 'b'].map((name) => placement(name)),
    decision('a', ['nice'], [0, '']),
    addOnTemplate('web-2', []),
    deploymentConfig('large', {}),
    clusterSet('blue'),
    { ...binding('blue'), metadata: elsewhere },
    { ...onCluster('nice'), metadata: { name: 'other', namespace: 'nice' } },
  ];
  const kinds = others.slice(1).map((one) => (one as { readonly kind: string }).kind);
  const lines = kinds.map((kind) => {
    const like = kind === 'Placement' ? ', like 1 more of this kind' : '';
    return `warning fleet/kind: this ${kind} of Open Cluster Management is left alone: no add-on uses it${like}`;
  });
  assert.equal(found(...used, web, ...others).toSorted(), lines.toSorted());
  const builtIn = ['global', 'default'].map((name) => clusterSet(name));
  assert.equal(found(...all, decision('prod', ['nice'], [0, '']), managementAddOn({ prod: {} }), ...builtIn), []);
  const wrong = managementAddOn({ prod: { colour: 'red' } });
  assert.equal(
    found(...others, wrong).filter((one) => one.includes('left alone')),
    [],
  );
});

test('while a placement of an add-on is not known, no cluster is said to be outside of all', () => {
  const all = [cluster('nice', { env: 'prod' }), managedCluster('nice'), addOnTemplate('web-1', []), placement('prod')];
  assert.equal(found(...all, managementAddOn({ prod: {} }), onCluster('nice')), [
    'warning fleet/placement: web stays as it is: Placement fleet-ops/prod: namespace fleet-ops has no ManagedClusterSetBinding',
  ]);
});

test('registries of ManagedClusters are named once as without effect', () => {
  const annotations = { 'open-cluster-management.io/image-registries': '{"registries":[]}' };
  const all = ['lyon', 'nice'].flatMap((name) => {
    const one = managedCluster(name) as { readonly metadata: object };
    return [cluster(name, { env: 'prod' }), { ...one, metadata: { ...one.metadata, annotations } }];
  });
  const used = [binding(), addOnTemplate('web-1', []), placement('prod'), managementAddOn({ prod: {} })];
  assert.equal(found(...all, ...used), [
    'warning fleet/ignored: open-cluster-management.io/image-registries has no effect: images are replaced by registries of an AddOnDeploymentConfig; 1 more clusters have it',
  ]);
});

test.run();
