/** What a pass of a controller costs in a hub with more and more clusters. */
import { FROM } from '../../../src/fleet/hub/observe.ts';
import { passHub } from '../../../src/fleet/hub/run/hub-pass.ts';
import * as assert from '../../support/assert.ts';
import { countExecutions } from '../../support/executions.ts';
import { openMemoryHub } from '../../support/hub-memory.ts';
import { hubAddon, hubCluster } from '../../support/hub-objects.ts';
import {
  addOnTemplate,
  decision,
  managedCluster,
  managementAddOn,
  onCluster,
  placement,
} from '../../support/ocm-files.ts';
import { suite } from '../../support/suite.ts';

// own process: counts executions, before the engine optimizes
const test = suite('fleet/hub/linear');
const NOW = 1_800_000_000;
/** Twice as many clusters, with room for sorting; each with each would be four times as much. */
const MOST = 3;

/** Half of the clusters are those of Cluster API, the others those of Open Cluster Management. */
function objectsOf(size: number): readonly object[] {
  const names = Array.from({ length: size }, (_, at) => `c${at}`);
  const [half, rest] = [names.slice(size / 2), names.slice(0, size / 2)];
  const conditions = [
    { type: 'Available', status: 'True', reason: 'Answers', lastTransitionTime: '2026-01-02T03:04:05Z' },
  ];
  const status = { facts: { version: 'v1.34.1' }, conditions };
  const clusterSelector = { matchLabels: { env: 'prod' } };
  return [
    ...rest.flatMap((name) => [
      { ...hubCluster(name, { env: 'prod' }), status },
      managedCluster(name, { env: 'prod' }),
      onCluster(name),
    ]),
    ...half.flatMap((name) => {
      const metadata = { name, namespace: 'capi', labels: { env: 'prod' } };
      const made = { name, namespace: `fleet-${name}`, annotations: { [FROM]: `Cluster capi/${name}` } };
      return [
        { apiVersion: 'cluster.x-k8s.io/v1beta1', kind: 'Cluster', metadata, spec: {} },
        { ...hubCluster(name), metadata: made, status },
      ];
    }),
    hubAddon('own', { valuesTemplate: 'name: "{{ .Cluster.name }}"' }),
    {
      apiVersion: 'addons.cluster.x-k8s.io/v1alpha1',
      kind: 'HelmChartProxy',
      metadata: { name: 'page', namespace: 'capi' },
      spec: { clusterSelector, repoURL: 'https://charts.example.com', chartName: 'page', version: '1.0.0' },
    },
    managementAddOn({ all: {} }, {}, { 'curlew.dev/compat': 'ocm' }),
    addOnTemplate('web-1', []),
    placement('all'),
    decision('all', rest, [0, '']),
  ];
}

async function passOver(size: number): Promise<void> {
  await using memory = await openMemoryHub(objectsOf(size));
  for (let at = 0; at < 4; at += 1) {
    const { problem, isDecided } = await passHub(memory.hub, NOW + at);
    assert.equal([problem, isDecided], [undefined, true]);
  }
  // One add-on of its own on all, and one of each program on its half.
  assert.is(memory.hub.clusterAddons.values().length, 2 * size);
}

test('passes over twice as many clusters do at most twice the work, wherever they come from', async () => {
  await using executions = await countExecutions();
  const [few, many] = [300, 600];
  await passOver(few);
  const before = await executions.take();
  await passOver(many);
  const grown = [...(await executions.take())].flatMap(([place, count]) => {
    const first = before.get(place) ?? 0;
    return count > MOST * Math.max(first, few) ? [`${place}: ${first} -> ${count}`] : [];
  });
  assert.equal(grown, []);
});

test.run();
