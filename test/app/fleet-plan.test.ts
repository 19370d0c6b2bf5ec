/** The plan of a fleet, over API servers of the tests. */
import promises, { readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { mock } from 'node:test';
import { checkFleet } from '../../src/app/fleet-check.ts';
import { planFleets, type FleetPlan } from '../../src/app/fleet-plan.ts';
import { apiClient } from '../support/api-client.ts';
import { startMemoryApiServer } from '../support/api-server/server.ts';
import * as assert from '../support/assert.ts';
import { noReport } from '../support/context.ts';
import { addon, cluster, documents } from '../support/fleet-files.ts';
import { openFleetScene } from '../support/fleet-scene.ts';
import { kubeconfigText } from '../support/kube-server.ts';
import { startSilent } from '../support/silent-server.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('app/fleet-plan');
const TIMEOUT = 12_000;

async function plan(box: Tree, timeout?: number, allowExec?: boolean): Promise<FleetPlan> {
  const context = { signal: new AbortController().signal, report: noReport, env: {}, cwd: box.path };
  return planFleets({ files: ['fleet.yaml'], timeout, allowExec }, context);
}

function lines({ targets }: FleetPlan): readonly string[] {
  return targets.map(({ cluster: where, addon: name, now, message = '' }) =>
    `${where} ${name} ${now} ${message}`.trim(),
  );
}

async function writeFleet(box: Tree, ...all: readonly object[]): Promise<void> {
  await writeFile(box.at('web.yaml'), documents({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'page' } }));
  await writeFile(box.at('fleet.yaml'), documents(...all));
}

test('a plan reads the records of a cluster, and writes nothing', async () => {
  await using box = await tree();
  await using paris = await startMemoryApiServer();
  await writeFile(box.at('paris.conf'), paris.kubeconfig);
  await writeFleet(box, cluster('paris', { env: 'prod' }), addon('web'));
  assert.equal(lines(await plan(box)), ['paris web install']);
  const annotations = { 'addons.k8s.io/web': '{"version":"1.0.0"}' };
  await apiClient(paris.kubeconfig).merge('/api/v1/namespaces/kube-system', { metadata: { annotations } });
  const before = paris.requests.length;
  const { clusters, ...planned } = await plan(box);
  assert.equal(lines({ clusters, ...planned }), ['paris web wait it belongs to another program']);
  assert.equal(clusters, [{ name: 'paris', server: paris.url, kubernetes: 'v1.34.4' }]);
  assert.equal(
    paris.requests.slice(before).filter((one) => !one.startsWith('GET ')),
    [],
  );
});

test('a plan says which clusters do not serve a kind of a manifest, unless what is delivered before it defines the kind', async () => {
  const missing = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'one', namespace: 'default' } };
  const spec = {
    group: 'example.com',
    scope: 'Namespaced',
    names: { kind: 'Widget', plural: 'widgets' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  };
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'widgets.example.com' },
    spec,
  };
  await using scene = await openFleetScene(['lyon', 'paris']);
  await scene.manifest('1', missing);
  await writeFile(scene.box.at('kinds.yaml'), documents(definition));
  const problem = 'cannot apply web.yaml: line 5: the cluster has no example.com/v1 Widget; apply the add-on';
  await scene.fleet([addon('web')]);
  assert.equal(
    lines(await scene.plan()).map((line) => line.split(problem)[0]),
    ['lyon web install ', 'paris web install '],
  );
  await scene.fleet([addon('kinds'), addon('web')]);
  assert.equal(
    lines(await scene.plan()).filter((line) => line.includes(problem)),
    [],
  );
  // A pass then says the same.
  await scene.fleet([addon('web')]);
  const [done] = (await scene.apply()).done;
  assert.ok(done !== undefined && done.result === 'failed');
  assert.ok(problem.startsWith(done.reason), done.reason);
});

test('a plan asks a cluster for its kinds once, and not where nothing is to change', async () => {
  await using scene = await openFleetScene(['paris']);
  await writeFile(scene.box.at('more.yaml'), documents({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'x' } }));
  await scene.manifest('1');
  const asked = async (): Promise<number> => {
    const before = scene.requests('paris').length;
    await scene.plan();
    const requests = scene.requests('paris').slice(before);
    return requests.filter((one) => /^GET \/apis?(?: |$)/.test(one)).length;
  };
  await scene.fleet([addon('web'), addon('more')]);
  assert.is(await asked(), 2);
  await scene.apply();
  assert.is(await asked(), 0);
});

test('a plan reads a manifest once for its content and once for its kinds, however many clusters get it', async () => {
  await using scene = await openFleetScene(['lyon', 'nice', 'paris']);
  await scene.manifest('1');
  await scene.fleet([addon('web')]);
  const opened = mock.method(promises, 'open');
  syncBuiltinESMExports();
  try {
    assert.is((await scene.plan()).targets.length, 3);
    const paths = opened.mock.calls.map(({ arguments: [path] }) => String(path));
    assert.is(paths.filter((path) => path.endsWith('/web.yaml')).length, 2);
  } finally {
    mock.restoreAll();
    syncBuiltinESMExports();
  }
});

test('the plan of an add-on that has failed says why, from the record of the cluster', async () => {
  await using box = await tree();
  await using paris = await startMemoryApiServer();
  await writeFile(box.at('paris.conf'), paris.kubeconfig);
  await writeFleet(box, cluster('paris', { env: 'prod' }), addon('web', { adopt: true, mode: 'InstallOnce' }));
  const record = { addon: 'web', namespace: 'kube-system', owner: 'fleet:web', state: 'Failed', reason: 'no image' };
  const text = JSON.stringify({ ...record, since: '2026-01-01T00:00:00Z', knownGood: { id: 'a' }, history: [] });
  const map = { metadata: { name: 'curlew-addons', namespace: 'kube-system' }, data: { 'kube-system.web': text } };
  await apiClient(paris.kubeconfig).create('/api/v1/namespaces/kube-system/configmaps', map);
  const { targets } = await plan(box);
  assert.equal(
    targets.map(({ state, now, message }) => [state, now, message]),
    [['Failed', 'none', 'no image']],
  );
});

test('a program that a kubeconfig of the folder names is started only if that is allowed', async () => {
  await using paris = await startMemoryApiServer();
  const status =
    '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"test-token"}}';
  await using box = await tree({ login: `#!/bin/sh\necho >>"$(dirname "$0")/started"\necho '${status}'\n` });
  const user = {
    exec: { apiVersion: 'client.authentication.k8s.io/v1', command: './login', interactiveMode: 'Never' },
  };
  const conf = JSON.parse(paris.kubeconfig) as { readonly users: readonly object[] };
  await writeFile(
    box.at('paris.conf'),
    JSON.stringify({ ...conf, users: conf.users.map((one) => ({ ...one, user })) }),
  );
  await writeFleet(box, cluster('paris', { env: 'prod' }), addon('web'));
  const [refused] = (await plan(box)).clusters;
  assert.match(refused?.problem ?? '', /starts the program ".*\/login", which requires --allow-exec/);
  assert.not((await readdir(box.path)).includes('started'));
  assert.equal(paris.requests, []);
  assert.equal(lines(await plan(box, undefined, true)), ['paris web install']);
  assert.ok((await readdir(box.path)).includes('started'));
});

test('a cluster that never answers, and one that cannot be reached, hold no other', async () => {
  await using box = await tree();
  await using paris = await startMemoryApiServer();
  await using silent = await startSilent();
  const url = `https://127.0.0.1:${silent.port}`;
  await writeFile(box.at('paris.conf'), paris.kubeconfig);
  await writeFile(box.at('lyon.conf'), kubeconfigText(url, { token: 'x' }, {}));
  await writeFile(box.at('nice.conf'), 'apiVersion: v1\nkind: Config\n');
  const clusters = ['lyon', 'nice', 'paris'].map((name) => cluster(name, { env: 'prod' }));
  await writeFleet(box, ...clusters, addon('web'));
  const planned = await plan(box, TIMEOUT);
  assert.equal(lines(planned), [
    'lyon web wait the cluster does not answer',
    'nice web wait the cluster does not answer',
    'paris web install',
  ]);
  const problems = planned.clusters.map(({ problem = '' }) => problem);
  assert.match(problems[0] ?? '', 'no answer within 12 s');
  assert.ok(problems[1] !== '');
});

test('a link may lead to a file of the folder, and not out of it', async () => {
  await using box = await tree();
  await using other = await tree();
  await using paris = await startMemoryApiServer();
  await writeFile(box.at('real.conf'), paris.kubeconfig);
  await symlink('real.conf', box.at('paris.conf'));
  await writeFleet(box, cluster('paris', { env: 'prod' }), addon('web'));
  assert.equal(lines(await plan(box)), ['paris web install']);
  const asked = paris.requests.length;
  for (const [name, content] of [
    ['paris.conf', paris.kubeconfig],
    ['web.yaml', documents({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'page' } })],
    ['more.yaml', documents(cluster('lyon'))],
  ] as const) {
    await rm(box.at(name), { force: true });
    await writeFile(other.at(name), content);
    await symlink(other.at(name), box.at(name));
    const context = { signal: new AbortController().signal, report: () => undefined, env: {}, cwd: box.path };
    const { diagnostics } = await checkFleet({ files: ['.'] }, context);
    const found = diagnostics.filter(({ severity }) => severity === 'error').map(({ message }) => message);
    assert.equal(found, [`${name} is a link that leads out of the folder`]);
    await rm(box.at(name));
    await writeFile(box.at(name), name === 'more.yaml' ? '' : content);
  }
  assert.is(paris.requests.length, asked);
});

test('mistakes in the files stop a plan before any cluster is asked', async () => {
  await using box = await tree();
  await using paris = await startMemoryApiServer();
  await writeFile(box.at('paris.conf'), paris.kubeconfig);
  await writeFleet(box, cluster('paris'), addon('web', { dependsOn: ['dns'] }));
  await assert.rejectsWith(plan(box), 'SPEC_INVALID', /cannot plan the fleet: 1 error in its files/);
  assert.equal(paris.requests, []);
});

test.run();
