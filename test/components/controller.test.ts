/** Controllers of a hub on a real API server, as processes with the rights that the manifests give: killed, restarted, refused. */
import { readFile, writeFile } from 'node:fs/promises';
import { hubManifests } from '../../src/fleet/hub/manifests.ts';
import { apiClient, at, textAt } from '../support/api-client.ts';
import type { JsonObject } from '../support/api-server/fields.ts';
import * as assert from '../support/assert.ts';
import { startCurlew } from '../support/curlew.ts';
import { eventually, openHubScene, type HubScene } from '../support/hub-scene.ts';
import { hubChannel, hubChart } from '../support/hub-objects.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/controller', { timeoutMs: 240_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS);
const opened = createOpened();
const NAMES = ['c1', 'c2', 'c3', 'c4', 'c5', 'c6'];
const all = (content: string): string => NAMES.map((name) => `${name}:${content}`).join(' ');

if (reason === undefined) {
  let box: Tree;
  let server: ApiServer;
  let hub: HubScene;

  /** A controller as a process, with the account of the manifests. */
  const start = (): ReturnType<typeof startCurlew> => {
    const one = startCurlew(['controller', '--kubeconfig', box.at('controller.conf')], { cwd: box.path });
    opened.keep({
      [Symbol.asyncDispose]: async () => {
        one.kill('SIGKILL');
        await one;
      },
    });
    return one;
  };
  const leader = async (): Promise<string> =>
    textAt(
      (await hub.client.get('/apis/coordination.k8s.io/v1/namespaces/curlew-system/leases/curlew-controller')).body,
      'spec.holderIdentity',
    );
  /** Versions of all objects of the fleet: whatever is written changes one. */
  const versions = async (): Promise<string> => {
    const kinds = ['clusters', 'fleetaddons', 'clusteraddons'];
    const lists = await Promise.all(
      kinds.map(async (kind) => hub.client.get(`/apis/fleet.curlew.dev/v1alpha1/${kind}`)),
    );
    return lists
      .flatMap(({ body }) => body['items'] as readonly JsonObject[])
      .map((one) => textAt(one, 'metadata.resourceVersion'))
      .join();
  };

  test.before(async () => {
    box = opened.keep(await tree());
    server = opened.keep(await startApiServer(box.at('server')));
    await server.kubectl(
      ['apply', '-f', '-'],
      hubManifests()
        .map((one) => JSON.stringify(one))
        .join('\n---\n'),
    );
    const admin = await readFile(server.kubeconfig, 'utf8');
    hub = opened.keep(await openHubScene(admin));
    const token = await server.kubectl(['create', 'token', 'curlew-controller', '-n', 'curlew-system']);
    const conf = JSON.parse(admin) as { readonly users: readonly object[] };
    await writeFile(
      box.at('controller.conf'),
      JSON.stringify({ ...conf, users: [{ name: 'admin', user: { token: token.trim() } }] }),
    );
    for (const name of NAMES) await hub.cluster(name, name === 'c1' ? { ring: 'canary' } : {});
  });
  test.after(opened.close);

  test('the leader is killed in mid-rollout: another controller continues, and nothing is lost or done twice', async () => {
    const [one, two] = [start(), start()];
    await eventually(async () => (await leader()) !== '');
    const rollout = { type: 'Progressive', maxConcurrency: 2 };
    await hub.addon('web', { rollout });
    await hub.becomes('web', 'c1:1.2.3@1 c2:1.2.3@1');
    const first = await leader();
    const killed = first.includes(`/${one.pid}_`) ? one : two;
    killed.kill('SIGKILL');
    await hub.report('web', 'Succeeded', 'c1', 'c2');
    await hub.becomes('web', 'c1:1.2.3@1 c2:1.2.3@1 c3:1.2.3@1 c4:1.2.3@1');
    assert.is.not(await leader(), first);
    await hub.report('web', 'Succeeded', 'c3', 'c4');
    await hub.becomes('web', all('1.2.3@1'));
    await hub.report('web', 'Succeeded', 'c5', 'c6');
    await server.kubectl(['wait', '--for=condition=Available', 'fleetaddon/web', '--timeout=60s']);
  });

  test('a controller that begins over a fleet that is as it is to be writes nothing', async () => {
    const before = await versions();
    const [, pid] = /\/(\d+)_/.exec(await leader()) ?? [];
    const next = start();
    process.kill(Number(pid), 'SIGTERM');
    await eventually(async () => (await leader()).includes(`/${next.pid}_`));
    // It has seen the fleet when it answers a change.
    await hub.addon('probe', { clusterSelector: { matchLabels: { env: 'none' } } });
    await hub.condition('probe', 'Available', 'False NoClusters');
    await server.kubectl(['delete', 'fleetaddon', 'probe']);
    assert.is(await versions(), before);
  });

  test('an API server that is away for a while changes nothing, and the rollout continues then', async () => {
    await server.kill();
    await server.startAgain();
    const change = async (): Promise<boolean> =>
      hub.change('web', { spec: { source: hubChart('1.3.0') } }).then(
        () => true,
        () => false,
      );
    // It serves its own kinds before those of definitions.
    await eventually(change);
    await hub.becomes('web', 'c1:1.3.0@2 c2:1.3.0@2 c3:1.2.3@1 c4:1.2.3@1 c5:1.2.3@1 c6:1.2.3@1');
    for (const names of [NAMES.slice(0, 2), NAMES.slice(2, 4), NAMES.slice(4)]) {
      await eventually(async () => {
        const contents = await hub.contents('web');
        return names.every((name) => contents.includes(`${name}:1.3.0@2`));
      });
      await hub.report('web', 'Succeeded', ...names);
    }
    await hub.becomes('web', all('1.3.0@2'));
    await hub.condition('web', 'Available', 'True AllSucceeded');
  });

  test('with the rights of the manifests, a controller gives each cluster the entry of a Channel for its Kubernetes', async () => {
    const entry = (version: string, kubernetesVersion: string): object => {
      const manifest = `https://example.com/dns-${version}.yaml`;
      return { name: 'dns', version, kubernetesVersion, manifest, hash: `sha256:${'0'.repeat(64)}` };
    };
    const entries = [entry('1.0.0', '<1.34.0'), entry('1.1.0', '>=1.34.0')];
    const facts = async (version: string): Promise<string> => {
      const at = ['clusters.fleet.curlew.dev', 'c1', '-n', 'fleet-c1', '--subresource=status', '--type=merge'];
      return server.kubectl(['patch', ...at, '-p', JSON.stringify({ status: { facts: { version } } })]);
    };
    await facts('v1.33.2');
    await server.kubectl(['apply', '-f', '-'], JSON.stringify(hubChannel('stable', entries)));
    await hub.addon('dns', { source: { channel: { name: 'stable' } } });
    await hub.becomes('dns', `c1:1.0.0@1 ${all('1.1.0@1').slice('c1:1.1.0@1 '.length)}`);
    await hub.report('dns', 'Succeeded', ...NAMES);
    await hub.condition('dns', 'Available', 'True AllSucceeded');
    await facts('v1.34.1');
    await hub.becomes('dns', `c1:1.1.0@2 ${all('1.1.0@1').slice('c1:1.1.0@1 '.length)}`);
    await server.kubectl(['delete', 'channel.fleet.curlew.dev', 'stable']);
    await hub.condition('dns', 'Degraded', 'True Invalid');
    await hub.change('dns', { metadata: { finalizers: null } });
    await server.kubectl(['delete', 'fleetaddon', 'dns']);
  });

  test('with the right to one ConfigMap, a controller rolls out the values of each cluster, and holds the one without', async () => {
    const rights = hubManifests({ valuesConfigMaps: ['sites'] }).map((one) => JSON.stringify(one));
    const values = (text: string): string[] =>
      NAMES.slice(0, 5).map((name) => `--from-literal=${name}.values.yaml=${text}`);
    await server.kubectl(['create', 'configmap', 'sites', '-n', 'curlew-system', ...values('a: 1')]);
    const groups = [{ name: 'canary', selector: { matchLabels: { ring: 'canary' } } }];
    const rollout = { type: 'ProgressivePerGroup', groups };
    await hub.addon('site', { rollout, valuesConfigMap: { name: 'sites', perCluster: true } });
    await hub.condition('site', 'Degraded', 'True Invalid');
    const { conditions } = await hub.status('site');
    assert.match(JSON.stringify(conditions), /curlew hub manifests --values-config-map sites prints/);
    await server.kubectl(['apply', '-f', '-'], rights.join('\n---\n'));
    await hub.becomes('site', 'c1:1.2.3@1');
    await hub.report('site', 'Succeeded', 'c1');
    await hub.becomes('site', 'c1:1.2.3@1 c2:1.2.3@1 c3:1.2.3@1 c4:1.2.3@1 c5:1.2.3@1');
    await hub.report('site', 'Succeeded', ...NAMES.slice(0, 5));
    await eventually(async () => {
      const waiting = JSON.stringify((await hub.status('site'))['waiting']);
      return /^\[\{"cluster":"c6",[^\]]*has no text in data\.c6\.values\.yaml","reason":"Content"/.test(waiting);
    });
    const change = { data: { 'c1.values.yaml': 'a: 2', 'c3.values.yaml': 'a: 2', 'c6.values.yaml': 'a: 1' } };
    await server.kubectl(['patch', 'configmap', 'sites', '-n', 'curlew-system', '-p', JSON.stringify(change)]);
    await hub.becomes('site', 'c1:1.2.3@2 c2:1.2.3@1 c3:1.2.3@1 c4:1.2.3@1 c5:1.2.3@1');
    await hub.report('site', 'Succeeded', 'c1');
    await hub.becomes('site', 'c1:1.2.3@2 c2:1.2.3@1 c3:1.2.3@2 c4:1.2.3@1 c5:1.2.3@1 c6:1.2.3@1');
    await hub.change('site', { metadata: { finalizers: null } });
    await server.kubectl(['delete', 'fleetaddon', 'site']);
  });

  test('a definition of a kind that is deleted removes nothing from clusters', async () => {
    await server.kubectl(['delete', 'crd', 'fleetaddons.fleet.curlew.dev', '--wait=false']);
    await eventually(async () => {
      const { body } = await hub.client.get('/apis/fleet.curlew.dev/v1alpha1/fleetaddons/web');
      return at(body, 'metadata.deletionTimestamp') !== undefined;
    });
    // The controller sees another change after this one.
    await hub.cluster('c7');
    await server.kubectl(['label', 'clusters.fleet.curlew.dev', 'c7', '-n', 'fleet-c7', 'seen=yes']);
    const holder = await leader();
    const renewed = async (): Promise<string> =>
      textAt(
        (await hub.client.get('/apis/coordination.k8s.io/v1/namespaces/curlew-system/leases/curlew-controller')).body,
        'spec.renewTime',
      );
    const then = await renewed();
    await eventually(async () => (await renewed()) !== then);
    assert.is(await leader(), holder);
    assert.is(await hub.contents('web'), all('1.3.0@2'));
  });

  test('the account of the controller may neither read Secrets nor change clusters', async () => {
    const client = apiClient(await readFile(box.at('controller.conf'), 'utf8'));
    const root = '/apis/fleet.curlew.dev/v1alpha1';
    const statuses = [
      await client.get('/api/v1/namespaces/fleet-c1/secrets'),
      await client.merge(`${root}/namespaces/fleet-c1/clusters/c1/status`, { status: {} }),
      await client.merge(`${root}/namespaces/fleet-c1/clusteraddons/web/status`, { status: {} }),
      await client.create('/api/v1/namespaces', { metadata: { name: 'mine' } }),
      await client.get('/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/curlew-addons'),
    ].map(({ status }) => status);
    assert.equal(statuses, [403, 403, 403, 403, 403]);
  });

  test('the steps of docs/hub.md remove a hub, and no cluster is told to remove anything', async () => {
    const page = await readFile('docs/hub.md', 'utf8');
    const [, release = ''] = /`kubectl (patch fleetaddons\S+ NAME [^`]+)`/.exec(page) ?? [];
    assert.match(page, '`curlew hub manifests | kubectl delete -f -`');
    const [, pid] = /\/(\d+)_/.exec(await leader()) ?? [];
    process.kill(Number(pid), 'SIGTERM');
    assert.is(await hub.contents('web'), all('1.3.0@2'));
    await server.kubectl(release.replace('NAME', 'web').replaceAll("'", '').split(' '));
    const [, releaseCluster = ''] = /`kubectl (patch clusters\S+ NAME [^`]+)`/.exec(page) ?? [];
    const clusters = await server.kubectl(['get', 'clusters.fleet.curlew.dev', '-A', '-o', 'name']);
    for (const line of clusters.trim().split('\n')) {
      const [, name = ''] = line.split('/');
      await server.kubectl(releaseCluster.replaceAll('NAME', name).replaceAll("'", '').split(' '));
    }
    assert.is(await hub.contents('web'), all('1.3.0@2'));
    const documents = hubManifests().map((one) => JSON.stringify(one));
    // The test before has deleted one of the definitions; no controller of this server empties namespaces.
    await server.kubectl(['delete', '-f', '-', '--ignore-not-found', '--wait=false'], documents.join('\n---\n'));
    const left = ['crd,clusterroles,clusterrolebindings', '-o', 'name'];
    await eventually(async () => !/curlew/.test(await server.kubectl(['get', ...left])));
  });
} else test.skip('the controller of a hub on an API server', reason);

test.run();
