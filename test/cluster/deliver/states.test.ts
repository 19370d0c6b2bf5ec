/** The states of an add-on on a cluster: what is recorded when, whatever it is made from, and how the next pass goes on. */
import { at, textAt } from '../../support/api-client.ts';
import { StatusError } from '../../support/api-server/store.ts';
import * as assert from '../../support/assert.ts';
import {
  configMap,
  deployment,
  failures,
  HEALTHY,
  MAPS,
  openScene,
  outcomes,
  type Scene,
} from '../../support/delivery-scene.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cluster/deliver/states', { timeoutMs: 60_000 });
const NEVER = '/apis/apps/v1/namespaces/default/deployments/never';

/** Writes version `version` of the add-on web with these objects. */
type Publish = (scene: Scene, version: string, objects: readonly object[], more?: object) => Promise<void>;

const SOURCES: Readonly<Record<'manifest' | 'chart', Publish>> = {
  manifest: async (scene, version, objects, more = {}) => {
    await scene.write(`web-${version}.yaml`, ...objects);
    await scene.channel({ name: 'web', version, manifest: `web-${version}.yaml`, prune: 'auto', ...more });
  },
  chart: async (scene, version, objects, more = {}) => {
    await scene.write(`web-${version}.tgz`, objects);
    await scene.channel({ name: 'web', version, chart: { package: `web-${version}.tgz` }, ...more });
  },
};

/** State, version that is begun, version that is applied, and names of the objects. */
async function recorded(scene: Scene): Promise<readonly unknown[] | undefined> {
  const record = await scene.record('web');
  if (record === undefined) return undefined;
  const kinds = (record['objects'] ?? []) as readonly { readonly objects: readonly { readonly name: string }[] }[];
  const names = kinds.flatMap(({ objects }) => objects.map(({ name }) => name)).toSorted();
  return [record['state'], at(record, 'desired.version'), at(record, 'applied.version'), names.join(' ')];
}

async function annotation(scene: Scene): Promise<unknown> {
  const { body } = await scene.api.get('/api/v1/namespaces/default');
  const annotations = at(body, 'metadata.annotations') as Readonly<Record<string, string>> | undefined;
  const text = annotations?.['addons.k8s.io/web'];
  return text === undefined ? undefined : (JSON.parse(text) as { readonly version: string }).version;
}

/** Refuses these requests. */
function refuse(scene: Scene, pattern: RegExp): void {
  scene.before((request) => {
    if (pattern.test(request)) throw new StatusError(403, 'Forbidden', 'not now');
  });
}

for (const [source, publish] of Object.entries(SOURCES)) {
  test(`a ${source} is recorded when it is begun, and as applied when it is healthy`, async () => {
    await using scene = await openScene();
    await publish(scene, '1.0.0', [configMap('page'), deployment('never')]);
    assert.equal(outcomes(await scene.apply({ timeout: 300 })), ['web install failed']);
    assert.equal(await recorded(scene), ['Failed', '1.0.0', undefined, 'never page']);
    assert.match(
      textAt(await scene.record('web'), 'reason'),
      /^Deployment default\/never is not healthy after \d+ s: its controller has not seen it yet/,
    );
    assert.is(await annotation(scene), undefined);
    await scene.api.merge(`${NEVER}/status`, HEALTHY);
    assert.equal(outcomes(await scene.apply()), ['web install applied']);
    assert.equal(await recorded(scene), ['Succeeded', '1.0.0', '1.0.0', 'never page']);
    assert.is(await annotation(scene), '1.0.0');
    const before = scene.requests.length;
    assert.equal(outcomes(await scene.apply()), ['web none unchanged']);
    const written = scene.requests.slice(before).filter((one) => !one.startsWith('GET '));
    assert.equal(written, []);
  });

  test(`a pass over a ${source} that is killed after its record and before its objects is continued`, async () => {
    await using scene = await openScene();
    await publish(scene, '1.0.0', [configMap('page')]);
    await scene.applyUntil(source === 'chart' ? /^PATCH .*\/secrets\// : /^PATCH .*\/configmaps\/page/);
    assert.equal((await recorded(scene))?.slice(0, 3), ['Progressing', '1.0.0', undefined]);
    assert.equal([(await scene.api.get(`${MAPS}/page`)).status, await annotation(scene)], [404, undefined]);
    assert.equal(outcomes(await scene.apply()), ['web install applied']);
    assert.equal(await recorded(scene), ['Succeeded', '1.0.0', '1.0.0', 'page']);
  });

  test(`a pass over a ${source} that is killed after its objects is finished by the next one`, async () => {
    await using scene = await openScene();
    await publish(scene, '1.0.0', [configMap('page')]);
    await scene.applyUntil(/^PATCH .*\/namespaces\/default\?/);
    assert.equal(await recorded(scene), ['Succeeded', '1.0.0', '1.0.0', 'page']);
    assert.is(await annotation(scene), undefined);
    assert.equal(outcomes(await scene.apply()), ['web install applied']);
    assert.is(await annotation(scene), '1.0.0');
  });

  test(`an update of a ${source} that fails keeps what is applied, and records what it began`, async () => {
    await using scene = await openScene();
    await publish(scene, '1.0.0', [configMap('page', { a: '1' })]);
    await scene.apply();
    await publish(scene, '2.0.0', [configMap('page', { a: '2' }), deployment('never')]);
    assert.equal(outcomes(await scene.apply({ timeout: 300 })), ['web update failed']);
    assert.equal(await recorded(scene), ['Failed', '2.0.0', '1.0.0', 'never page']);
    assert.is(await annotation(scene), '1.0.0');
    const [status] = await scene.status();
    assert.equal([status?.state, status?.installed?.version, status?.changed], ['Failed', '1.0.0', []]);
    await scene.api.merge(`${NEVER}/status`, HEALTHY);
    assert.equal(outcomes(await scene.apply()), ['web update applied']);
    assert.equal(await recorded(scene), ['Succeeded', '2.0.0', '2.0.0', 'never page']);
    assert.is(at(await scene.record('web'), 'history.0.revision.version'), '1.0.0');
  });

  test(`an object of a ${source} that somebody deleted comes back; one that somebody changed is as drift says`, async () => {
    await using scene = await openScene();
    const objects = [configMap('page', { a: '1' }), configMap('style')];
    await publish(scene, '1.0.0', objects);
    await scene.apply();
    await scene.api.remove(`${MAPS}/style`);
    assert.equal(outcomes(await scene.apply()), ['web restore applied']);
    await scene.api.merge(`${MAPS}/page`, { data: { a: '2' } }, 'jane');
    const [shown] = (await scene.apply()).addons;
    assert.equal([shown?.state, shown?.drift.map(({ object }) => object)], ['unchanged', ['ConfigMap default/page']]);
    await publish(scene, '1.0.0', objects, { drift: 'Revert' });
    assert.equal(outcomes(await scene.apply()), ['web revert applied']);
    assert.is(at((await scene.api.get(`${MAPS}/page`)).body, 'data.a'), '1');
    assert.equal(await recorded(scene), ['Succeeded', '1.0.0', '1.0.0', 'page style']);
  });
}

for (const [source, publish] of Object.entries(SOURCES)) {
  test(`a failure before anything of a ${source} is in the cluster leaves no record`, async () => {
    await using scene = await openScene();
    await publish(scene, '1.0.0', [configMap('page')]);
    refuse(scene, /^PATCH .*\/configmaps\/page/);
    scene.helm.before((command) => {
      if (command === 'upgrade web') throw new Error('values do not fit the schema: not now');
    });
    assert.match(failures(await scene.apply())[0] ?? '', /^cannot apply .* not now/);
    assert.is(await recorded(scene), undefined);
    scene.before(undefined);
    scene.helm.before(undefined);
    assert.equal(outcomes(await scene.apply()), ['web install applied']);
  });
}

test('a removal of a chart reports what stays and why, and forgets the release', async () => {
  await using scene = await openScene();
  const kept = configMap('kept', {}, { annotations: { 'helm.sh/resource-policy': 'keep' } });
  await SOURCES.chart(scene, '1.0.0', [configMap('page'), kept, configMap('other')]);
  await scene.apply();
  await scene.api.merge(`${MAPS}/other`, { metadata: { annotations: { 'meta.helm.sh/release-name': 'db' } } });
  const { isDone, objects, orphans } = await scene.remove('web');
  assert.equal([isDone, objects], [true, ['ConfigMap default/page']]);
  assert.equal(orphans, [
    { object: 'ConfigMap default/other', why: 'it no longer belongs to the release default/web' },
    { object: 'ConfigMap default/kept', why: 'its chart keeps it (helm.sh/resource-policy)' },
  ]);
  assert.equal([await recorded(scene), await annotation(scene)], [undefined, undefined]);
});

test('a removal of a chart keeps its record until what a finalizer holds, or helm has missed, is gone', async () => {
  await using scene = await openScene();
  const held = configMap('held', {}, { finalizers: ['example.com/wait'] });
  await SOURCES.chart(scene, '1.0.0', [held, configMap('missed')]);
  await scene.apply();
  refuse(scene, /^DELETE .*\/configmaps\/missed/);
  const messages = async (): Promise<readonly string[]> => {
    const { isDone, errors } = await scene.remove('web', { timeout: 300 });
    assert.is(isDone, errors.length === 0);
    return errors.map(({ message }) => message).toSorted();
  };
  assert.equal(await messages(), [
    'ConfigMap default/held is still being deleted (finalizers example.com/wait)',
    'ConfigMap default/missed is still there: helm has not deleted it',
  ]);
  assert.equal((await recorded(scene))?.[0], 'Succeeded');
  scene.before(undefined);
  await scene.api.merge(`${MAPS}/held`, { metadata: { finalizers: [] } });
  await scene.api.remove(`${MAPS}/missed`);
  assert.equal([await messages(), await recorded(scene)], [[], undefined]);
});

test('an add-on that failed and has left its channel since is named, with the reason, until it is removed', async () => {
  await using scene = await openScene();
  await SOURCES.manifest(scene, '1.0.0', [configMap('page'), deployment('never')]);
  await scene.apply({ timeout: 300 });
  await scene.write('other.yaml', configMap('other'));
  await scene.channel({ name: 'other', manifest: 'other.yaml' });
  const [unlisted] = (await scene.apply()).unlisted;
  assert.equal([unlisted?.addon, unlisted?.current], ['web', '1.0.0']);
  assert.match(
    unlisted?.reason ?? '',
    /^the channel no longer has it; its last apply failed: Deployment .* is not healthy/,
  );
  assert.equal(
    (await scene.status()).map(({ addon, state }) => `${addon} ${state}`),
    ['other Succeeded', 'web Failed'],
  );
  assert.ok((await scene.remove('web')).isDone);
  assert.equal((await scene.apply()).unlisted, []);
});

for (const [from, to] of [
  ['manifest', 'chart'],
  ['chart', 'manifest'],
] as const) {
  test(`a ${from} does not become a ${to} by itself: it is refused, and stays as it is`, async () => {
    await using scene = await openScene();
    await SOURCES[from](scene, '1.0.0', [configMap('page', { a: '1' })]);
    await scene.apply();
    const before = scene.requests.length;
    await SOURCES[to](scene, '2.0.0', [configMap('page', { a: '2' })]);
    for (const { addons } of [await scene.plan(), await scene.apply({ takeOver: ['web'] })]) {
      const [{ state, errors } = { state: undefined, errors: [] }] = addons;
      assert.is(state, 'refused');
      assert.match(errors[0]?.message ?? '', /^cannot apply web 2\.0\.0: it is installed as .*, and would become /);
      assert.match(errors[0]?.hint ?? '', /^back up its data, then curlew channel remove web/);
    }
    const written = scene.requests.slice(before).filter((one) => !one.startsWith('GET '));
    assert.equal(written, []);
    await SOURCES[from](scene, '1.0.0', [configMap('page', { a: '1' })]);
    assert.equal(outcomes(await scene.apply()), ['web none unchanged']);
    assert.ok((await scene.remove('web')).isDone);
    await SOURCES[to](scene, '2.0.0', [configMap('page', { a: '2' })]);
    assert.equal(outcomes(await scene.apply()), ['web install applied']);
  });
}

test('one of two objects that fails does not stop the other, and the next pass applies both', async () => {
  await using scene = await openScene();
  await SOURCES.manifest(scene, '1.0.0', [configMap('page'), configMap('style')]);
  refuse(scene, /^PATCH .*\/configmaps\/page/);
  assert.equal(outcomes(await scene.apply()), ['web install failed']);
  assert.equal(await recorded(scene), ['Failed', '1.0.0', undefined, 'page style']);
  scene.before(undefined);
  assert.equal(outcomes(await scene.apply()), ['web install applied']);
});

test('what cannot be pruned fails the update, and is pruned by the next pass', async () => {
  await using scene = await openScene();
  await SOURCES.manifest(scene, '1.0.0', [configMap('page'), configMap('old')]);
  await scene.apply();
  await SOURCES.manifest(scene, '2.0.0', [configMap('page')]);
  refuse(scene, /^DELETE .*\/configmaps\/old/);
  assert.equal(outcomes(await scene.apply()), ['web update failed']);
  assert.equal(await recorded(scene), ['Failed', '2.0.0', '1.0.0', 'old page']);
  scene.before(undefined);
  assert.equal(outcomes(await scene.apply()), ['web update applied']);
  assert.equal(await recorded(scene), ['Succeeded', '2.0.0', '2.0.0', 'page']);
  assert.is((await scene.api.get(`${MAPS}/old`)).status, 404);
});

test('a conflict of fields changes nothing of the add-on, is recorded, and goes as drift or an option says', async () => {
  await using scene = await openScene();
  await SOURCES.manifest(scene, '1.0.0', [configMap('page', { a: '1' }), configMap('style', { b: '1' })]);
  await scene.apply();
  await scene.api.merge(`${MAPS}/page`, { data: { a: '2' } }, 'jane');
  const next = [configMap('page', { a: '3' }), configMap('style', { b: '3' })];
  await SOURCES.manifest(scene, '2.0.0', next);
  assert.equal(failures(await scene.apply()), ['cannot apply ConfigMap default/page: .data.a belongs to jane']);
  assert.equal((await recorded(scene))?.[0], 'Failed');
  assert.is(at((await scene.api.get(`${MAPS}/style`)).body, 'data.b'), '1');
  await SOURCES.manifest(scene, '2.0.0', next, { drift: 'Keep' });
  assert.equal(outcomes(await scene.apply()), ['web update applied']);
  assert.is(at((await scene.api.get(`${MAPS}/page`)).body, 'data.a'), '2');
  await SOURCES.manifest(scene, '3.0.0', next);
  assert.equal(outcomes(await scene.apply({ forceConflicts: true })), ['web update applied']);
  assert.is(at((await scene.api.get(`${MAPS}/page`)).body, 'data.a'), '3');
});

test.run();
