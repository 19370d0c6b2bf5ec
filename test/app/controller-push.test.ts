/** A controller that delivers to clusters itself, with kubeconfigs from the hub: hub and clusters are API servers in this process. */
import { digestOf } from '../../src/core/digest.ts';
import { apiClient, at, textAt, type ApiClient } from '../support/api-client.ts';
import type { JsonObject } from '../support/api-server/fields.ts';
import { startMemoryApiServer, type MemoryApiServer } from '../support/api-server/server.ts';
import { StatusError } from '../support/api-server/store.ts';
import * as assert from '../support/assert.ts';
import { hubChannel, hubCluster } from '../support/hub-objects.ts';
import { eventually, openHubScene, type HubScene, type RunningController } from '../support/hub-scene.ts';
import { freePort } from '../support/ports.ts';
import { startSilent } from '../support/silent-server.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree } from '../support/tree.ts';
import { startServer } from '../support/web-server.ts';

const test = suite('app/controller-push', { timeoutMs: 240_000 });
const certificate = await makeCertificate();
const ROOT = '/apis/fleet.curlew.dev/v1alpha1';
const MAP = '/api/v1/namespaces/default/configmaps/page';
const RECORDS = '/api/v1/namespaces/kube-system/configmaps/curlew-addons';

function page(version: string): string {
  const metadata = { name: 'page', namespace: 'default' };
  return JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { version } });
}

interface PushScene extends AsyncDisposable {
  readonly hub: HubScene;
  readonly clusters: Readonly<Record<string, MemoryApiServer & { readonly client: ApiClient }>>;
  readonly start: () => RunningController;
  readonly secret: (cluster: string, kubeconfig: string, key?: string) => Promise<void>;
  /** A source with this version of the page. */
  readonly source: (version: string) => object;
  readonly hubRequests: readonly string[];
  /** What the hub says about the add-on `web` on a cluster: `Succeeded`, or `Failed REASON: message`. */
  readonly state: (cluster: string, addon?: string) => Promise<string>;
  readonly available: (cluster: string) => Promise<string>;
  readonly page: (cluster: string) => Promise<string>;
}

/** A hub with these clusters, whose kubeconfigs it has if `hasSecrets`. The server of pages works while `isUp`. */
async function openScene(
  names: readonly string[],
  { hasSecrets = true, isUp = (): boolean => true, before = (_request: string): void => undefined } = {},
): Promise<PushScene> {
  const box = await tree({ 'ca.pem': certificate.ca });
  const web = await startServer(
    ({ path }) => {
      if (!isUp()) return { status: 503 };
      const version = /page-(.*)\.yaml/.exec(path)?.[1];
      return version === undefined ? { status: 404 } : { status: 200, body: page(version) };
    },
    { tls: certificate },
  );
  const own = await startMemoryApiServer({ certificate, before });
  const hub = await openHubScene(own.kubeconfig);
  const clusters: Record<string, MemoryApiServer & { readonly client: ApiClient }> = {};
  const secret = async (cluster: string, kubeconfig: string, key = 'value'): Promise<void> => {
    const path = `/api/v1/namespaces/fleet-${cluster}/secrets`;
    const name = `${cluster}-kubeconfig`;
    const value = { metadata: { name }, data: { [key]: Buffer.from(kubeconfig).toString('base64') } };
    await hub.client.remove(`${path}/${name}`);
    assert.is((await hub.client.create(path, { apiVersion: 'v1', kind: 'Secret', ...value })).status, 201);
  };
  for (const name of names) {
    const server = await startMemoryApiServer({ certificate });
    clusters[name] = { ...server, client: apiClient(server.kubeconfig) };
    await hub.client.create('/api/v1/namespaces', { metadata: { name: `fleet-${name}` } });
    const spec = { access: { kubeconfigSecret: `${name}-kubeconfig` } };
    await hub.client.create(`${ROOT}/namespaces/fleet-${name}/clusters`, hubCluster(name, { env: 'prod' }, spec));
    if (hasSecrets) await secret(name, server.kubeconfig);
  }
  const status = async (path: string): Promise<JsonObject> =>
    (at((await hub.client.get(`${ROOT}/namespaces/${path}`)).body, 'status') ?? {}) as JsonObject;
  return {
    hub,
    clusters,
    secret,
    hubRequests: own.requests,
    start: () => hub.start({ caFile: box.at('ca.pem') }),
    source: (version) => ({
      manifest: `${web.url.replace('127.0.0.1', 'localhost')}/page-${version}.yaml`,
      hash: digestOf(page(version)),
    }),
    state: async (cluster, addon = 'web') => {
      const found = await status(`fleet-${cluster}/clusteraddons/${addon}`);
      const [state, reason, message] = ['state', 'reason', 'message'].map((key) => textAt(found, key));
      return `${state} ${reason}: ${message}`.replace(/ : $/, '');
    },
    available: async (cluster) => {
      const { conditions = [] } = await status(`fleet-${cluster}/clusters/${cluster}`);
      const found = (conditions as readonly JsonObject[]).find((one) => one['type'] === 'Available');
      return `${textAt(found, 'status')} ${textAt(found, 'message')}`.trim();
    },
    page: async (cluster) => textAt((await clusters[cluster]?.client.get(MAP))?.body, 'data.version'),
    [Symbol.asyncDispose]: async () => {
      await hub[Symbol.asyncDispose]();
      for (const one of [...Object.values(clusters), own, web, box]) await one[Symbol.asyncDispose]();
    },
  };
}

test('the controller brings an add-on onto clusters, changes it, and removes it, and reports as an agent does', async () => {
  await using scene = await openScene(['oslo', 'paris']);
  const { hub } = scene;
  await hub.addon('web', { source: scene.source('1'), rollout: { type: 'Progressive', maxConcurrency: 1 } });
  scene.start();
  await hub.condition('web', 'Available', 'True AllSucceeded');
  assert.equal([await scene.page('oslo'), await scene.page('paris')], ['1', '1']);
  assert.is(await scene.available('oslo'), 'True');
  const { body } = await hub.client.get(`${ROOT}/namespaces/fleet-oslo/clusters/oslo`);
  assert.is(textAt(body, 'status.facts.version'), 'v1.34.4');
  const own = await hub.client.get(`${ROOT}/namespaces/fleet-oslo/clusteraddons/web`);
  assert.equal(at(own.body, 'status.conditions.0.type'), 'Available');
  assert.equal(at(own.body, 'status.conditions.0.status'), 'True');
  await hub.change('web', { spec: { source: scene.source('2') } });
  await eventually(async () => (await scene.page('paris')) === '2');
  await hub.condition('web', 'Available', 'True AllSucceeded');
  const before = scene.hubRequests.filter((one) => /^(?:PATCH|POST|PUT|DELETE)/.test(one) && !one.includes('leases'));
  await hub.client.remove(`${ROOT}/fleetaddons/web`);
  await hub.order('web', 'approve', { removals: 2 });
  await eventually(async () => (await hub.client.get(`${ROOT}/fleetaddons/web`)).status === 404);
  assert.equal([await scene.page('oslo'), await scene.page('paris')], ['', '']);
  // Two contents on two clusters: each has its spec, that it is under way and that it is there; and two clusters, the add-on and its events.
  assert.ok(before.length <= 2 * 2 * 3 + 2 + 2 * 8 + 12, String(before.length));
});

test('what an AppliedManifestWork of a cluster owns is not taken over, and the hub says what to do', async () => {
  await using scene = await openScene(['oslo']);
  const { hub } = scene;
  const client = scene.clusters['oslo']?.client;
  const work = {
    apiVersion: 'work.open-cluster-management.io/v1',
    kind: 'AppliedManifestWork',
    name: 'h-web',
    uid: 'w1',
  };
  const { metadata, ...rest } = JSON.parse(page('0')) as { readonly metadata: object };
  const owned = { ...rest, metadata: { ...metadata, ownerReferences: [work] } };
  await client?.create('/api/v1/namespaces/default/configmaps', owned);
  await hub.addon('web', { source: scene.source('1'), adopt: true, drift: 'Revert' });
  scene.start();
  await eventually(async () => (await scene.state('oslo')).startsWith('Failed'));
  assert.match(
    await scene.state('oslo'),
    /Kubernetes deletes it with its owner, AppliedManifestWork h-web: set spec\.deleteOption\.propagationPolicy of its ManifestWork to Orphan, and delete that$/,
  );
  assert.is(await scene.page('oslo'), '0');
  await client?.merge(MAP, { metadata: { ownerReferences: [] } });
  // What failed in this second is meant, too.
  await hub.order('web', 'retry', { at: new Date(Date.now() + 1000).toISOString() });
  await eventually(async () => (await scene.state('oslo')) === 'Succeeded');
  assert.is(await scene.page('oslo'), '1');
});

test('the controller leaves what is to stay on clusters that are no longer selected', async () => {
  await using scene = await openScene(['oslo', 'paris']);
  const { hub } = scene;
  await hub.addon('web', { source: scene.source('1'), remove: { onUnselect: 'Leave' } });
  scene.start();
  await hub.condition('web', 'Available', 'True AllSucceeded');
  await hub.change('web', { spec: { clusterSelector: { matchLabels: { env: 'none' } } } });
  await hub.becomes('web', '');
  assert.equal([await scene.page('oslo'), await scene.page('paris')], ['1', '1']);
});

test('an add-on whose status the hub refuses holds deliveries of no other', async () => {
  const before = (request: string): void => {
    if (/^PATCH .*\/fleetaddons\/bad/.test(request)) throw new StatusError(422, 'Invalid', 'spec: too many');
  };
  await using scene = await openScene(['oslo'], { before });
  await scene.hub.addon('web', { source: scene.source('1') });
  const first = scene.start();
  await scene.hub.condition('web', 'Available', 'True AllSucceeded');
  await first.stop();
  // Nothing is left to write but what is refused: no event leads to another pass.
  await scene.clusters['oslo']?.client.remove(MAP);
  await scene.hub.addon('bad', { source: scene.source('1') });
  const next = scene.start();
  await eventually(async () => (await scene.page('oslo')) === '1');
  assert.ok(next.notes.some((note) => note.includes('too many')));
  await next.stop();
});

test('a cluster that does not answer, and one whose kubeconfig is missing or broken, hold no other', async () => {
  await using scene = await openScene(['oslo', 'paris', 'rome'], { hasSecrets: false });
  const { hub } = scene;
  await using silent = await startSilent();
  const conf = scene.clusters['oslo']?.kubeconfig ?? '';
  await scene.secret('oslo', conf.replaceAll(/https:\/\/[^"]+/g, `https://127.0.0.1:${silent.port}`));
  await scene.secret('rome', scene.clusters['rome']?.kubeconfig ?? '', 'kubeconfig');
  await hub.addon('web', { source: scene.source('1') });
  scene.start();
  await eventually(async () => (await scene.state('rome')) === 'Succeeded');
  assert.is(await scene.available('paris'), 'False there is no Secret fleet-paris/paris-kubeconfig');
  await scene.secret('paris', 'server: [');
  await eventually(async () =>
    (await scene.available('paris')).startsWith('False kubeconfig Secret fleet-paris/paris-kubeconfig: line'),
  );
  await scene.secret('paris', scene.clusters['paris']?.kubeconfig ?? '');
  await eventually(async () => (await scene.state('paris')) === 'Succeeded');
  await eventually(async () => (await scene.available('oslo')).startsWith('False no answer within 20 s'));
});

test('a server of manifests that is away is waited for, and nothing has failed', async () => {
  let isUp = false;
  await using scene = await openScene(['oslo'], { isUp: () => isUp });
  const { hub } = scene;
  const rollout = { type: 'Progressive', onFailure: 'Rollback' };
  await hub.addon('web', { source: scene.source('1'), rollout });
  scene.start();
  await eventually(async () => /^Progressing Waiting: .*503/.test(await scene.state('oslo')));
  isUp = true;
  await eventually(async () => (await scene.state('oslo')) === 'Succeeded');
  await hub.condition('web', 'Available', 'True AllSucceeded');
});

test('a cluster that is paused in the middle of its turn gets nothing more', async () => {
  let isAsked = false;
  await using scene = await openScene(['oslo'], {
    isUp: () => {
      isAsked = true;
      return false;
    },
  });
  const { hub } = scene;
  for (const name of ['a', 'b']) await hub.addon(name, { source: scene.source(name) });
  const controller = scene.start();
  await eventually(() => isAsked);
  await hub.client.merge(`${ROOT}/namespaces/fleet-oslo/clusters/oslo`, { spec: { paused: true } });
  await eventually(() => controller.notes.some((one) => /^oslo: .*503/.test(one)));
  const states = [await scene.state('oslo', 'a'), await scene.state('oslo', 'b')];
  assert.is(states.filter((one) => one === '').length, 1);
  assert.match(states.join(''), /^Progressing Waiting: .*503/);
});

test('a cluster whose agent renews its Lease is left to it', async () => {
  await using scene = await openScene(['oslo']);
  const { hub } = scene;
  const metadata = { name: 'curlew-agent', namespace: 'fleet-oslo' };
  const leases = '/apis/coordination.k8s.io/v1/namespaces/fleet-oslo/leases';
  await hub.client.create(leases, { metadata, spec: { holderIdentity: 'oslo/1' } });
  const controller = scene.start();
  await eventually(() => controller.notes.some((one) => one.includes('cannot deliver to oslo: an agent renews its')));
  assert.equal([await scene.available('oslo'), scene.clusters['oslo']?.requests.length], ['', 0]);
});

test('a kubeconfig that starts a program or reads a file is refused, and nothing of it is done', async () => {
  await using scene = await openScene(['oslo']);
  const conf = JSON.parse(scene.clusters['oslo']?.kubeconfig ?? '{}') as JsonObject;
  const refused: readonly (readonly [object, RegExp])[] = [
    [
      { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: '/bin/touch', args: ['made'] } },
      /^False kubeconfig Secret fleet-oslo\/oslo-kubeconfig: it starts the program "\/bin\/touch"$/,
    ],
    [{ tokenFile: '/etc/hostname' }, /it reads the file "\/etc\/hostname"$/],
    [{ 'client-certificate': '/etc/a.crt', 'client-key': '/etc/a.key' }, /it reads the file "\/etc\/a.crt"$/],
  ];
  scene.start();
  for (const [user, expected] of refused) {
    const before = scene.clusters['oslo']?.requests.length;
    await scene.secret('oslo', JSON.stringify({ ...conf, users: [{ name: 'admin', user }] }));
    await eventually(async () => expected.test(await scene.available('oslo')));
    assert.is(scene.clusters['oslo']?.requests.length, before);
  }
});

test('a rotated kubeconfig is read again, and a cluster that is back gets what it missed', async () => {
  await using scene = await openScene(['oslo']);
  const { hub } = scene;
  const good = scene.clusters['oslo']?.kubeconfig ?? '';
  await hub.addon('web', { source: scene.source('1') });
  scene.start();
  await eventually(async () => (await scene.state('oslo')) === 'Succeeded');
  await scene.secret('oslo', good.replaceAll(/https:\/\/[^"]+/g, `https://127.0.0.1:${await freePort()}`));
  await hub.change('web', { spec: { source: scene.source('2') } });
  await eventually(async () => (await scene.available('oslo')).startsWith('False'));
  await scene.secret('oslo', good);
  await eventually(async () => (await scene.page('oslo')) === '2');
  await eventually(async () => (await scene.available('oslo')) === 'True');
});

test('what others have changed is reported, kept or reverted, and what they have deleted returns', async () => {
  await using scene = await openScene(['oslo']);
  const { hub, clusters } = scene;
  const client = clusters['oslo']?.client;
  await hub.addon('web', { source: scene.source('1'), drift: 'Keep' });
  scene.start();
  await eventually(async () => (await scene.state('oslo')) === 'Succeeded');
  await client?.merge(MAP, { data: { version: 'mine' } });
  await hub.change('web', { spec: { drift: 'Warn' } });
  await eventually(async () => /^Succeeded Drift: changed by others: .*page/.test(await scene.state('oslo')));
  assert.is(await scene.page('oslo'), 'mine');
  await hub.change('web', { spec: { drift: 'Revert' } });
  await eventually(async () => (await scene.page('oslo')) === '1');
  await eventually(async () => (await scene.state('oslo')) === 'Succeeded');
  await client?.remove(MAP);
  await hub.change('web', { spec: { drift: 'Keep' } });
  await eventually(async () => (await scene.page('oslo')) === '1');
});

test('what belongs to another owner is left alone until adopt is set', async () => {
  await using scene = await openScene(['oslo']);
  const { hub, clusters } = scene;
  const client = clusters['oslo']?.client;
  const record = {
    addon: 'web',
    namespace: 'kube-system',
    owner: 'channel:stable',
    state: 'Succeeded',
    since: '2026-01-02T03:04:05Z',
    reason: '',
    history: [],
  };
  const data = { 'kube-system.web': JSON.stringify(record) };
  const metadata = { name: 'curlew-addons', namespace: 'kube-system' };
  await client?.create('/api/v1/namespaces/kube-system/configmaps', { metadata, data });
  assert.is((await client?.get(RECORDS))?.status, 200);
  await hub.addon('web', { source: scene.source('1') });
  scene.start();
  const expected =
    'Skipped OtherOwner: it belongs to channel:stable: adopt: true in the spec of FleetAddon web takes it over';
  await eventually(async () => (await scene.state('oslo')) === expected);
  assert.is(await scene.page('oslo'), '');
  await hub.change('web', { spec: { adopt: true } });
  await eventually(async () => (await scene.state('oslo')) === 'Succeeded');
  assert.is(await scene.page('oslo'), '1');
});

test('a manifest with another digest, or that a cluster refuses, fails there with its reason', async () => {
  await using scene = await openScene(['oslo']);
  const { hub } = scene;
  await hub.addon('web', { source: { ...scene.source('1'), hash: digestOf('another') } });
  scene.start();
  await eventually(async () => /^Failed Delivery: .*its hash is/.test(await scene.state('oslo')));
  await hub.condition('web', 'Degraded', 'True ClustersFailed');
  assert.is(await scene.page('oslo'), '');
  await hub.change('web', {
    spec: { source: { package: { name: 'a', version: '1.0.0', hash: digestOf('a') }, manifest: null, hash: null } },
  });
  await eventually(async () => (await scene.state('oslo')).includes('a package is installed on nodes'));
});

test('a cluster gets the entry of a Channel for its Kubernetes, and another one when the Channel changes', async () => {
  await using scene = await openScene(['oslo']);
  const { hub } = scene;
  const entry = (version: string, kubernetesVersion: string): object => {
    return { name: 'web', version, kubernetesVersion, ...scene.source(version) };
  };
  const entries = [entry('1.0.0', '<1.34.0'), entry('1.1.0', '1.34.x'), entry('2.0.0', '>=1.35.0')];
  assert.is((await hub.client.create(`${ROOT}/channels`, hubChannel('stable', entries))).status, 201);
  await hub.addon('web', { source: { channel: { name: 'stable' } } });
  scene.start();
  await hub.condition('web', 'Available', 'True AllSucceeded');
  assert.equal([await scene.page('oslo'), await hub.contents('web')], ['1.1.0', 'oslo:1.1.0@1']);
  const changed = { spec: { addons: [...entries, entry('1.2.0', '>=1.34.0')] } };
  await hub.client.merge(`${ROOT}/channels/stable`, changed);
  await eventually(async () => (await scene.page('oslo')) === '1.2.0');
  await hub.condition('web', 'Available', 'True AllSucceeded');
  await hub.client.remove(`${ROOT}/channels/stable`);
  await hub.condition('web', 'Degraded', 'True Invalid');
  assert.equal([await scene.page('oslo'), await hub.contents('web')], ['1.2.0', 'oslo:1.2.0@2']);
});

test('a cluster that is registered under another name has its add-ons there, after those of the former one are gone', async () => {
  await using scene = await openScene(['oslo']);
  const { hub } = scene;
  await hub.addon('web', { source: scene.source('1') });
  scene.start();
  await hub.condition('web', 'Available', 'True AllSucceeded');
  const kubeconfig = scene.clusters['oslo']?.kubeconfig ?? '';
  await hub.client.create('/api/v1/namespaces', { metadata: { name: 'fleet-kristiania' } });
  await scene.secret('kristiania', kubeconfig);
  const spec = { access: { kubeconfigSecret: 'kristiania-kubeconfig' } };
  const next = hubCluster('kristiania', { env: 'prod' }, spec);
  await hub.client.remove(`${ROOT}/namespaces/fleet-oslo/clusters/oslo`);
  await hub.client.create(`${ROOT}/namespaces/fleet-kristiania/clusters`, next);
  await eventually(async () => (await hub.client.get(`${ROOT}/namespaces/fleet-oslo/clusters/oslo`)).status === 404);
  await eventually(async () => (await scene.state('kristiania')) === 'Succeeded');
  await eventually(async () => (await scene.page('oslo')) === '1');
  await hub.change('web', { spec: { source: scene.source('2') } });
  await eventually(async () => (await scene.page('oslo')) === '2');
});

test.run();
