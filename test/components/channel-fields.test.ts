/** Fields of add-ons of channels on a real API server: whose they are, what became of them, and what cannot be changed. */
import * as assert from '../support/assert.ts';
import { startCurlew } from '../support/curlew.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { channelScene, configMap, outcomes, startGateway } from './support/channel-scene.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/channel-fields', { timeoutMs: 120_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS);
const opened = createOpened();

if (reason === undefined) {
  let server: ApiServer;
  test.before(async () => {
    const box = opened.keep(await tree());
    server = opened.keep(await startApiServer(box.at('server')));
  });
  test.after(opened.close);

  test('a command that is stopped while another one takes over writes nothing more when it continues', async () => {
    await using scene = await channelScene(server);
    const { namespace, box } = scene;
    const maps = (v: string): readonly object[] =>
      Array.from({ length: 30 }, (_, at) => configMap(`page-${at}`, namespace, { v }));
    await scene.write('v1.yaml', ...maps('1'));
    await scene.write('v2.yaml', ...maps('2'));
    const entry = { name: 'web', version: '1', manifest: 'v1.yaml' };
    await scene.channel([entry]);
    const children: ReturnType<typeof startCurlew>[] = [];
    const stop = (number: number): void => {
      if (number === 10) children[0]?.kill('SIGSTOP');
    };
    await using gateway = await startGateway(server, box, { before: stop });
    const child = startCurlew(['channel', 'apply', 'channel.yaml', '--yes', '--kubeconfig', gateway.kubeconfig], {
      cwd: box.path,
    });
    children.push(child);
    await scene.kubectl('wait', '--for=create', 'configmap/page-0', '--timeout=60s');
    await scene.channel([{ ...entry, version: '2', manifest: 'v2.yaml' }]);
    assert.equal(outcomes(await scene.apply()), ['web install applied']);
    child.kill('SIGCONT');
    const { exitCode, stderr } = await child;
    assert.match(stderr, /the Lease kube-system\/curlew-addons was lost to another process/);
    assert.is(exitCode, 19);
    const values = await scene.kubectl('get', 'configmap', '-l', 'fleet.curlew.dev/addon', '-o', 'jsonpath={..data.v}');
    assert.is(
      values,
      maps('2')
        .map(() => '2')
        .join(' '),
    );
    assert.equal(outcomes(await scene.apply()), ['web none unchanged']);
  });
} else test.skip('fields of add-ons on an API server', reason);

test.run();
