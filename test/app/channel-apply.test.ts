/** Add-ons of channels on the API server of the tests: what passes apply, keep, restore and refuse. */
import { writeFile } from 'node:fs/promises';
import { at } from '../support/api-client.ts';
import * as assert from '../support/assert.ts';
import {
  configMap,
  deployment,
  failures,
  HEALTHY,
  MAPS,
  openScene,
  outcomes,
  type Scene,
} from '../support/delivery-scene.ts';
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
  assert.equal([plan?.current, plan?.wanted, plan?.reason], ['1.0.0', '1.1.0', 'a newer version']);
  assert.equal(plan?.objects[0]?.fields, [
    { field: '.data.a', before: '"1"', after: '"2"' },
    { field: '.data.b', before: '"1"', after: undefined },
  ]);
  assert.equal(
    (await scene.apply()).addons[0]?.orphans.map(({ object }) => object),
    ['ConfigMap default/old'],
  );
  assert.is((await scene.api.get(`${MAPS}/old`)).status, 200);
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

test('prune auto deletes what the new version no longer has, and nothing of another owner', async () => {
  await using scene = await openScene();
  const space = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'extra' } };
  const metadata = { name: 'old', namespace: 'default' };
  const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata, rules: [] };
  const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'data', namespace: 'default' } };
  await scene.write('v1.yaml', space, ...['page', 'old', 'given'].map((name) => configMap(name)), role, claim);
  await scene.write('v2.yaml', configMap('page'));
  await scene.channel({ name: 'web', manifest: 'v1.yaml', prune: 'auto' });
  await scene.apply();
  // Labels are copied, as by the controller of Endpoints; and an object may have got an owner.
  const copy = await scene.api.create(
    MAPS,
    configMap('copy', {}, { labels: { 'fleet.curlew.dev/addon': 'default.web' } }),
  );
  const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'copy', uid: at(copy.body, 'metadata.uid') };
  await scene.api.merge(`${MAPS}/given`, { metadata: { ownerReferences: [owner] } });
  await scene.channel({ name: 'web', manifest: 'v2.yaml', version: '1.1.0', prune: 'auto' });
  for (const pass of [await scene.plan(), await scene.apply()]) {
    assert.equal(
      pass.addons[0]?.objects.map(({ object, change }) => `${change} ${object}`),
      ['delete ConfigMap default/old', 'delete Role default/old'],
    );
    assert.equal(pass.addons[0]?.orphans, [
      { object: 'PersistentVolumeClaim default/data', why: 'kubectl delete deletes it, with its data' },
      { object: 'ConfigMap default/copy', why: 'it has the label of this add-on, and the record does not name it' },
      { object: 'ConfigMap default/given', why: 'it is deleted with its owner, ConfigMap copy' },
      { object: 'Namespace extra', why: '--prune-namespaces deletes it, with all that is in it' },
    ]);
  }
  const left = async (name: string): Promise<number> => (await scene.api.get(`${MAPS}/${name}`)).status;
  assert.equal(await Promise.all(['copy', 'given', 'page', 'old'].map(left)), [200, 200, 200, 404]);
});

test('what Kubernetes would delete with an owner of another program is not taken over by the native rules, and nothing changes', async () => {
  await using scene = await openScene();
  const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'boss', uid: 'b1' };
  const work = {
    apiVersion: 'work.open-cluster-management.io/v1',
    kind: 'AppliedManifestWork',
    name: 'h-web',
    uid: 'w1',
  };
  await scene.api.create(MAPS, configMap('page', { a: '0' }, { ownerReferences: [work] }));
  await scene.api.create(MAPS, configMap('style', {}, { ownerReferences: [owner, work] }));
  const objects = [configMap('first'), configMap('page', { a: '1' }), configMap('style')];
  await scene.write('web.yaml', ...objects);
  await scene.channel({ name: 'web', manifest: 'web.yaml', drift: 'Revert' });
  const before = scene.requests.length;
  const start = 'cannot apply ConfigMap default/page of default.web: Kubernetes deletes it with its owner';
  const why = `${start}, AppliedManifestWork h-web: set spec.deleteOption.propagationPolicy of its ManifestWork to Orphan, and delete that`;
  const other = /default\/style .*owner, ConfigMap boss: remove the owner from its metadata\.ownerReferences, or leave/;
  for (const pass of [await scene.plan(), await scene.apply({ takeOver: ['web'], forceConflicts: true })]) {
    const [first, second] = pass.addons[0]?.errors ?? [];
    assert.is(first?.message, why);
    assert.match(second?.message ?? '', other);
  }
  const written = scene.requests
    .slice(before)
    .filter((one) => /^(?!GET).*configmaps\/(?!curlew)(?!.*dryRun)/.test(one));
  assert.equal([written, (await scene.api.get(`${MAPS}/first`)).status], [[], 404]);

  // An owner that the manifest names, or that is of the add-on itself, is meant.
  await scene.api.merge(`${MAPS}/page`, { metadata: { ownerReferences: [owner] } });
  await scene.write(
    'web.yaml',
    configMap('boss'),
    configMap('page', { a: '1' }),
    configMap('style', {}, { ownerReferences: [work] }),
  );
  assert.equal(outcomes(await scene.apply()), ['web install applied']);
  // A controller may give an owner to what the add-on has.
  await scene.api.merge(`${MAPS}/page`, { metadata: { ownerReferences: [work] } });
  await scene.write(
    'web.yaml',
    configMap('boss'),
    configMap('page', { a: '2' }),
    configMap('style', {}, { ownerReferences: [work] }),
  );
  await scene.channel({ name: 'web', version: '1.1.0', manifest: 'web.yaml' });
  assert.equal(outcomes(await scene.apply()), ['web update applied']);
  const removal = await scene.remove('web');
  const stays = { object: 'ConfigMap default/page', why: 'it is deleted with its owner, AppliedManifestWork h-web' };
  assert.ok(removal.orphans.some(({ object, why: reason }) => object === stays.object && reason === stays.why));
});

test('by the rules of kops, an object with an owner is applied as kops does', async () => {
  await using scene = await openScene();
  const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'boss', uid: 'b1' };
  await scene.api.create(MAPS, configMap('page', { a: '0' }, { ownerReferences: [owner] }));
  await scene.write('web.yaml', configMap('page', { a: '1' }));
  const entry = { name: 'web', namespace: 'default', id: 'x', manifest: 'web.yaml' };
  const index = { kind: 'Addons', metadata: { name: 'x' }, spec: { addons: [entry] } };
  await writeFile(scene.box.at('index.yaml'), JSON.stringify(index));
  assert.equal(outcomes(await scene.apply({ channels: ['index.yaml'], compat: 'kops' })), ['web install applied']);
  assert.is(at((await scene.api.get(`${MAPS}/page`)).body, 'data.a'), '1');
});

test('a change by somebody is shown with its fields, and hidden by drift: Keep', async () => {
  await using scene = await openScene();
  await scene.write('web.yaml', configMap('page', { a: '1' }));
  await scene.channel({ name: 'web', manifest: 'web.yaml' });
  await scene.apply();
  await scene.api.merge(`${MAPS}/page`, { data: { a: '2' } }, 'jane');
  const fields = [{ field: '.data.a', before: '"2"', after: '"1"' }];
  const drift = async (): Promise<unknown> => (await scene.plan()).addons.map((one) => [one.state, one.drift]);
  assert.equal(await drift(), [['unchanged', [{ object: 'ConfigMap default/page', change: 'change', fields }]]]);
  await scene.channel({ name: 'web', manifest: 'web.yaml', drift: 'Keep' });
  assert.equal(await drift(), [['unchanged', []]]);
});

test('namespaces come with add-ons of the same pass; one that is being deleted is named', async () => {
  await using scene = await openScene();
  await scene.write('a.yaml', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'fresh' } });
  await scene.write('b.yaml', configMap('b', {}, { namespace: 'fresh' }));
  const entry = { name: 'bbb', manifest: 'b.yaml', namespace: 'fresh', requires: [{ name: 'aaa' }] };
  await scene.channel({ name: 'aaa', manifest: 'a.yaml' }, entry);
  assert.equal(outcomes(await scene.plan()), ['aaa install planned', 'bbb install planned']);
  assert.equal(outcomes(await scene.apply()), ['aaa install applied', 'bbb install applied']);
  await scene.api.create('/api/v1/namespaces', { metadata: { name: 'ending', finalizers: ['example.com/held'] } });
  await scene.api.remove('/api/v1/namespaces/ending');
  await scene.write('b.yaml', configMap('b', {}, { namespace: 'ending' }));
  await scene.channel({ name: 'ccc', manifest: 'b.yaml', namespace: 'ending' });
  const [plan] = (await scene.plan()).addons;
  assert.is(plan?.state, 'failed');
  assert.match(plan?.errors[0]?.hint ?? '', /^wait until the namespace is deleted/);
});

test('a record in another namespace does not count, and one that cannot be read is a warning', async () => {
  await using scene = await openScene();
  await scene.write('a.yaml', configMap('page'));
  for (const [namespace, text] of [
    ['kube-public', '{"version":"1.0.0"}'],
    ['default', '{broken'],
  ] as const) {
    const annotations = { 'addons.k8s.io/web': text };
    await scene.api.merge(`/api/v1/namespaces/${namespace}`, { metadata: { annotations } });
  }
  await scene.channel({ name: 'web', manifest: 'a.yaml' });
  const pass = await scene.apply();
  assert.equal(outcomes(pass), ['web install applied']);
  assert.match(pass.warnings.join('\n'), 'annotation addons.k8s.io/web of namespace default cannot be read');
});

/** A channel of one add-on with a ConfigMap, both of this name. */
async function writeChannel(scene: Scene, name: string): Promise<void> {
  const addons = [{ name, namespace: 'default', version: '1', manifest: `${name}-map.yaml` }];
  const header = { apiVersion: 'fleet.curlew.dev/v1alpha1', kind: 'Channel', metadata: { name } };
  await scene.write(`${name}-map.yaml`, configMap(name));
  await scene.write(`${name}.yaml`, { ...header, spec: { addons } });
}

test('a channel that cannot be read does not stop the others, and one with only comments has no add-ons', async () => {
  await using scene = await openScene();
  for (const name of ['one', 'two']) await writeChannel(scene, name);
  await writeFile(scene.box.at('broken.yaml'), 'kind: Addons\nspec: [');
  await writeFile(scene.box.at('empty.yaml'), '# only a comment\n');
  const pass = await scene.apply({ channels: ['one.yaml', 'broken.yaml', 'empty.yaml', 'two.yaml'] });
  assert.equal(outcomes(pass), ['one install applied', 'two install applied']);
  assert.equal(
    pass.errors.map(({ message }) => message.split(':')[0]),
    ['cannot use broken.yaml'],
  );
});

test('an add-on of another channel is refused until it is taken over', async () => {
  await using scene = await openScene();
  await writeChannel(scene, 'web');
  await scene.apply({ channels: ['web.yaml'] });
  await scene.channel({ name: 'web', version: '1', manifest: 'web-map.yaml' });
  assert.equal(failures(await scene.apply()), ['cannot apply web 1: it belongs to channel:web']);
  assert.equal(outcomes(await scene.plan()), ['web refused refused']);
  assert.equal(outcomes(await scene.apply({ takeOver: true })), ['web update applied']);
  assert.equal(outcomes(await scene.apply()), ['web none unchanged']);
});

test('add-ons are applied in the order of their requirements, and not without what they require', async () => {
  await using scene = await openScene();
  await scene.write('a.yaml', configMap('a'));
  await scene.write('b.yaml', configMap('b'));
  const needs = { name: 'bbb', version: '1', manifest: 'b.yaml', requires: [{ name: 'aaa', version: '>=1.1.0' }] };
  await scene.channel(needs, { name: 'aaa', version: '1.0.0', manifest: 'a.yaml' });
  const pass = await scene.apply();
  assert.equal(outcomes(pass), ['aaa install applied', 'bbb install skipped']);
  const why = 'cannot apply bbb 1: it requires aaa >=1.1.0, which is 1.0.0 in namespace default';
  assert.equal(failures(pass), [why]);
  await scene.channel(needs, { name: 'aaa', version: '1.1.0', manifest: 'a.yaml' });
  assert.equal(outcomes(await scene.apply()), ['aaa update applied', 'bbb install applied']);
});

test.run();
