/** Removing an add-on from the clusters of a fleet, over API servers of the tests. */
import { planFleetRemoval, removeFromFleet } from '../../src/app/fleet-remove.ts';
import { StatusError } from '../support/api-server/store.ts';
import * as assert from '../support/assert.ts';
import { doneIn, installedScene, statesIn } from '../support/fleet-scene.ts';
import { suite } from '../support/suite.ts';

const test = suite('app/fleet-remove');
const THREE = ['lyon', 'nice', 'paris'];
const REQUEST = { addon: 'web', files: ['fleet.yaml'] };

test('an add-on that no file has stays until it is removed by name, after a preview, from all clusters', async () => {
  await using scene = await installedScene(THREE);
  await assert.rejectsWith(
    removeFromFleet(REQUEST, scene.context),
    'USAGE',
    /cannot remove web: it is in fleet\.yaml:\d+/,
  );
  await scene.fleet([]);
  assert.is((await scene.apply()).detached.length, 3);
  const preview = await planFleetRemoval(REQUEST, scene.context);
  assert.equal(
    statesIn(preview),
    THREE.map((name) => `${name} ToApply remove`),
  );
  assert.is(await scene.versions(), '1 1 1');
  const removed = await removeFromFleet(REQUEST, scene.context);
  assert.equal(
    doneIn(removed),
    THREE.map((name) => `${name} web remove done`),
  );
  assert.equal(removed.targets, []);
  assert.is(await scene.versions(), '- - -');
  assert.equal((await scene.apply()).detached, []);
});

test('a removal names what it leaves because Kubernetes deletes it with an owner', async () => {
  await using scene = await installedScene(['lyon', 'nice']);
  await scene.fleet([]);
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'n1' }];
  await scene.api('nice').merge('/api/v1/namespaces/default/configmaps/page', { metadata: { ownerReferences } });
  const { done } = await removeFromFleet(REQUEST, scene.context);
  assert.equal(
    done.map(({ cluster, result, reason }) => `${cluster} ${result} ${reason}`),
    ['lyon done ', 'nice done it leaves ConfigMap default/page (it is deleted with its owner, Node n1)'],
  );
  assert.is(await scene.versions(), '- 1');
});

test('a cluster that cannot be read keeps it, and loses it when the command is repeated', async () => {
  await using scene = await installedScene(['lyon', 'nice']);
  await scene.fleet([]);
  scene.before((name) => {
    if (name === 'nice') throw new StatusError(401, 'Unauthorized', 'Unauthorized');
  });
  const first = await removeFromFleet(REQUEST, scene.context);
  assert.equal(doneIn(first), ['lyon web remove done']);
  assert.match(first.clusters[1]?.problem ?? '', '401');
  scene.before(undefined);
  assert.equal(doneIn(await removeFromFleet(REQUEST, scene.context)), ['nice web remove done']);
});

test.run();
