/** Passes that fail early on a real API server: what is recorded, and what namespaces they need. */
import { channelStatus } from '../../src/app/channel-status.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { channelScene, configMap, outcomes } from './support/channel-scene.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/channel-failures', { timeoutMs: 180_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS);
const opened = createOpened();

if (reason === undefined) {
  let server: ApiServer;
  test.before(async () => {
    const box = opened.keep(await tree());
    server = opened.keep(await startApiServer(box.at('server')));
  });
  test.after(opened.close);

  test('a failure before anything is in the cluster leaves no record; one of an installed add-on is recorded', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    const statusOf = async () =>
      (await channelStatus({ kubeconfig: server.kubeconfig }, scene.context)).addons.filter(
        (one) => one.namespace === namespace,
      );
    const wrong = { ...configMap('a', namespace), data: { a: [1] } };
    await scene.write('a.yaml', wrong);
    await scene.channel([{ name: 'web', version: '1', manifest: 'a.yaml' }]);
    assert.equal(outcomes(await scene.apply()), ['web install failed']);
    assert.equal(await statusOf(), []);
    await scene.write('a.yaml', configMap('a', namespace));
    assert.equal(outcomes(await scene.apply()), ['web install applied']);
    await scene.write('b.yaml', wrong);
    await scene.channel([{ name: 'web', version: '2', manifest: 'b.yaml' }]);
    assert.equal(outcomes(await scene.apply()), ['web update failed']);
    const [failed] = await statusOf();
    assert.equal([failed?.state, failed?.installed?.version, failed?.objects], ['Failed', '1', 1]);
  });

  test('namespaces come with add-ons of the same pass; one that is being deleted is named', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    const [fresh, ending] = [`${namespace}-fresh`, `${namespace}-ending`];
    await scene.write('a.yaml', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: fresh } });
    await scene.write('b.yaml', configMap('b', fresh));
    const entry = { name: 'bbb', version: '1', manifest: 'b.yaml', requires: [{ name: 'aaa' }] };
    await scene.channel([
      { name: 'aaa', version: '1', manifest: 'a.yaml' },
      { ...entry, namespace: fresh },
    ]);
    assert.equal(outcomes(await scene.plan()), ['aaa install planned', 'bbb install planned']);
    assert.equal(outcomes(await scene.apply()), ['aaa install applied', 'bbb install applied']);
    const held = { name: ending, finalizers: ['example.com/held'] };
    await scene.write('ns.json', { apiVersion: 'v1', kind: 'Namespace', metadata: held });
    await server.kubectl(['create', '-f', scene.box.at('ns.json')]);
    await server.kubectl(['delete', 'namespace', ending, '--wait=false']);
    await scene.write('b.yaml', configMap('b', ending));
    await scene.channel([{ name: 'ccc', version: '1', manifest: 'b.yaml', namespace: ending }]);
    const [plan] = (await scene.plan()).addons;
    assert.is(plan?.state, 'failed');
    assert.match(plan?.errors[0]?.hint ?? '', /^wait until the namespace is deleted/);
  });
} else test.skip('channels on an API server', reason);

test.run();
