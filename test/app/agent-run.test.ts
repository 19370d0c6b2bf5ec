/** An agent between its hub and its cluster, which are API servers in this process. */
import { openAgentScene } from '../support/agent-scene.ts';
import { textAt } from '../support/api-client.ts';
import { StatusError } from '../support/api-server/store.ts';
import * as assert from '../support/assert.ts';
import { eventually } from '../support/hub-scene.ts';
import { suite } from '../support/suite.ts';

const test = suite('app/agent-run', { timeoutMs: 120_000 });

test('a signed manifest is delivered, updated, and removed, as the hub orders', async () => {
  await using scene = await openAgentScene();
  await scene.order({ source: scene.manifest('1'), specHash: 'a1' });
  await scene.start();
  await scene.becomes('1 Succeeded');
  assert.is(await scene.version(), '1');
  await scene.order({ source: scene.manifest('2'), specHash: 'a2', revision: 2 });
  await scene.becomes('2 Succeeded');
  assert.is(await scene.version(), '2');
  await scene.order({ source: scene.manifest('2'), specHash: 'a2', revision: 3, action: 'Remove' });
  await scene.becomes('3 Succeeded');
  assert.is(await scene.version(), '-');
});

test('the cluster is reported with its facts, and its Lease is renewed', async () => {
  await using scene = await openAgentScene();
  await scene.start();
  await eventually(async () => textAt(await scene.cluster(), 'facts.version') === 'v1.34.4');
  const lease = '/apis/coordination.k8s.io/v1/namespaces/fleet-oslo/leases/curlew-agent';
  await eventually(async () => textAt((await scene.hub.get(lease)).body, 'spec.holderIdentity') !== '');
});

test('what is unsigned, signed by a stranger, or not what its digest says is refused', async () => {
  await using scene = await openAgentScene();
  await scene.order({ source: scene.manifest('1', { by: 'none' }), specHash: 'a1' });
  await scene.order({ source: scene.manifest('2', { by: 'stranger' }), specHash: 'a2' }, 'two');
  await scene.order({ source: { ...scene.manifest('3'), hash: `sha256:${'0'.repeat(64)}` }, specHash: 'a3' }, 'three');
  await scene.order({ specHash: 'a4' }, 'chart');
  await scene.start();
  await scene.becomes('1 Failed Unsigned');
  await scene.becomes('1 Failed Unsigned', 'two');
  await scene.becomes('1 Failed OtherDigest', 'three');
  await scene.becomes('1 Failed Unsigned', 'chart');
  assert.is(await scene.version(), '-');
});

test('unsigned content is accepted by an agent that was joined so', async () => {
  await using scene = await openAgentScene();
  await scene.order({ source: scene.manifest('1', { by: 'none' }), specHash: 'a1' });
  await scene.start({ allowUnsigned: true });
  await scene.becomes('1 Succeeded');
});

test('an add-on that a channel has is left alone', async () => {
  await using scene = await openAgentScene();
  const record = {
    addon: 'web',
    namespace: 'kube-system',
    owner: 'channel:stable',
    state: 'Succeeded',
    since: '',
    reason: '',
    history: [],
  };
  const data = { 'kube-system.web': JSON.stringify(record) };
  await scene.here.create('/api/v1/namespaces/kube-system/configmaps', { metadata: { name: 'curlew-addons' }, data });
  await scene.order({ source: scene.manifest('1'), specHash: 'a1' });
  await scene.start();
  await scene.becomes('1 Failed OtherOwner');
  assert.is(await scene.version(), '-');
});

test('while the hub is away, what was obeyed is continued from the copies on disk, and reported later', async () => {
  await using scene = await openAgentScene();
  await scene.order({ source: scene.manifest('1'), specHash: 'a1' });
  // The cluster cannot be changed: the file is verified and kept, and nothing begins.
  let isLocked = true;
  const lock = (request: string): void => {
    if (isLocked && /curlew-addons/.test(request)) throw new StatusError(500, 'InternalError', 'away');
  };
  scene.before(undefined, lock);
  const first = await scene.start();
  await scene.becomes('1 Progressing Waiting');
  await first.stop();
  scene.cutFiles();
  scene.before((request) => {
    throw new StatusError(500, 'InternalError', `the hub is away: ${request}`);
  }, lock);
  isLocked = false;
  await scene.start();
  await eventually(async () => (await scene.version()) === '1');
  scene.before(undefined);
  assert.is(textAt(await scene.status(), 'state'), 'Progressing');
});

test('a restored hub is not obeyed, until an agent is told to', async () => {
  await using scene = await openAgentScene();
  await scene.order({ source: scene.manifest('2'), specHash: 'a2', revision: 2 });
  const first = await scene.start();
  await scene.becomes('2 Succeeded');
  await scene.drop();
  await scene.order({ source: scene.manifest('1'), specHash: 'a1', revision: 1 });
  await scene.becomes('2 Succeeded OlderRevision');
  assert.is(await scene.version(), '2');
  await first.stop();
  await scene.start({ acceptOlder: true });
  await scene.becomes('1 Succeeded');
  assert.is(await scene.version(), '1');
});

test('a ClusterAddon that vanishes leaves the add-on, which is reported as detached', async () => {
  await using scene = await openAgentScene();
  await scene.order({ source: scene.manifest('1'), specHash: 'a1' });
  await scene.start();
  await scene.becomes('1 Succeeded');
  await scene.drop();
  const degraded = async (): Promise<string> => {
    const { conditions = [] } = (await scene.cluster()) as unknown as {
      conditions?: readonly { type: string; reason: string; message?: string }[];
    };
    const found = conditions.find(({ type }) => type === 'Degraded');
    return `${found?.reason} ${found?.message}`;
  };
  await eventually(async () => (await degraded()) === 'AddonsDetached web');
  assert.is(await scene.version(), '1');
});

test('an idle agent sends at most two requests a minute, besides those with which it begins', async () => {
  await using scene = await openAgentScene();
  await scene.order({ source: scene.manifest('1'), specHash: 'a1' });
  await scene.start();
  await scene.becomes('1 Succeeded');
  await eventually(async () => textAt(await scene.cluster(), 'facts.version') !== '');
  const agents = scene.requests.filter(
    (one) => !one.startsWith('GET') || /leases|watch=true|clusters\/oslo$/.test(one),
  );
  // One list and watch, the Lease twice, the Cluster, and two or three statuses: nothing is repeated.
  assert.ok(agents.length <= 16, agents.join('\n'));
});

test.run();
