/** Add-ons of channels on the API server of the tests: what passes apply, keep, restore and refuse. */
import { at } from '../support/api-client.ts';
import * as assert from '../support/assert.ts';
import { configMap, deployment, HEALTHY, MAPS, openScene, outcomes } from '../support/delivery-scene.ts';
import { suite } from '../support/suite.ts';

const test = suite('app/channel-apply');

test('a plan changes nothing; a pass applies, and the next one writes nothing', async () => {
  await using scene = await openScene();
  await scene.write('web.yaml', configMap('page', { a: '1' }), configMap('style'));
  await scene.channel({ name: 'web', manifest: 'web.yaml' });
  assert.equal(outcomes(await scene.plan()), ['web install planned']);
  assert.is((await scene.api.get(`${MAPS}/page`)).status, 404);
  assert.equal(outcomes(await scene.apply()), ['web install applied']);
  assert.is(at((await scene.api.get(`${MAPS}/page`)).body, 'data.a'), '1');
  const before = scene.requests.length;
  assert.equal(outcomes(await scene.plan()), ['web none unchanged']);
  assert.equal(
    scene.requests.slice(before).filter((one) => !one.startsWith('GET ')),
    [],
  );
});

test('a new version changes what differs, drops fields that it no longer has, and prunes only on request', async () => {
  await using scene = await openScene();
  await scene.write('v1.yaml', configMap('page', { a: '1', b: '1' }), configMap('old'));
  await scene.write('v2.yaml', configMap('page', { a: '2' }));
  await scene.channel({ name: 'web', manifest: 'v1.yaml' });
  await scene.apply();
  await scene.channel({ name: 'web', version: '1.1.0', manifest: 'v2.yaml' });
  const [plan] = (await scene.plan()).addons;
  assert.equal(
    plan?.objects.flatMap(({ fields }) => fields.map(({ field }) => field)),
    ['.data.a', '.data.b'],
  );
  assert.equal(
    (await scene.apply()).addons[0]?.orphans.map(({ object }) => object),
    ['ConfigMap default/old'],
  );
  assert.equal(at((await scene.api.get(`${MAPS}/page`)).body, 'data'), { a: '2' });
  await scene.channel({ name: 'web', version: '1.2.0', manifest: 'v2.yaml', prune: 'auto' });
  await scene.apply();
  assert.is((await scene.api.get(`${MAPS}/old`)).status, 404);
});

test('what somebody deleted comes back, and what somebody changed is a conflict that names them', async () => {
  await using scene = await openScene();
  await scene.write('v1.yaml', configMap('page', { a: '1' }), configMap('style'));
  await scene.write('v2.yaml', configMap('page', { a: '3' }), configMap('style'));
  await scene.channel({ name: 'web', manifest: 'v1.yaml' });
  await scene.apply();
  await scene.api.remove(`${MAPS}/style`);
  assert.equal(outcomes(await scene.apply()), ['web restore applied']);
  await scene.api.merge(`${MAPS}/page`, { data: { a: '2' } }, 'jane');
  await scene.channel({ name: 'web', version: '1.1.0', manifest: 'v2.yaml' });
  const [failed] = (await scene.apply()).addons;
  assert.equal(
    [failed?.state, failed?.errors[0]?.message],
    ['failed', 'cannot apply ConfigMap default/page: .data.a belongs to jane'],
  );
  assert.equal(outcomes(await scene.apply({ forceConflicts: true })), ['web update applied']);
});

test('what others put into a map that the manifest leaves empty stays, and is no change', async () => {
  await using scene = await openScene();
  await scene.write('web.yaml', configMap('page'), configMap('style', { a: '1' }));
  await scene.channel({ name: 'web', manifest: 'web.yaml', drift: 'Revert' });
  await scene.apply();
  for (const [index, data] of [{ x: '1' }, { y: '1' }, { x: null, y: null }].entries()) {
    await scene.api.merge(`${MAPS}/page`, { data }, 'jane');
    assert.equal(outcomes(await scene.apply()), ['web none unchanged']);
    // Takes the map itself again, and leaves its keys.
    await scene.channel({ name: 'web', manifest: 'web.yaml', drift: 'Revert', version: `1.1.${index}` });
    assert.equal(outcomes(await scene.apply()), ['web update applied']);
  }
  await scene.api.merge(`${MAPS}/style`, { data: { a: '2' } }, 'jane');
  assert.equal(outcomes(await scene.apply()), ['web revert applied']);
});

test('an add-on that does not become healthy fails, and those that require it are skipped', async () => {
  await using scene = await openScene();
  await scene.write('dash.yaml', deployment('dash'));
  await scene.write('page.yaml', configMap('page'));
  const page = { name: 'page', manifest: 'page.yaml', requires: [{ name: 'dash' }] };
  await scene.channel({ name: 'dash', manifest: 'dash.yaml' }, page);
  assert.equal(outcomes(await scene.apply({ timeout: 300 })), ['dash install failed', 'page install skipped']);
  await scene.api.merge('/apis/apps/v1/namespaces/default/deployments/dash/status', HEALTHY);
  assert.equal(outcomes(await scene.apply()), ['dash install applied', 'page install applied']);
});

test.run();
