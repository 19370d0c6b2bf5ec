/** What a controller does on an API server, whichever it is: the real one or the one in this process. */
import { at, textAt } from '../support/api-client.ts';
import * as assert from '../support/assert.ts';
import { hubChart } from '../support/hub-objects.ts';
import { eventually, openHubScene, type HubScene } from '../support/hub-scene.ts';
import type { Suite } from '../support/suite.ts';

const CANARY = {
  type: 'Progressive',
  groups: [{ name: 'canary', selector: { matchLabels: { ring: 'canary' } } }],
  mandatoryDecisionGroups: [{ groupName: 'canary' }],
  maxConcurrency: 2,
};
const ADDONS = '/apis/fleet.curlew.dev/v1alpha1/fleetaddons';

/** A hub with three clusters, of which oslo is the canary, and one add-on. */
async function canaryScene(kubeconfig: string, spec: object = {}): Promise<HubScene> {
  const hub = await openHubScene(kubeconfig);
  await hub.cluster('oslo', { ring: 'canary' });
  await hub.cluster('paris');
  await hub.cluster('rome');
  await hub.addon('web', { rollout: CANARY, ...spec });
  return hub;
}

/** Each test gets a hub of its own. `writes`: how many requests have written anything but Leases. */
export function hubBehavior(
  test: Suite,
  open: () => Promise<{ readonly kubeconfig: string; readonly writes?: () => number } & AsyncDisposable>,
): void {
  test('an add-on goes to the canary, then to the rest, and a condition says when it is everywhere', async () => {
    await using server = await open();
    await using hub = await canaryScene(server.kubeconfig);
    const controller = hub.start();
    await hub.becomes('web', 'oslo:1.2.3@1');
    await hub.condition('web', 'Progressing', 'True RollingOut');
    const { counts, reasons, batch, waiting } = await hub.status('web');
    assert.equal(
      { counts, reasons, batch },
      { counts: { Progressing: 1, ToApply: 2 }, reasons: { Group: 2 }, batch: ['oslo'] },
    );
    assert.is(textAt(waiting, '0.message'), 'group canary is not done');
    await hub.report('web', 'Succeeded', 'oslo');
    await hub.becomes('web', 'oslo:1.2.3@1 paris:1.2.3@1 rome:1.2.3@1');
    await hub.report('web', 'Succeeded', 'paris', 'rome');
    await hub.condition('web', 'Available', 'True AllSucceeded');
    await hub.condition('web', 'Degraded', 'False AsExpected');
    await controller.stop();
    const before = server.writes?.();
    const next = hub.start();
    await eventually(() => next.notes.includes('leading the hub'));
    await hub.change('web', { metadata: { labels: { seen: 'yes' } } });
    await hub.cluster('later');
    await hub.becomes('web', 'later:1.2.3@1 oslo:1.2.3@1 paris:1.2.3@1 rome:1.2.3@1');
    // Four of the test: a namespace, a cluster, its status and a label; and what the new cluster needs: the add-on's status before it has
    // said that it answers, its finalizer, its content, and the status then.
    if (before !== undefined) assert.ok((server.writes?.() ?? 0) - before <= 4 + 4);
  });

  test('a state counts only for the revision that was applied', async () => {
    await using server = await open();
    await using hub = await canaryScene(server.kubeconfig);
    hub.start();
    await hub.becomes('web', 'oslo:1.2.3@1');
    await hub.report('web', 'Succeeded', 'oslo');
    await hub.becomes('web', 'oslo:1.2.3@1 paris:1.2.3@1 rome:1.2.3@1');
    await hub.report('web', 'Succeeded', 'paris', 'rome');
    await hub.condition('web', 'Available', 'True AllSucceeded');
    await hub.change('web', { spec: { source: hubChart('1.3.0') } });
    await hub.becomes('web', 'oslo:1.3.0@2 paris:1.2.3@1 rome:1.2.3@1');
    await hub.condition('web', 'Available', 'False RollingOut');
    await hub.report('web', 'Succeeded', 'oslo');
    await hub.becomes('web', 'oslo:1.3.0@2 paris:1.3.0@2 rome:1.3.0@2');
  });

  test('a bad version stops at the canary and goes back there, under a revision that grows', async () => {
    await using server = await open();
    await using hub = await canaryScene(server.kubeconfig, { rollout: { ...CANARY, onFailure: 'Rollback' } });
    hub.start();
    await hub.becomes('web', 'oslo:1.2.3@1');
    await hub.report('web', 'Succeeded', 'oslo');
    await hub.becomes('web', 'oslo:1.2.3@1 paris:1.2.3@1 rome:1.2.3@1');
    await hub.report('web', 'Succeeded', 'paris', 'rome');
    await hub.condition('web', 'Available', 'True AllSucceeded');
    await hub.change('web', { spec: { source: hubChart('9.9.9') } });
    await hub.becomes('web', 'oslo:9.9.9@2 paris:1.2.3@1 rome:1.2.3@1');
    await hub.report('web', 'Failed', 'oslo');
    await hub.becomes('web', 'oslo:1.2.3@3 paris:1.2.3@1 rome:1.2.3@1');
    await hub.condition('web', 'Degraded', 'True Stopped');
    const { body } = await hub.client.get('/api/v1/namespaces/default/events');
    const reasons = (body['items'] as readonly object[]).map((one) => (one as { readonly reason: string }).reason);
    assert.ok(
      ['RolloutStarted', 'RolledBack', 'Stopped'].every((one) => reasons.includes(one)),
      reasons.join(),
    );
  });

  test('a paused add-on stays as it is, also when another controller begins, and continues then', async () => {
    await using server = await open();
    await using hub = await canaryScene(server.kubeconfig);
    const first = hub.start();
    await hub.becomes('web', 'oslo:1.2.3@1');
    await hub.change('web', { metadata: { annotations: { 'fleet.curlew.dev/pause': 'true' } } });
    await eventually(async () => textAt(await hub.status('web'), 'waiting.0.reason') === 'Paused');
    await hub.report('web', 'Succeeded', 'oslo');
    await eventually(async () => JSON.stringify((await hub.status('web'))['counts']).includes('Succeeded'));
    await first.stop();
    const before = server.writes?.();
    const second = hub.start();
    await eventually(() => second.notes.includes('leading the hub'));
    await hub.cluster('elsewhere', { env: 'test' });
    await hub.addon('other', { clusterSelector: { matchLabels: { env: 'test' } } });
    await hub.becomes('other', 'elsewhere:1.2.3@1');
    assert.is(await hub.contents('web'), 'oslo:1.2.3@1');
    // What the test has written, and the writes of the other add-on: two finalizers, status, content; two events.
    if (before !== undefined) assert.ok((server.writes?.() ?? 0) - before <= 4 + 6);
    await hub.change('web', { metadata: { annotations: { 'fleet.curlew.dev/pause': null } } });
    await hub.becomes('web', 'oslo:1.2.3@1 paris:1.2.3@1 rome:1.2.3@1');
  });

  test('a selector that is changed by mistake removes nothing, until a person approves that number', async () => {
    await using server = await open();
    await using hub = await openHubScene(server.kubeconfig);
    for (const name of ['oslo', 'paris', 'rome']) await hub.cluster(name);
    await hub.addon('web');
    hub.start();
    await hub.becomes('web', 'oslo:1.2.3@1 paris:1.2.3@1 rome:1.2.3@1');
    await hub.report('web', 'Succeeded', 'oslo', 'paris', 'rome');
    await hub.condition('web', 'Available', 'True AllSucceeded');
    await hub.change('web', { spec: { clusterSelector: { matchLabels: { env: 'none' } } } });
    await eventually(async () => textAt(await hub.status('web'), 'waiting.0.reason') === 'Removals');
    assert.is(await hub.contents('web'), 'oslo:1.2.3@1 paris:1.2.3@1 rome:1.2.3@1');
    await hub.order('web', 'approve', { removals: 3 });
    await hub.becomes('web', 'oslo:-1.2.3@2 paris:-1.2.3@2 rome:-1.2.3@2');
    await hub.report('web', 'Succeeded', 'oslo', 'paris', 'rome');
    await hub.becomes('web', '');
  });

  test('a deleted add-on leaves the hub when it has left its clusters', async () => {
    await using server = await open();
    await using hub = await openHubScene(server.kubeconfig);
    await hub.cluster('oslo');
    await hub.addon('web', { remove: { onFailure: 'Orphan' } });
    hub.start();
    await hub.becomes('web', 'oslo:1.2.3@1');
    await hub.report('web', 'Succeeded', 'oslo');
    await hub.client.remove(`${ADDONS}/web`);
    await hub.becomes('web', 'oslo:-1.2.3@2');
    assert.is((await hub.client.get(`${ADDONS}/web`)).status, 200);
    await hub.report('web', 'Failed', 'oslo');
    await eventually(async () => (await hub.client.get(`${ADDONS}/web`)).status === 404);
    assert.is(await hub.contents('web'), '');
  });

  test('a deleted cluster goes after its add-ons, and with its namespace they stay on it', async () => {
    await using server = await open();
    await using hub = await openHubScene(server.kubeconfig);
    const clusterAt = (name: string): string =>
      `/apis/fleet.curlew.dev/v1alpha1/namespaces/fleet-${name}/clusters/${name}`;
    const status = async (name: string): Promise<number> => (await hub.client.get(clusterAt(name))).status;
    for (const name of ['oslo', 'paris', 'rome']) await hub.cluster(name);
    await hub.addon('web', { rollout: { maxRemovals: 3 } });
    hub.start();
    await hub.becomes('web', 'oslo:1.2.3@1 paris:1.2.3@1 rome:1.2.3@1');
    await hub.report('web', 'Succeeded', 'oslo', 'paris', 'rome');
    await hub.condition('web', 'Available', 'True AllSucceeded');
    // A namespace ends as slowly as what is in it.
    await hub.client.merge('/api/v1/namespaces/fleet-rome', { metadata: { finalizers: ['example.com/slow'] } });
    await hub.client.remove('/api/v1/namespaces/fleet-rome');
    await hub.client.remove(clusterAt('rome'));
    await hub.client.remove(clusterAt('oslo'));
    await hub.becomes('web', 'oslo:-1.2.3@2 paris:1.2.3@1 rome:1.2.3@1');
    assert.equal([await status('oslo'), await status('rome')], [200, 200]);
    await hub.report('web', 'Succeeded', 'oslo');
    await eventually(async () => (await status('oslo')) === 404);
    assert.is(await hub.contents('web'), 'paris:1.2.3@1 rome:1.2.3@1');
    await hub.client.remove('/apis/fleet.curlew.dev/v1alpha1/namespaces/fleet-rome/clusteraddons/web');
    await eventually(async () => (await status('rome')) === 404);
    // Under another name it is another cluster.
    await hub.cluster('bergen');
    await hub.becomes('web', 'bergen:1.2.3@1 paris:1.2.3@1');
    await hub.client.merge('/api/v1/namespaces/fleet-rome', { metadata: { finalizers: null } });
  });

  test('finalizers of others stay', async () => {
    await using server = await open();
    await using hub = await openHubScene(server.kubeconfig);
    await hub.cluster('oslo');
    await hub.addon('web');
    await hub.change('web', { metadata: { finalizers: ['example.com/other'] } });
    hub.start();
    await hub.becomes('web', 'oslo:1.2.3@1');
    const finalizers = async (): Promise<unknown> =>
      at((await hub.client.get(`${ADDONS}/web`)).body, 'metadata.finalizers');
    assert.equal(await finalizers(), ['example.com/other', 'fleet.curlew.dev/removal']);
    await hub.report('web', 'Succeeded', 'oslo');
    await hub.client.remove(`${ADDONS}/web`);
    await hub.becomes('web', 'oslo:-1.2.3@2');
    await hub.report('web', 'Succeeded', 'oslo');
    await hub.becomes('web', '');
    await eventually(async () => String(await finalizers()) === 'example.com/other');
  });

  test('a group waits for an approval, which is void for another content', async () => {
    await using server = await open();
    await using hub = await canaryScene(server.kubeconfig, { rollout: { ...CANARY, approval: ['canary'] } });
    hub.start();
    await eventually(async () => textAt(await hub.status('web'), 'waiting.0.reason') === 'Approval');
    await hub.order('web', 'approve', { groups: ['canary'], generation: 7 });
    await hub.order('web', 'retry');
    const said = /waits for a person's approval; the approval of \S+Z was for another content: approve again$/;
    await eventually(async () => said.test(textAt(await hub.status('web'), 'waiting.0.message')));
    assert.is(await hub.contents('web'), '');
    await hub.order('web', 'approve', { groups: ['canary'] });
    await hub.becomes('web', 'oslo:1.2.3@1');
    await hub.report('web', 'Failed', 'oslo');
    await hub.condition('web', 'Degraded', 'True Stopped');
    await hub.order('web', 'retry', { at: new Date(Date.now() + 2000).toISOString() });
    await hub.becomes('web', 'oslo:1.2.3@2');
  });

  test('an order that cannot be read holds its add-on alone, and a condition says why', async () => {
    await using server = await open();
    await using hub = await canaryScene(server.kubeconfig);
    await hub.change('web', { metadata: { annotations: { 'fleet.curlew.dev/approve': 'yes' } } });
    await hub.addon('other', { source: { chart: { ...hubChart().chart, name: 'other', releaseName: 'other' } } });
    hub.start();
    await hub.becomes('other', 'oslo:1.2.3@1 paris:1.2.3@1 rome:1.2.3@1');
    await hub.condition('web', 'Degraded', 'True Invalid');
    assert.is(await hub.contents('web'), '');
  });

  test('a template that fails for one cluster concerns that cluster alone', async () => {
    await using server = await open();
    await using hub = await openHubScene(server.kubeconfig);
    await hub.cluster('oslo', { host: 'oslo.example.com' });
    await hub.cluster('paris');
    await hub.addon('web', {
      valuesTemplate:
        '{{ if not .Cluster.labels.host }}{{ fail "no host" }}{{ end }}host: {{ .Cluster.labels.host }}\n',
    });
    hub.start();
    await hub.becomes('web', 'oslo:1.2.3@1');
    await eventually(async () => textAt(await hub.status('web'), 'waiting.0.cluster') === 'paris');
    assert.match(textAt(await hub.status('web'), 'waiting.0.message'), /cannot render the values/);
  });

  test('of two controllers one leads, and the other continues without doing anything twice', async () => {
    await using server = await open();
    await using hub = await canaryScene(server.kubeconfig);
    const [one, two] = [hub.start(), hub.start()];
    await hub.becomes('web', 'oslo:1.2.3@1');
    const isLeading = ({ notes }: typeof one): boolean => notes.includes('leading the hub');
    assert.is([one, two].filter(isLeading).length, 1);
    const leader = isLeading(one) ? one : two;
    await leader.stop();
    await hub.report('web', 'Succeeded', 'oslo');
    await hub.becomes('web', 'oslo:1.2.3@1 paris:1.2.3@1 rome:1.2.3@1');
    assert.ok([one, two].every(isLeading));
  });
}
