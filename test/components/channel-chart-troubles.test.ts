/** What goes wrong with charts of channels: killed programs, other owners, failures, conflicts, mistakes. */
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { removeFromCluster } from '../../src/app/channel-remove.ts';
import * as assert from '../support/assert.ts';
import { startCurlew } from '../support/curlew.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { changes, channelScene, outcomes } from './support/channel-scene.ts';
import { chartOf, chartScene, entryOf, helmsHere, NEVER, PAGE } from './support/chart-scene.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun, run, succeeds } from './support/programs.ts';

const test = suite('components/channel-chart-troubles', { timeoutMs: 180_000 });
const opened = createOpened();

let server: ApiServer;
test.before(async () => {
  if (cannotRun(...API_SERVER_PROGRAMS) !== undefined) return;
  const box = opened.keep(await tree());
  server = opened.keep(await startApiServer(box.at('server')));
});
test.after(opened.close);

for (const { major, helm } of helmsHere(test, 'troubles of charts')) {
  const given = { helm };

  test(`a release that a killed pass has left pending is recovered (helm ${major})`, async () => {
    await using scene = await chartScene(server, helm);
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
    assert.match(await scene.helm('status', 'web'), /STATUS: pending-upgrade/);

    await scene.channel([{ ...entryOf({ data: { a: '3' } }, { package: 'web-3.0.0.tgz' }), version: '3.0.0' }]);
    const [plan] = (await scene.plan(given)).addons;
    assert.equal(plan?.objects[0]?.fields, [{ field: '.status', before: 'pending-upgrade', after: 'deployed' }]);
    const pass = await scene.apply(given);
    assert.equal(outcomes(pass), ['web update applied'], JSON.stringify(pass.addons[0]?.errors));
    assert.equal(JSON.parse(await scene.data('page')), { a: '3' });
    assert.is(await scene.kubectl('get', 'deployment', '-o', 'name'), '');
    assert.equal((await scene.release())?.chart, 'web-3.0.0');
    assert.equal(outcomes(await scene.apply(given)), ['web none unchanged']);
  });

  test(`an install that was killed is repeated, and what is not healthy is reported without a new revision (helm ${major})`, async () => {
    await using scene = await chartScene(server, helm);
    const { box } = scene;
    await writeFile(box.at('web-1.0.0.tgz'), chartOf('1.0.0', { never: NEVER }));
    await writeFile(
      box.at('helm'),
      `#!/bin/sh\ncase "$*" in *--wait*) echo $$ >"${box.at('pid')}" ;; esac\nexec "${helm}" "$@"\n`,
    );
    await chmod(box.at('helm'), 0o755);
    await scene.channel([entryOf({}, { wait: true })]);
    const kill = async (): Promise<void> => {
      await scene.kubectl('wait', '--for=create', 'deployment/never', '--timeout=60s');
      process.kill(Number(await readFile(box.at('pid'), 'utf8')), 'SIGKILL');
    };
    const [killed] = await Promise.all([scene.error({ helm: box.at('helm') }), kill()]);
    assert.match(killed, /^cannot apply web 1\.0\.0: /);
    assert.match(await scene.helm('status', 'web'), /STATUS: pending-install/);
    await scene.channel([entryOf({})]);
    for (const _ of [1, 2]) {
      const message = await scene.error({ ...given, timeout: 500 });
      assert.match(message, /^Deployment \S+\/never is not healthy after 1 s: its controller has not seen it yet/);
      assert.equal([(await scene.release())?.revision, await scene.annotation('web')], [1, undefined]);
    }
  });

  test(`a release of another owner is refused until it is taken over; removal uninstalls it (helm ${major})`, async () => {
    await using scene = await chartScene(server, helm);
    const { namespace, request, context } = scene;
    await scene.helm('install', 'web', scene.box.at('web-1.0.0.tgz'), '--set', 'data.a=1');
    await scene.channel([entryOf({ data: { a: '2' } })]);
    const refused = `cannot apply web 1.0.0: release ${namespace}/web has another owner`;
    assert.equal((await scene.plan(given)).addons[0]?.errors[0]?.message, refused);
    assert.is(await scene.error(), refused);
    assert.is(await scene.error(), refused);
    assert.equal(JSON.parse(await scene.data('page')), { a: '1' });
    assert.equal(outcomes(await scene.apply({ ...given, takeOver: true })), ['web install applied']);
    assert.equal(JSON.parse(await scene.data('page')), { a: '2' });

    await scene.channel([entryOf({ data: { a: '2' } }, { releaseName: 'other' })]);
    const moved = `cannot apply web 1.0.0: it is installed as release ${namespace}/web, and would become release ${namespace}/other`;
    assert.is(await scene.error({ ...given, allowDowngrade: true }), moved);
    const removal = await removeFromCluster(
      { kubeconfig: request.kubeconfig, ...given, addon: 'web', namespace },
      context,
    );
    assert.equal([removal.isDone, removal.objects], [true, [`ConfigMap ${namespace}/page`]]);
    assert.is(await scene.data('page'), '');
    assert.is(await scene.helm('list', '--all', '--short').catch(() => ''), '');
    assert.is(await scene.annotation('web'), undefined);
  });

  test(`an object that is not helm's becomes the release's by the name of the add-on (helm ${major})`, async () => {
    await using scene = await chartScene(server, helm);
    await scene.kubectl('create', 'configmap', 'page', '--from-literal=a=1');
    await scene.channel([entryOf({ data: { a: '2' } })]);
    assert.match(await scene.error(), /cannot be imported into the current release/);
    assert.equal(outcomes(await scene.apply({ ...given, takeOver: ['web'] })), ['web install applied']);
    assert.equal(JSON.parse(await scene.data('page')), { a: '2' });
  });

  test(`an upgrade that fails is recorded as helm has left it, and repeated (helm ${major})`, async () => {
    await using scene = await chartScene(server, helm);
    const { namespace, box } = scene;
    await scene.channel([entryOf({ data: { a: '1' } })]);
    await scene.apply(given);
    const job = NEVER.replace('name: never}', 'name: hook, annotations: {helm.sh/hook: pre-upgrade}}')
      .replace('apps/v1', 'batch/v1')
      .replace('Deployment', 'Job')
      .replace('  selector: {matchLabels: {app: never}}\n', '')
      .replace('spec: {containers', 'spec: {restartPolicy: Never, containers');
    await writeFile(box.at('hook.tgz'), chartOf('1.1.0', { page: PAGE, job }));
    await scene.channel([entryOf({ data: { a: '2' } }, { package: 'hook.tgz' })]);
    assert.match(
      await scene.error({ ...given, timeout: 1000 }),
      /^cannot apply web 1\.0\.0: UPGRADE FAILED: pre-upgrade hook/,
    );
    const release = { name: 'web', namespace, revision: 2, status: 'failed', chart: 'web-1.1.0' };
    assert.equal(await scene.release(), release);
    assert.equal(JSON.parse(await scene.data('page')), { a: '1' });
    await scene.channel([entryOf({ data: { a: '2' } }, { package: 'hook.tgz', atomic: true })]);
    assert.match(await scene.error({ ...given, timeout: 1000 }), /has been rolled back/);
    assert.is((await scene.release())?.status, 'deployed');
    await scene.channel([entryOf({ data: { a: '2' } })]);
    const [done] = (await scene.apply(given)).addons;
    assert.equal(changes(done ?? { objects: [] }, namespace), ['~ ConfigMap page']);
    assert.equal(JSON.parse(await scene.data('page')), { a: '2' });
  });

  test(`a field of another manager is a conflict for helm 4 only, with what to do (helm ${major})`, async () => {
    await using scene = await chartScene(server, helm);
    await scene.channel([entryOf({ data: { a: '1' } })]);
    await scene.apply(given);
    await scene.kubectl('patch', 'configmap', 'page', '-p', '{"data":{"a":"9"}}', '--field-manager', 'jane');
    await scene.channel([entryOf({ data: { a: '2' } })]);
    const [first] = (await scene.apply(given)).addons;
    if (major === 4) {
      assert.match(
        first?.errors[0]?.message ?? '',
        /^cannot apply web 1\.0\.0: .*conflict with "jane" using v1: \.data\.a$/,
      );
      assert.is(first?.errors[0]?.hint, '--force-conflicts takes these fields');
      assert.equal(outcomes(await scene.apply({ ...given, forceConflicts: true })), ['web update applied']);
    } else assert.is(first?.state, 'applied');
    assert.equal(JSON.parse(await scene.data('page')), { a: '2' });
    assert.equal(outcomes(await scene.apply(given)), ['web none unchanged']);
  });

  test(`a chart that brings kinds of its own is planned and installed (helm ${major})`, async () => {
    await using scene = await chartScene(server, helm);
    const { namespace, box } = scene;
    const [kind, name] = [`Gadget${major}`, `gadget${major}`];
    const crd = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `${name}.example.com` },
      spec: {
        group: 'example.com',
        names: { kind, plural: name },
        scope: 'Namespaced',
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
      },
    };
    const object = JSON.stringify({ apiVersion: 'example.com/v1', kind, metadata: { name: 'g' } });
    await writeFile(box.at('kinds.tgz'), chartOf('1.0.0', { object, '../crds/crd': JSON.stringify(crd) }));
    await scene.channel([entryOf({}, { package: 'kinds.tgz' })]);
    const [plan] = (await scene.plan(given)).addons;
    assert.equal(changes(plan ?? { objects: [] }, namespace), [
      `+ CustomResourceDefinition ${name}.example.com`,
      `+ ${kind} g`,
    ]);
    assert.equal(outcomes(await scene.apply(given)), ['web install applied']);
    assert.equal(outcomes(await scene.apply(given)), ['web none unchanged']);
  });

  test(`mistakes are named, without secrets, and nothing is left in the temporary folder (helm ${major})`, async () => {
    await using scene = await chartScene(server, helm);
    const { box } = scene;
    await mkdir(box.at('tmp'));
    const temporary = process.env['TMPDIR'];
    process.env['TMPDIR'] = box.at('tmp');
    try {
      await scene.channel([entryOf({ data: { a: '{{ .Cluster.name }}' } })]);
      assert.is(await scene.error(), 'cannot render the values of web 1.0.0: data.a: unknown field .name');
      await writeFile(
        box.at('bad.tgz'),
        chartOf('1.0.0', { bad: '{{ fail (printf "no %s" .Values.adminPassword) }}' }),
      );
      await scene.channel([entryOf({ adminPassword: 'geheim-4711' }, { package: 'bad.tgz' })]);
      const message = await scene.error();
      assert.match(message, /^cannot apply web 1\.0\.0: [^]*no \[secret\]/);
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
