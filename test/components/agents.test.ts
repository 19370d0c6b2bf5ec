/** A fleet on a real API server: a controller and the agents of four clusters, all of them processes that are killed. */
import { readFile, writeFile } from 'node:fs/promises';
import { AgentFolder } from '../../src/fleet/agent/folder.ts';
import { digestOf } from '../../src/core/digest.ts';
import { makeKeyPair, publicPart, readPrivateKey } from '../../src/formats/signing/keys.ts';
import { signText } from '../../src/formats/signing/signature.ts';
import type { HubKubeconfig } from '../../src/fleet/hub/kubeconfig.ts';
import { hubManifests } from '../../src/fleet/hub/manifests.ts';
import { apiClient, at, textAt, type ApiClient } from '../support/api-client.ts';
import type { JsonObject } from '../support/api-server/fields.ts';
import { startMemoryApiServer } from '../support/api-server/server.ts';
import * as assert from '../support/assert.ts';
import { startCurlew } from '../support/curlew.ts';
import { eventually, openHubScene, type HubScene } from '../support/hub-scene.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree, type Tree } from '../support/tree.ts';
import { startServer } from '../support/web-server.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/agents', { timeoutMs: 300_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS);
const opened = createOpened();
const NAMES = ['oslo', 'paris', 'rome', 'turin'];
const MAP = '/api/v1/namespaces/default/configmaps/page';
/** A kind that every cluster but the last one has. */
const WIDGETS = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { kind: 'Widget', plural: 'widgets', singular: 'widget', listKind: 'WidgetList' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  },
};

if (reason === undefined) {
  let box: Tree;
  let server: ApiServer;
  let hub: HubScene;
  let url = '';
  /** Registers the agent of a cluster with this kubeconfig, and starts it. */
  let join: (name: string, kubeconfig: string) => Promise<void>;
  const files = new Map<string, string>();
  const key = readPrivateKey(makeKeyPair(undefined).privateKey, 'pinned', undefined);
  const clusters = new Map<string, ApiClient>();
  const agents = new Map<string, ReturnType<typeof startCurlew>>();

  const started = (words: readonly string[]): ReturnType<typeof startCurlew> => {
    const one = startCurlew(words, { cwd: box.path });
    opened.keep({
      [Symbol.asyncDispose]: async () => {
        one.kill('SIGKILL');
        await one;
      },
    });
    return one;
  };
  const startAgent = (name: string): void => {
    const own = ['--root', name, '--kubeconfig', `${name}.conf`, '--ca-file', 'ca.pem'];
    agents.set(name, started(['agent', 'run', ...own, '--delay', '1s', '--wait', '20s']));
  };
  const kill = async (name: string): Promise<void> => {
    const agent = agents.get(name);
    agent?.kill('SIGKILL');
    await agent;
  };
  const restart = async (name: string): Promise<void> => {
    await kill(name);
    startAgent(name);
  };
  /** A signed manifest with this version of a ConfigMap, and an object of another kind. */
  const manifest = (version: string, other?: string): object => {
    const metadata = { name: 'page', namespace: 'default' };
    const objects: object[] = [{ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { version } }];
    if (other !== undefined) objects.push({ apiVersion: 'example.com/v1', kind: other, metadata });
    const text = objects.map((object) => JSON.stringify(object)).join('\n---\n');
    files.set(`/${version}.yaml`, text);
    files.set(`/${version}.yaml.sigstore.json`, signText(Buffer.from(text), key));
    return { manifest: `${url}/${version}.yaml`, hash: digestOf(text) };
  };
  const versions = async (): Promise<string> => {
    const found = NAMES.map(async (name) => textAt((await clusters.get(name)?.get(MAP))?.body, 'data.version') || '-');
    return (await Promise.all(found)).join(' ');
  };
  const addonOf = async (name: string): Promise<JsonObject> =>
    (await hub.client.get(`/apis/fleet.curlew.dev/v1alpha1/namespaces/fleet-${name}/clusteraddons/web`)).body;
  /** Waits until each cluster has been changed this often, and succeeds with what it had in the end. */
  const settles = async (revisions: string): Promise<void> =>
    eventually(async () => {
      const all = await Promise.all(NAMES.map(addonOf));
      const has = all.every(
        (one) =>
          textAt(one, 'status.state') === 'Succeeded' &&
          at(one, 'status.applied.revision') === at(one, 'spec.revision'),
      );
      return has && all.map((one) => Number(at(one, 'spec.revision'))).join(' ') === revisions;
    });
  const available = async (): Promise<string> =>
    server.kubectl(['wait', '--for=condition=Available', 'fleetaddon/web', '--timeout=90s']);

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
    const certificate = await makeCertificate();
    await writeFile(box.at('ca.pem'), certificate.ca);
    const web = opened.keep(
      await startServer(
        ({ path }) => {
          const body = files.get(path);
          return body === undefined ? { status: 404 } : { status: 200, body };
        },
        { tls: certificate },
      ),
    );
    ({ url } = web);
    const uid = textAt((await hub.client.get('/api/v1/namespaces/kube-system')).body, 'metadata.uid');
    const conf = JSON.parse(admin) as {
      readonly clusters: readonly [{ readonly cluster: HubKubeconfig['hub'] }];
      readonly users: readonly [{ readonly user: HubKubeconfig['user'] }];
    };
    join = async (name, kubeconfig) => {
      await hub.cluster(name, name === 'paris' ? { ring: 'canary' } : {});
      const leases = `/apis/coordination.k8s.io/v1/namespaces/fleet-${name}/leases`;
      await hub.client.create(leases, { metadata: { name: 'curlew-agent' }, spec: {} });
      await writeFile(box.at(`${name}.conf`), kubeconfig);
      clusters.set(name, apiClient(kubeconfig));
      const folder = new AgentFolder(box.at(name));
      await using _claim = await folder.claim();
      await folder.writeKubeconfig({ hub: conf.clusters[0].cluster, user: conf.users[0].user });
      await folder.writeSettings({ cluster: name, hub: uid, keys: [publicPart(key, 'pinned')], allowUnsigned: false });
      startAgent(name);
    };
    for (const name of NAMES) {
      const own = opened.keep(await startMemoryApiServer({ certificate }));
      if (name !== NAMES.at(-1)) {
        const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
        await apiClient(own.kubeconfig).create(definitions, WIDGETS);
      }
      await join(name, own.kubeconfig);
    }
    void started(['controller', '--kubeconfig', server.kubeconfig]);
  });
  test.after(opened.close);

  test('an add-on reaches the canary, then the rest, by their agents', async () => {
    const rollout = {
      type: 'Progressive',
      groups: [{ name: 'canary', selector: { matchLabels: { ring: 'canary' } } }],
      mandatoryDecisionGroups: [{ groupName: 'canary' }],
      maxConcurrency: 1,
      maxFailures: 0,
      onFailure: 'Rollback',
    };
    await hub.addon('web', { source: manifest('1'), rollout });
    await available();
    assert.is(await versions(), '1 1 1 1');
  });

  test('a bad version stops at the canary, which goes back to what was healthy', async () => {
    await hub.change('web', { spec: { source: manifest('2', 'Missing') } });
    await settles('1 3 1 1');
    assert.ok((await hub.status('web'))['rolledBack']);
    assert.is(await versions(), '1 1 1 1');
  });

  test('a version that fails on the last cluster stays where it is healthy, until it is rolled back', async () => {
    await hub.change('web', { spec: { source: manifest('2.1', 'Widget') } });
    await settles('2 4 2 3');
    assert.is(await versions(), '2.1 2.1 2.1 1');
    await hub.order('web', 'rollback');
    await settles('3 5 3 3');
    assert.is(await versions(), '1 1 1 1');
  });

  test('agents that are killed, and a hub that is away, lose nothing', async () => {
    await hub.change('web', { spec: { source: manifest('3') } });
    await eventually(async () => (await versions()).includes('3'));
    await server.kill();
    for (const name of NAMES) await restart(name);
    await server.startAgain();
    for (const name of NAMES) await restart(name);
    await available();
    assert.is(await versions(), '3 3 3 3');
  });

  test('two sites that are off hold nobody, and take the newest version once they are back', async () => {
    const off = ['oslo', 'rome'];
    for (const name of off) await kill(name);
    for (const version of ['4', '5']) {
      await hub.change('web', { spec: { source: manifest(version), rollout: { maxConcurrency: 3 } } });
      await eventually(async () => (await versions()) === `3 ${version} 3 ${version}`);
    }
    for (const name of off) startAgent(name);
    await available();
    assert.is(await versions(), '5 5 5 5');
  });

  test('what others delete or change on a real API server returns as the add-on says, without another revision', async () => {
    await hub.change('web', { spec: { drift: 'Revert' } });
    // The server of the hub is a site, too.
    await join('here', await readFile(server.kubeconfig, 'utf8'));
    const here = async (): Promise<string> => textAt((await hub.client.get(MAP)).body, 'data.version');
    await eventually(async () => textAt(await addonOf('here'), 'status.state') === 'Succeeded');
    const { since } = (await addonOf('here'))['status'] as { readonly since: string };
    await server.kubectl(['delete', 'configmap', 'page']);
    await restart('here');
    await eventually(async () => (await here()) === '5');
    await server.kubectl(['patch', 'configmap', 'page', '--type=merge', '-p', '{"data":{"version":"mine"}}']);
    await restart('here');
    await eventually(async () => (await here()) === '5');
    await hub.change('web', { spec: { drift: 'Warn' } });
    // An agent that starts again does what it was last told, even before it hears of its hub.
    await eventually(async () =>
      /"drift": ?"Warn"/.test(await readFile(box.at('here/var/lib/curlew/agent/record.json'), 'utf8')),
    );
    await server.kubectl(['patch', 'configmap', 'page', '--type=merge', '-p', '{"data":{"version":"mine"}}']);
    await restart('here');
    await eventually(async () => textAt(await addonOf('here'), 'status.reason') === 'Drift');
    const one = await addonOf('here');
    assert.equal([await here(), at(one, 'spec.revision'), at(one, 'status.since')], ['mine', 1, since]);
    assert.is(textAt(one, 'status.message'), 'changed by others: ConfigMap default/page');
    await available();
  });
} else test.skip('a fleet with agents on an API server', reason);

test.run();
