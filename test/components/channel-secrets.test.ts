/** Secrets of add-ons on a real API server: no value leaves it. */
import * as assert from '../support/assert.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { channelScene } from './support/channel-scene.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/channel-secrets', { timeoutMs: 120_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS);
const opened = createOpened();
const VALUE = 48_151_623;

if (reason === undefined) {
  let server: ApiServer;
  test.before(async () => {
    const box = opened.keep(await tree());
    server = opened.keep(await startApiServer(box.at('server')));
  });
  test.after(opened.close);

  test('a Secret that the server refuses is reported and recorded without its values', async () => {
    await using scene = await channelScene(server);
    const { namespace, box } = scene;
    const metadata = { name: 'a', namespace };
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata };
    // A failure is recorded only for an add-on that has a record.
    await scene.write('a.yaml', { ...secret, stringData: { pin: 'x' } });
    await scene.channel([{ name: 'web', version: '1.0.0', manifest: 'a.yaml' }]);
    await scene.apply();
    await scene.write('a.yaml', { ...secret, stringData: { pin: VALUE } });
    await scene.channel([{ name: 'web', version: '1.0.1', manifest: 'a.yaml' }]);
    for (const more of [[], ['--json'], ['--yes'], ['--yes', '--json']]) {
      const words = ['channel', 'apply', 'channel.yaml', '--kubeconfig', server.kubeconfig, ...more];
      const { stdout, stderr } = await runCommand(words, box.path);
      assert.match(stdout + stderr, /\.stringData\.pin: expected string; values of Secrets are not shown/);
      assert.not.match(stdout + stderr, String(VALUE));
    }
    const records = await server.kubectl(['get', 'configmap', '-n', 'kube-system', 'curlew-addons', '-o', 'json']);
    assert.match(records, '.stringData.pin');
    assert.not.match(records, String(VALUE));
  });

  test('what changes in a Secret is shown without values, in annotations, too', async () => {
    await using scene = await channelScene(server);
    const { namespace, box } = scene;
    const secretOf = (pin: string): object => {
      const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify({ data: { pin } }) };
      return { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a', namespace, annotations }, stringData: { pin } };
    };
    await scene.channel([{ name: 'web', version: '1.0.0', manifest: 'a.yaml' }]);
    await scene.write('a.yaml', secretOf('before'));
    await scene.apply();
    await scene.write('a.yaml', secretOf('afterwards'));
    await scene.channel([{ name: 'web', version: '1.0.1', manifest: 'a.yaml' }]);
    const words = ['channel', 'apply', 'channel.yaml', '--kubeconfig', server.kubeconfig];
    const { stdout } = await runCommand(words, box.path);
    assert.match(stdout, /data\.pin.*\(hidden\)/);
    for (const text of ['before', 'afterwards']) {
      assert.not.match(stdout, `"${text}`);
      assert.not.match(stdout, Buffer.from(text).toString('base64').slice(0, 8));
    }
  });

  test('a record that names no object hides only its own add-on from status', async () => {
    await using scene = await channelScene(server);
    const { namespace, box } = scene;
    const kind = {
      apiVersion: 'v1',
      kind: 'X',
      plural: '../../x',
      namespaced: true,
      objects: [{ name: 'a', owned: '' }],
    };
    const about = {
      addon: 'bad',
      namespace,
      owner: 'channel:x',
      state: 'Succeeded',
      since: '',
      reason: '',
      history: [],
    };
    const data = { [`${namespace}.bad`]: JSON.stringify({ ...about, objects: [kind] }) };
    await scene.channel([{ name: 'web', version: '1.0.0', manifest: 'a.yaml' }]);
    await scene.write('a.yaml', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace } });
    await scene.apply();
    const patch = JSON.stringify({ data });
    await server.kubectl(['patch', 'configmap', '-n', 'kube-system', 'curlew-addons', '--type=merge', '-p', patch]);
    const { stdout } = await runCommand(['channel', 'status', '--kubeconfig', server.kubeconfig], box.path);
    assert.match(stdout, new RegExp(`web +${namespace} +1\\.0\\.0 .*Succeeded`));
    assert.match(stdout, new RegExp(`warning: record ${namespace}\\.bad cannot be read`));
  });
} else test.skip('Secrets on an API server', reason);

test.run();
