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

  test('an object that cannot be changed is named with its field, and nothing of its add-on is changed', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    const fixed = (v: string): object => ({ ...configMap('fixed', namespace, { v: v.repeat(2000) }), immutable: true });
    const secret = (v: string): object => {
      const metadata = { name: 'key', namespace };
      return { apiVersion: 'v1', kind: 'Secret', metadata, immutable: true, stringData: { pin: v } };
    };
    const job = (v: string): object => {
      const container = { name: 'job', image: `job:${v}`, env: [{ name: 'LONG', value: v.repeat(2000) }] };
      const spec = { template: { spec: { restartPolicy: 'Never', containers: [container] } } };
      return { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'job', namespace }, spec };
    };
    await server.kubectl(['create', '-f', '-'], JSON.stringify(job('1')));
    await scene.write(
      'v1.yaml',
      configMap('aaa', namespace, { v: '1' }),
      configMap('old', namespace),
      fixed('1'),
      secret('1'),
    );
    await scene.write('v2.yaml', configMap('aaa', namespace, { v: '2' }), fixed('2'), secret('pin-2'), job('2'));
    const entry = { name: 'web', prune: 'auto' };
    await scene.channel([{ ...entry, version: '1', manifest: 'v1.yaml' }]);
    await scene.apply();
    await scene.channel([{ ...entry, version: '2', manifest: 'v2.yaml' }]);
    const force = { forceConflicts: true };
    for (const pass of [await scene.plan(force), await scene.apply(force)]) {
      assert.equal(outcomes(pass), ['web update failed']);
      const errors = pass.addons[0]?.errors ?? [];
      assert.match(
        errors.map(({ message }) => message).join('\n'),
        new RegExp(
          [
            `^cannot apply Secret ${namespace}/key: \\S+ returned 422 \\(Invalid: data: field is immutable.*\\)`,
            `cannot apply ConfigMap ${namespace}/fixed: \\S+ returned 422 \\(Invalid: data: Forbidden: field is immutable when \`immutable\` is set\\)`,
            `cannot apply Job ${namespace}/job: \\S+ returned 422 \\(Invalid: spec\\.template: Invalid value: .*…: field is immutable\\)$`,
          ].join('\n'),
        ),
      );
      for (const { hint } of errors)
        assert.match(hint ?? '', /^these fields cannot be changed: delete the object, .* or rename it/);
      assert.not.match(JSON.stringify(pass), /pin-2|cGluLTI/);
    }
    assert.is(await scene.kubectl('get', 'configmap', 'aaa', '-o', 'jsonpath={.data.v}'), '1');
    assert.match(await scene.kubectl('get', 'configmap', 'old', '-o', 'name'), 'old');
  });

  test('a port is free if the Service that has it is pruned, and not if it is the one of another Service', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    const service = (name: string, nodePort: number): object => {
      const spec = { type: 'NodePort', ports: [{ port: 80, nodePort }] };
      return { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace }, spec };
    };
    await server.kubectl(['create', '-f', '-'], JSON.stringify(service('other', 30_118)));
    await scene.write('v1.yaml', service('old', 30_117), configMap('aaa', namespace, { v: '1' }));
    await scene.write('v2.yaml', service('new', 30_118), configMap('aaa', namespace, { v: '2' }));
    await scene.write('v3.yaml', service('new', 30_117), configMap('aaa', namespace, { v: '3' }));
    const entry = { name: 'web', prune: 'auto' };
    await scene.channel([{ ...entry, version: '1', manifest: 'v1.yaml' }]);
    await scene.apply();
    await scene.channel([{ ...entry, version: '2', manifest: 'v2.yaml' }]);
    assert.equal(outcomes(await scene.apply()), ['web update failed']);
    assert.is(await scene.kubectl('get', 'configmap', 'aaa', '-o', 'jsonpath={.data.v}'), '1');
    assert.match(await scene.kubectl('get', 'service', 'old', '-o', 'name'), 'old');
    await scene.channel([{ ...entry, version: '3', manifest: 'v3.yaml' }]);
    assert.equal(outcomes(await scene.plan()), ['web update planned']);
    assert.equal(outcomes(await scene.apply()), ['web update applied']);
  });
} else test.skip('fields of add-ons on an API server', reason);

test.run();
