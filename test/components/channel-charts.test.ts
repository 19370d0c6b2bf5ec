/** Charts of channels: releases of real helm programs on a real API server. */
import { chmod, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { removeFromCluster } from '../../src/app/channel-remove.ts';
import { channelStatus } from '../../src/app/channel-status.ts';
import { digestOf } from '../../src/core/digest.ts';
import * as assert from '../support/assert.ts';
import { startCurlew } from '../support/curlew.ts';
import { startRegistry } from '../support/registry-server.ts';
import { suite } from '../support/suite.ts';
import { tarOf } from '../support/tar-file.ts';
import { tree } from '../support/tree.ts';
import { serveFiles } from '../support/web-server.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { changes, channelScene, countRequests, outcomes, type ChannelScene } from './support/channel-scene.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun, ROOT, run, succeeds } from './support/programs.ts';

const test = suite('components/channel-charts', { timeoutMs: 180_000 });
const opened = createOpened();
const HELMS = [3, 4].map((major) => ({ major, helm: join(ROOT, `.curlew/tools/helm-${major}/helm`) }));

const PAGE = `apiVersion: v1
kind: ConfigMap
metadata: {name: page}
data:
{{- range $key, $value := .Values.data }}
  {{ $key }}: {{ $value | quote }}
{{- end }}
`;
const STYLE = `{{ if .Values.style }}
apiVersion: v1
kind: ConfigMap
metadata: {name: style}
{{ end }}
`;
/** Nothing makes it ready here. */
const NEVER = `apiVersion: apps/v1
kind: Deployment
metadata: {name: never}
spec:
  selector: {matchLabels: {app: never}}
  template:
    metadata: {labels: {app: never}}
    spec: {containers: [{name: never, image: "never:1"}]}
`;

function chartOf(version: string, templates: Readonly<Record<string, string>> = { page: PAGE, style: STYLE }): Buffer {
  const files = Object.entries(templates).map(([name, data]) => ({ path: `web/templates/${name}.yaml`, data }));
  const about = `apiVersion: v2\nname: web\nversion: ${version}\n`;
  return gzipSync(tarOf([{ path: 'web/Chart.yaml', data: about }, ...files]), { level: 1 });
}

let server: ApiServer;
test.before(async () => {
  if (cannotRun(...API_SERVER_PROGRAMS) !== undefined) return;
  const box = opened.keep(await tree());
  server = opened.keep(await startApiServer(box.at('server')));
});
test.after(opened.close);

for (const { major, helm } of HELMS) {
  const reason = cannotRun(...API_SERVER_PROGRAMS, helm);
  if (reason !== undefined) {
    test.skip(`charts of channels with helm ${major}`, reason);
    continue;
  }
  const given = { helm };

  /** A scene with the archive of a chart beside its channel. */
  const chartScene = async (): Promise<ChannelScene> => {
    const scene = await channelScene(server);
    await writeFile(scene.box.at('web-1.0.0.tgz'), chartOf('1.0.0'));
    return scene;
  };
  const entryOf = (values: object, chart: object = {}) => ({
    name: 'web',
    version: '1.0.0',
    chart: { package: 'web-1.0.0.tgz', values, ...chart },
  });
  const inScene = async (scene: ChannelScene, ...args: readonly string[]): Promise<string> =>
    run(helm, [...args, '--namespace', scene.namespace, '--kubeconfig', server.kubeconfig]);
  const dataOf = async (scene: ChannelScene, name: string): Promise<string> =>
    scene.kubectl('get', 'configmap', name, '--ignore-not-found', '-o', 'jsonpath={.data}');
  const releaseOf = async ({ request, context, namespace }: ChannelScene) =>
    (await channelStatus(request, context)).addons.find((one) => one.namespace === namespace)?.release;
  const errorOf = async (scene: ChannelScene, request: object = given): Promise<string> =>
    (await scene.apply(request)).addons.flatMap(({ errors }) => errors).map(({ message }) => message)[0] ?? '';

  test(`a chart is shown, installed, recorded, and left alone without running helm (helm ${major})`, async () => {
    await using scene = await chartScene();
    const { namespace } = scene;
    await scene.channel([entryOf({ data: { minor: '{{ .Cluster.kubernetes.minor }}', who: '{{ .Addon.name }}' } })]);
    const plan = await scene.plan(given);
    assert.equal(outcomes(plan), ['web install planned']);
    assert.equal(
      plan.addons.flatMap((one) => changes(one, namespace)),
      ['+ ConfigMap page'],
    );
    assert.is(await dataOf(scene, 'page'), '');

    const done = await scene.apply(given);
    assert.equal(outcomes(done), ['web install applied'], JSON.stringify(done.addons[0]?.errors));
    const minor = plan.cluster.kubernetes.split('.')[1];
    assert.equal(JSON.parse(await dataOf(scene, 'page')), { minor, who: 'web' });
    const release = { name: 'web', namespace, revision: 1, status: 'deployed', chart: 'web-1.0.0' };
    assert.equal(await releaseOf(scene), release);
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
    await using scene = await chartScene();
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
    assert.equal(JSON.parse(await dataOf(scene, 'page')), { a: '2' });
    assert.is((await releaseOf(scene))?.revision, 2);

    await writeFile(box.at('web-1.0.0.tgz'), chartOf('1.0.1'));
    assert.equal(outcomes(await scene.apply(given)), ['web update applied']);
    assert.is((await releaseOf(scene))?.chart, 'web-1.0.1');
    assert.equal(outcomes(await scene.apply(given)), ['web none unchanged']);
  });

  test(`a release and objects that were deleted come back, and changes follow drift (helm ${major})`, async () => {
    await using scene = await chartScene();
    const { namespace } = scene;
    const entry = entryOf({ data: { a: '1' }, style: true });
    await scene.channel([entry]);
    await scene.apply(given);
    await scene.kubectl('delete', 'configmap', 'style');
    assert.equal(outcomes(await scene.apply(given)), ['web restore applied']);
    assert.match(await scene.kubectl('get', 'configmap', 'style', '-o', 'name'), 'style');
    await inScene(scene, 'uninstall', 'web');
    assert.equal(outcomes(await scene.apply(given)), ['web restore applied']);
    assert.is((await releaseOf(scene))?.revision, 1);

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
    assert.equal(JSON.parse(await dataOf(scene, 'page')), { a: '1' });

    await scene.channel([entry]);
    await inScene(scene, 'upgrade', 'web', scene.box.at('web-1.0.0.tgz'), '--set', 'data.a=3', '--set', 'style=true');
    const [other] = (await scene.plan(given)).addons;
    assert.equal([other?.state, other?.drift[0]?.object], ['unchanged', `release ${namespace}/web`]);
    assert.equal(other?.drift[1]?.fields, [{ field: '.data.a', before: '"3"', after: '"1"' }]);
    assert.equal(JSON.parse(await dataOf(scene, 'page')), { a: '3' });
    await scene.channel([{ ...entry, drift: 'Revert' }]);
    assert.equal(outcomes(await scene.apply(given)), ['web revert applied']);
    assert.equal(JSON.parse(await dataOf(scene, 'page')), { a: '1' });
    assert.equal(outcomes(await scene.apply(given)), ['web none unchanged']);
  });

  test(`a release that a killed pass has left pending is recovered (helm ${major})`, async () => {
    await using scene = await chartScene();
    const { box } = scene;
    await writeFile(box.at('never-2.0.0.tgz'), chartOf('2.0.0', { page: PAGE, never: NEVER }));
    await writeFile(box.at('web-3.0.0.tgz'), chartOf('3.0.0'));
    await scene.channel([entryOf({ data: { a: '1' } })]);
    await scene.apply(given);
    await scene.channel([
      { ...entryOf({ data: { a: '2' } }, { package: 'never-2.0.0.tgz', wait: true }), version: '2.0.0' },
    ]);
    const child = startCurlew(
      ['channel', 'apply', 'channel.yaml', '--yes', '--kubeconfig', server.kubeconfig, '--helm', helm],
      { cwd: box.path },
    );
    await scene.kubectl('wait', '--for=create', 'deployment/never', '--timeout=60s');
    const helms = await run('ps', ['-o', 'pid=', '--ppid', String(child.pid)]);
    child.kill('SIGKILL');
    for (const pid of helms.split('\n').filter((line) => line.trim() !== '')) process.kill(Number(pid), 'SIGKILL');
    await child;
    assert.match(await inScene(scene, 'status', 'web'), /STATUS: pending-upgrade/);

    await scene.channel([{ ...entryOf({ data: { a: '3' } }, { package: 'web-3.0.0.tgz' }), version: '3.0.0' }]);
    const [plan] = (await scene.plan(given)).addons;
    assert.equal(plan?.objects[0]?.fields, [{ field: '.status', before: 'pending-upgrade', after: 'deployed' }]);
    const pass = await scene.apply(given);
    assert.equal(outcomes(pass), ['web update applied'], JSON.stringify(pass.addons[0]?.errors));
    assert.equal(JSON.parse(await dataOf(scene, 'page')), { a: '3' });
    assert.is(await scene.kubectl('get', 'deployment', '-o', 'name'), '');
    assert.equal((await releaseOf(scene))?.chart, 'web-3.0.0');
    assert.equal(outcomes(await scene.apply(given)), ['web none unchanged']);
  });

  test(`an install that was killed is repeated, and what is not healthy is reported without a new revision (helm ${major})`, async () => {
    await using scene = await chartScene();
    const { box } = scene;
    await writeFile(box.at('web-1.0.0.tgz'), chartOf('1.0.0', { never: NEVER }));
    await writeFile(
      box.at('helm'),
      `#!/bin/sh\ncase "$*" in *--wait*) exec timeout -s KILL 4 ${helm} "$@" ;; esac\nexec ${helm} "$@"\n`,
    );
    await chmod(box.at('helm'), 0o755);
    await scene.channel([entryOf({}, { wait: true })]);
    assert.match(await errorOf(scene, { helm: box.at('helm') }), /^cannot apply web 1\.0\.0: /);
    assert.match(await inScene(scene, 'status', 'web'), /STATUS: pending-install/);
    await scene.channel([entryOf({})]);
    for (const _ of [1, 2]) {
      const message = await errorOf(scene, { ...given, timeout: 500 });
      assert.match(message, /^Deployment \S+\/never is not healthy after 1 s: its controller has not seen it yet/);
      assert.equal([(await releaseOf(scene))?.revision, await scene.annotation('web')], [1, undefined]);
    }
  });

  test(`a release of another owner is refused until it is taken over; removal uninstalls it (helm ${major})`, async () => {
    await using scene = await chartScene();
    const { namespace, request, context } = scene;
    await inScene(scene, 'install', 'web', scene.box.at('web-1.0.0.tgz'), '--set', 'data.a=1');
    await scene.channel([entryOf({ data: { a: '2' } })]);
    const refused = `cannot apply web 1.0.0: release ${namespace}/web has another owner`;
    assert.equal((await scene.plan(given)).addons[0]?.errors[0]?.message, refused);
    assert.is(await errorOf(scene), refused);
    assert.is(await errorOf(scene), refused);
    assert.equal(JSON.parse(await dataOf(scene, 'page')), { a: '1' });
    assert.equal(outcomes(await scene.apply({ ...given, takeOver: true })), ['web install applied']);
    assert.equal(JSON.parse(await dataOf(scene, 'page')), { a: '2' });

    await scene.channel([entryOf({ data: { a: '2' } }, { releaseName: 'other' })]);
    const moved = `cannot apply web 1.0.0: it is installed as release ${namespace}/web, and the channel has release ${namespace}/other`;
    assert.is(await errorOf(scene, { ...given, allowDowngrade: true }), moved);
    const removal = await removeFromCluster({ ...request, ...given, addon: 'web', namespace }, context);
    assert.equal([removal.isDone, removal.objects], [true, [`ConfigMap ${namespace}/page`]]);
    assert.is(await dataOf(scene, 'page'), '');
    assert.is(await inScene(scene, 'list', '--all', '--short').catch(() => ''), '');
    assert.is(await scene.annotation('web'), undefined);
  });

  test(`charts come from repositories and registries, and one with another hash is refused (helm ${major})`, async () => {
    await using scene = await chartScene();
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
    assert.is((await releaseOf(scene))?.revision, 2);
    const other = `sha256:${'0'.repeat(64)}`;
    await scene.channel([{ ...entry, hash: other, chart: { repoURL: repository.url, name: 'web', values } }]);
    assert.is(
      await errorOf(scene),
      `cannot use the chart of web 1.2.0: its hash is ${hash.slice(7)}, not ${'0'.repeat(64)}`,
    );
    await scene.channel([{ ...entry, chart: { repoURL: 'http://charts.example.com', name: 'web' } }]);
    assert.is(await errorOf(scene), 'cannot download charts from http://charts.example.com: it is not https');
  });

  test(`mistakes are named, without secrets, and nothing is left in the temporary folder (helm ${major})`, async () => {
    await using scene = await chartScene();
    const { box } = scene;
    await mkdir(box.at('tmp'));
    const temporary = process.env['TMPDIR'];
    process.env['TMPDIR'] = box.at('tmp');
    try {
      await scene.channel([entryOf({ data: { a: '{{ .Cluster.name }}' } })]);
      assert.is(await errorOf(scene), 'cannot render the values of web 1.0.0: data.a: unknown field .name');
      await writeFile(
        box.at('bad.tgz'),
        chartOf('1.0.0', { bad: '{{ fail (printf "no %s" .Values.adminPassword) }}' }),
      );
      await scene.channel([entryOf({ adminPassword: 'geheim-4711' }, { package: 'bad.tgz' })]);
      const message = await errorOf(scene);
      assert.match(message, /^cannot apply web 1\.0\.0: status 1[^]*no \[secret\]/);
      assert.not.match(message, /geheim/);
      assert.equal(await readdir(box.at('tmp')), []);
    } finally {
      if (temporary === undefined) delete process.env['TMPDIR'];
      else process.env['TMPDIR'] = temporary;
    }
  });
}

if (cannotRun(...API_SERVER_PROGRAMS) === undefined) {
  test('without helm, or with an old one, a chart is refused with what to do', async () => {
    await using scene = await channelScene(server);
    const { box } = scene;
    await writeFile(box.at('web.tgz'), chartOf('1.0.0'));
    await scene.channel([{ name: 'web', version: '1.0.0', chart: { package: 'web.tgz' } }]);
    const troubleOf = async (helm: string) => (await scene.plan({ helm })).addons[0]?.errors[0];
    assert.equal(await troubleOf('/no/helm'), {
      message: 'cannot apply charts: /no/helm is not installed',
      hint: 'install helm 3 or 4, or name it with --helm FILE',
    });
    await writeFile(box.at('helm'), '#!/bin/sh\necho v2.17.0\n');
    await chmod(box.at('helm'), 0o755);
    assert.is((await troubleOf(box.at('helm')))?.message, `cannot apply charts: ${box.at('helm')} is v2.17.0`);
    assert.is(await succeeds('test', ['-e', box.at('.config')]), false);
  });
}

test.run();
