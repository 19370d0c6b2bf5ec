/** The controller of a hub, on the API server in this process. */
import { setTimeout as wait } from 'node:timers/promises';
import { runController } from '../../src/app/controller.ts';
import { startMemoryApiServer } from '../support/api-server/server.ts';
import { StatusError } from '../support/api-server/store.ts';
import * as assert from '../support/assert.ts';
import { never, noReport } from '../support/context.ts';
import { hubCluster } from '../support/hub-objects.ts';
import { eventually, openHubScene } from '../support/hub-scene.ts';
import { freePort } from '../support/ports.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree } from '../support/tree.ts';
import { hubBehavior } from './hub-behavior.ts';

const test = suite('app/controller', { timeoutMs: 240_000 });
const certificate = await makeCertificate();

async function open(before: (request: string) => void = () => undefined) {
  const server = await startMemoryApiServer({ certificate, before });
  const isWrite = (request: string): boolean => !request.startsWith('GET ') && !request.includes('/leases');
  return { ...server, writes: () => server.requests.filter(isWrite).length };
}

hubBehavior(test, open);

test('a list that fails writes nothing, and the endpoint says that the controller is not ready', async () => {
  let isBroken = false;
  await using server = await open((request) => {
    if (isBroken && request.startsWith('GET') && request.includes('v1alpha1/clusters?')) {
      throw new StatusError(500, 'InternalError', 'etcd is away');
    }
  });
  await using hub = await openHubScene(server.kubeconfig);
  await hub.cluster('oslo');
  await hub.addon('web');
  isBroken = true;
  const [ready, metrics] = [await freePort(), await freePort()];
  const controller = hub.start({ ready, metrics });
  const answer = async (): Promise<number> =>
    fetch(`http://127.0.0.1:${ready}/ready`).then(
      ({ status }) => status,
      () => 0,
    );
  await eventually(() => controller.notes.some((one) => one.includes('cannot list clusters')));
  assert.is(await answer(), 503);
  assert.is(await hub.contents('web'), '');
  isBroken = false;
  await hub.becomes('web', 'oslo:1.2.3@1');
  await eventually(async () => (await answer()) === 200);
  const text = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text();
  assert.match(text, /^curlew_controller_passes_total\{result="failed"\} [1-9]/m);
  assert.match(text, /^curlew_fleet_targets\{state="Progressing"\} 1$/m);
});

test('a controller that was away longer than the deadline does not call late what could not be reported', async () => {
  await using server = await open();
  await using hub = await openHubScene(server.kubeconfig);
  await hub.cluster('oslo');
  const rollout = { type: 'Progressive', progressDeadline: '30m', onFailure: 'Rollback' };
  await hub.addon('web', { rollout });
  const first = hub.start();
  await hub.becomes('web', 'oslo:1.2.3@1');
  await first.stop();
  const path = '/apis/fleet.curlew.dev/v1alpha1/namespaces/fleet-oslo/clusteraddons/web';
  const startedAt = new Date(Date.now() - 2_400_000).toISOString().replace(/\.\d+Z/, 'Z');
  await hub.client.merge(path, { spec: { startedAt } });
  hub.start();
  await hub.addon('next');
  await hub.becomes('next', 'oslo:1.2.3@1');
  await hub.condition('web', 'Degraded', 'False AsExpected');
  await hub.condition('web', 'Progressing', 'True RollingOut');
});

test('Leases that cannot be watched are a problem that the controller names, until they can be', async () => {
  let isBroken = true;
  await using server = await open((request) => {
    if (isBroken && request.startsWith('GET') && request.includes('coordination.k8s.io/v1/leases?')) {
      throw new StatusError(403, 'Forbidden', 'leases are forbidden');
    }
  });
  await using hub = await openHubScene(server.kubeconfig);
  await hub.cluster('oslo');
  await hub.addon('web');
  const controller = hub.start();
  await eventually(() => controller.notes.some((one) => one.includes('cannot list leases')));
  isBroken = false;
  await hub.becomes('web', 'oslo:1.2.3@1');
});

test('an API server that is overloaded is asked again, and each cluster gets its add-on once', async () => {
  let refusals = 0;
  await using server = await open((request) => {
    if (!request.startsWith('POST') || !request.includes('/clusteraddons') || refusals >= 2) return;
    refusals += 1;
    throw new StatusError(429, 'TooManyRequests', 'too many requests');
  });
  await using hub = await openHubScene(server.kubeconfig);
  for (const name of ['oslo', 'paris']) await hub.cluster(name);
  await hub.addon('web');
  hub.start();
  await hub.becomes('web', 'oslo:1.2.3@1 paris:1.2.3@1');
  assert.is(refusals, 2);
});

test('a hub that takes a second and a half for each answer keeps one leader, and each cluster gets its add-on once', async () => {
  let isSlow = false;
  const before = async (): Promise<void> => {
    if (isSlow) await wait(1500);
  };
  await using server = await startMemoryApiServer({ certificate, before });
  await using hub = await openHubScene(server.kubeconfig);
  for (const name of ['oslo', 'paris']) await hub.cluster(name);
  await hub.addon('web');
  isSlow = true;
  const controllers = [hub.start(), hub.start()];
  await hub.becomes('web', 'oslo:1.2.3@1 paris:1.2.3@1');
  await hub.report('web', 'Succeeded', 'oslo', 'paris');
  await hub.condition('web', 'Available', 'True AllSucceeded');
  const created = server.requests.filter((one) => one.startsWith('POST') && one.includes('/clusteraddons'));
  const notes = controllers.flatMap((one) => one.notes);
  assert.equal([created.length, notes.filter((one) => one === 'leading the hub').length], [2, 1]);
  assert.equal(
    notes.filter((one) => one.startsWith('ended')),
    [],
  );
});

test('a Cluster under another name in the namespace of a former one gets nothing, and the controller says so once', async () => {
  await using server = await open();
  await using hub = await openHubScene(server.kubeconfig);
  await hub.cluster('oslo');
  await hub.addon('web');
  const controller = hub.start();
  await hub.becomes('web', 'oslo:1.2.3@1');
  const clusters = '/apis/fleet.curlew.dev/v1alpha1/namespaces/fleet-oslo/clusters';
  await hub.client.create(clusters, hubCluster('kristiania', { env: 'prod' }));
  const said = 'Cluster fleet-oslo/kristiania is left alone: create it in its own namespace, fleet-kristiania';
  await eventually(() => controller.notes.includes(said));
  await hub.client.merge(`${clusters}/kristiania`, { metadata: { labels: { ring: 'canary' } } });
  await hub.cluster('paris');
  await hub.becomes('web', 'oslo:1.2.3@1 paris:1.2.3@1');
  assert.is(controller.notes.filter((one) => one === said).length, 1);
});

test('a cluster that is no hub is named before a controller leads it', async () => {
  await using server = await startMemoryApiServer({ certificate });
  await using box = await tree({ conf: server.kubeconfig });
  const context = { signal: never, report: noReport, env: {}, cwd: box.path };
  const what = /cannot lead the hub: it has no namespace curlew-system/;
  await assert.rejectsWith(runController({ kubeconfig: 'conf' }, context), 'CLUSTER_FAILED', what);
});

test('a definition that is deleted takes nothing from clusters', async () => {
  await using server = await open();
  await using hub = await openHubScene(server.kubeconfig);
  await hub.cluster('oslo');
  await hub.addon('web');
  const controller = hub.start();
  await hub.becomes('web', 'oslo:1.2.3@1');
  await hub.report('web', 'Succeeded', 'oslo');
  await hub.condition('web', 'Available', 'True AllSucceeded');
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  const name = 'fleetaddons.fleet.curlew.dev';
  await hub.client.merge(`${definitions}/${name}`, { metadata: { finalizers: ['example.com/held'] } });
  await hub.client.remove(`${definitions}/${name}`);
  await hub.client.remove('/apis/fleet.curlew.dev/v1alpha1/fleetaddons/web');
  await eventually(() => controller.notes.some((one) => one.includes(`CustomResourceDefinition ${name} is deleted`)));
  assert.is(await hub.contents('web'), 'oslo:1.2.3@1');
});

test.run();
