/** Add-ons that register at a real API server: by the signer of kube-controller-manager, and by the controller with the rights of its manifests. */
import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { detachCluster } from '../../src/app/fleet-detach.ts';
import { hubManifests } from '../../src/fleet/hub/manifests.ts';
import { addonRequest, requestObject } from '../../src/fleet/hub/certificate-requests.ts';
import { makeAuthority } from '../../src/formats/signing/authority.ts';
import { makeRequest, type RequestSubject } from '../../src/formats/signing/certificate-request.ts';
import { makeKeyPair } from '../../src/formats/signing/keys.ts';
import { apiClient, at, textAt, type ApiClient } from '../support/api-client.ts';
import { addonRegistrationScene, type AddonRegistrationScene } from '../support/addon-registration-scene.ts';
import * as assert from '../support/assert.ts';
import { answer, answerTo } from '../support/hub-signer.ts';
import { eventually, type RunningController } from '../support/hub-scene.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { makeClientAuthority, MANAGER } from './support/client-authority.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/addon-registration', { timeoutMs: 240_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS, MANAGER);
const opened = createOpened();
const REQUESTS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const SIGNER = 'example.com/agents';
const GROUP = 'system:open-cluster-management:cluster:paris:addon:web';
const SUBJECT = {
  commonName: `${GROUP}:agent:web-agent`,
  organizations: [GROUP, 'system:open-cluster-management:addon:web', 'system:authenticated'],
};
const CUSTOM = {
  type: 'CustomSigner',
  customSigner: {
    signerName: SIGNER,
    signingCA: { name: 'agents-ca', namespace: 'authorities' },
    subject: { user: 'agent', groups: ['agents'] },
  },
};

function kubeClient(clusterRoleName: string): object {
  const current = { type: 'CurrentCluster', currentCluster: { clusterRoleName } };
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'shared-reader' };
  const single = { type: 'SingleNamespace', singleNamespace: { namespace: 'shared', roleRef } };
  return { type: 'KubeClient', kubeClient: { hubPermissions: [current, single] } };
}

if (reason === undefined) {
  let server: ApiServer;
  let scene: AddonRegistrationScene;
  let controller: RunningController;
  let start: () => RunningController;
  const authority = makeAuthority('agents', { days: 1 });

  test.before(async () => {
    const box = opened.keep(await tree());
    const clients = await makeClientAuthority(box.path);
    server = opened.keep(await startApiServer(box.at('server'), { options: clients.options }));
    opened.keep(await clients.startSigner(server.kubeconfig));
    await server.kubectl(['create', 'namespace', 'authorities']);
    const signers = [{ name: SIGNER, namespace: 'authorities', secret: 'agents-ca' }];
    const manifests = hubManifests({ reconcile: ['clustermanagementaddons'], signers });
    await server.kubectl(['apply', '-f', '-'], manifests.map((one) => JSON.stringify(one)).join('\n---\n'));
    scene = opened.keep(await addonRegistrationScene({ server: await readFile(server.kubeconfig, 'utf8') }));
    await server.kubectl(['create', 'clusterrole', 'web-reader', '--verb=get,list', '--resource=configmaps']);
    await server.kubectl(['create', 'role', 'shared-reader', '-n', 'shared', '--verb=list', '--resource=services']);
    const account = '--serviceaccount=curlew-system:curlew-controller';
    for (const [kind, name, more] of [
      ['clusterrole', 'web-reader', []],
      ['role', 'shared-reader', ['-n', 'shared']],
    ] as const) {
      const what = [`--resource=${kind}s.rbac.authorization.k8s.io`, `--resource-name=${name}`, ...more];
      await server.kubectl(['create', kind, `bind-${name}`, '--verb=bind', ...what]);
      await server.kubectl(['create', `${kind}binding`, `bind-${name}`, `--${kind}=bind-${name}`, account, ...more]);
    }
    const stringData = { 'tls.crt': authority.certificate, 'tls.key': authority.key.reveal() };
    const metadata = { name: 'agents-ca', annotations: { 'fleet.curlew.dev/signer': SIGNER } };
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata, type: 'kubernetes.io/tls' };
    await server.kubectl(['create', '-n', 'authorities', '-f', '-'], JSON.stringify({ ...secret, stringData }));
    const token = await server.kubectl(['create', 'token', 'curlew-controller', '-n', 'curlew-system']);
    const conf = JSON.parse(await readFile(server.kubeconfig, 'utf8')) as object;
    const kubeconfig = box.at('controller.conf');
    const users = [{ name: 'admin', user: { token: token.trim() } }];
    await writeFile(kubeconfig, JSON.stringify({ ...conf, users }), { mode: 0o600 });
    start = () => scene.hub.start({ kubeconfig, reconcile: [['clustermanagementaddons']] });
    controller = start();
  });
  test.after(async () => {
    await controller.stop();
    await opened.close();
  });

  const clientOf = async (secret: string): Promise<ApiClient> => {
    const data = (await scene.secret(secret)) ?? {};
    const conf = JSON.parse(await readFile(server.kubeconfig, 'utf8')) as object;
    const encoded = (name: string): string => Buffer.from(data[name] ?? '').toString('base64');
    const user = { 'client-certificate-data': encoded('tls.crt'), 'client-key-data': encoded('tls.key') };
    return apiClient(JSON.stringify({ ...conf, users: [{ name: 'addon', user }] }));
  };

  test('an add-on gets a certificate of each signer, and its rights at the hub', async () => {
    await scene.template([kubeClient('web-reader'), CUSTOM]);
    await scene.startAgent();
    await eventually(async () => (await scene.state()) === 'Succeeded');
    const made = new X509Certificate((await scene.secret('web-example.com-agents-client-cert'))?.['tls.crt'] ?? '');
    assert.ok(made.verify(new X509Certificate(authority.certificate).publicKey));
    assert.is(made.subject, 'O=agents\nCN=agent');
    const own = await clientOf('web-hub-kubeconfig');
    const statuses = async (client: ApiClient) =>
      Promise.all(
        ['paris/configmaps', 'shared/services', 'shared/configmaps', 'default/configmaps', 'paris/secrets'].map(
          async (path) => (await client.get(`/api/v1/namespaces/${path}`)).status,
        ),
      );
    assert.equal(await statuses(own), [200, 200, 403, 403, 403]);
    // The hub itself does not trust the other authority.
    assert.equal(await statuses(await clientOf('web-example.com-agents-client-cert')), [401, 401, 401, 401, 401]);
  });

  const newKey = (): KeyObject => createPrivateKey(makeKeyPair(undefined).privateKey);
  const ask = async (
    subject: RequestSubject,
    { addon = 'web', signer = 'kubernetes.io/kube-apiserver-client', key = newKey() } = {},
  ): Promise<string> => {
    const value = requestObject('curlew-paris-', makeRequest(subject, key), addonRequest(addon, signer));
    const { body } = await (await scene.agent()).create(REQUESTS, value);
    return textAt(body, 'metadata.name');
  };
  const answerOf = async (name: string): Promise<string> => {
    const path = `${REQUESTS}/${name}`;
    await eventually(async () => answerTo((await scene.client.get(path)).body) !== '');
    const { body } = await scene.client.get(path);
    return `${answerTo(body)} ${textAt(body, 'status.conditions.0.message')}`;
  };

  test('neither another name nor a used key nor cluster-admin gets anything, and an agent can neither approve nor sign', async () => {
    const OTHER = 'Denied it is not exactly for user and groups of web on paris';
    const key = newKey();
    assert.is(await answerOf(await ask(SUBJECT, { key })), 'Approved for web');
    const rome = GROUP.replace('paris', 'rome');
    assert.is(await answerOf(await ask({ ...SUBJECT, commonName: `${rome}:agent:web-agent` })), OTHER);
    assert.is(await answerOf(await ask({ ...SUBJECT, organizations: [GROUP.replace('web', 'db')] })), OTHER);
    assert.is(await answerOf(await ask({ commonName: 'root', organizations: [] }, { signer: SIGNER })), OTHER);
    assert.is(await answerOf(await ask(SUBJECT, { addon: 'db' })), 'Denied paris is to have no add-on db');
    assert.match(await answerOf(await ask(SUBJECT, { key })), /^Denied its key is also that of curlew-paris-/);
    await controller.stop();
    const agent = await scene.agent();
    const open = await ask({ commonName: 'root', organizations: [] }, { signer: SIGNER });
    const own = { status: { conditions: [{ type: 'Approved', status: 'True', reason: 'x', message: 'x' }] } };
    assert.is((await agent.merge(`${REQUESTS}/${open}/approval`, own)).status, 403);
    assert.is((await agent.merge(`${REQUESTS}/${open}/status`, { status: { certificate: 'eA==' } })).status, 403);
    await answer(scene.client, open, 'Approved');
    controller = start();
    const failed = async () =>
      textAt((await scene.client.get(`${REQUESTS}/${open}`)).body, 'status.conditions.1.message');
    await eventually(async () => (await failed()) !== '');
    assert.is(await failed(), OTHER.slice(7));
    await scene.template([kubeClient('cluster-admin'), CUSTOM]);
    const { body } = await scene.client.get('/apis/rbac.authorization.k8s.io/v1/rolebindings');
    assert.not(JSON.stringify(at(body, 'items')).includes('cluster-admin'));
    await scene.template([kubeClient('web-reader'), CUSTOM]);
  });

  test('a detached cluster has lost the rights of its add-ons at once, and gets no certificate of any signer', async () => {
    const own = await clientOf('web-hub-kubeconfig');
    await eventually(async () => (await own.get('/api/v1/namespaces/paris/configmaps')).status === 200);
    await detachCluster({ cluster: 'paris', kubeconfig: scene.kubeconfig }, scene.context);
    assert.equal(await scene.rights(), []);
    await eventually(async () => (await own.get('/api/v1/namespaces/paris/configmaps')).status === 403);
  });
} else test.skip('add-ons that register', reason);

test.run();
