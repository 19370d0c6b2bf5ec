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
