/** `curlew fleet …`, as people call it. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import type { FleetPlan } from '../../src/app/fleet-plan.ts';
import { apiClient } from '../support/api-client.ts';
import { startMemoryApiServer } from '../support/api-server/server.ts';
import * as assert from '../support/assert.ts';
import { addon, cluster, documents } from '../support/fleet-files.ts';
import { kubeconfigText } from '../support/kube-server.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('cli/fleet');

test('check reads the YAML files below a folder, and says what is missing, with the line', async () => {
  await using box = await tree();
  await mkdir(box.at('fleet/sites'), { recursive: true });
  await mkdir(box.at('fleet/.git'));
  await writeFile(box.at('fleet/.git/other.yaml'), documents(cluster('other')));
  await writeFile(box.at('fleet/sites/paris.yaml'), documents(cluster('paris', { env: 'prod' })));
  await writeFile(box.at('fleet/web.yml'), documents(addon('web')));
  await writeFile(box.at('fleet/web.yaml'), documents({ kind: 'ConfigMap' }));
  const failed = await runCommand(['fleet', 'check', 'fleet/'], box.path);
  assert.is(failed.exitCode, 11);
  assert.equal(failed.stdout.split('\n'), [
    'fleet/sites/paris.yaml:12:4 error fleet/kubeconfig: cannot read the kubeconfig fleet/sites/paris.conf',
    '     "kubeconfig": "paris.conf"',
    '     ^^^^^^^^^^^^',
    '  hint: put a kubeconfig there, such as the output of kubectl config view --minify --flatten --raw',
    '1 cluster, 1 add-on, 1 error, 0 warnings',
  ]);
  await writeFile(box.at('fleet/sites/paris.conf'), 'kind: Secret\n');
  assert.match(
    (await runCommand(['fleet', 'check', 'fleet/'], box.path)).stdout,
    'fleet/kubeconfig: kubeconfig fleet/sites/paris.conf: it is not of kind Config',
  );
  await writeFile(box.at('fleet/sites/paris.conf'), '');
  assert.match((await runCommand(['fleet', 'check', 'fleet/'], box.path)).stdout, 'it has no current context');
  await writeFile(box.at('fleet/sites/paris.conf'), kubeconfigText('https://paris.example.com', { token: 'x' }, {}));
  const good = await runCommand(['fleet', 'check', 'fleet/', '--json'], box.path);
  assert.equal(
    [good.exitCode, JSON.parse(good.stdout)],
    [0, { clusters: 1, addons: 1, diagnostics: [], errors: 0, warnings: 0 }],
  );
});

test('check fails for a cluster whose values cannot be rendered, which alone waits in a plan', async () => {
  const conf = kubeconfigText('https://127.0.0.1:1', { token: 'x' }, {});
  const web = addon('web', { valuesTemplate: 'pods: {{ .Cluster.networks.pods }}' });
  const clusters = [
    cluster('lyon', { env: 'prod' }),
    cluster('nice', { env: 'prod' }, { networks: { pods: '10.0.0.0/8' } }),
  ];
  const files = { 'lyon.conf': conf, 'nice.conf': conf, 'web.yaml': documents({ kind: 'ConfigMap' }) };
  await using box = await tree({ ...files, 'fleet.yaml': documents(...clusters, web) });
  const failed = await runCommand(['fleet', 'check', 'fleet.yaml'], box.path);
  assert.is(failed.exitCode, 11);
  assert.match(failed.stdout, 'error fleet/template: cannot render the values: unknown field .pods (lyon)');
  assert.is((await runCommand(['fleet', 'plan', 'fleet.yaml'], box.path)).exitCode, 2);
});

test('plan and apply say how the rules of a document from another program differ, as check does', async () => {
  await using server = await startMemoryApiServer();
  await using box = await tree({ 'paris.conf': server.kubeconfig });
  const proxy = {
    apiVersion: 'addons.cluster.x-k8s.io/v1alpha1',
    kind: 'HelmChartProxy',
    metadata: { name: 'web' },
    spec: { clusterSelector: {}, repoURL: 'https://charts.example.com', chartName: 'web', version: '1.2.3' },
  };
  await writeFile(box.at('fleet.yaml'), documents(cluster('paris'), proxy));
  for (const command of [['plan'], ['apply', '--dry-run']]) {
    const { stdout } = await runCommand(['fleet', ...command, 'fleet.yaml'], box.path);
    assert.match(stdout, /^info: fleet.yaml:\d+: /m);
  }
  await writeFile(box.at('fleet.yaml'), documents(cluster('paris')));
  assert.not((await runCommand(['fleet', 'plan', 'fleet.yaml'], box.path)).stdout.includes('info:'));
});

test('a command of fleet that does not exist is answered with one that is spelled alike, or where they are', async () => {
  await using box = await tree();
  const hintOf = async (word: string) =>
    (await runCommand(['fleet', word], box.path)).stderr.split('hint: ')[1]?.trim();
  assert.is(await hintOf('stats'), 'did you mean curlew fleet status?');
  assert.is(await hintOf('nope'), 'curlew fleet --help lists the commands');
});

test('check of files that have no fleet says so', async () => {
  await using box = await tree();
  await writeFile(box.at('web.yaml'), 'kind: ConfigMap\n');
  const { exitCode, stderr } = await runCommand(['fleet', 'check', 'web.yaml'], box.path);
  assert.is(exitCode, 14);
  assert.match(stderr, 'cannot find a fleet in web.yaml: no file has a Cluster or FleetAddon');
  assert.match(
    (await runCommand(['fleet', 'check', 'missing'], box.path)).stderr,
    'cannot read missing: it does not exist',
  );
});

test('plan shows what would happen on each cluster, and exits with 2 until nothing is to change', async () => {
  await using box = await tree();
  await using paris = await startMemoryApiServer();
  await writeFile(box.at('paris.conf'), paris.kubeconfig);
  await writeFile(box.at('web.yaml'), documents({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'page' } }));
  await writeFile(box.at('fleet.yaml'), documents(cluster('paris', { env: 'prod' }), addon('web')));
  const planned = await runCommand(['fleet', 'plan', 'fleet.yaml'], box.path);
  assert.equal(planned.stdout.split('\n'), [
    'CLUSTER  ADD-ON  STATE    NOW      WHY',
    'paris    web     ToApply  install',
    '1 cluster: 1 to change now, 0 waiting, 0 failed or under way, 0 as they are to be',
  ]);
  assert.is(planned.exitCode, 2);
  await writeFile(box.at('fleet.yaml'), documents(cluster('paris')));
  assert.is((await runCommand(['fleet', 'plan', 'fleet.yaml'], box.path)).exitCode, 0);
});

test('apply is the plan until --yes, then exits with 2 while something waits, and status says what', async () => {
  await using box = await tree();
  await using paris = await startMemoryApiServer();
  await writeFile(box.at('paris.conf'), paris.kubeconfig);
  const page = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'page', namespace: 'default' } };
  await writeFile(box.at('web.yaml'), documents(page));
  const rollout = { type: 'Progressive', groups: [{ name: 'all', selector: { matchLabels: { env: 'prod' } } }] };
  const second = addon('api', { source: { manifest: 'web.yaml' }, dependsOn: ['web'], rollout });
  await writeFile(box.at('fleet.yaml'), documents(cluster('paris', { env: 'prod' }), addon('web'), second));
  const preview = await runCommand(['fleet', 'apply', 'fleet.yaml'], box.path);
  assert.is(preview.exitCode, 2);
  assert.is(preview.stdout.split('\n').at(-1), 'add --yes to apply this');
  assert.equal(
    paris.requests.filter((one) => !one.startsWith('GET ')),
    [],
  );
  const early = await runCommand(['fleet', 'apply', 'fleet.yaml', '--watch', '1m'], box.path);
  assert.equal(
    [early.exitCode, early.stderr.split('\n')[0]],
    [64, 'error USAGE: curlew fleet apply: --watch requires --yes'],
  );
  const pass = await runCommand(['fleet', 'apply', 'fleet.yaml', '--yes'], box.path);
  assert.equal([pass.exitCode, pass.stdout.split('\n')[0]], [2, 'paris: install web: done']);
  const why = await runCommand(['fleet', 'status', 'fleet.yaml', '--why'], box.path);
  const lines = why.stdout.replaceAll(/\d+s/g, '1s').split('\n');
  assert.equal(lines, [
    'ADD-ON  DONE  ROLLING  WAITING  FAILED',
    'web     1     0        0        0',
    'api     0     1        0        0',
    '',
    'CLUSTER  ADD-ON  SINCE  REASON   WHY',
    'paris    api     -      ToApply  nothing: install begins with the next pass',
  ]);
});

test('status names what a cluster does not answer in one line, as plan does', async () => {
  await using box = await tree();
  await writeFile(box.at('paris.conf'), kubeconfigText('https://127.0.0.1:1', { token: 'x' }, {}));
  await writeFile(box.at('web.yaml'), '');
  await writeFile(box.at('fleet.yaml'), documents(cluster('paris', { env: 'prod' }), addon('web')));
  for (const command of ['plan', 'status']) {
    const { stdout } = await runCommand(['fleet', command, 'fleet.yaml'], box.path);
    const [line = ''] = stdout.split('\n').filter((one) => one.startsWith('paris does not answer: '));
    assert.match(line, /127\.0\.0\.1:1/, `${command}: ${stdout}`);
    assert.ok(line.length > 80, line);
  }
});

test('an order to retry by a clock that is ahead is said in the status, in which a failure counts once', async () => {
  await using box = await tree();
  await using paris = await startMemoryApiServer();
  await writeFile(box.at('paris.conf'), paris.kubeconfig);
  await writeFile(box.at('fleet.yaml'), documents(cluster('paris', { env: 'prod' }), addon('web')));
  await writeFile(box.at('web.yaml'), documents({ apiVersion: 'v1', kind: 'Nothing', metadata: { name: 'page' } }));
  const fleet = async (...words: readonly string[]): Promise<string> =>
    (await runCommand(['fleet', ...words, 'fleet.yaml'], box.path)).stdout;
  await fleet('apply', '--yes');
  await fleet('retry', 'web');
  const path = box.at('.curlew/fleet/orders.json');
  const orders = JSON.parse(await readFile(path, 'utf8')) as { readonly addons: { readonly web: { retry: number } } };
  orders.addons.web.retry += 7200;
  await writeFile(path, JSON.stringify(orders));
  const lines = (await fleet('status', '--why')).split('\n');
  assert.is(lines[1], 'web     0     0        0        1');
  const why = lines.slice(3).join(' ').replaceAll(/\s+/g, ' ');
  assert.match(why, / Order .*; the order to retry of \S+Z counts from then on: /);
});

test('a rollback that another program is in the way of says what failed, and how to continue', async () => {
  await using box = await tree();
  await using paris = await startMemoryApiServer();
  await writeFile(box.at('paris.conf'), paris.kubeconfig);
  await writeFile(box.at('fleet.yaml'), documents(cluster('paris', { env: 'prod' }), addon('web')));
  const fleet = async (...words: readonly string[]): Promise<string> =>
    (await runCommand(['fleet', ...words, 'fleet.yaml'], box.path)).stdout;
  const stopped = async (): Promise<string> =>
    (JSON.parse(await fleet('status', '--json')) as FleetPlan).addons[0]?.stopped ?? '';
  for (const greeting of ['one', 'two']) {
    const page = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'page', namespace: 'default' } };
    await writeFile(box.at('web.yaml'), documents({ ...page, data: { greeting } }));
    await fleet('apply', '--yes');
  }
  const path = '/api/v1/namespaces/default/configmaps/page';
  await apiClient(paris.kubeconfig).merge(path, { data: { greeting: 'three' } }, 'kubectl-patch');
  await fleet('rollback', 'web');
  const hint =
    'hint: drift: Revert of an add-on takes fields from others, drift: Keep leaves them; then: curlew fleet retry';
  assert.match(await fleet('apply', '--yes'), hint);
  assert.match(await fleet('status', '--why'), hint);
  assert.match(
    await stopped(),
    /^going back to what was known as good failed on paris: .*\.data\.greeting belongs to kubectl/,
  );
  await writeFile(
    box.at('fleet.yaml'),
    documents(cluster('paris', { env: 'prod' }), addon('web', { drift: 'Revert' })),
  );
  await fleet('retry', 'web');
  assert.not.match(await fleet('apply', '--yes'), 'hint:');
  assert.is(await stopped(), 'it has gone back to what was known as good');
});

test('remove of an add-on that no cluster has says so, since its name may be wrong', async () => {
  await using box = await tree();
  await using paris = await startMemoryApiServer();
  await writeFile(box.at('paris.conf'), paris.kubeconfig);
  await writeFile(box.at('fleet.yaml'), documents(cluster('paris')));
  const removed = await runCommand(['fleet', 'remove', 'wbe', 'fleet.yaml', '--yes'], box.path);
  assert.equal([removed.exitCode, removed.stdout.split('\n')[0]], [0, 'no cluster that answers has wbe']);
});

test.run();
