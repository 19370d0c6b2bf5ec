/** A hub that was restored from a backup, and what its agents have kept, also in files of an earlier version. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { openAgentScene, type AgentScene } from '../support/agent-scene.ts';
import { textAt } from '../support/api-client.ts';
import { StatusError } from '../support/api-server/store.ts';
import * as assert from '../support/assert.ts';
import { hubClusterAddon } from '../support/hub-objects.ts';
import { eventually } from '../support/hub-scene.ts';
import { suite } from '../support/suite.ts';

const test = suite('app/agent-restored', { timeoutMs: 120_000 });

/** A manifest of a ConfigMap `<name>`, at its own address. */
function manifestOf(scene: AgentScene, name: string): object {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' } };
  return scene.manifest(name, { objects: [object] });
}

async function isThere(scene: AgentScene, name: string): Promise<boolean> {
  return (await scene.here.get(`/api/v1/namespaces/default/configmaps/${name}`)).status === 200;
}

async function degraded(scene: AgentScene): Promise<string> {
  const { conditions = [] } = (await scene.cluster()) as unknown as {
    readonly conditions?: readonly { readonly type: string; readonly reason: string; readonly message?: string }[];
  };
  const found = conditions.find(({ type }) => type === 'Degraded');
  return `${found?.reason} ${found?.message}`;
}

test('a hub is restored from yesterday: what sites have stays, is named, and outlives a restart; then they go on', async () => {
  await using scene = await openAgentScene();
  const [gone, late] = [manifestOf(scene, 'gone'), manifestOf(scene, 'late')];
  await scene.order({ source: scene.manifest('1') });
  await scene.order({ source: gone }, 'gone');
  const first = await scene.start();
  await scene.becomes('1 Succeeded');
  await scene.becomes('1 Succeeded', 'gone');
  const restore = scene.backUp();
  await scene.order({ source: scene.manifest('2'), revision: 2 });
  await scene.order({ source: gone, revision: 2, action: 'Remove' }, 'gone');
  await scene.order({ source: late }, 'late');
  await scene.becomes('2 Succeeded');
  await scene.becomes('2 Succeeded', 'gone');
  await scene.becomes('1 Succeeded', 'late');

  restore();
  const yesterday = async (): Promise<void> => {
    await scene.becomes('2 Succeeded OlderRevision');
    await scene.becomes('2 Succeeded OlderRevision', 'gone');
    await eventually(async () => (await degraded(scene)) === 'AddonsFailed gone, web');
    assert.is(await scene.version(), '2');
    assert.equal([await isThere(scene, 'gone'), await isThere(scene, 'late')], [false, true]);
  };
  await yesterday();
  const why = 'revision 2 was obeyed, and 1 is older; curlew agent run --accept-older accepts it';
  assert.is(textAt(await scene.status(), 'message'), why);
  await first.stop();
  // The hub forgets what it was told meanwhile, and is away when the next agent begins.
  restore();
  scene.before((request) => {
    throw new StatusError(500, 'InternalError', `the hub is away: ${request}`);
  });
  const { notes } = await scene.start();
  await eventually(async () => Promise.resolve(notes.some((note) => note.includes('the hub is away'))));
  assert.is(await scene.version(), '2');
  scene.before(undefined);
  await yesterday();

  await scene.order({ source: scene.manifest('3'), revision: 3 });
  await scene.order({ source: gone, revision: 3 }, 'gone');
  await scene.order({ source: late }, 'late');
  await scene.becomes('3 Succeeded');
  await scene.becomes('3 Succeeded', 'gone');
  await scene.becomes('1 Succeeded', 'late');
  assert.is(await scene.version(), '3');
  assert.ok(await isThere(scene, 'gone'));
  await eventually(async () => (await degraded(scene)) === 'AsExpected ');
});

test('one revision with two contents is not obeyed, and the next one is', async () => {
  await using scene = await openAgentScene();
  await scene.order({ source: scene.manifest('1') });
  await scene.start();
  await scene.becomes('1 Succeeded');
  const restore = scene.backUp();
  await scene.order({ source: scene.manifest('2'), revision: 2 });
  await scene.becomes('2 Succeeded');
  restore();
  await scene.order({ source: scene.manifest('other'), revision: 2 });
  await scene.becomes('2 Succeeded ChangedRevision');
  assert.is(await scene.version(), '2');
  await scene.order({ source: scene.manifest('other'), revision: 3 });
  await scene.becomes('3 Succeeded');
  assert.is(await scene.version(), 'other');
});

/** What the first version that had a record wrote: each later field can be missing. */
function firstRecord(scene: AgentScene, spec: object): string {
  const own = { state: 'Succeeded', reason: '', message: '', since: 1_700_000_000, tries: 0, next: 0, orphans: [] };
  const object = hubClusterAddon('web', 'oslo', { hub: scene.id, identity: 'addon:kube-system/web', ...spec });
  const { spec: obeyed } = object as { readonly spec: { readonly specHash: string } };
  return `${JSON.stringify({ format: 1, addons: { web: { spec: obeyed, good: [obeyed.specHash], ...own } } })}\n`;
}

test('the record of an earlier version is obeyed as one of this version is', async () => {
  await using scene = await openAgentScene();
  await mkdir(scene.box.at('agent'));
  await writeFile(scene.box.at('agent/record.json'), firstRecord(scene, { source: scene.manifest('2'), revision: 2 }), {
    mode: 0o600,
  });
  await scene.order({ source: scene.manifest('1') });
  await scene.start();
  await scene.becomes('2 Succeeded OlderRevision');
  await scene.order({ source: scene.manifest('3'), revision: 3 });
  await scene.becomes('3 Succeeded');
  assert.is(await scene.version(), '3');
});

for (const [title, text, expected] of [
  ['of a later version', '{"format":2,"addons":{}}', /format/],
  ['that is empty', '', /record\.json/],
  ['that is torn', '{"format":1,"addons":{"web":{"spec":{"revi', /record\.json/],
] as const) {
  test(`a record ${title} ends the agent, which names it, and stays as it is`, async () => {
    await using scene = await openAgentScene();
    await mkdir(scene.box.at('agent'));
    const file = scene.box.at('agent/record.json');
    await writeFile(file, text, { mode: 0o600 });
    const { ended, notes } = await scene.start();
    await ended;
    assert.match(notes.join('\n'), expected);
    assert.match(notes.join('\n'), /^ended: CurlewError: cannot read .*record\.json: /);
    assert.is(await readFile(file, 'utf8'), text);
  });
}

test.run();
