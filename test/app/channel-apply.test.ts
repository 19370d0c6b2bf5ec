/** Add-ons of channels on the API server of the tests: what passes apply, keep, restore and refuse. */
import { writeFile } from 'node:fs/promises';
import {
  applyChannels,
  previewChannels,
  type ChannelApplyRequest,
  type ChannelPass,
} from '../../src/app/channel-apply.ts';
import { apiClient, at, type ApiClient } from '../support/api-client.ts';
import { startMemoryApiServer } from '../support/api-server/server.ts';
import * as assert from '../support/assert.ts';
import { never, noReport } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('app/channel-apply');
const certificate = await makeCertificate();

interface Scene extends AsyncDisposable {
  readonly box: Tree;
  readonly api: ApiClient;
  readonly requests: readonly string[];
  readonly channel: (...entries: readonly object[]) => Promise<void>;
  readonly write: (path: string, ...objects: readonly object[]) => Promise<void>;
  readonly plan: (request?: Partial<ChannelApplyRequest>) => Promise<ChannelPass>;
  readonly apply: (request?: Partial<ChannelApplyRequest>) => Promise<ChannelPass>;
}

async function openScene(): Promise<Scene> {
  const box = await tree();
  const server = await startMemoryApiServer({ certificate });
  await writeFile(box.at('conf'), server.kubeconfig);
  const context = { signal: never, report: noReport, env: { PATH: process.env['PATH'] }, cwd: box.path };
  const request: ChannelApplyRequest = { channels: ['channel.yaml'], kubeconfig: box.at('conf'), timeout: 5000 };
  const header = { apiVersion: 'fleet.curlew.dev/v1alpha1', kind: 'Channel', metadata: { name: 'stable' } };
  return {
    box,
    api: apiClient(server.kubeconfig),
    requests: server.requests,
    channel: async (...entries) => {
      const addons = entries.map((entry) => ({ namespace: 'default', version: '1.0.0', ...entry }));
      await writeFile(box.at('channel.yaml'), JSON.stringify({ ...header, spec: { addons } }, undefined, 1));
    },
    write: async (path, ...objects) =>
      writeFile(box.at(path), objects.map((object) => JSON.stringify(object, undefined, 1)).join('\n---\n')),
    plan: async (given = {}) => previewChannels({ ...request, ...given }, context),
    apply: async (given = {}) => applyChannels({ ...request, ...given }, context),
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await box[Symbol.asyncDispose]();
    },
  };
}

function configMap(name: string, data: Readonly<Record<string, string>> = {}): object {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data };
}

function outcomes({ addons }: ChannelPass): readonly string[] {
  return addons.map(({ addon, action, state }) => `${addon} ${action} ${state}`);
}

const MAPS = '/api/v1/namespaces/default/configmaps';

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

test('an add-on that does not become healthy fails, and those that require it are skipped', async () => {
  await using scene = await openScene();
  const labels = { app: 'dash' };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'dash', image: 'dash:1' }] } };
  const spec = { selector: { matchLabels: labels }, template };
  const metadata = { name: 'dash', namespace: 'default' };
  await scene.write('dash.yaml', { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec });
  await scene.write('page.yaml', configMap('page'));
  const page = { name: 'page', manifest: 'page.yaml', requires: [{ name: 'dash' }] };
  await scene.channel({ name: 'dash', manifest: 'dash.yaml' }, page);
  assert.equal(outcomes(await scene.apply({ timeout: 300 })), ['dash install failed', 'page install skipped']);
  const status = { observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 };
  await scene.api.merge('/apis/apps/v1/namespaces/default/deployments/dash/status', { status });
  assert.equal(outcomes(await scene.apply()), ['dash install applied', 'page install applied']);
});

test.run();
