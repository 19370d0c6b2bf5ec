/** Contents that an agent refuses at once, with what can deliver them. */
import { openAgentScene } from '../support/agent-scene.ts';
import { textAt } from '../support/api-client.ts';
import type { JsonObject } from '../support/api-server/fields.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('app/agent-content', { timeoutMs: 120_000 });

test('a template is refused at once by an agent that accepts only signed content, and no file is read for it', async () => {
  await using scene = await openAgentScene();
  await scene.order({ source: { template: 'web' } });
  await scene.order({ source: { manifest: 'https://example.com/page.yaml' } }, 'two');
  const values = { templates: [{ registration: [{ type: 'KubeClient' }] }] };
  await scene.order({ source: { template: 'three' }, values }, 'three');
  await scene.start();
  await scene.becomes('1 Failed Content');
  assert.match(
    textAt(await scene.status(), 'message'),
    /^nothing signs a template: register .* --allow-unsigned, .*access.kubeconfigSecret in the Cluster of this site$/,
  );
  await scene.becomes('1 Failed Unreadable', 'two');
  await scene.becomes('1 Failed Content', 'three');
  // Only an agent gets its certificates.
  assert.is(
    textAt(await scene.status('three'), 'message'),
    'nothing signs a template: register the agent with --allow-unsigned',
  );
  await scene.order({ source: { template: 'web' }, revision: 2, action: 'Remove' });
  await scene.becomes('2 Succeeded');
});

test('values in a Secret of the hub are refused at once, with the way to deliver them', async () => {
  await using scene = await openAgentScene();
  const valuesSecret = { name: 'web', digest: `sha256:${'0'.repeat(64)}` };
  await scene.order({ source: { ...scene.manifest('1'), valuesSecret } });
  await scene.start();
  await scene.becomes('1 Failed Content');
  assert.match(
    textAt(await scene.status(), 'message'),
    /^an agent cannot read valuesSecret and valuesConfigMap, .*kubeconfigSecret/,
  );
  assert.is(await scene.version(), '-');
});

test('what a template no longer has is deleted, or stays with prune: None, as for other content', async () => {
  await using scene = await openAgentScene();
  const map = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' } });
  const order = async (revision: number, names: readonly string[], more: object = {}): Promise<void> => {
    const agentSpec = { workload: { manifests: names.map(map) } };
    const values = { templates: [{ addonName: 'web', agentSpec }] };
    await scene.order({ source: { template: 'web' }, values, revision, ...more });
    await scene.becomes(`${revision} Succeeded`);
  };
  const names = async (): Promise<string> => {
    const { body } = await scene.here.get('/api/v1/namespaces/default/configmaps');
    return (body['items'] as readonly JsonObject[]).map((one) => textAt(one, 'metadata.name')).join(' ');
  };
  await scene.start({ allowUnsigned: true });
  await order(1, ['a', 'b', 'c']);
  await order(2, ['a', 'b']);
  assert.is(await names(), 'a b');
  await order(3, ['a'], { prune: 'None' });
  assert.equal([await names(), (await scene.status())['orphans']], ['a b', ['ConfigMap default/b']]);
});

test.run();
