/** Add-ons of channels on a real API server: what is applied, kept, restored, pruned and recorded. */
import { writeFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { watchChannels } from '../../src/app/channel-watch.ts';
import type { ProgressEvent } from '../../src/core/events.ts';
import * as assert from '../support/assert.ts';
import { freePort } from '../support/ports.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { changes, channelScene, configMap, countRequests, outcomes } from './support/channel-scene.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/channel-apply', { timeoutMs: 120_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS);
const opened = createOpened();

if (reason === undefined) {
  let server: ApiServer;
  test.before(async () => {
    const box = opened.keep(await tree());
    server = opened.keep(await startApiServer(box.at('server')));
  });
  test.after(opened.close);

  test('a plan shows each object and changes nothing; a pass applies them, and the next one has nothing to do', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    await scene.write('web.yaml', configMap('page', namespace, { a: '1' }), configMap('style', namespace));
    await scene.channel([{ name: 'web', version: '1.0.0', manifest: 'web.yaml' }]);
    const plan = await scene.plan();
    assert.equal(outcomes(plan), ['web install planned']);
    assert.equal(
      plan.addons.flatMap((one) => changes(one, namespace)),
      ['+ ConfigMap page', '+ ConfigMap style'],
    );
    assert.is(await scene.kubectl('get', 'configmap', 'page', '--ignore-not-found'), '');
    assert.is(await scene.annotation('web'), undefined);

    assert.equal(outcomes(await scene.apply()), ['web install applied']);
    assert.is(await scene.kubectl('get', 'configmap', 'page', '-o', 'jsonpath={.data.a}'), '1');
    const { channel, version, manifestHash, systemGeneration } = (await scene.annotation('web')) ?? {};
    assert.equal([channel, version, systemGeneration], [scene.box.at('channel.yaml'), '1.0.0', 1]);
    assert.match(String(manifestHash), /^[0-9a-f]{64}$/);
    const requests = await countRequests(async () =>
      assert.equal(outcomes(await scene.apply()), ['web none unchanged']),
    );
    assert.equal(
      requests.filter((one) => !one.startsWith('GET ')),
      [],
    );
  });

  test('a new version changes what differs, and without prune what it no longer has is reported as an orphan', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    await scene.write('v1.yaml', configMap('page', namespace, { a: '1', b: '1' }), configMap('old', namespace));
    await scene.write('v2.yaml', configMap('page', namespace, { a: '2', b: '1' }), configMap('new', namespace));
    const entry = { name: 'web', manifest: 'v1.yaml', version: '1.0.0' };
    await scene.channel([entry]);
    await scene.apply();
    await scene.channel([entry, { ...entry, manifest: 'v2.yaml', version: '1.1.0' }]);
    const [plan] = (await scene.plan()).addons;
    assert.equal([plan?.current, plan?.wanted, plan?.reason], ['1.0.0', '1.1.0', 'a newer version']);
    assert.equal(plan?.objects[0]?.fields, [{ field: '.data.a', before: '"1"', after: '"2"' }]);
    const [done] = (await scene.apply()).addons;
    assert.equal([done?.state, done?.orphans.map(({ object }) => object)], ['applied', [`ConfigMap ${namespace}/old`]]);
    assert.match(await scene.kubectl('get', 'configmap', 'old', '-o', 'name'), 'old');
  });

  test('prune auto deletes what the new version no longer has, and nothing of another owner', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    const space = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: `${namespace}-extra` } };
    const role = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name: 'old', namespace },
      rules: [],
    };
    await scene.write(
      'v1.yaml',
      space,
      configMap('page', namespace),
      configMap('old', namespace),
      configMap('given', namespace),
      role,
    );
    await scene.write('v2.yaml', configMap('page', namespace));
    const entry = { name: 'web', manifest: 'v1.yaml', version: '1.0.0', prune: 'auto' };
    await scene.channel([entry]);
    await scene.apply();
    // Labels are copied, as by the controller of Endpoints; and an object may have got an owner.
    await scene.kubectl('create', 'configmap', 'copy');
    await scene.kubectl('label', 'configmap', 'copy', `fleet.curlew.dev/addon=${namespace}.web`);
    const uid = await scene.kubectl('get', 'configmap', 'copy', '-o', 'jsonpath={.metadata.uid}');
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'copy', uid };
    await scene.kubectl(
      'patch',
      'configmap',
      'given',
      '-p',
      JSON.stringify({ metadata: { ownerReferences: [owner] } }),
    );
    await scene.channel([{ ...entry, manifest: 'v2.yaml', version: '1.1.0' }]);
    const [plan] = (await scene.plan()).addons;
    assert.equal(changes(plan ?? { objects: [] }, namespace), ['- ConfigMap old', '- Role old']);
    const [done] = (await scene.apply()).addons;
    assert.equal(changes(done ?? { objects: [] }, namespace), ['- ConfigMap old', '- Role old']);
    assert.equal(done?.orphans, [
      {
        object: `ConfigMap ${namespace}/copy`,
        why: 'it has the label of this add-on, and the record does not name it',
      },
      { object: `ConfigMap ${namespace}/given`, why: 'it is deleted with its owner, ConfigMap copy' },
      { object: `Namespace ${namespace}-extra`, why: '--prune-namespaces deletes it, with all that is in it' },
    ]);
    assert.equal(
      (await scene.kubectl('get', 'configmap,role', '-o', 'name'))
        .split('\n')
        .filter((name) => /page|old|given|copy/.test(name)),
      ['configmap/copy', 'configmap/given', 'configmap/page'],
    );
  });

  test('an object that was deleted comes back; a change by somebody is shown and kept', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    await scene.write('web.yaml', configMap('page', namespace, { a: '1' }), configMap('style', namespace, { b: '1' }));
    const entry = { name: 'web', version: '1.0.0', manifest: 'web.yaml' };
    await scene.channel([entry]);
    await scene.apply();
    await scene.kubectl('patch', 'configmap', 'page', '-p', '{"data":{"a":"2"}}');
    const [shown] = (await scene.plan()).addons;
    assert.equal(
      [shown?.state, shown?.drift],
      [
        'unchanged',
        [
          {
            object: `ConfigMap ${namespace}/page`,
            change: 'change',
            fields: [{ field: '.data.a', before: '"2"', after: '"1"' }],
          },
        ],
      ],
    );
    await scene.kubectl('delete', 'configmap', 'style');
    assert.equal(outcomes(await scene.apply()), ['web restore applied']);
    assert.is(await scene.kubectl('get', 'configmap', 'style', '-o', 'jsonpath={.data.b}'), '1');
    assert.is(await scene.kubectl('get', 'configmap', 'page', '-o', 'jsonpath={.data.a}'), '2');
    await scene.channel([{ ...entry, drift: 'Keep' }]);
    assert.equal(
      (await scene.plan()).addons.map(({ state, drift }) => [state, drift]),
      [['unchanged', []]],
    );
    await scene.channel([{ ...entry, drift: 'Revert' }]);
    assert.equal(outcomes(await scene.apply()), ['web revert applied']);
    assert.is(await scene.kubectl('get', 'configmap', 'page', '-o', 'jsonpath={.data.a}'), '1');
    assert.equal(outcomes(await scene.apply()), ['web none unchanged']);
  });

  test('a field of another manager is a conflict with field and owner, is kept by drift: Keep, and taken only on request', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    await scene.write('v1.yaml', configMap('page', namespace, { a: '1', b: '1' }));
    await scene.write('v2.yaml', configMap('page', namespace, { a: '2', b: '2' }));
    const entry = { name: 'web', version: '1.0.0', manifest: 'v1.yaml' };
    await scene.channel([entry]);
    await scene.apply();
    await scene.kubectl('patch', 'configmap', 'page', '-p', '{"data":{"a":"9"}}', '--field-manager', 'jane');
    const next = { ...entry, version: '1.1.0', manifest: 'v2.yaml' };
    await scene.channel([next]);
    const [failed] = (await scene.apply()).addons;
    assert.is(failed?.state, 'failed');
    assert.match(failed?.errors[0]?.message ?? '', /^cannot apply ConfigMap \S+\/page: \.data\.a belongs to jane$/);
    assert.is(await scene.kubectl('get', 'configmap', 'page', '-o', 'jsonpath={.data.b}'), '1');
    await scene.channel([{ ...next, drift: 'Keep' }]);
    assert.equal(outcomes(await scene.apply()), ['web update applied']);
    assert.is(await scene.kubectl('get', 'configmap', 'page', '-o', 'jsonpath={.data.a}{.data.b}'), '92');
    await scene.channel([{ ...next, id: 'again' }]);
    assert.equal(outcomes(await scene.apply({ forceConflicts: true })), ['web update applied']);
    assert.is(await scene.kubectl('get', 'configmap', 'page', '-o', 'jsonpath={.data.a}{.data.b}'), '22');
  });

  test('the record is written only after what was applied is healthy', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    const labels = { app: 'dash' };
    const spec = { containers: [{ name: 'dash', image: 'dash:1' }] };
    const deployment = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'dash', namespace },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    };
    await scene.write('dash.yaml', deployment);
    await scene.channel([{ name: 'dash', version: '1.5.0', manifest: 'dash.yaml' }]);
    const [failed] = (await scene.apply({ timeout: 500 })).addons;
    assert.is(failed?.state, 'failed');
    assert.match(
      failed?.errors[0]?.message ?? '',
      /^Deployment \S+\/dash is not healthy after 1 s: its controller has not seen it yet/,
    );
    assert.is(await scene.annotation('dash'), undefined);
    const status = { observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 };
    await scene.kubectl(
      'patch',
      'deployment',
      'dash',
      '--subresource',
      'status',
      '--type',
      'merge',
      '-p',
      JSON.stringify({ status }),
    );
    assert.equal(outcomes(await scene.apply()), ['dash install applied']);
    assert.is((await scene.annotation('dash'))?.['version'], '1.5.0');
  });

  test('a pass without changes makes at most 40 requests for 40 add-ons with 600 objects', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    const entries = await Promise.all(
      Array.from({ length: 40 }, async (_, addon) => {
        const name = `a${addon}`;
        const labels = { app: name };
        const maps = Array.from({ length: 12 }, (__, at) => configMap(`${name}-${at}`, namespace, { v: '1' }));
        const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } };
        const service = {
          apiVersion: 'v1',
          kind: 'Service',
          metadata: { name, namespace },
          spec: { selector: labels, ports: [{ port: 80 }] },
        };
        const budget = {
          apiVersion: 'policy/v1',
          kind: 'PodDisruptionBudget',
          metadata: { name, namespace },
          spec: { selector: { matchLabels: labels } },
        };
        await scene.write(`${name}.yaml`, ...maps, account, service, budget);
        return { name, version: '1.0.0', manifest: `${name}.yaml` };
      }),
    );
    await scene.channel(entries);
    const first = await scene.apply();
    assert.is(first.addons.filter(({ state }) => state === 'applied').length, 40);
    assert.is(first.addons.flatMap(({ objects }) => objects).length, 600);
    const requests = await countRequests(async () =>
      assert.ok((await scene.apply()).addons.every(({ state }) => state === 'unchanged')),
    );
    assert.ok(requests.length <= 40, `${requests.length} requests`);
  });

  test('a watch repeats passes, brings back what was deleted, and says whether the last one succeeded', async () => {
    await using scene = await channelScene(server);
    const { namespace, context, request } = scene;
    await scene.write('web.yaml', configMap('page', namespace));
    const file = await scene.channel([{ name: 'web', version: '1.0.0', manifest: 'web.yaml' }]);
    const stop = new AbortController();
    const port = await freePort();
    const reports: string[] = [];
    const report = (event: ProgressEvent): void => void (event.type === 'note' && reports.push(event.text));
    const watching = watchChannels(
      { ...request, every: 200, ready: port },
      { ...context, report, signal: stop.signal },
    ).catch((error: unknown) => error);
    const becomes = async (wanted: number): Promise<void> => {
      const address = `http://127.0.0.1:${port}/ready`;
      const status = async (): Promise<number> => (await fetch(address).catch(() => ({ status: 0 }))).status;
      while ((await status()) !== wanted) await pause(50);
    };
    await becomes(200);
    await scene.kubectl('delete', 'configmap', 'page');
    await scene.kubectl('wait', '--for=create', 'configmap/page', '--timeout=30s');
    await writeFile(file, 'kind: Channel\n');
    await becomes(503);
    assert.match(reports.at(-1) ?? '', /^cannot use channel\.yaml: /);
    await scene.channel([{ name: 'web', version: '1.0.0', manifest: 'web.yaml' }]);
    await becomes(200);
    stop.abort(new Error('enough'));
    assert.is(((await watching) as Error).message, 'enough');
    assert.is((await fetch(`http://127.0.0.1:${port}/ready`).catch(() => undefined))?.status, undefined);
  });
} else test.skip('add-ons of channels on an API server', reason);

test.run();
