/** Objects that leave the content of an add-on, on clusters of a folder. */
import { approveAddon } from '../../src/app/fleet-order.ts';
import { plan, status } from '../../src/cli/commands/fleet.ts';
import * as assert from '../support/assert.ts';
import { addon } from '../support/fleet-files.ts';
import { canaryAddon, doneIn, openFleetScene, statesIn, type FleetScene } from '../support/fleet-scene.ts';
import { suite } from '../support/suite.ts';

const test = suite('app/fleet-prune', { timeoutMs: 240_000 });
const MAPS = '/api/v1/namespaces/default/configmaps';

function named(kind: string, name: string): object {
  const metadata = kind === 'Namespace' ? { name } : { name, namespace: 'default' };
  return { apiVersion: 'v1', kind, metadata };
}

const maps = (...names: readonly string[]): readonly object[] => names.map((name) => named('ConfigMap', name));
const counted = (from: number, to: number): readonly object[] =>
  maps(...Array.from({ length: to - from + 1 }, (_, at) => `m${from + at}`));

/** Names of the ConfigMaps on a cluster. */
async function mapsOn(scene: FleetScene, cluster: string): Promise<string> {
  const { body } = await scene.api(cluster).get(MAPS);
  const items = (body['items'] ?? []) as readonly { readonly metadata: { readonly name: string } }[];
  return items.map(({ metadata }) => metadata.name).join(' ');
}

/** Does the manifest get these objects in a new content? */
const write = async (scene: FleetScene, ...objects: readonly object[]): Promise<void> => scene.manifest('', ...objects);

test('objects that leave a manifest are planned, and go with the new content, group by group', async () => {
  await using scene = await openFleetScene(['nice', 'paris']);
  await scene.fleet([canaryAddon()], { nice: { canary: 'true' } });
  await write(scene, ...maps('hello-a', 'hello-b'));
  await scene.apply();
  await scene.apply();
  await write(scene, ...maps('hello-a'));
  const planned = await scene.plan();
  assert.equal(planned.targets[0]?.deletes, ['ConfigMap default/hello-b']);
  assert.match(
    plan.render(planned, { options: {} } as never, undefined as never),
    'will delete ConfigMap default/hello-b',
  );
  assert.equal(doneIn(await scene.apply()), ['nice web update done']);
  assert.equal([await mapsOn(scene, 'nice'), await mapsOn(scene, 'paris')], ['hello-a', 'hello-a hello-b']);
  await scene.apply();
  assert.is(await mapsOn(scene, 'paris'), 'hello-a');
});

test('what holds data or other objects stays, and plan and status name it', async () => {
  await using scene = await openFleetScene(['nice']);
  await scene.fleet([addon('web')]);
  await write(scene, ...maps('a', 'b'), named('Namespace', 'extra'), named('PersistentVolumeClaim', 'data'));
  await scene.apply();
  await write(scene, ...maps('a'));
  assert.equal((await scene.plan()).targets[0]?.stays, [
    { object: 'PersistentVolumeClaim default/data', why: 'kubectl delete deletes it, with its data' },
    { object: 'Namespace extra', why: 'kubectl delete deletes it, with all that is in it' },
  ]);
  await scene.apply();
  assert.is(await mapsOn(scene, 'nice'), 'a');
  const after = await scene.plan();
  const line = 'nice still has PersistentVolumeClaim default/data, Namespace extra, which web no longer has';
  for (const { render } of [plan, status])
    assert.match(render(after, { options: {} } as never, undefined as never), line);
});

test('prune: None leaves objects, and names them until a content with Auto deletes them', async () => {
  await using scene = await openFleetScene(['nice']);
  await scene.fleet([addon('web', { prune: 'None' })]);
  await write(scene, ...maps('a', 'b', 'c'));
  await scene.apply();
  await write(scene, ...maps('a', 'c'));
  await scene.apply();
  assert.is(await mapsOn(scene, 'nice'), 'a b c');
  await scene.fleet([addon('web')]);
  const { targets } = await scene.apply();
  // Objects go only with another content.
  assert.equal([statesIn(await scene.plan()), targets[0]?.left], [['nice Succeeded none'], ['ConfigMap default/b']]);
  await write(scene, ...maps('a'), named('Secret', 'd'));
  await scene.apply();
  assert.is(await mapsOn(scene, 'nice'), 'a');
});

test('a content that loses all objects, or most of ten, changes nothing before it is approved', async () => {
  for (const [first, next] of [
    [maps('a', 'b'), maps('c')],
    [counted(1, 10), counted(7, 10)],
  ] as const) {
    await using scene = await openFleetScene(['nice']);
    await scene.fleet([addon('web')]);
    await write(scene, ...first);
    await scene.apply();
    const before = await mapsOn(scene, 'nice');
    await write(scene, ...next);
    const planned = await scene.plan();
    assert.equal(statesIn(planned), ['nice ToApply wait Deletions']);
    const lost = first.length - next.filter((one) => JSON.stringify(first).includes(JSON.stringify(one))).length;
    assert.match(
      planned.targets[0]?.message ?? '',
      `it would delete ${lost} of its ${first.length} objects: ConfigMap`,
    );
    assert.equal(doneIn(await scene.apply()), ['nice web update asks']);
    assert.equal(doneIn(await scene.apply()), []);
    assert.equal(statesIn(await scene.plan()), ['nice Skipped wait Deletions']);
    assert.is(await mapsOn(scene, 'nice'), before);
    await approveAddon({ addon: 'web', files: ['fleet.yaml'], deletions: true }, scene.context);
    assert.equal(statesIn(await scene.plan()), ['nice ToApply update']);
    assert.equal(doneIn(await scene.apply()), ['nice web update done']);
    assert.equal(statesIn(await scene.plan()), ['nice Succeeded none']);
    assert.not.match(await mapsOn(scene, 'nice'), /\ba\b|\bm1\b/);
  }
});

test('an approval that was given before holds for that content only, and half of ten needs none', async () => {
  await using scene = await openFleetScene(['nice']);
  await scene.fleet([addon('web')]);
  await write(scene, ...counted(1, 10));
  await scene.apply();
  await write(scene, ...counted(6, 10));
  assert.equal(doneIn(await scene.apply()), ['nice web update done']);
  await write(scene, ...maps('x'));
  await approveAddon({ addon: 'web', files: ['fleet.yaml'], deletions: true }, scene.context);
  assert.equal(doneIn(await scene.apply()), ['nice web update done']);
  await write(scene, ...maps('y'));
  assert.equal(doneIn(await scene.apply()), ['nice web update asks']);
  const [waiting] = (await scene.plan()).targets;
  assert.match(waiting?.message ?? '', 'was for another content: approve again');
});

test('a mandatory group that waits for the approval of deletions holds the others', async () => {
  await using scene = await openFleetScene(['nice', 'paris']);
  await scene.fleet([canaryAddon()], { nice: { canary: 'true' } });
  await write(scene, ...maps('a'));
  await scene.apply();
  await scene.apply();
  await write(scene, ...maps('b'));
  await scene.apply();
  await scene.apply();
  assert.equal(statesIn(await scene.plan()), ['nice Skipped wait Deletions', 'paris ToApply wait Unproven']);
});

test('going back to what was good before needs no approval', async () => {
  await using scene = await openFleetScene(['nice']);
  await scene.fleet([addon('web', { rollout: { type: 'Progressive', onFailure: 'Rollback' } })]);
  await write(scene, ...maps('a'));
  await scene.apply();
  const pod = { ...named('Pod', 'broken'), spec: { containers: [] }, status: { phase: 'Failed' } };
  await write(scene, ...maps('a'), ...counted(1, 12), pod);
  await scene.apply({ wait: 500 });
  assert.equal(doneIn(await scene.apply()), ['nice web go back done']);
  assert.is(await mapsOn(scene, 'nice'), 'a');
});

test.run();
