/** What goes wrong with add-ons of channels on a real API server: scenarios of kops' channels, owners, interruptions, refusals. */
import { createHash, X509Certificate } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { runCommand } from '../support/run-command.ts';
import * as assert from '../support/assert.ts';
import { startCurlew } from '../support/curlew.ts';
import { kubeconfigText } from '../support/kube-server.ts';
import { suite } from '../support/suite.ts';
import { sampleOf } from '../support/sweep.ts';
import { tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { channelScene, configMap, outcomes, startGateway, type ChannelScene } from './support/channel-scene.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/channel-troubles', { timeoutMs: 180_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS);
const opened = createOpened();

/** A Service that takes a port of the nodes, which no other can have. */
function nodePort(name: string, namespace: string, port: number): object {
  const spec = { type: 'NodePort', ports: [{ port: 80, nodePort: port }] };
  return { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace }, spec };
}

if (reason === undefined) {
  let server: ApiServer;
  test.before(async () => {
    const box = opened.keep(await tree());
    server = opened.keep(await startApiServer(box.at('server')));
  });
  test.after(opened.close);

  const errorsOf = async (scene: ChannelScene, request = {}): Promise<readonly string[]> => {
    const { addons, errors } = await scene.apply(request);
    return [...addons.flatMap((one) => one.errors), ...errors].map(({ message }) => message);
  };

  test('what an immutable leftover blocks is applied again in the same pass, after it has been pruned', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    await scene.write('v1.yaml', nodePort('old', namespace, 30_017));
    await scene.write('v2.yaml', nodePort('new', namespace, 30_017));
    const entry = { name: 'dash', prune: [{ kind: 'Service', namespaces: [namespace] }] };
    await scene.channel([{ ...entry, version: '1', manifest: 'v1.yaml' }]);
    assert.equal(outcomes(await scene.apply()), ['dash install applied']);
    await scene.channel([{ ...entry, version: '2', manifest: 'v2.yaml' }]);
    assert.equal(outcomes(await scene.apply()), ['dash update applied']);
    assert.match(await scene.kubectl('get', 'service', '-o', 'name'), /^service\/new$/);
    assert.is((await scene.annotation('dash'))?.['version'], '2');
  });

  test('a manifest defines its kind and uses it; an unknown kind and a wrong field are refused before anything is changed', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    const group = `${namespace}.example.com`;
    const version = { name: 'v1', served: true, storage: true };
    const schema = {
      openAPIV3Schema: {
        type: 'object',
        properties: { spec: { type: 'object', properties: { size: { type: 'integer' } } } },
      },
    };
    const crd = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `widgets.${group}` },
      spec: {
        group,
        names: { kind: 'Widget', plural: 'widgets' },
        scope: 'Namespaced',
        versions: [{ ...version, schema }],
      },
    };
    const widget = {
      apiVersion: `${group}/v1`,
      kind: 'Widget',
      metadata: { name: 'one', namespace },
      spec: { size: 1 },
    };
    await scene.write('a.yaml', widget, crd);
    await scene.channel([{ name: 'web', version: '1', manifest: 'a.yaml', prune: 'auto' }]);
    assert.equal(outcomes(await scene.apply()), ['web install applied']);
    await scene.write('b.yaml', configMap('page', namespace), {
      apiVersion: `${group}/v1`,
      kind: 'Widgit',
      metadata: { name: 'x', namespace },
    });
    await scene.channel([{ name: 'web', version: '2', manifest: 'b.yaml' }]);
    assert.match((await errorsOf(scene))[0] ?? '', /^cannot apply b\.yaml: line \d+: the cluster has no \S+ Widgit$/);
    await scene.write('c.yaml', configMap('page', namespace), { ...widget, spec: { size: 'big' } });
    await scene.channel([{ name: 'web', version: '3', manifest: 'c.yaml' }]);
    assert.match((await errorsOf(scene))[0] ?? '', /^cannot apply Widget \S+one: .*spec\.size/);
    assert.is(await scene.kubectl('get', 'configmap', 'page', '--ignore-not-found'), '');
    await scene.write('d.yaml', configMap('page', namespace));
    await scene.channel([{ name: 'web', version: '4', manifest: 'd.yaml', prune: 'auto' }]);
    const [done] = (await scene.apply()).addons;
    assert.equal(
      done?.orphans.map(({ why }) => why),
      ['--prune-crds deletes it, with all of its objects'],
    );
    assert.is(await scene.kubectl('get', `widgets.${group}`, '-o', 'name'), '');
  });

  test('two commands at once: the second one names the first, and continues when that has ended', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    const labels = { app: 'slow' };
    const spec = { containers: [{ name: 'slow', image: 'slow:1' }] };
    await scene.write('slow.yaml', {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'slow', namespace },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    });
    await scene.channel([{ name: 'slow', version: '1', manifest: 'slow.yaml' }]);
    const first = scene.apply({ timeout: 60_000 });
    await scene.kubectl('wait', '--for=create', 'deployment/slow', '--timeout=30s');
    const busy = await assert.rejectsWith(scene.apply(), 'BUSY', /is doing it now$/);
    assert.match(busy.hint ?? '', 'wait until it ends');
    const status = { observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 };
    await scene.kubectl(
      'patch',
      'deployment',
      'slow',
      '--subresource',
      'status',
      '--type',
      'merge',
      '-p',
      JSON.stringify({ status }),
    );
    assert.equal(outcomes(await first), ['slow install applied']);
    assert.equal(outcomes(await scene.apply()), ['slow none unchanged']);
  });

  test('a command that is killed at any of its writes is continued by the next one, to the same end', async () => {
    const WRITES = 12;
    const points = Array.from({ length: WRITES }, (_, write) => [
      { write, isDone: false },
      { write, isDone: true },
    ]).flat();
    for (const { write, isDone } of sampleOf(points, 8)) {
      await using scene = await channelScene(server);
      const { namespace, box } = scene;
      const maps = (from: number, v: string): readonly object[] =>
        [0, 1, 2].map((at) => configMap(`page-${from + at}`, namespace, { v }));
      await scene.write('v1.yaml', ...maps(0, '1'));
      await scene.write('v2.yaml', ...maps(1, '2'));
      const entry = { name: 'web', version: '1', manifest: 'v1.yaml', prune: 'auto' };
      await scene.channel([entry]);
      await scene.apply();
      await scene.channel([{ ...entry, version: '2', manifest: 'v2.yaml' }]);
      const children: ReturnType<typeof startCurlew>[] = [];
      const kill = (number: number): void => {
        if (number === write) children[0]?.kill('SIGKILL');
      };
      await using gateway = await startGateway(
        server,
        box,
        isDone ? { before: () => undefined, after: kill } : { before: kill },
      );
      const child = startCurlew(['channel', 'apply', 'channel.yaml', '--yes', '--kubeconfig', gateway.kubeconfig], {
        cwd: box.path,
      });
      children.push(child);
      const { signal } = await child;
      const title = `killed ${isDone ? 'after' : 'before'} write ${write}`;
      if (write < WRITES - 3) assert.is(signal, 'SIGKILL', title);
      await scene.apply();
      assert.equal(outcomes(await scene.apply()), ['web none unchanged'], title);
      const values = await scene.kubectl(
        'get',
        'configmap',
        '-l',
        'fleet.curlew.dev/addon',
        '-o',
        'jsonpath={.items[*].data.v}',
      );
      assert.is(values, '2 2 2', title);
      assert.is((await scene.annotation('web'))?.['version'], '2', title);
    }
  });

  test('without the right to one kind its object is named, and other add-ons are applied', async () => {
    await using scene = await channelScene(server);
    const { namespace, box } = scene;
    const conf = JSON.parse(await server.kubectl(['config', 'view', '--raw', '-o', 'json'])) as {
      readonly clusters: readonly [{ readonly cluster: object }];
      readonly users: readonly [{ readonly user: object }];
    };
    const user = { ...conf.users[0].user, as: `jane-${namespace}` };
    await writeFile(box.at('conf'), kubeconfigText(server.url, user, conf.clusters[0].cluster));
    await server.kubectl([
      'create',
      'clusterrole',
      `${namespace}-edit`,
      '--verb=*',
      '--resource=configmaps,namespaces,leases.coordination.k8s.io',
    ]);
    await server.kubectl([
      'create',
      'clusterrolebinding',
      `${namespace}-edit`,
      `--clusterrole=${namespace}-edit`,
      `--user=jane-${namespace}`,
    ]);
    await scene.write('a.yaml', configMap('a', namespace));
    await scene.write('b.yaml', { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'b', namespace } });
    await scene.channel([
      { name: 'bbb', version: '1', manifest: 'b.yaml' },
      { name: 'aaa', version: '1', manifest: 'a.yaml' },
    ]);
    const pass = await scene.apply({ kubeconfig: box.at('conf') });
    assert.equal(outcomes(pass), ['bbb install failed', 'aaa install applied']);
    assert.match(pass.addons[0]?.errors[0]?.message ?? '', /secrets "b" is forbidden: User "jane-/);
    await scene.apply();
    const later = await scene.apply({ kubeconfig: box.at('conf') });
    assert.equal(outcomes(later), ['bbb none unchanged', 'aaa none unchanged']);
    assert.match(later.warnings.join('\n'), /objects of add-ons are not compared: .*secrets is forbidden/);
  });

  test('the command shows a table and object differences, and its status says whether something would change', async () => {
    await using scene = await channelScene(server);
    const { namespace, box } = scene;
    await scene.write('a.yaml', configMap('page', namespace, { a: '1' }));
    await scene.channel([{ name: 'web', version: '1.0.0', manifest: 'a.yaml' }]);
    const run = async (...words: readonly string[]) =>
      runCommand(['channel', ...words, '--kubeconfig', server.kubeconfig], box.path);
    const plan = await run('apply', 'channel.yaml');
    assert.is(plan.exitCode, 2);
    assert.match(
      plan.stdout,
      new RegExp(`^NAME +NAMESPACE +CURRENT +UPDATE +WHY\\nweb +${namespace} +- +1\\.0\\.0 +not installed\\n`),
    );
    assert.match(plan.stdout, `+ ConfigMap ${namespace}/page\n`);
    assert.is((await run('apply', 'channel.yaml', '--yes')).exitCode, 0);
    assert.is((await run('apply', 'channel.yaml')).exitCode, 0);
    await scene.kubectl('delete', 'configmap', 'page');
    const status = await run('status', 'web');
    assert.match(status.stdout, `web: missing: ConfigMap ${namespace}/page`);
    const removal = await run('remove', 'web', '--namespace', namespace);
    assert.is(removal.exitCode, 0, removal.stdout);
    assert.is((await run('remove', 'web', '--namespace', namespace, '--yes')).exitCode, 0);
    assert.is(await scene.annotation('web'), undefined);
    assert.match((await run('remove', 'webb')).stderr, /cannot remove webb: the cluster has no record of it/);
  });

  test('an add-on that needs a certificate authority gets one, which later passes keep', async () => {
    await using scene = await channelScene(server);
    const { namespace, box } = scene;
    const name = `pki-${namespace}`;
    const version = { name: 'v1', served: true, storage: true };
    const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
    const names = { kind: 'Issuer', plural: 'issuers' };
    const issuers = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'issuers.cert-manager.io' },
      spec: { group: 'cert-manager.io', names, scope: 'Namespaced', versions: [{ ...version, schema }] },
    };
    await scene.write('a.yaml', configMap('page', namespace));
    const entry = {
      name,
      namespace,
      manifest: 'a.yaml',
      manifestHash: createHash('sha256')
        .update(await readFile(box.at('a.yaml')))
        .digest('hex'),
      needsPKI: true,
    };
    await writeFile(
      box.at('channel.yaml'),
      JSON.stringify({ kind: 'Addons', metadata: { name: 'test' }, spec: { addons: [entry] } }),
    );
    assert.match(
      (await errorsOf(scene, { compat: 'kops' }))[0] ?? '',
      /^cannot create Issuer kube-system\/pki-\S+: the cluster has no cert-manager\.io\/v1$/,
    );
    await server.kubectl(['apply', '-f', '-'], JSON.stringify(issuers));
    await server.kubectl(['wait', '--for=condition=Established', 'crd/issuers.cert-manager.io', '--timeout=30s']);
    assert.equal(outcomes(await scene.apply({ compat: 'kops' })), [`${name} install applied`]);
    const certificate = async (): Promise<string> =>
      server.kubectl(['-n', 'kube-system', 'get', 'secret', `${name}-ca`, '-o', 'jsonpath={.data.tls\\.crt}']);
    const first = await certificate();
    assert.ok(new X509Certificate(Buffer.from(first, 'base64')).ca);
    assert.equal(outcomes(await scene.apply({ compat: 'kops' })), [`${name} none unchanged`]);
    await server.kubectl(['-n', 'kube-system', 'delete', 'issuers.cert-manager.io', name]);
    assert.equal(outcomes(await scene.apply({ compat: 'kops' })), [`${name} update applied`]);
    assert.is(await certificate(), first);
  });

  test('an API server that goes away in the middle is waited for', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    await scene.write('a.yaml', ...Array.from({ length: 60 }, (_, at) => configMap(`page-${at}`, namespace)));
    await scene.channel([{ name: 'web', version: '1', manifest: 'a.yaml' }]);
    const applying = scene.apply();
    await scene.kubectl('wait', '--for=create', 'configmap/page-5', '--timeout=30s');
    await server.kill();
    await server.startAgain();
    assert.equal(outcomes(await applying), ['web install applied']);
  });
} else test.skip('troubles of add-ons on an API server', reason);

test.run();
