import { readFile, writeFile } from 'node:fs/promises';
import type { ProgressEvent } from '../../src/core/events.ts';
import { readRecords } from '../../src/runtime/node/records.ts';
import { settingsDigest } from '../../src/runtime/plan/records.ts';
import * as assert from '../support/assert.ts';
import { bundleOf } from '../support/node-bundles.ts';
import { packagesOf, trace, tracer } from '../support/node-install.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { boxOf, dataOf, decoded, envOf, install, opens, outcomes, patchRecords } from './support/cluster-node.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/cluster-state', { timeoutMs: 240_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS);
const opened = createOpened();
let server: ApiServer;

if (reason === undefined) {
  test.before(async () => {
    server = opened.keep(await startApiServer(opened.keep(await tree()).path));
  });
  test.after(opened.close);

  test('the first install makes the namespace, its records and those of kURL', async () => {
    await using box = await boxOf(server);
    const uid = await server.kubectl(['get', 'namespace', 'kube-system', '-o', 'jsonpath={.metadata.uid}']);
    const settings = { aaa: { list: ['<a>'], deep: { b: 1, a: true } } };
    const addons = [tracer('aaa'), tracer('cert-manager', '', '1.9.1')];
    const { run: id } = await install(box, server, { addons, settings });
    const records = await dataOf(server, 'curlew-records');
    assert.equal(Object.keys(records).toSorted(), ['addon.aaa', 'addon.cert-manager', 'cluster', 'format']);
    assert.is(records['cluster'], uid);
    const [aaa] = await packagesOf(bundleOf(addons));
    assert.equal(JSON.parse(records['addon.aaa'] ?? ''), {
      version: '1.0.0',
      digest: aaa?.addon.digest,
      settings: settingsDigest(settings.aaa),
      run: id,
      finished: true,
    });
    const current = await dataOf(server, 'kurl-current-config');
    assert.equal(Object.keys(current).toSorted(), ['addons-aaa', 'addons-cert-manager', 'kurl-version']);
    assert.is(current['kurl-version'], 'v2026.11.21-0');
    assert.is(decoded(current['addons-aaa']), '{"deep":{"a":true,"b":1},"list":["\\u003ca\\u003e"],"version":"1.0.0"}');
    assert.is(decoded(current['addons-cert-manager']), '{"version":"1.9.1"}');
    assert.equal(await dataOf(server, 'kurl-last-config'), {});
    assert.is((await readRecords(box.at('node'))).cluster, uid);
    await trace(box);

    assert.equal(outcomes(await install(box, server, { addons, settings })), [
      'aaa already applied',
      'cert-manager already applied',
    ]);
    assert.equal(await dataOf(server, 'kurl-current-config'), current);
    assert.equal(await dataOf(server, 'kurl-last-config'), current);

    const changed = { aaa: { list: [] } };
    const third = await install(box, server, { addons, settings: changed });
    assert.equal(outcomes(third), ['aaa installed', 'cert-manager already applied']);
    assert.is(third.addons.find(({ name }) => name === 'aaa')?.because, 'its settings have changed');
  });

  test('a node without records believes the cluster, and so does one that says otherwise', async () => {
    await using box = await boxOf(server);
    await using other = await boxOf(server);
    const addons = [tracer('aaa')];
    await install(box, server, { addons });
    assert.equal(outcomes(await install(other, server, { addons })), ['aaa already applied']);
    // What is left of this tool's own does not make the cluster kURL's.
    await server.kubectl(['-n', 'kurl', 'delete', 'configmap', 'curlew-records']);
    await using third = await boxOf(server);
    assert.equal(outcomes(await install(third, server, { addons })), ['aaa installed']);
    await server.kubectl(['-n', 'kurl', 'delete', 'configmap', 'curlew-records', 'kurl-current-config']);
    const again = await install(box, server, { addons });
    assert.equal(outcomes(again), ['aaa installed']);
    assert.is(again.addons[0]?.because, 'it was not installed');
  });

  test('a cluster with another kube-system namespace has nothing applied, and the run says so', async () => {
    await using box = await boxOf(server);
    const addons = [tracer('aaa')];
    await install(box, server, { addons });
    const path = box.at('node/records.json');
    const records = await readRecords(box.at('node'));
    const text = await readFile(path, 'utf8');
    await writeFile(path, text.replace(records.cluster ?? '-', '11111111-2222-3333-4444-555555555555'));
    const map = await dataOf(server, 'curlew-records');
    const foreign = { ...map, cluster: '11111111-2222-3333-4444-555555555555' };
    await patchRecords(server, foreign);
    const events: ProgressEvent[] = [];
    assert.equal(outcomes(await install(box, server, { addons }, { events })), ['aaa installed']);
    const notes = events.flatMap((event) => (event.type === 'note' ? [event.text] : [])).join('\n');
    assert.match(notes, `the cluster (${records.cluster ?? ''}) is not the one before (11111111`);
    assert.match(notes, 'ConfigMap kurl/curlew-records describes another cluster');
    assert.equal(outcomes(await install(box, server, { addons })), ['aaa already applied']);
  });

  for (const [title, data, said] of [
    ['a record that is no JSON', { 'addon.aaa': '{' }, /damaged: "addon\.aaa"/],
    ['a record with another shape', { 'addon.aaa': '{"version":1}' }, /damaged: "addon\.aaa"/],
    ['a name that is none', { 'addon.._x': '{}' }, /damaged: "addon\.\._x"/],
    ['another format', { format: '9' }, /format "9" is not known/],
    ['no cluster', { cluster: null }, /the UID of its cluster is missing/],
  ] as const) {
    test(`${title} in the ConfigMap is named, and no hook runs`, async () => {
      await using box = await boxOf(server);
      const addons = [tracer('aaa')];
      await install(box, server, { addons });
      await trace(box);
      await patchRecords(server, data);
      const error = await assert.rejectsWith(install(box, server, { addons }), 'CLUSTER_FAILED', said);
      assert.match(error.hint ?? '', 'kubectl -n kurl delete configmap curlew-records');
      assert.equal(await trace(box), []);
    });
  }

  test('two writers at once: nobody loses a record', async () => {
    await using box = await boxOf(server);
    const clusters = await Promise.all(Array.from({ length: 6 }, opens(box, server, 20_000)));
    const row = (number: number) => ({
      version: `1.0.${number}`,
      settings: settingsDigest({}),
      run: '20261121T101500Z-3f2a',
      finished: true,
    });
    await Promise.all(
      clusters.map(async (cluster, number) => {
        await cluster?.writeRecords({ applied: { [`first-${number}`]: row(number) } });
        await cluster?.writeRecords({ applied: { [`second-${number}`]: row(number) } });
        await cluster?.writeRecords({ applied: { [`first-${number}`]: undefined, shared: row(number) } });
      }),
    );
    const keys = Object.keys(await dataOf(server, 'curlew-records')).toSorted();
    const seconds = clusters.map((_, number) => `addon.second-${number}`);
    assert.equal(keys, [...seconds, 'addon.shared', 'cluster', 'format']);
  });

  test('labels and keys of others stay in a ConfigMap that is written again', async () => {
    await using box = await boxOf(server);
    await install(box, server, { addons: [tracer('aaa')] });
    await server.kubectl(['-n', 'kurl', 'label', 'configmap', 'curlew-records', 'backup=yes']);
    await patchRecords(server, { x: 'y' });
    await install(box, server, { addons: [tracer('aaa'), tracer('bbb')] });
    assert.is((await dataOf(server, 'curlew-records'))['x'], 'y');
    const label = 'jsonpath={.metadata.labels.backup}';
    assert.is(await server.kubectl(['-n', 'kurl', 'get', 'configmap', 'curlew-records', '-o', label]), 'yes');
  });

  test('a reset takes away the records of what this node has applied, and of nothing else', async () => {
    await using box = await boxOf(server);
    const addons = [tracer('aaa', 'aaa_uninstall() { :; }'), tracer('bbb', 'bbb_uninstall() { :; }')];
    await install(box, server, { addons });
    const bbb = JSON.parse((await dataOf(server, 'curlew-records'))['addon.bbb'] ?? '') as object;
    await patchRecords(server, { 'addon.bbb': JSON.stringify({ ...bbb, run: '20261121T101500Z-3f2a' }) });
    const cluster = {
      find: opens(box, server),
      adopt: undefined,
      whole: false,
      release: undefined,
      entries: new Map(),
    };
    await install(box, server, { addons }, { kind: 'reset', reapply: true, cluster });
    const keys = Object.keys(await dataOf(server, 'curlew-records')).toSorted();
    assert.equal(keys, ['addon.bbb', 'cluster', 'format']);
  });

  test('an add-on that is uninstalled is in no record of the cluster any more', async () => {
    await using box = await boxOf(server);
    const removing = 'bbb_pre_remove() { kubectl get namespace kurl -o name >>"$TRACE"; }';
    await install(box, server, { addons: [tracer('aaa'), tracer('bbb', removing)] });
    await trace(box);
    const env = { ...envOf(box, server.kubeconfig), TRACE: box.at('trace') };
    const words = ['uninstall', 'bbb', '--install-dir', box.at('node'), '--yes'];
    const { exitCode, stderr } = await runCommand(words, box.path, env);
    assert.is(exitCode, 0, stderr);
    assert.equal(await trace(box), ['namespace/kurl']);
    assert.equal(Object.keys(await dataOf(server, 'curlew-records')).toSorted(), ['addon.aaa', 'cluster', 'format']);
    assert.equal(Object.keys(await dataOf(server, 'kurl-current-config')).toSorted(), ['addons-aaa', 'kurl-version']);
    assert.equal(Object.keys((await readRecords(box.at('node'))).applied), ['aaa']);
  });

  test('a run over one add-on leaves what kURL keeps of the others', async () => {
    await using box = await boxOf(server);
    await install(box, server, { addons: [tracer('aaa'), tracer('bbb')] });
    const find = opens(box, server);
    const entries = new Map([['aaa', { entry: { version: '1.0.0' }, schema: undefined }]]);
    const cluster = { find, adopt: undefined, whole: false, release: undefined, entries };
    await install(box, server, { addons: [tracer('aaa')] }, { reapply: true, cluster });
    const keys = Object.keys(await dataOf(server, 'kurl-current-config')).toSorted();
    assert.equal(keys, ['addons-aaa', 'addons-bbb', 'kurl-version']);
  });
} else {
  test.skip('records in a cluster', reason);
}

test.run();
