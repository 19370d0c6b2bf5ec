/** What releases cost: how often helm is run for them, and what is read without it. */
import { truncate, writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { textAt } from '../../support/api-client.ts';
import * as assert from '../../support/assert.ts';
import { configMap, failures, MAPS, openScene, outcomes, type Scene } from '../../support/delivery-scene.ts';
import { countedHelm, helmWithRepository } from '../../support/helm-stand-in.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cluster/deliver/releases', { timeoutMs: 60_000 });

async function publish(scene: Scene, version: string, objects: readonly object[]): Promise<void> {
  await scene.write(`web-${version}.tgz`, objects);
  await scene.channel({ name: 'web', version, chart: { package: `web-${version}.tgz` } });
}

test('helm is run once for a release, also for one that changes: what it has stored is read from the cluster', async () => {
  await using scene = await openScene();
  const { program: helm, runs } = await countedHelm(scene.helm.program, scene.box);
  await publish(scene, '1.0.0', [configMap('page', { a: '1' }), configMap('style')]);
  assert.equal(outcomes(await scene.apply({ helm })), ['web install applied']);
  assert.equal(await runs(), ['version', 'upgrade']);
  await publish(scene, '2.0.0', [configMap('page', { a: '2' })]);
  const [done] = (await scene.apply({ helm })).addons;
  assert.equal(done?.objects, [
    { object: 'ConfigMap default/page', change: 'change', fields: [{ field: '.data.a', before: '"1"', after: '"2"' }] },
    { object: 'ConfigMap default/style', change: 'delete', fields: [] },
  ]);
  // Each pass asks again: the program may be another one.
  assert.equal(await runs(), ['version', 'upgrade', 'version', 'upgrade']);
  // Which revisions there are: before and after each run.
  assert.is(scene.requests.filter((one) => one.includes('owner%3Dhelm%2Cname%3Dweb')).length, 4);
  const [status] = await scene.status();
  assert.equal(status?.release, {
    name: 'web',
    namespace: 'default',
    revision: 2,
    status: 'deployed',
    chart: 'web-1.0.0',
  });
});

test('a pass downloads a chart once for all its releases; the next pass asks the repository again', async () => {
  await using scene = await openScene();
  const repository = await helmWithRepository(scene.helm, scene.box, [configMap('page', { a: '1' })]);
  const { program: helm, runs } = await countedHelm(repository.program, scene.box);
  const chart = { repoURL: 'https://charts.example.com', name: 'page', version: '1.0.0', namespace: 'default' };
  const entry = (name: string): object => ({ name, chart: { ...chart, releaseName: name } });
  const pulls = async (): Promise<number> => (await runs()).filter((one) => one === 'pull').length;
  await scene.channel(entry('web'), entry('site'));
  assert.equal(outcomes(await scene.apply({ helm })), ['web install applied', 'site install applied']);
  assert.is(await pulls(), 1);
  await writeFile(repository.chart, JSON.stringify([configMap('page', { a: '2' })]));
  await scene.channel(entry('web'), entry('site'), entry('shop'));
  await scene.apply({ helm });
  assert.is(await pulls(), 2);
  assert.is(textAt((await scene.api.get(`${MAPS}/page`)).body, 'data.a'), '2');
});

test('a release that another helm finishes while a pass prepares is not recovered; one that was left under way is', async () => {
  await using scene = await openScene();
  const becomes = async (revision: number, status: string): Promise<void> => {
    const secret = `/api/v1/namespaces/default/secrets/sh.helm.release.v1.web.v${revision}`;
    assert.is((await scene.api.merge(secret, { metadata: { labels: { status } } })).status, 200);
  };
  await publish(scene, '1.0.0', [configMap('page', { a: '1' })]);
  await scene.apply();
  await becomes(1, 'pending-install');
  await publish(scene, '2.0.0', [configMap('page', { a: '2' })]);
  // The pass has seen the revision when it records what it begins.
  scene.before(async (request) => {
    if (!/^(?:PATCH|PUT) .*configmaps.curlew-addons/.test(request)) return;
    scene.before(undefined);
    await becomes(1, 'deployed');
  });
  assert.equal(outcomes(await scene.apply()), ['web update applied']);
  assert.equal(scene.helm.commands, ['upgrade web', 'upgrade web']);
  await becomes(2, 'pending-upgrade');
  await publish(scene, '3.0.0', [configMap('page', { a: '3' })]);
  assert.equal(outcomes(await scene.apply()), ['web update applied']);
  assert.equal(scene.helm.commands.slice(2), ['rollback web', 'upgrade web']);
});

test('a chart whose archive is too large is named', async () => {
  await using scene = await openScene();
  const { program, chart } = await helmWithRepository(scene.helm, scene.box, []);
  await truncate(chart, (16 << 20) + 1);
  await scene.channel({
    name: 'web',
    chart: { repoURL: 'https://charts.example.com', name: 'page', version: '1.0.0', namespace: 'default' },
  });
  assert.equal(failures(await scene.apply({ helm: program })), [
    'cannot download the chart page: its archive is larger than 16 MiB',
  ]);
});

test('a Secret of helm that has no release is named, and nothing of it is quoted', async () => {
  await using scene = await openScene();
  await publish(scene, '1.0.0', [configMap('page')]);
  await scene.apply();
  const secret = '/api/v1/namespaces/default/secrets/sh.helm.release.v1.web.v1';
  const metadata = '"chart":{"metadata":{"name":"web","version":"1.0.0"}}';
  // A few kilobytes that would take hundreds of megabytes of memory.
  const many = gzipSync(`{${metadata},"hooks":[${'{},'.repeat(500_000)}{}]}`).toString('base64');
  for (const text of ['some-secret', '', many]) {
    await scene.api.merge(secret, { data: { release: Buffer.from(text).toString('base64') } });
    await publish(scene, '2.0.0', [configMap('page', { a: '2' })]);
    assert.equal(failures(await scene.apply()), [
      'cannot read the release default/web: Secret default/sh.helm.release.v1.web.v1 has no release that can be read',
    ]);
  }
});

test.run();
