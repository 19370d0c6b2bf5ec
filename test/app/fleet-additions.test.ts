/** What others have added to objects of a fleet, and an apply leaves. */
import { plan as planCommand, status } from '../../src/cli/commands/fleet.ts';
import { textAt } from '../support/api-client.ts';
import * as assert from '../support/assert.ts';
import { addon } from '../support/fleet-files.ts';
import { doneIn, openFleetScene, statesIn } from '../support/fleet-scene.ts';
import { suite } from '../support/suite.ts';

const test = suite('app/fleet-additions');

test('what others add to lists and maps stays with Revert, and plan and status name it once for equal clusters', async () => {
  await using scene = await openFleetScene(['lyon', 'paris']);
  const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', namespace: 'default' } };
  const ports = [{ name: 'http', port: 80 }];
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'key', namespace: 'default' } };
  await scene.manifest('', { ...service, spec: { ports } }, { ...secret, stringData: { own: 'mine' } });
  await scene.fleet([addon('web', { drift: 'Revert' })]);
  await scene.apply();
  const changed = { metadata: { labels: { team: 'a' } }, spec: { ports: [...ports, { name: 'extra', port: 81 }] } };
  for (const name of ['lyon', 'paris'])
    await scene.api(name).merge('/api/v1/namespaces/default/services/web', changed, 'kubectl-patch');
  const keys = Object.fromEntries(Array.from({ length: 7 }, (_, at) => [`k${at}`, 'aGlkZGVu']));
  await scene.api('paris').merge('/api/v1/namespaces/default/secrets/key', { data: keys });
  const plan = await scene.plan();
  assert.equal(statesIn(plan), ['lyon Succeeded none', 'paris Succeeded none']);
  const web = 'Service default/web: label team of kubectl-patch, port 81 of kubectl-patch';
  const key = 'Secret default/key: data k0 of jane, data k1 of jane, data k2 of jane, data k3 of jane, data k4 of jane';
  assert.equal(
    plan.targets.map(({ added }) => added?.toSorted()),
    [[web], [`${key} and 2 more`, web]],
  );
  assert.not.match(JSON.stringify(plan), 'aGlkZGVu');
  for (const command of [planCommand, status]) {
    const text = command.render(plan, { options: {} } as never, undefined as never);
    assert.match(text, `added by others, and stays: ${web} (web on lyon, paris)\n`);
    assert.match(text, `${key} and 2 more (web on paris)`);
  }
  // What it declares is put back, beside them.
  await scene.api('lyon').merge('/api/v1/namespaces/default/services/web', {
    spec: {
      ports: [
        { name: 'mine', port: 80 },
        { name: 'extra', port: 81 },
      ],
    },
  });
  assert.equal(doneIn(await scene.apply()), ['lyon web restore done']);
  const { body } = await scene.api('lyon').get('/api/v1/namespaces/default/services/web');
  assert.equal([textAt(body, 'spec.ports.0.name'), textAt(body, 'spec.ports.1.name')], ['http', 'extra']);
  assert.equal((await scene.plan()).targets[0]?.added, [web]);
  await scene.fleet([addon('web', { drift: 'Keep' })]);
  assert.ok((await scene.plan()).targets.every(({ added }) => added === undefined));
});

test('of many additions, a bounded number is named', async () => {
  await using scene = await openFleetScene(['lyon']);
  const maps = Array.from({ length: 23 }, (_, at) => {
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `m${at}`, namespace: 'default' } };
  });
  await scene.manifest('', ...maps);
  await scene.fleet([addon('web', { drift: 'Revert' })]);
  await scene.apply();
  for (const { metadata } of maps)
    await scene.api('lyon').merge(`/api/v1/namespaces/default/configmaps/${metadata.name}`, {
      metadata: { labels: { team: 'a' } },
    });
  const plan = await scene.plan();
  const [{ added = [] } = {}] = plan.targets;
  assert.equal(
    [added.length, added[0], added.at(-1)],
    [21, 'ConfigMap default/m0: label team of jane', '3 more objects'],
  );
  const text = planCommand.render(plan, { options: {} } as never, undefined as never);
  assert.match(text, 'added by others, and stays: 1 more, which --json shows');
});

test.run();
