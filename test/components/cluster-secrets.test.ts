/** What of an add-on's settings a real API server shows to whoever may read ConfigMaps, and what only its Secrets hold. */
import { readFile, stat } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { trace, tracer } from '../support/node-install.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { boxOf, dataOf, decoded, install, opens, outcomes, secretOf } from './support/cluster-node.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/cluster-secrets', { timeoutMs: 240_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS);
const opened = createOpened();
let server: ApiServer;

const SCHEMA = { type: 'object', properties: { greeting: { type: 'string', format: 'password' } } };
const marked = { ...tracer('aaa'), extra: { settings: SCHEMA } };
const settings = {
  aaa: { greeting: 'top-one', size: 3, deep: { adminPassword: 'top-two', host: 'db' } },
  bbb: { color: 'red' },
};

/** Everything that ConfigMaps of the cluster say, values decoded. */
async function shown(): Promise<string> {
  const { items } = JSON.parse(await server.kubectl(['get', 'configmap', '-A', '-o', 'json'])) as {
    readonly items: readonly { readonly data?: Readonly<Record<string, string>> }[];
  };
  const values = items.flatMap(({ data = {} }) => Object.values(data));
  return [...values, ...values.map(decoded)].join('\n');
}

if (reason === undefined) {
  test.before(async () => {
    server = opened.keep(await startApiServer(opened.keep(await tree()).path));
  });
  test.after(opened.close);

  test('what is not secret of an entry is in the ConfigMap, and the whole of it in a Secret', async () => {
    await using box = await boxOf(server);
    const addons = [marked, tracer('bbb')];
    await install(box, server, { addons, settings });
    const current = await dataOf(server, 'kurl-current-config');
    assert.is(decoded(current['addons-aaa']), '{"deep":{"host":"db"},"size":3,"version":"1.0.0"}');
    assert.is(decoded(current['addons-bbb']), '{"color":"red","version":"1.0.0"}');
    const secret = await secretOf(server, 'kurl-current-config');
    assert.equal(Object.keys(secret ?? {}), ['addons-aaa']);
    assert.is(
      decoded(secret?.['addons-aaa']),
      '{"deep":{"adminPassword":"top-two","host":"db"},"greeting":"top-one","size":3,"version":"1.0.0"}',
    );
    assert.is(await secretOf(server, 'kurl-last-config'), undefined);
    assert.not.match(await shown(), /top-(?:one|two)/);

    // Nothing of it is changed by a run that finds everything as it should be, and both are kept as those of the run before.
    assert.equal(outcomes(await install(box, server, { addons, settings })), [
      'aaa already applied',
      'bbb already applied',
    ]);
    for (const name of ['kurl-current-config', 'kurl-last-config']) {
      assert.equal(await dataOf(server, name), current);
      assert.equal(await secretOf(server, name), secret);
    }
    assert.not.match(await shown(), /top-(?:one|two)/);
    await trace(box);
  });

  test('a secret that leaves the spec leaves the cluster, when it is not of the run before any more', async () => {
    await using box = await boxOf(server);
    await install(box, server, { addons: [marked], settings });
    for (const times of [1, 2]) {
      await install(box, server, { addons: [marked], settings: { aaa: { size: times } } });
    }
    assert.equal(await secretOf(server, 'kurl-current-config'), {});
    assert.equal(await secretOf(server, 'kurl-last-config'), {});
  });

  test('a run over one add-on leaves the secrets of the others, and takes away what it has none of any more', async () => {
    await using box = await boxOf(server);
    const both = { aaa: settings.aaa, bbb: { password: 'top-three' } };
    await install(box, server, { addons: [marked, tracer('bbb')], settings: both });
    const entries = new Map([['aaa', { entry: { version: '1.0.0' }, schema: SCHEMA }]]);
    const cluster = { find: opens(box, server), adopt: undefined, whole: false, release: undefined, entries };
    await install(box, server, { addons: [marked] }, { reapply: true, cluster });
    assert.equal(Object.keys((await secretOf(server, 'kurl-current-config')) ?? {}), ['addons-bbb']);
  });

  test('where nothing is secret there is no Secret', async () => {
    await using box = await boxOf(server);
    await install(box, server, { addons: [tracer('bbb')], settings });
    await install(box, server, { addons: [tracer('bbb')], settings });
    assert.is(await secretOf(server, 'kurl-current-config'), undefined);
    assert.is(await secretOf(server, 'kurl-last-config'), undefined);
  });

  test('what kURL has left in its ConfigMaps is kept without secrets when its cluster is taken over', async () => {
    await using box = await boxOf(server);
    const base64 = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64');
    const entry = base64({ version: '1.0.0', adminPassword: 'top-four', size: 1 });
    const applied = { 'kubectl.kubernetes.io/last-applied-configuration': entry, backup: 'yes' };
    const metadata = { name: 'kurl-current-config', namespace: 'kurl', annotations: applied };
    const data = { 'kurl-version': 'v1', 'addons-aaa': entry, 'addons-bad': '%%' };
    await server.kubectl(
      ['create', '-f', '-'],
      JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data }),
    );
    await install(box, server, { addons: [tracer('aaa')], adopt: true });
    const last = await dataOf(server, 'kurl-last-config');
    assert.equal(
      { ...last, 'addons-aaa': decoded(last['addons-aaa']) },
      { ...data, 'addons-aaa': '{"size":1,"version":"1.0.0"}' },
    );
    assert.equal(await secretOf(server, 'kurl-last-config'), { 'addons-aaa': entry });
    const map = await server.kubectl(['-n', 'kurl', 'get', 'configmap', 'kurl-current-config', '-o', 'json']);
    assert.not.match(`${map}${await shown()}`, new RegExp(`top-four|${entry.slice(0, 40)}`));
    assert.match(map, '"backup": "yes"');
  });

  test('what is noted on the node itself is for its owner alone', async () => {
    await using box = await boxOf(server);
    const addons = [tracer('containerd'), marked];
    await install(box, server, { addons, settings: { ...settings, containerd: { tomlConfig: 'auth = "top-five"' } } });
    assert.match(decoded(await readFile(box.at('node/containerd-last-applied'), 'utf8')), 'top-five');
    assert.is((await stat(box.at('node/containerd-last-applied'))).mode & 0o777, 0o600);
    assert.not.match(await shown(), /top-/);
  });
} else {
  test.skip('secrets in a cluster', reason);
}

test.run();
