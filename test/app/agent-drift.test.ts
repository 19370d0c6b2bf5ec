/** What an agent does about objects that others delete or change, as the hub says with the drift of the add-on. */
import type { RunningAgent, AgentScene } from '../support/agent-scene.ts';
import { openAgentScene } from '../support/agent-scene.ts';
import { textAt } from '../support/api-client.ts';
import { StatusError } from '../support/api-server/store.ts';
import * as assert from '../support/assert.ts';
import { eventually } from '../support/hub-scene.ts';
import { suite } from '../support/suite.ts';

const test = suite('app/agent-drift', { timeoutMs: 120_000 });
const ROOT = '/apis/fleet.curlew.dev/v1alpha1/namespaces/fleet-oslo/clusteraddons';
const MAP = '/api/v1/namespaces/default/configmaps/page';

/** What the controller writes into a ClusterAddon. */
async function says({ hub }: AgentScene, drift: string, name = 'web'): Promise<void> {
  await hub.merge(`${ROOT}/${name}`, { metadata: { annotations: { 'fleet.curlew.dev/drift': drift } } });
}

/** A new agent looks at once, where one that runs looks each minute. */
async function lookAgain(scene: AgentScene, before: RunningAgent): Promise<RunningAgent> {
  await before.stop();
  return scene.start({ allowUnsigned: true });
}

/** What others do in the second of a delivery is not seen as theirs. */
async function anotherSecond(after: number): Promise<void> {
  await eventually(async () => Promise.resolve(Date.now() >= after + 1000));
}

async function installed(source?: (scene: AgentScene) => object): Promise<{ scene: AgentScene; agent: RunningAgent }> {
  const scene = await openAgentScene();
  await scene.order({ source: source?.(scene) ?? scene.manifest('1') });
  await says(scene, 'Warn');
  const agent = await scene.start({ allowUnsigned: true });
  await scene.becomes('1 Succeeded');
  await anotherSecond(Date.parse(textAt(await scene.status(), 'since')));
  return { scene, agent };
}

test('deleted objects return, from the copy on disk, and the state keeps its time', async () => {
  const { scene, agent } = await installed();
  await using _scene = scene;
  const { since } = await scene.status();
  scene.cutFiles();
  await scene.here.remove(MAP);
  const again = await lookAgain(scene, agent);
  await eventually(async () => (await scene.version()) === '1');
  await eventually(async () => Promise.resolve(again.notes.includes('restore web 1.2.3, revision 1')));
  await scene.becomes('1 Succeeded');
  assert.is((await scene.status())['since'], since);
});

test('changes are reported with Warn, taken back with Revert, and kept with Keep', async () => {
  const { scene, agent } = await installed();
  await using _scene = scene;
  await scene.here.merge(MAP, { data: { version: 'mine' } });
  const warning = await lookAgain(scene, agent);
  await scene.becomes('1 Succeeded Drift');
  assert.is(textAt(await scene.status(), 'message'), 'changed by others: ConfigMap default/page');
  await says(scene, 'Keep');
  await scene.becomes('1 Succeeded');
  assert.is(await scene.version(), 'mine');
  await says(scene, 'Revert');
  await eventually(async () => (await scene.version()) === '1');
  await anotherSecond(Date.now());
  await scene.here.merge(MAP, { metadata: { labels: { team: 'a' } } });
  await lookAgain(scene, warning);
  await scene.becomes('1 Succeeded Added');
  assert.is(
    textAt(await scene.status(), 'message'),
    'added by others, and stays: ConfigMap default/page: label team of jane',
  );
});

test('a chart and the objects of a template are restored, too', async () => {
  for (const source of [(scene: AgentScene) => scene.chart('1'), undefined]) {
    const { scene, agent } = await installed(source);
    await using _scene = scene;
    let present = agent;
    if (source === undefined) {
      const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'page', namespace: 'default' } };
      const agentSpec = { workload: { manifests: [{ ...map, data: { version: '2' } }] } };
      const values = { templates: [{ addonName: 'web', agentSpec }] };
      await scene.order({ source: { template: 'web' }, values, revision: 2 });
      await scene.becomes('2 Succeeded');
      await anotherSecond(Date.parse(textAt(await scene.status(), 'since')));
    }
    const before = await scene.version();
    await scene.here.remove(MAP);
    present = await lookAgain(scene, present);
    await eventually(async () => (await scene.version()) === before);
    await present.stop();
  }
});

test('what is paused or installed once is left alone, and so is all by a hub of an earlier version', async () => {
  const { scene, agent } = await installed();
  await using _scene = scene;
  let before = agent;
  for (const drift of ['Warn', 'None', null]) {
    await before.stop();
    await scene.hub.merge(`${ROOT}/web`, { metadata: { annotations: { 'fleet.curlew.dev/drift': drift } } });
    const requests: string[] = [];
    scene.before(undefined, (request) => void requests.push(request));
    before = await scene.start({ allowUnsigned: true });
    // The Lease of the add-on comes after its objects; what was kept on disk counts until the hub has answered.
    const looked = () => requests.some((one) => one.includes('/leases/web'));
    await eventually(async () => Promise.resolve(looked()));
    if (drift !== 'Warn') {
      await before.stop();
      requests.length = 0;
      await scene.here.remove(MAP);
      before = await scene.start({ allowUnsigned: true });
      await eventually(async () => Promise.resolve(looked()));
    }
    assert.equal([requests.some((one) => one.includes('labelSelector=')), drift], [drift === 'Warn', drift]);
    await scene.becomes('1 Succeeded');
    assert.is(await scene.version(), drift === 'Warn' ? '1' : '-');
  }
});

test('a server that goes away in a look, or refuses a list, holds no other, and nothing is reported as gone', async () => {
  const { scene, agent } = await installed();
  await using _scene = scene;
  await scene.here.merge(MAP, { data: { version: 'mine' } });
  const isList = (request: string): boolean => request.includes('labelSelector=');
  for (const [status, reason] of [
    [403, 'Forbidden'],
    [503, 'ServiceUnavailable'],
  ] as const) {
    scene.before(undefined, (request) => {
      if (isList(request)) throw new StatusError(status, reason, 'no');
    });
    const again = await lookAgain(scene, agent);
    await eventually(async () =>
      Promise.resolve(again.notes.some((one) => one.startsWith('objects of add-ons are not compared: '))),
    );
    await scene.becomes('1 Succeeded');
    await again.stop();
  }
  scene.before(undefined);
  await scene.start();
  await scene.becomes('1 Succeeded Drift');
});

test('what cannot be restored is tried again, then fails, and another content helps', async () => {
  const { scene, agent } = await installed();
  await using _scene = scene;
  const refuse = (request: string): void => {
    if (request.startsWith('PATCH') && request.includes('/configmaps/page'))
      throw new StatusError(422, 'Invalid', 'ConfigMap "page" is invalid');
  };
  await scene.here.remove(MAP);
  scene.before(undefined, refuse);
  await lookAgain(scene, agent);
  await scene.becomes('1 Failed DeliveryFailed');
  scene.before(undefined);
  await scene.order({ source: scene.manifest('2'), revision: 2 });
  await scene.becomes('2 Succeeded');
  assert.is(await scene.version(), '2');
});

test('what is restored waits for a window of the cluster and one of the add-on, also while the hub is away', async () => {
  const { scene, agent } = await installed();
  await using _scene = scene;
  const [open, closed] = [
    [{ cron: '* * * * *', duration: '1h' }],
    // No month has this day.
    [{ cron: '0 0 31 2 *', duration: '1h' }],
  ];
  const within = async (windows: string): Promise<void> => {
    await scene.hub.merge(`${ROOT}/web`, { metadata: { annotations: { 'fleet.curlew.dev/windows': windows } } });
  };
  let running = agent;
  await within(JSON.stringify([closed]));
  await scene.here.remove(MAP);
  for (const [windows, why] of [
    [JSON.stringify([open, closed]), 'no maintenance window is open'],
    [JSON.stringify([closed]), 'no maintenance window is open'],
    ['of another version', 'cannot read the window: "" is not a minute'],
  ] as const) {
    await within(windows);
    running = await lookAgain(scene, running);
    await eventually(async () => {
      const { reason, message } = await scene.status();
      return reason === 'Window' && message === `missing: ConfigMap default/page; ${why}`;
    });
  }
  await scene.becomes('1 Succeeded Window');
  await running.stop();
  const requests: string[] = [];
  const refuse = (): never => {
    throw new StatusError(503, 'ServiceUnavailable', 'no');
  };
  scene.before(refuse, (request) => void requests.push(request));
  running = await scene.start();
  await eventually(async () => Promise.resolve(requests.some((one) => one.includes('/leases/web'))));
  assert.is(await scene.version(), '-');
  scene.before(undefined);
  await within(JSON.stringify([open, open]));
  await eventually(async () => (await scene.version()) === '1');
  await scene.becomes('1 Succeeded');
  assert.is(running.notes.filter((one) => one.startsWith('restore ')).length, 1);
});

test('a hub that is away is not asked: what it said last counts', async () => {
  const { scene, agent } = await installed();
  await using _scene = scene;
  await says(scene, 'Revert');
  await scene.here.merge(MAP, { data: { version: 'mine' } });
  const again = await lookAgain(scene, agent);
  await eventually(async () => (await scene.version()) === '1');
  await anotherSecond(Date.now());
  await again.stop();
  await scene.here.merge(MAP, { data: { version: 'mine' } });
  scene.before(() => {
    throw new StatusError(503, 'ServiceUnavailable', 'no');
  });
  await scene.start();
  await eventually(async () => (await scene.version()) === '1');
});

test.run();
