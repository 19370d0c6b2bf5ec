import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { canonicalJson } from '../../src/core/digest.ts';
import type { ProgressEvent } from '../../src/core/events.ts';
import { openCluster } from '../../src/runtime/cluster/cluster.ts';
import { settingsDigest } from '../../src/runtime/plan/records.ts';
import * as assert from '../support/assert.ts';
import { trace, tracer } from '../support/node-install.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { boxOf, clear, dataOf, envOf, install, opens, outcomes, patchRecords } from './support/cluster-node.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/cluster-met', { timeoutMs: 240_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS);
const { signal } = new AbortController();
const opened = createOpened();
let server: ApiServer;

if (reason === undefined) {
  test.before(async () => {
    server = opened.keep(await startApiServer(opened.keep(await tree()).path));
  });
  test.after(opened.close);

  test('an API server that dies in the middle: a clear error, and the same run goes on when it is back', async () => {
    await using box = await boxOf(server);
    const addons = [
      tracer('aaa'),
      tracer(
        'bbb',
        'bbb() { echo bbb $CURLEW_ATTEMPT >>"$TRACE"; touch "$DIR/at-bbb"; until [ -e "$DIR/go" ]; do sleep 0.05; done; }',
      ),
    ];
    const running = install(box, server, { addons, patienceMs: 1500 });
    running.catch(() => undefined);
    const exists = async (name: string): Promise<boolean> =>
      readFile(box.at('node', name)).then(
        () => true,
        () => false,
      );
    while (!(await exists('at-bbb'))) await new Promise((resolve) => setTimeout(resolve, 20));
    await server.kill();
    await writeFile(box.at('node/go'), '');
    const error = await assert.rejectsWith(
      running,
      'CLUSTER_FAILED',
      /^bbb: cannot record that it is installed: cannot write ConfigMap kurl\/kurl-current-config: .*refused/,
    );
    assert.match(error.hint ?? '', 'run the same command again');
    await server.startAgain();
    const applied = JSON.parse((await dataOf(server, 'curlew-records'))['addon.bbb'] ?? '{}') as { finished?: boolean };
    assert.is(applied.finished, false);
    await trace(box);
    await install(box, server, { addons });
    const rows = Object.entries(await dataOf(server, 'curlew-records')).filter(([key]) => key.startsWith('addon.'));
    assert.ok(rows.length === 2 && rows.every(([, text]) => text.includes('"finished":true')), JSON.stringify(rows));
    assert.ok(Object.hasOwn(await dataOf(server, 'kurl-current-config'), 'addons-aaa'));
  });

  test('an API server that is away for a moment only is waited for', async () => {
    await using box = await boxOf(server);
    const cluster = await opens(box, server, 60_000)();
    await server.kill();
    const writing = cluster?.writeRecords({ applied: {} });
    await server.startAgain();
    await writing;
    assert.is((await dataOf(server, 'curlew-records'))['format'], '1');
  });

  test('a cluster that comes up with kubernetes in the middle of a run gets the records', async () => {
    await using box = await boxOf(server);
    const later = { ...server, kubeconfig: box.at('admin.conf') };
    const kubernetes = tracer('kubernetes', `kubernetes() { cp ${server.kubeconfig} ${box.at('admin.conf')}; }`);
    const addons = [kubernetes, tracer('aaa')];
    const done = await install(box, later, { addons });
    assert.equal(outcomes(done), ['aaa installed', 'kubernetes installed']);
    const records = await dataOf(server, 'curlew-records');
    assert.equal(Object.keys(records).toSorted(), ['addon.aaa', 'addon.kubernetes', 'cluster', 'format']);
    assert.equal(Object.keys(await dataOf(server, 'kurl-current-config')).toSorted(), ['addons-aaa', 'kurl-version']);
    assert.equal(outcomes(await install(box, later, { addons })), [
      'aaa already applied',
      'kubernetes already applied',
    ]);

    // The node was reset by hand and gets a new cluster, while records.json still speaks of the old one.
    await writeFile(box.at('admin.conf.away'), await readFile(box.at('admin.conf')));
    const noKubernetes = tracer(
      'kubernetes',
      `kubernetes_already_applied() { cp ${box.at('admin.conf.away')} ${box.at('admin.conf')}; }`,
    );
    const again = [noKubernetes, tracer('aaa')];
    await install(box, later, { addons: again });
    await clear(server);
    await rm(box.at('admin.conf'));
    const met = await install(box, later, { addons: again });
    assert.equal(outcomes(met), ['aaa installed', 'kubernetes already applied']);
    assert.match(
      met.addons.find(({ name }) => name === 'aaa')?.because ?? '',
      'in the cluster that now responds: it was not installed',
    );
  });

  test('a cluster that kURL has made is refused, and taken over with --adopt; nothing of kURL goes away', async () => {
    await using box = await boxOf(server);
    const entry = (value: object): string => Buffer.from(canonicalJson(value)).toString('base64');
    const current = {
      'kurl-version': 'v2026.01.01-0',
      'addons-aaa': entry({ version: '1.0.0', x: 1 }),
      'addons-bad': '%%',
    };
    const last = {
      'addons-aaa': entry({ version: '0.9.0' }),
      'addons-old': entry({ version: '2.0.0', s3Override: 'https://x' }),
    };
    const config = {
      pod_cidr: '10.32.0.0/20',
      service_cidr: '10.96.0.0/22',
      ha: 'true',
      bootstrap_token: 'topsecret',
      cert_key: 'topsecret',
    };
    for (const [namespace, name, data] of [
      ['kurl', 'kurl-current-config', current],
      ['kurl', 'kurl-last-config', last],
      ['kube-system', 'kurl-config', config],
      ['kurl', 'kurl-cluster-uuid', { uuid: 'u' }],
    ] as const) {
      await server.kubectl(
        ['create', '-f', '-'],
        JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data }),
      );
    }
    const addons = [tracer('aaa', 'aaa() { echo "$POD_CIDR $SERVICE_CIDR $HA_CLUSTER" >>"$TRACE"; }')];
    const variables = [
      ['POD_CIDR', ''],
      ['SERVICE_CIDR', '10.50.0.0/22'],
    ] as const;
    const refused = await assert.rejectsWith(
      install(box, server, { addons }, { variables }),
      'UNSUPPORTED',
      /kURL created this cluster/,
    );
    assert.match(refused.hint ?? '', '--adopt');
    assert.equal(await trace(box), []);
    assert.equal(await dataOf(server, 'kurl-current-config'), current);

    const events: ProgressEvent[] = [];
    const settings = { aaa: { x: 1 } };
    const adopted = await install(box, server, { addons, settings, adopt: true }, { variables, events });
    assert.equal(outcomes(adopted), ['aaa installed']);
    assert.is(adopted.addons[0]?.because, 'another tool installed 1.0.0, from an unknown package');
    assert.ok((await trace(box)).includes('10.32.0.0/20 10.50.0.0/22 1'));
    const records = await dataOf(server, 'curlew-records');
    assert.not.match(JSON.stringify([records, events, adopted]), 'topsecret');
    const old = JSON.parse(records['addon.old'] ?? '') as object;
    assert.equal(old, { version: '2.0.0', settings: settingsDigest({}), run: '00000000T000000Z-0000', finished: true });
    assert.match(records['addon.aaa'] ?? '', '"digest":"sha256:');
    assert.equal(await dataOf(server, 'kurl-config', 'kube-system'), config);
    assert.equal(await dataOf(server, 'kurl-last-config'), current);
    assert.equal(await dataOf(server, 'kurl-cluster-uuid'), { uuid: 'u' });
    assert.ok(events.some((event) => event.type === 'note' && event.text.includes('adopted from kURL v2026.01.01-0')));

    const next = await install(box, server, { addons, settings }, { variables });
    assert.equal(outcomes(next), ['aaa already applied']);
    await server.kubectl(['-n', 'kurl', 'delete', 'configmap', 'kurl-cluster-uuid']);
  });

  test('settings too large for a ConfigMap are refused before anything is changed', async () => {
    await using box = await boxOf(server);
    const settings = { aaa: { text: 'x'.repeat(800_000) } };
    const failed = install(box, server, { addons: [tracer('aaa')], settings });
    const error = await assert.rejectsWith(
      failed,
      'UNSUPPORTED',
      /kurl-current-config would have \d+ bytes; the limit is 1048576/,
    );
    assert.match(error.hint ?? '', 'a separate ConfigMap');
    assert.equal(await trace(box), []);
    await assert.rejectsWith(
      readFile(box.at('node/records.json')).catch(() => {
        throw error;
      }),
      'UNSUPPORTED',
    );
  });

  test('a load balancer with another address: ekco is told, until a run with it has finished', async () => {
    await using box = await boxOf(server);
    const config = 'apiServer:\n  x: y\ncontrolPlaneEndpoint: "10.0.0.1:6443"\nkind: ClusterConfiguration\n';
    const make = async (object: object): Promise<unknown> =>
      server.kubectl(['create', '-f', '-'], JSON.stringify({ apiVersion: 'v1', ...object }));
    const metadata = { name: 'kubeadm-config', namespace: 'kube-system' };
    await make({ kind: 'ConfigMap', metadata, data: { ClusterConfiguration: config } });
    for (const name of ['one', 'two']) await make({ kind: 'Node', metadata: { name } });
    const names = ['pre_init', 'kubeconfigs', 'post_init'].map(
      (one) => `ekco_handle_load_balancer_address_change_${one}`,
    );
    const functions = names.map((name) => `${name}() { echo "\${FUNCNAME#*change_} $*" >>"$TRACE"; }`).join('\n');
    const addons = [tracer('kubernetes', 'kubernetes() { [ ! -e "$DIR/fail" ]; }'), tracer('ekco', functions)];
    const told = async (address: string): Promise<readonly string[]> => {
      const settings = { kubernetes: { loadBalancerAddress: address } };
      await install(box, server, { addons, settings }, { variables: [['LOAD_BALANCER_ADDRESS', address]] });
      return (await trace(box)).filter((line) => /^(?:pre_init|kubeconfigs|post_init)\b/.test(line));
    };
    const all = (from: string, to: string): readonly string[] => [
      `pre_init ${from} ${to}`,
      'kubeconfigs ',
      `post_init ${from} ${to}`,
    ];
    assert.equal(await told('10.0.0.1'), []);
    assert.is((await dataOf(server, 'curlew-records'))['loadBalancer'], '10.0.0.1');
    await mkdir(box.at('node/fail'));
    await assert.rejectsWith(told('lb.test:8443'), 'HOOK_FAILED');
    assert.is((await dataOf(server, 'curlew-records'))['loadBalancer'], '10.0.0.1');
    await rm(box.at('node/fail'), { recursive: true });
    await trace(box);
    assert.equal(await told('lb2.test'), all('10.0.0.1', 'lb2.test'));
    assert.is((await dataOf(server, 'curlew-records'))['loadBalancer'], 'lb2.test');
    await server.kubectl(['delete', 'node', 'two']);
    assert.equal(await told('[fd00::1]:6443'), ['pre_init lb2.test [fd00::1]:6443']);
    await patchRecords(server, { loadBalancer: null });
    assert.equal(await told('10.0.0.1:7443'), []);
    await server.kubectl(['delete', 'node', 'one']);
    await server.kubectl(['-n', 'kube-system', 'delete', 'configmap', 'kubeadm-config']);
  });

  test('a token that the API server does not know is told without being repeated', async () => {
    await using box = await boxOf(server);
    const text = await readFile(server.kubeconfig, 'utf8');
    await writeFile(box.at('wrong.conf'), text.replace(/test-token-[a-z-]+/, 'a-wrong-secret'), { mode: 0o600 });
    const failed = opens(box, { kubeconfig: box.at('wrong.conf') })();
    const error = await assert.rejectsWith(failed, 'CLUSTER_FAILED', /Unauthorized/);
    assert.match(error.hint ?? '', 'KUBECONFIG');
    assert.not.match(error.message, 'a-wrong-secret');
  });

  test('no kubeconfig, or nobody who answers: there is no cluster', async () => {
    await using box = await boxOf(server);
    assert.is(await opens(box, { kubeconfig: box.at('none.conf') })(), undefined);
    const gone = (await readFile(server.kubeconfig, 'utf8')).replace(/127\.0\.0\.1:\d+/, '127.0.0.1:1');
    await writeFile(box.at('gone.conf'), gone);
    assert.is(await opens(box, { kubeconfig: box.at('gone.conf') })(), undefined);
  });

  test('a cluster is asked without a kubectl on this machine', async () => {
    await using box = await boxOf(server);
    const env = { ...envOf(box, server.kubeconfig), PATH: box.at('nowhere') };
    const cluster = await openCluster({ env, signal });
    await cluster?.writeRecords({ applied: {} });
    assert.is((await dataOf(server, 'curlew-records'))['cluster'], cluster?.uid);
  });
} else {
  test.skip('records in a cluster', reason);
}

test.run();
