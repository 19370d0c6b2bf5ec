/** A fleet on a real API server: a controller and the agents of two clusters, all of them processes that are killed. */
import { readFile, writeFile } from 'node:fs/promises';
import { AgentFolder } from '../../src/agent/folder.ts';
import { digestOf } from '../../src/core/digest.ts';
import { makeKeyPair, publicPart, readPrivateKey } from '../../src/formats/signing/keys.ts';
import type { HubKubeconfig } from '../../src/hub/kubeconfig.ts';
import { hubManifests } from '../../src/hub/manifests.ts';
import { apiClient, textAt, type ApiClient } from '../support/api-client.ts';
import { startMemoryApiServer } from '../support/api-server/server.ts';
import * as assert from '../support/assert.ts';
import { startCurlew } from '../support/curlew.ts';
import { eventually, openHubScene, type HubScene } from '../support/hub-scene.ts';
import { signBare } from '../support/signing.ts';
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
const NAMES = ['oslo', 'paris'];
const MAP = '/api/v1/namespaces/default/configmaps/page';

if (reason === undefined) {
  let box: Tree;
  let server: ApiServer;
  let hub: HubScene;
  let url = '';
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
  const restart = async (name: string): Promise<void> => {
    const agent = agents.get(name);
    agent?.kill('SIGKILL');
    await agent;
    startAgent(name);
  };
  /** A signed manifest with this version of a ConfigMap, or of what no server takes. */
  const manifest = (version: string, isBad = false): object => {
    const metadata = { name: 'page', namespace: 'default' };
    const good = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { version } };
    const text = JSON.stringify(isBad ? { apiVersion: 'example.com/v1', kind: 'Missing', metadata } : good);
    files.set(`/${version}.yaml`, text);
    files.set(`/${version}.yaml.sigstore.json`, signBare(Buffer.from(text), key));
    return { manifest: `${url}/${version}.yaml`, hash: digestOf(text) };
  };
  const versions = async (): Promise<string> => {
    const found = NAMES.map(async (name) => textAt((await clusters.get(name)?.get(MAP))?.body, 'data.version') || '-');
    return (await Promise.all(found)).join(' ');
  };
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
    for (const name of NAMES) {
      await hub.cluster(name, name === 'paris' ? { ring: 'canary' } : {});
      const leases = `/apis/coordination.k8s.io/v1/namespaces/fleet-${name}/leases`;
      await hub.client.create(leases, { metadata: { name: 'curlew-agent' }, spec: {} });
      const own = opened.keep(await startMemoryApiServer({ certificate }));
      await writeFile(box.at(`${name}.conf`), own.kubeconfig);
      clusters.set(name, apiClient(own.kubeconfig));
      const folder = new AgentFolder(box.at(name));
      await using _claim = await folder.claim();
      await folder.writeKubeconfig({ hub: conf.clusters[0].cluster, user: conf.users[0].user });
      await folder.writeSettings({ cluster: name, hub: uid, keys: [publicPart(key, 'pinned')], allowUnsigned: false });
      startAgent(name);
    }
    void started(['controller', '--kubeconfig', server.kubeconfig]);
  });
  test.after(opened.close);

  test('an add-on reaches the canary, then the rest, by their agents', async () => {
    const rollout = {
      type: 'Progressive',
      groups: [{ name: 'canary', selector: { matchLabels: { ring: 'canary' } } }],
      mandatoryDecisionGroups: [{ groupName: 'canary' }],
      onFailure: 'Rollback',
    };
    await hub.addon('web', { source: manifest('1'), rollout });
    await available();
    assert.is(await versions(), '1 1');
  });

  test('a bad version stops at the canary, which goes back to what was healthy', async () => {
    await hub.change('web', { spec: { source: manifest('2', true) } });
    await eventually(async () => Boolean((await hub.status('web'))['rolledBack']));
    await eventually(async () => {
      const { body } = await hub.client.get('/apis/fleet.curlew.dev/v1alpha1/namespaces/fleet-paris/clusteraddons/web');
      return textAt(body, 'status.state') === 'Succeeded' && JSON.stringify(body['spec']).includes('/1.yaml');
    });
    assert.is(await versions(), '1 1');
  });

  test('agents that are killed, and a hub that is away, lose nothing', async () => {
    await hub.change('web', { spec: { source: manifest('3') } });
    await eventually(async () => (await versions()).includes('3'));
    await server.kill();
    for (const name of NAMES) await restart(name);
    await server.startAgain();
    for (const name of NAMES) await restart(name);
    await available();
    assert.is(await versions(), '3 3');
  });
} else test.skip('a fleet with agents on an API server', reason);

test.run();
