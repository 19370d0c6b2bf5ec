/** An agent between its hub and its cluster, which are API servers in this process. */
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AgentHub } from '../../src/fleet/agent/run/hub.ts';
import type { Packages } from '../../src/fleet/agent/run/loop.ts';
import { openApi } from '../../src/cluster/kube/api.ts';
import { openAgentScene } from '../support/agent-scene.ts';
import { textAt } from '../support/api-client.ts';
import { StatusError } from '../support/api-server/store.ts';
import type { JsonObject } from '../support/api-server/fields.ts';
import * as assert from '../support/assert.ts';
import { freePort } from '../support/ports.ts';
import { eventually } from '../support/hub-scene.ts';
import { suite } from '../support/suite.ts';

const test = suite('app/agent-run', { timeoutMs: 120_000 });

test('a signed manifest is delivered, updated, and removed, as the hub orders, and metrics count that', async () => {
  await using scene = await openAgentScene();
  await scene.order({ source: scene.manifest('1') });
  const metrics = await freePort();
  await scene.start({ metrics });
  await scene.becomes('1 Succeeded');
  assert.is(await scene.version(), '1');
  await scene.order({ source: scene.manifest('2'), revision: 2 });
  await scene.becomes('2 Succeeded');
  assert.is(await scene.version(), '2');
  await scene.order({ source: scene.manifest('2'), revision: 3, action: 'Remove' });
  await scene.becomes('3 Succeeded');
  assert.is(await scene.version(), '-');
  const text = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text();
  assert.match(text, /^curlew_agent_jobs_total\{result="done"\} 3$/m);
  assert.match(text, /^curlew_agent_passes_total\{result="decided"\} [1-9]/m);
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
  await scene.order({ source: scene.manifest('1', { by: 'none' }) });
  await scene.order({ source: scene.manifest('2', { by: 'stranger' }) }, 'two');
  await scene.order({ source: { ...scene.manifest('3'), hash: `sha256:${'0'.repeat(64)}` } }, 'three');
  await scene.order({}, 'chart');
  await scene.start();
  await scene.becomes('1 Failed Unsigned');
  await scene.becomes('1 Failed Unsigned', 'two');
  await scene.becomes('1 Failed OtherDigest', 'three');
  await scene.becomes('1 Failed Unsigned', 'chart');
  assert.is(await scene.version(), '-');
});

test('objects that leave a manifest go with the next revision, and most of them only with an approval', async () => {
  await using scene = await openAgentScene();
  const map = (name: string): object => {
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' } };
  };
  const names = async (): Promise<string> => {
    const { body } = await scene.here.get('/api/v1/namespaces/default/configmaps');
    return (body['items'] as readonly JsonObject[]).map((one) => textAt(one, 'metadata.name')).join(' ');
  };
  const space = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'extra' } };
  await scene.order({ source: scene.manifest('1', { objects: [map('a'), map('b'), space] }) });
  await scene.start();
  await scene.becomes('1 Succeeded');
  await scene.order({ source: scene.manifest('2', { objects: [map('a')] }), revision: 2 });
  await scene.becomes('2 Succeeded');
  assert.equal([await names(), (await scene.status())['orphans']], ['a', ['Namespace extra']]);
  const source = scene.manifest('3', { objects: [map('c')] });
  await scene.order({ source, revision: 3 });
  await scene.becomes('3 Skipped Deletions');
  assert.match(textAt(await scene.status(), 'message'), 'it would delete 1 of its 1 object: ConfigMap default/a');
  assert.is(await names(), 'a');
  await scene.order({ source, revision: 4, prune: 'All' });
  await scene.becomes('4 Succeeded');
  assert.is(await names(), 'c');
  await scene.order({ source: scene.manifest('5', { objects: [map('d')] }), revision: 5, prune: 'None' });
  await scene.becomes('5 Succeeded');
  assert.is(await names(), 'c d');
  // What Kubernetes deletes with an owner stays with it, and is named.
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'n1' }];
  await scene.here.merge('/api/v1/namespaces/default/configmaps/d', { metadata: { ownerReferences } });
  await scene.order({ source, revision: 6, action: 'Remove' });
  await scene.becomes('6 Succeeded Orphaned');
  const left = 'it leaves ConfigMap default/d (it is deleted with its owner, Node n1), Namespace extra';
  assert.equal([await names(), textAt(await scene.status(), 'message').startsWith(left)], ['d', true]);
});

test('unsigned content is accepted by an agent that was joined so', async () => {
  await using scene = await openAgentScene();
  await scene.order({ source: scene.manifest('1', { by: 'none' }), version: undefined });
  const { notes } = await scene.start({ allowUnsigned: true });
  await scene.becomes('1 Succeeded');
  assert.ok(notes.includes('install web, revision 1'), notes.join());
});

test('a kind that the cluster does not have is a failure at once', async () => {
  await using scene = await openAgentScene();
  const missing = { apiVersion: 'example.com/v1', kind: 'Missing', metadata: { name: 'page', namespace: 'default' } };
  await scene.order({ source: scene.manifest('1', { objects: [missing] }) });
  await scene.start();
  await scene.becomes('1 Failed DeliveryFailed');
});

test('a chart that its repository does not have is a failure at once', async () => {
  await using scene = await openAgentScene();
  scene.helm.before((command) => {
    if (command.startsWith('pull'))
      throw new Error('chart "web" version "1.2.3" not found in https://charts.example.com');
  });
  await scene.order({});
  await scene.start({ allowUnsigned: true });
  await scene.becomes('1 Failed DeliveryFailed');
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
  await scene.order({ source: scene.manifest('1') });
  await scene.start();
  await scene.becomes('1 Failed OtherOwner');
  assert.is(await scene.version(), '-');
});

test('while the hub is away, what was obeyed is continued from the copies on disk, and reported later', async () => {
  await using scene = await openAgentScene();
  await scene.order({ source: scene.manifest('1') });
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
  await scene.order({ source: scene.manifest('2'), revision: 2 });
  const first = await scene.start();
  await scene.becomes('2 Succeeded');
  await scene.drop();
  await scene.order({ source: scene.manifest('1'), revision: 1 });
  await scene.becomes('2 Succeeded OlderRevision');
  assert.is(await scene.version(), '2');
  await first.stop();
  await scene.start({ acceptOlder: true });
  await scene.becomes('1 Succeeded');
  assert.is(await scene.version(), '1');
});

test('a ClusterAddon that vanishes leaves the add-on, which is reported as detached', async () => {
  await using scene = await openAgentScene();
  await scene.order({ source: scene.manifest('1') });
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
  await scene.order({ source: scene.manifest('1') });
  await scene.start();
  await scene.becomes('1 Succeeded');
  await eventually(async () => textAt(await scene.cluster(), 'facts.version') !== '');
  const agents = scene.requests.filter(
    (one) => !one.startsWith('GET') || /leases|watch=true|clusters\/oslo$/.test(one),
  );
  // One list and watch, the Lease twice, the Cluster, and two or three statuses: nothing is repeated.
  assert.ok(agents.length <= 16, agents.join('\n'));
});

test('a record that cannot be written stops nothing but what is new, and is reported when it can', async () => {
  await using scene = await openAgentScene();
  const { notes } = await scene.start();
  await eventually(async () => textAt(await scene.cluster(), 'facts.version') !== '');
  const record = scene.box.at('agent/record.json');
  await rm(record, { force: true });
  await mkdir(join(record, 'in-the-way'), { recursive: true });
  await scene.order({ source: scene.manifest('1') });
  await eventually(async () => Promise.resolve(notes.some((note) => note.includes('record.json'))));
  await scene.becomes('1 Progressing');
  assert.is(await scene.version(), '-');
  await rm(record, { recursive: true });
  await scene.becomes('1 Succeeded');
});

/** Packages on a node, and what was done with them. */
function nodeWith(...names: readonly string[]): { readonly packages: Packages; readonly done: string[] } {
  const there = new Set(names);
  const done: string[] = [];
  const packages: Packages = {
    has: async (name) => Promise.resolve(there.has(name)),
    install: async ({ name }) => {
      there.add(name);
      done.push(`install ${name}`);
      return Promise.resolve();
    },
    remove: async (name) => {
      there.delete(name);
      done.push(`remove ${name}`);
      return Promise.resolve();
    },
    health: async () => Promise.resolve(undefined),
  };
  return { packages, done };
}

function packageNamed(name: string): object {
  return { source: { package: { name, version: '1.0.0', hash: `sha256:${'0'.repeat(64)}` } } };
}

test('a package that the fleet has not brought is neither changed nor removed', async () => {
  await using scene = await openAgentScene();
  const { packages, done } = nodeWith('weave');
  await scene.order(packageNamed('weave'));
  await scene.order({ ...packageNamed('weave'), action: 'Remove' }, 'net');
  await scene.start({ packages });
  await scene.becomes('1 Failed OtherOwner');
  assert.match(textAt(await scene.status(), 'message'), /: curlew uninstall weave on the node removes it$/);
  await scene.becomes('1 Succeeded', 'net');
  await scene.order({ ...packageNamed('weave'), revision: 2, action: 'Remove' });
  await scene.becomes('2 Succeeded');
  assert.equal(done, []);
});

test('an add-on keeps its package until it is removed', async () => {
  await using scene = await openAgentScene();
  const { packages, done } = nodeWith();
  await scene.order(packageNamed('page'));
  await scene.start({ packages });
  await scene.becomes('1 Succeeded');
  await scene.order({ ...packageNamed('site'), revision: 2 });
  await scene.becomes('2 Failed OtherPackage');
  await scene.order({ ...packageNamed('site'), revision: 3, action: 'Remove' });
  await scene.becomes('3 Succeeded');
  assert.equal(done, ['install page', 'remove page']);
});

test('the health of a package is what its hook says', async () => {
  await using scene = await openAgentScene();
  const { packages } = nodeWith();
  const asked: string[] = [];
  await scene.order(packageNamed('page'));
  const first = await scene.start({ packages });
  await scene.becomes('1 Succeeded');
  await first.stop();
  const health: Packages['health'] = async (name) => {
    asked.push(name);
    return Promise.resolve({ is: 'False', why: 'no replica answers' });
  };
  await scene.start({ packages: { ...packages, health } });
  await eventually(async () => textAt(await scene.status(), 'health') === 'False');
  assert.equal(asked, ['page']);
});

test('an agent whose own package is updated ends by itself before its next job, which the new one does', async () => {
  await using scene = await openAgentScene();
  const program = scene.box.at('curlew');
  await writeFile(program, 'old');
  const { packages, done } = nodeWith();
  const install: Packages['install'] = async (content, ...others) => {
    await packages.install(content, ...others);
    if (content.name !== 'curlew-agent') return;
    await writeFile(`${program}.new`, 'new');
    await rename(`${program}.new`, program);
  };
  await scene.order(packageNamed('curlew-agent'), 'agent');
  await scene.order(packageNamed('page'), 'page');
  const first = await scene.start({ packages: { ...packages, install }, program });
  await first.ended;
  assert.match(first.notes.at(-1) ?? '', /ends: its program was replaced$/);
  assert.equal(done, ['install curlew-agent']);
  assert.is(textAt(await scene.status('agent'), 'state'), 'Succeeded');
  await scene.start({ packages, program });
  await scene.becomes('1 Succeeded', 'page');
});

test('an agent that is removed reports it before it ends', async () => {
  await using scene = await openAgentScene();
  const program = scene.box.at('curlew');
  await writeFile(program, 'old');
  const { packages } = nodeWith();
  const remove: Packages['remove'] = async () => rm(program);
  await scene.order(packageNamed('curlew-agent'), 'agent');
  const first = await scene.start({ packages: { ...packages, remove }, program });
  await scene.becomes('1 Succeeded', 'agent');
  await scene.order({ ...packageNamed('curlew-agent'), revision: 2, action: 'Remove' }, 'agent');
  await first.ended;
  await scene.becomes('2 Succeeded', 'agent');
});

test('an agent says once that it has begun, and nothing while it is idle', async () => {
  await using scene = await openAgentScene();
  const { notes } = await scene.start();
  await eventually(async () => textAt(await scene.cluster(), 'facts.version') !== '');
  assert.equal(notes.slice(0, 1), ['the agent of oslo has begun']);
  assert.is(new Set(notes).size, notes.length);
});

test('of two agents with one Lease each sees the other, and one that has taken over from another sees none', async () => {
  await using scene = await openAgentScene();
  const agent = async (): Promise<AgentHub> => {
    const api = await openApi({ env: { KUBECONFIG: scene.box.at('hub.conf') } });
    if (api === undefined) throw new Error('no kubeconfig');
    return new AgentHub(api, { cluster: 'oslo', signal: new AbortController().signal });
  };
  const [old, one, two] = [await agent(), await agent(), await agent()];
  await old.beat('old');
  for (let times = 0; times < 3; times += 1) await one.beat('one');
  assert.is(one.rival, undefined);
  // A conflict, and then what the other has written.
  for (let times = 0; times < 4; times += 1) {
    await two.beat('two');
    await one.beat('one');
  }
  assert.equal([one.rival, two.rival], ['two', 'one']);
});

test('an agent with other pinned keys asks for the signature again', async () => {
  await using scene = await openAgentScene();
  const source = scene.manifest('1');
  await scene.order({ source });
  const first = await scene.start();
  await scene.becomes('1 Succeeded');
  await first.stop();
  const [kept = ''] = (await readdir(scene.box.at('agent/files'))).filter((name) => name.endsWith('.json'));
  const file = scene.box.at('agent/files', kept);
  await writeFile(file, (await readFile(file, 'utf8')).replace(/"signature":"[^"]*/, '"signature":"AAAA'));
  await scene.order({ source, revision: 2 });
  await scene.start();
  await scene.becomes('2 Succeeded');
});

test.run();
