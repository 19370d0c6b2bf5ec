/** A hub that was restored under its controllers, and clocks that are an hour apart. */
import { startMemoryApiServer } from '../support/api-server/server.ts';
import { at, textAt } from '../support/api-client.ts';
import * as assert from '../support/assert.ts';
import { openAgentScene } from '../support/agent-scene.ts';
import { hubChart } from '../support/hub-objects.ts';
import { eventually, openHubScene } from '../support/hub-scene.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';

const test = suite('app/hub-faults', { timeoutMs: 240_000 });
const certificate = await makeCertificate();
const HOUR_MS = 3_600_000;
const FLEET = '/apis/fleet.curlew.dev/v1alpha1';

/** True within a minute of this many milliseconds from now. */
function isAbout(time: string, ms: number): boolean {
  return Math.abs(Date.parse(time) - Date.now() - ms) < 60_000;
}

/** `lyon:1.2.3@1 oslo:1.2.3@1` */
function everywhere(names: readonly string[], content: string): string {
  return names.map((name) => `${name}:${content}`).join(' ');
}

test('under a controller, a hub is restored from a backup: what sites have is not taken for what it says, and nothing is removed', async () => {
  await using server = await startMemoryApiServer({ certificate });
  await using hub = await openHubScene(server.kubeconfig);
  const names = ['oslo', 'paris'];
  for (const name of names) await hub.cluster(name);
  await hub.addon('web');
  const controller = hub.start();
  await hub.becomes('web', everywhere(names, '1.2.3@1'));
  await hub.report('web', 'Succeeded', ...names);
  await hub.condition('web', 'Available', 'True AllSucceeded');
  const restore = server.backUp();
  await hub.cluster('rome');
  await hub.change('web', { spec: { source: hubChart('1.3.0') } });
  await hub.becomes('web', everywhere([...names, 'rome'], '1.3.0@2').replace('rome:1.3.0@2', 'rome:1.3.0@1'));
  await hub.report('web', 'Succeeded', ...names, 'rome');
  await hub.condition('web', 'Available', 'True AllSucceeded');
  const web = `${FLEET}/namespaces/fleet-oslo/clusteraddons/web`;
  const reported = at((await hub.client.get(web)).body, 'status');
  restore();
  assert.is(await hub.contents('web'), everywhere(names, '1.2.3@1'));
  // The agent says what it has: that is no answer to what the hub asks for now.
  await hub.client.merge(`${web}/status`, { status: reported });
  await hub.condition('web', 'Available', 'False RollingOut');
  // The controller sees what changes now, also where versions of objects were higher before.
  await hub.cluster('turin');
  await hub.becomes('web', everywhere([...names, 'turin'], '1.2.3@1'));
  await hub.report('web', 'Succeeded', ...names, 'turin');
  await hub.condition('web', 'Available', 'True AllSucceeded');
  // A lower revision than its agent has obeyed would be refused.
  await hub.client.merge(`${web}/status`, { status: reported });
  await hub.change('web', { spec: { source: hubChart('1.4.0') } });
  await hub.becomes('web', 'oslo:1.4.0@3 paris:1.4.0@2 turin:1.4.0@2');
  const writes = server.requests.filter((one) => one.startsWith('DELETE'));
  assert.equal(writes, []);
  assert.ok(!controller.notes.some((one) => one.startsWith('ended')), controller.notes.join('\n'));
});

for (const [title, aheadMs] of [
  ['ahead of', HOUR_MS],
  ['behind', -HOUR_MS],
] as const) {
  test(`a hub whose clock is an hour ${title} those of its controllers and agents has times by its own`, async () => {
    await using server = await startMemoryApiServer({ certificate, aheadMs });
    await using hub = await openHubScene(server.kubeconfig);
    await hub.cluster('oslo');
    await hub.addon('web');
    hub.start();
    await hub.becomes('web', 'oslo:1.2.3@1');
    const { body } = await hub.client.get(`${FLEET}/namespaces/fleet-oslo/clusteraddons/web`);
    assert.ok(isAbout(textAt(body, 'spec.startedAt'), aheadMs), textAt(body, 'spec.startedAt'));

    await using site = await openAgentScene({ aheadMs });
    await site.order({ source: site.manifest('1') });
    await site.start();
    await site.becomes('1 Succeeded');
    const since = textAt(await site.status(), 'since');
    assert.ok(isAbout(since, aheadMs), since);
    await eventually(async () => textAt(await site.cluster(), 'lastSeen') !== '');
    const cluster = await site.cluster();
    const available = textAt(cluster, 'conditions.0.lastTransitionTime');
    assert.ok(isAbout(available, aheadMs), available);
    assert.match(JSON.stringify(cluster), aheadMs > 0 ? /60 min behind that of the hub/ : /60 min ahead of that/);
  });
}

test.run();
