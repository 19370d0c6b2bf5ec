/** Charts of channels: releases of real helm programs on a real API server. */
import { writeFile } from 'node:fs/promises';
import { digestOf } from '../../src/core/digest.ts';
import * as assert from '../support/assert.ts';
import { startRegistry } from '../support/registry-server.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { serveFiles } from '../support/web-server.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { changes, countRequests, outcomes } from './support/channel-scene.ts';
import { chartOf, chartScene, entryOf, helmsHere } from './support/chart-scene.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/channel-charts', { timeoutMs: 180_000 });
const opened = createOpened();

let server: ApiServer;
test.before(async () => {
  if (cannotRun(...API_SERVER_PROGRAMS) !== undefined) return;
  const box = opened.keep(await tree());
  server = opened.keep(await startApiServer(box.at('server')));
});
test.after(opened.close);

for (const { major, helm } of helmsHere(test, 'charts of channels')) {
  const given = { helm };

  test(`a chart is shown, installed, recorded, and left alone without running helm (helm ${major})`, async () => {
    await using scene = await chartScene(server, helm);
    const { namespace } = scene;
    await scene.channel([entryOf({ data: { minor: '{{ .Cluster.kubernetes.minor }}', who: '{{ .Addon.name }}' } })]);
    const plan = await scene.plan(given);
    assert.equal(outcomes(plan), ['web install planned']);
    assert.equal(
      plan.addons.flatMap((one) => changes(one, namespace)),
      ['+ ConfigMap page'],
    );
    assert.is(await scene.data('page'), '');

    const done = await scene.apply(given);
    assert.equal(outcomes(done), ['web install applied'], JSON.stringify(done.addons[0]?.errors));
    const minor = plan.cluster.kubernetes.split('.')[1];
    assert.equal(JSON.parse(await scene.data('page')), { minor, who: 'web' });
    const release = { name: 'web', namespace, revision: 1, status: 'deployed', chart: 'web-1.0.0' };
    assert.equal(await scene.release(), release);
    assert.is((await scene.annotation('web'))?.['version'], '1.0.0');
    const requests = await countRequests(async () =>
      assert.equal(outcomes(await scene.apply({ helm: '/no/helm' })), ['web none unchanged']),
    );
    assert.equal(
      requests.filter((one) => !one.startsWith('GET ')),
      [],
    );
  });

  test(`other values and another chart are an update, shown field by field (helm ${major})`, async () => {
    await using scene = await chartScene(server, helm);
    const { namespace, box } = scene;
    await scene.channel([entryOf({ data: { a: '1', b: '1' }, style: true })]);
    assert.equal(outcomes(await scene.apply(given)), ['web install applied']);
    await scene.channel([entryOf({ data: { a: '2' } })]);
    const [plan] = (await scene.plan(given)).addons;
    assert.is(plan?.reason, 'another chart or other values');
    assert.equal(plan?.objects, [
      {
        object: `ConfigMap ${namespace}/page`,
        change: 'change',
        fields: [
          { field: '.data.a', before: '"1"', after: '"2"' },
          { field: '.data.b', before: '"1"', after: undefined },
        ],
      },
      { object: `ConfigMap ${namespace}/style`, change: 'delete', fields: [] },
    ]);
    const [done] = (await scene.apply(given)).addons;
    assert.equal([done?.state, done?.objects], ['applied', plan?.objects]);
    assert.equal(JSON.parse(await scene.data('page')), { a: '2' });
    assert.is((await scene.release())?.revision, 2);

    await writeFile(box.at('web-1.0.0.tgz'), chartOf('1.0.1'));
    assert.equal(outcomes(await scene.apply(given)), ['web update applied']);
    assert.is((await scene.release())?.chart, 'web-1.0.1');
    assert.equal(outcomes(await scene.apply(given)), ['web none unchanged']);
  });

  test(`a chart with a namespace of its own is a release there, and is recorded for its entry (helm ${major})`, async () => {
    await using scene = await chartScene(server, helm);
    const own = `${scene.namespace}-own`;
    await scene.channel([entryOf({ data: { a: '1' } }, { namespace: own })]);
    assert.equal(outcomes(await scene.apply(given)), ['web install applied']);
    assert.is((await scene.release())?.namespace, own);
    assert.is((await scene.annotation('web'))?.['version'], '1.0.0');
    await scene.kubectl('delete', 'configmap', 'page', '-n', own);
    assert.equal(outcomes(await scene.apply(given)), ['web restore applied']);
  });

  test(`a release and objects that were deleted come back, and changes follow drift (helm ${major})`, async () => {
    await using scene = await chartScene(server, helm);
    const { namespace } = scene;
    const entry = entryOf({ data: { a: '1' }, style: true });
    await scene.channel([entry]);
    await scene.apply(given);
    await scene.kubectl('delete', 'configmap', 'style');
    assert.equal(outcomes(await scene.apply(given)), ['web restore applied']);
    assert.match(await scene.kubectl('get', 'configmap', 'style', '-o', 'name'), 'style');
    await scene.helm('uninstall', 'web');
    assert.equal(outcomes(await scene.apply(given)), ['web restore applied']);
    assert.is((await scene.release())?.revision, 1);

    await scene.kubectl('patch', 'configmap', 'page', '-p', '{"data":{"a":"2"}}');
    const [edited] = (await scene.plan(given)).addons;
    assert.equal(edited?.drift, [
      {
        object: `ConfigMap ${namespace}/page`,
        change: 'change',
        fields: [{ field: '.data.a', before: '"2"', after: '"1"' }],
      },
    ]);
    await scene.channel([{ ...entry, drift: 'Revert' }]);
    assert.equal(outcomes(await scene.apply(given)), ['web revert applied']);
    assert.equal(JSON.parse(await scene.data('page')), { a: '1' });

    await scene.channel([entry]);
    await scene.helm('upgrade', 'web', scene.box.at('web-1.0.0.tgz'), '--set', 'data.a=3', '--set', 'style=true');
    const [other] = (await scene.plan(given)).addons;
    assert.equal([other?.state, other?.drift[0]?.object], ['unchanged', `release ${namespace}/web`]);
    assert.equal(other?.drift[1]?.fields, [{ field: '.data.a', before: '"3"', after: '"1"' }]);
    assert.equal(JSON.parse(await scene.data('page')), { a: '3' });
    await scene.channel([{ ...entry, drift: 'Revert' }]);
    assert.equal(outcomes(await scene.apply(given)), ['web revert applied']);
    assert.equal(JSON.parse(await scene.data('page')), { a: '1' });
    assert.equal(outcomes(await scene.apply(given)), ['web none unchanged']);
  });

  test(`charts come from repositories and registries, and one with another hash is refused (helm ${major})`, async () => {
    await using scene = await chartScene(server, helm);
    const archive = chartOf('1.2.0');
    const hash = digestOf(archive);
    const index = `apiVersion: v1\nentries:\n  web:\n  - {apiVersion: v2, name: web, version: 1.2.0, urls: [web-1.2.0.tgz]}\n`;
    await using repository = await serveFiles({ 'index.yaml': index, 'web-1.2.0.tgz': archive });
    const blob = (data: Uint8Array | string) => ({ digest: digestOf(data), data: Buffer.from(data) });
    const [config, layer] = [blob('{"name":"web","version":"1.2.0","apiVersion":"v2"}'), blob(archive)];
    const part = ({ digest, data }: typeof layer, mediaType: string) => ({ mediaType, digest, size: data.byteLength });
    const manifestType = 'application/vnd.oci.image.manifest.v1+json';
    const manifest = blob(
      JSON.stringify({
        schemaVersion: 2,
        mediaType: manifestType,
        config: part(config, 'application/vnd.cncf.helm.config.v1+json'),
        layers: [part(layer, 'application/vnd.cncf.helm.chart.content.v1.tar+gzip')],
      }),
    );
    const mediaType = 'application/vnd.cncf.helm.chart.content.v1.tar+gzip';
    const image = { config, manifest, manifestType, layers: [{ ...layer, diffId: layer.digest, mediaType }] };
    await using registry = await startRegistry({ 'charts/web:1.2.0': image });
    const values = { data: { a: '1' } };
    const entry = { name: 'web', version: '1.2.0', hash };
    await scene.channel([{ ...entry, chart: { repoURL: repository.url, name: 'web', values } }]);
    const first = await scene.apply(given);
    assert.equal(outcomes(first), ['web install applied'], JSON.stringify(first.addons[0]?.errors));
    await scene.channel([{ ...entry, chart: { oci: `oci://${registry.host}/charts/web`, values } }]);
    const second = await scene.apply(given);
    assert.equal(outcomes(second), ['web update applied'], JSON.stringify(second.addons[0]?.errors));
    assert.is((await scene.release())?.revision, 2);
    const other = `sha256:${'0'.repeat(64)}`;
    await scene.channel([{ ...entry, hash: other, chart: { repoURL: repository.url, name: 'web', values } }]);
    assert.is(
      await scene.error(),
      `cannot use the chart of web 1.2.0: its hash is ${hash.slice(7)}, not ${'0'.repeat(64)}`,
    );
    await scene.channel([{ ...entry, chart: { repoURL: 'http://charts.example.com', name: 'web' } }]);
    assert.is(await scene.error(), 'cannot download the chart web: plain http to charts.example.com is not allowed');
  });
}

test.run();
