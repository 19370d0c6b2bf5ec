/** Identity of agents at a real API server with the signer of kube-controller-manager: tokens, renewals, and rights by trying the rest. */
import { readFile, writeFile } from 'node:fs/promises';
import { renewIfDue, readCertificate } from '../../src/fleet/agent/certificate.ts';
import { AgentFolder } from '../../src/fleet/agent/folder.ts';
import { acceptCluster } from '../../src/app/fleet-accept.ts';
import { detachCluster } from '../../src/app/fleet-detach.ts';
import { makeHubToken, makeRejoinToken } from '../../src/app/hub-token.ts';
import { registerAgent } from '../../src/app/agent-register.ts';
import type { Context } from '../../src/core/context.ts';
import { hubManifests } from '../../src/fleet/hub/manifests.ts';
import { openApi } from '../../src/cluster/kube/api.ts';
import { apiClient, textAt, type ApiClient } from '../support/api-client.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { startCurlew } from '../support/curlew.ts';
import { eventually } from '../support/hub-scene.ts';
import { hubCluster, hubClusterAddon } from '../support/hub-objects.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { makeClientAuthority, MANAGER, type ClientAuthority } from './support/client-authority.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/registration', { timeoutMs: 240_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS, MANAGER);
const opened = createOpened();
const FLEET = '/apis/fleet.curlew.dev/v1alpha1';
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const REQUESTS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';

if (reason === undefined) {
  let box: Tree;
  let server: ApiServer;
  let authority: ClientAuthority;
  let admin: ApiClient;
  let context: Context;
  let kubeconfig: string;
  let signer: AsyncDisposable | undefined;
  const folderOf = (name: string): AgentFolder => new AgentFolder(box.at(name));

  test.before(async () => {
    box = opened.keep(await tree());
    authority = await makeClientAuthority(box.path);
    server = opened.keep(await startApiServer(box.at('server'), { options: authority.options }));
    ({ kubeconfig } = server);
    context = { signal: never, report: () => undefined, env: {}, cwd: box.path };
    admin = apiClient(await readFile(kubeconfig, 'utf8'));
    const manifests = hubManifests().map((one) => JSON.stringify(one));
    await server.kubectl(['apply', '-f', '-'], manifests.join('\n---\n'));
    await server.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s']);
  });
  test.after(async () => {
    await signer?.[Symbol.asyncDispose]();
    await opened.close();
  });

  test('a hub without kube-controller-manager is named before a token is made', async () => {
    const error = await assert.rejectsWith(makeHubToken({ cluster: 'paris', kubeconfig }, context), 'CLUSTER_FAILED');
    assert.match(error.message, /has signed no client certificate/);
    assert.is(await server.kubectl(['get', 'secrets', '-n', 'kube-system', '-o', 'name']), '');
    signer = await authority.startSigner(kubeconfig);
  });

  test('a cluster registers, and its agent may do what it must, and nothing else', async () => {
    // The longest name that is allowed.
    for (const cluster of ['paris', 'rome', 'p'.repeat(57)]) {
      const { file } = await makeHubToken({ cluster, kubeconfig }, context);
      const done = registerAgent({ tokenFile: file, root: cluster, allowUnsigned: true }, context);
      const waits = async (): Promise<boolean> =>
        (await server.kubectl(['get', 'csr', '-o', 'name'])).includes(`curlew-${cluster}`.slice(0, 58));
      await eventually(waits);
      await acceptCluster({ cluster, kubeconfig }, context);
      assert.is((await done).cluster, cluster);
      await admin.create(`${FLEET}/namespaces/fleet-${cluster}/clusteraddons`, hubClusterAddon('web', cluster));
    }
    const agent = apiClient(await readFile(folderOf('paris').kubeconfig, 'utf8'));
    const [own, other] = [`${FLEET}/namespaces/fleet-paris`, `${FLEET}/namespaces/fleet-rome`];
    const lease = '/apis/coordination.k8s.io/v1/namespaces/fleet-paris/leases/curlew-agent';
    const { status: found, body } = await agent.get(lease);
    assert.is(found, 200);
    const state = { applied: { revision: 1, hash: 'a1' }, state: 'Succeeded', since: '2026-01-02T03:04:05Z' };
    const may = {
      list: agent.get(`${own}/clusteraddons`),
      get: agent.get(`${own}/clusteraddons/web`),
      status: agent.merge(`${own}/clusteraddons/web/status`, { status: state }),
      cluster: agent.get(`${own}/clusters/paris`),
      facts: agent.merge(`${own}/clusters/paris/status`, { status: { facts: { nodes: 1 } } }),
      lease: agent.replace(lease, body),
    };
    for (const [what, reply] of Object.entries(may)) assert.is((await reply).status, 200, what);
    assert.is((await agent.watch(`${own}/clusteraddons?watch=true`, 1)).length, 1);
    const requests = await server.kubectl(['get', 'csr', '-o', 'jsonpath={.items[*].metadata.name}']);
    const [ofRome, ofParis] = ['curlew-rome-', 'curlew-paris-'].map((prefix) =>
      requests.split(' ').find((name) => name.startsWith(prefix)),
    );
    assert.is((await agent.get(`${REQUESTS}/${ofParis}`)).status, 200);
    const mayNot = {
      'a neighbor': agent.get(`${other}/clusteraddons/web`),
      'all neighbors': agent.get(`${FLEET}/clusteraddons`),
      'the status of a neighbor': agent.merge(`${other}/clusteraddons/web/status`, { status: state }),
      'its own content': agent.merge(`${own}/clusteraddons/web`, { spec: { version: '9' } }),
      'another add-on': agent.create(`${own}/clusteraddons`, hubClusterAddon('x', 'paris')),
      'no add-on': agent.remove(`${own}/clusteraddons/web`),
      'its labels': agent.merge(`${own}/clusters/paris`, { metadata: { labels: { env: 'prod' } } }),
      'other clusters of its namespace': agent.create(`${own}/clusters`, hubCluster('paris2')),
      'its clusters as a list': agent.get(`${own}/clusters`),
      'fleet add-ons': agent.get(`${FLEET}/fleetaddons`),
      secrets: agent.get('/api/v1/namespaces/fleet-paris/secrets'),
      'a secret': agent.get('/api/v1/namespaces/fleet-paris/secrets/x'),
      'secrets of others': agent.get('/api/v1/namespaces/kube-system/secrets'),
      'other leases': agent.get('/apis/coordination.k8s.io/v1/namespaces/fleet-paris/leases'),
      'the lease of the controller': agent.get(
        '/apis/coordination.k8s.io/v1/namespaces/curlew-system/leases/curlew-controller',
      ),
      'no lease': agent.remove(lease),
      namespaces: agent.get('/api/v1/namespaces'),
      'its namespace': agent.get('/api/v1/namespaces/fleet-paris'),
      pods: agent.get('/api/v1/namespaces/fleet-paris/pods'),
      'config maps': agent.create('/api/v1/namespaces/fleet-paris/configmaps', { metadata: { name: 'x' } }),
      requests: agent.get(REQUESTS),
      'the request of a neighbor': agent.get(`${REQUESTS}/${ofRome}`),
      'its approval': agent.merge(`${REQUESTS}/${ofParis}/approval`, { status: { conditions: [] } }),
      roles: agent.get(`${RBAC}/namespaces/fleet-paris/roles`),
      'more rights': agent.create(`${RBAC}/namespaces/fleet-paris/rolebindings`, {
        metadata: { name: 'x' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
        subjects: [],
      }),
      nodes: agent.get('/api/v1/nodes'),
      definitions: agent.get('/apis/apiextensions.k8s.io/v1/customresourcedefinitions'),
    };
    for (const [what, reply] of Object.entries(mayNot)) assert.is((await reply).status, 403, what);
  });

  test('the controller, with the rights of the manifests, approves the renewal of a certificate', async () => {
    const token = await server.kubectl(['create', 'token', 'curlew-controller', '-n', 'curlew-system']);
    const conf = JSON.parse(await readFile(kubeconfig, 'utf8')) as object;
    const text = JSON.stringify({ ...conf, users: [{ name: 'admin', user: { token: token.trim() } }] });
    await writeFile(box.at('controller.conf'), text, { mode: 0o600 });
    const controller = startCurlew(['controller', '--kubeconfig', box.at('controller.conf')], { cwd: box.path });
    opened.keep({
      [Symbol.asyncDispose]: async () => {
        controller.kill('SIGKILL');
        await controller;
      },
    });
    const folder = folderOf('paris');
    const api = await openApi({ env: { KUBECONFIG: folder.kubeconfig } });
    if (api === undefined) throw new Error('there is no API');
    const before = await folder.readKubeconfig();
    const { renewAt = 0, endsAt = 0, user } = (await readCertificate(folder)) ?? {};
    const late = { ...api, now: () => new Date(renewAt + 1000) };
    assert.is(await renewIfDue(folder, { api, signal: never }), 'current');
    await eventually(async () => (await renewIfDue(folder, { api: late, signal: never })) === 'renewed');
    assert.is((await readCertificate(folder))?.user, user);
    assert.is.not(
      (await folder.readKubeconfig())?.user['client-certificate-data'],
      before?.user['client-certificate-data'],
    );
    const agent = apiClient(await readFile(folder.kubeconfig, 'utf8'));
    assert.is((await agent.get(`${FLEET}/namespaces/fleet-paris/clusteraddons`)).status, 200);
    const ended = { ...api, now: () => new Date(endsAt + 30 * 86_400_000) };
    const error = await assert.rejectsWith(renewIfDue(folder, { api: ended, signal: never }), 'CLUSTER_FAILED');
    assert.match(error.hint ?? '', /--rejoin/);
  });

  test('a detached agent has a certificate and no rights, and cannot ask for another one', async () => {
    const agent = apiClient(await readFile(folderOf('rome').kubeconfig, 'utf8'));
    await detachCluster({ cluster: 'rome', kubeconfig }, context);
    const paths = [`${FLEET}/namespaces/fleet-rome/clusteraddons`, `${FLEET}/namespaces/fleet-rome/clusters/rome`];
    await eventually(async () => (await agent.get(paths[0] ?? '')).status === 403);
    for (const path of paths) assert.is((await agent.get(path)).status, 403);
    const { status, body } = await agent.create(REQUESTS, {
      metadata: { generateName: 'curlew-rome-' },
      spec: { request: '', signerName: 'kubernetes.io/kube-apiserver-client', usages: ['client auth'] },
    });
    assert.is(status, 403, textAt(body, 'message'));
    assert.match(await server.kubectl(['get', 'clusters.fleet.curlew.dev', '-A']), /fleet-rome +rome/);
  });

  test('an agent whose certificate has expired says what to do, and a token to rejoin lets its site back in', async () => {
    await signer?.[Symbol.asyncDispose]();
    signer = await authority.startSigner(kubeconfig, '--cluster-signing-duration=20s');
    const register = async (file: string, before: string): Promise<void> => {
      const done = registerAgent({ tokenFile: file, root: 'oslo', allowUnsigned: true }, context);
      const waits = async (): Promise<boolean> => {
        const names = (await server.kubectl(['get', 'csr', '-o', 'name'])).split('\n');
        return names.some((name) => name.includes('curlew-oslo-') && !before.includes(name));
      };
      await eventually(waits);
      await acceptCluster({ cluster: 'oslo', kubeconfig }, context);
      assert.is((await done).cluster, 'oslo');
    };
    await register((await makeHubToken({ cluster: 'oslo', kubeconfig }, context)).file, '');
    const folder = folderOf('oslo');
    const own = `${FLEET}/namespaces/fleet-oslo/clusteraddons`;
    const status = async (): Promise<number> =>
      (await apiClient(await readFile(folder.kubeconfig, 'utf8')).get(own)).status;
    const user = (await readCertificate(folder))?.user;
    await eventually(async () => (await status()) === 401);
    const api = await openApi({ env: { KUBECONFIG: folder.kubeconfig } });
    if (api === undefined) throw new Error('there is no API');
    const error = await assert.rejectsWith(renewIfDue(folder, { api, signal: never }), 'CLUSTER_FAILED');
    assert.match(error.message, /has expired at 20/);
    assert.match(error.hint ?? '', /curlew fleet accept --rejoin/);
    await signer[Symbol.asyncDispose]();
    signer = await authority.startSigner(kubeconfig);
    const before = await server.kubectl(['get', 'csr', '-o', 'name']);
    const out = 'again.token';
    await register((await makeRejoinToken({ cluster: 'oslo', kubeconfig, out }, context)).file, before);
    assert.is(await status(), 200);
    assert.is.not((await readCertificate(folder))?.user, user);
  });
} else test.skip('identity of agents at an API server with a signer', reason);

test.run();
