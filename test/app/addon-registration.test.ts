/** Add-ons that talk to their hub: their certificates, their rights, and how they lose both. */
import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import { detachCluster, planDetachment } from '../../src/app/fleet-detach.ts';
import { addonRequest, requestObject } from '../../src/fleet/hub/certificate-requests.ts';
import { makeRequest, type RequestSubject } from '../../src/formats/signing/certificate-request.ts';
import { makeKeyPair } from '../../src/formats/signing/keys.ts';
import { at, textAt } from '../support/api-client.ts';
import { isMap, type JsonObject } from '../support/api-server/fields.ts';
import { StatusError } from '../support/api-server/store.ts';
import { addonRegistrationScene } from '../support/addon-registration-scene.ts';
import * as assert from '../support/assert.ts';
import { answerTo } from '../support/hub-signer.ts';
import { eventually } from '../support/hub-scene.ts';
import { suite } from '../support/suite.ts';

const test = suite('app/addon-registration', { timeoutMs: 120_000 });
const KUBE_CLIENT = {
  type: 'KubeClient',
  kubeClient: {
    hubPermissions: [
      { type: 'CurrentCluster', currentCluster: { clusterRoleName: 'web-reader' } },
      {
        type: 'SingleNamespace',
        singleNamespace: {
          namespace: 'shared',
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'shared-reader' },
        },
      },
    ],
  },
};
const REQUESTS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const GROUP = 'system:open-cluster-management:cluster:paris:addon:web';
const RIGHTS = [`paris web-reader ${GROUP}`, `shared shared-reader ${GROUP}`];
const PAGE = '/api/v1/namespaces/agents/configmaps/page';

test('an add-on gets a kubeconfig of its hub, with rights, before its objects; a removal takes both', async () => {
  await using scene = await addonRegistrationScene();
  await scene.template([KUBE_CLIENT]);
  const controller = scene.hub.start({ reconcile: [['clustermanagementaddons']] });
  await scene.startAgent();
  await eventually(async () => (await scene.state()) === 'Succeeded');
  assert.is((await scene.here.get(PAGE)).status, 200);
  assert.equal(await scene.rights(), RIGHTS);
  assert.equal(await scene.answers(), ['Approved']);
  const secret = (await scene.secret('web-hub-kubeconfig')) ?? {};
  assert.equal(Object.keys(secret).toSorted(), ['agent-name', 'cluster-name', 'kubeconfig', 'tls.crt', 'tls.key']);
  assert.equal([secret['cluster-name'], secret['agent-name']], ['paris', 'web-agent']);
  const { subject } = new X509Certificate(secret['tls.crt'] ?? '');
  assert.equal(subject.split('\n').toSorted(), [
    `CN=${GROUP}:agent:web-agent`,
    'O=system:authenticated',
    'O=system:open-cluster-management:addon:web',
    `O=${GROUP}`,
  ]);
  const config = JSON.parse(secret['kubeconfig'] ?? '') as Readonly<Record<string, unknown>>;
  assert.equal(config['users'], [
    { name: 'agent', user: { 'client-certificate': 'tls.crt', 'client-key': 'tls.key' } },
  ]);
  await scene.client.remove('/apis/addon.open-cluster-management.io/v1alpha1/clustermanagementaddons/web');
  await eventually(async () => (await scene.rights()).length === 0);
  await eventually(async () => (await scene.secret('web-hub-kubeconfig')) === undefined);
  assert.is((await scene.here.get(PAGE)).status, 404);
  await controller.stop();
});

test('a template that asks for less takes rights away, and a detachment lists those of add-ons and takes them', async () => {
  await using scene = await addonRegistrationScene();
  await scene.template([KUBE_CLIENT]);
  const controller = scene.hub.start({ reconcile: [['clustermanagementaddons']] });
  await scene.startAgent();
  await eventually(async () => (await scene.state()) === 'Succeeded');
  await scene.template([
    { ...KUBE_CLIENT, kubeClient: { hubPermissions: KUBE_CLIENT.kubeClient.hubPermissions.slice(0, 1) } },
  ]);
  await eventually(async () => (await scene.rights()).join() === RIGHTS[0]);
  await scene.client.remove(
    `/apis/rbac.authorization.k8s.io/v1/namespaces/paris/rolebindings/curlew:addon:paris:web:clusterrole:web-reader`,
  );
  await eventually(async () => (await scene.rights()).join() === RIGHTS[0]);
  const request = { cluster: 'paris', kubeconfig: scene.kubeconfig };
  const { bindings } = await planDetachment(request, scene.context);
  assert.equal(bindings, ['paris/curlew:addon:paris:web:clusterrole:web-reader']);
  await detachCluster(request, scene.context);
  assert.equal(await scene.rights(), []);
  await eventually(async () => controller.notes.length > 0);
  assert.equal(await scene.rights(), []);
  assert.is(textAt((await scene.client.get('/api/v1/namespaces/paris')).body, 'metadata.name'), 'paris');
  await controller.stop();
});

const ADDON_LABEL = 'open-cluster-management.io/addon-name';
const SUBJECT = {
  commonName: `${GROUP}:agent:web-agent`,
  organizations: [GROUP, 'system:open-cluster-management:addon:web', 'system:authenticated'],
};

interface Attack {
  readonly subject?: Partial<RequestSubject>;
  readonly labels?: object;
  readonly metadata?: object;
  readonly spec?: object;
  readonly key?: KeyObject;
}

test('an agent gets only the certificates that the templates on its own cluster ask for', async () => {
  await using scene = await addonRegistrationScene();
  await scene.template([KUBE_CLIENT]);
  const controller = scene.hub.start({ reconcile: [['clustermanagementaddons']] });
  const stop = await scene.startAgent();
  await eventually(async () => (await scene.state()) === 'Succeeded');
  await stop();
  const agent = await scene.agent();
  const ask = async ({ subject, labels, metadata, spec, key = newKey() }: Attack): Promise<string> => {
    const request = makeRequest({ ...SUBJECT, ...subject }, key);
    const asked = addonRequest('web', 'kubernetes.io/kube-apiserver-client');
    const value = requestObject('curlew-paris-', request, asked) as { metadata: object; spec: object };
    const { body } = await agent.create(REQUESTS, {
      ...value,
      metadata: { ...value.metadata, ...(labels && { labels }), ...metadata },
      spec: { ...value.spec, ...spec },
    });
    return textAt(body, 'metadata.name');
  };
  const answerOf = async (name: string): Promise<readonly [string, string]> => {
    const path = `${REQUESTS}/${name}`;
    await eventually(async () => answerTo((await scene.client.get(path)).body) !== '');
    const { body } = await scene.client.get(path);
    return [answerTo(body), textAt(body, 'status.conditions.0.message')];
  };
  const key = newKey();
  assert.equal(await answerOf(await ask({ key })), ['Approved', 'for web']);
  const OTHER = 'it is not exactly for user and groups of web on paris';
  const rome = GROUP.replace('paris', 'rome');
  const attacks: Readonly<Record<string, readonly [Attack, string | RegExp]>> = {
    'the name of another cluster': [{ subject: { commonName: `${rome}:agent:web-agent` } }, OTHER],
    'the group of another cluster': [{ subject: { organizations: [rome] } }, OTHER],
    'the group of another add-on': [{ subject: { organizations: [GROUP.replace('web', 'db')] } }, OTHER],
    'administrators, too': [{ subject: { organizations: [...SUBJECT.organizations, 'system:masters'] } }, OTHER],
    'a unit, too': [{ subject: { units: ['x'] } }, OTHER],
    'an agent of a cluster': [{ subject: { commonName: 'curlew:cluster:rome:0' } }, OTHER],
    'an add-on that is not there': [{ labels: { [ADDON_LABEL]: 'db' } }, 'paris is to have no add-on db'],
    'another signer': [
      { spec: { signerName: 'kubernetes.io/kubelet-serving' } },
      'the template of web asks for no certificate of kubernetes.io/kubelet-serving',
    ],
    'servers, too': [{ spec: { usages: ['client auth', 'server auth'] } }, 'its usages are not exactly "client auth"'],
    'a month': [{ spec: { expirationSeconds: 2_592_000 } }, 'its certificate would live longer than 86400 seconds'],
    'a key that was used': [{ key }, /^its key is also that of curlew-paris-/],
    'a name of its own': [
      { metadata: { name: 'mine', generateName: '' } },
      'its name does not begin with curlew-paris-',
    ],
  };
  const asked = await Promise.all(
    Object.entries(attacks).map(async ([what, [attack, why]]) => [what, why, await ask(attack)] as const),
  );
  // The newest of many at once counts.
  const many = await Promise.all(Array.from({ length: 20 }, async () => ask({})));
  for (const [what, why, name] of asked) {
    const [answer, message] = await answerOf(name);
    assert.is(answer, 'Denied', what);
    if (typeof why === 'string') assert.is(message, why, what);
    else assert.match(message, why, what);
  }
  const answers = await Promise.all(many.map(answerOf));
  assert.ok(answers.filter(([answer]) => answer === 'Approved').length < 5);
  await detachCluster({ cluster: 'paris', kubeconfig: scene.kubeconfig }, scene.context);
  assert.equal(await answerOf(await ask({})), ['Denied', 'this is not the accepted agent of paris']);
  assert.equal(await scene.rights(), []);
  await controller.stop();
});

test('an add-on waits with the reason and the command while the controller may not bind its role', async () => {
  await using scene = await addonRegistrationScene({
    before: (request) => {
      if (decodeURIComponent(request).includes('rolebindings/curlew:addon'))
        throw new StatusError(403, 'Forbidden', 'no bind');
    },
  });
  await scene.template([KUBE_CLIENT]);
  const controller = scene.hub.start({ reconcile: [['clustermanagementaddons']] });
  await scene.startAgent();
  await eventually(async () => (await scene.state()).includes('may not bind'));
  const state = await scene.state();
  assert.match(
    state,
    /^Progressing Registration cannot get a certificate: the hub refuses curlew-paris-\S+: cannot give web on paris/,
  );
  assert.match(
    state,
    /kubectl create (cluster)?role curlew-bind-\S+ --verb=bind --resource=(cluster)?roles\.rbac\S+ --resource-name=/,
  );
  assert.equal([(await scene.here.get(PAGE)).status, await scene.rights()], [404, []]);
  await controller.stop();
});

test('a right that cannot be given names what is missing: the role, or its namespace', async () => {
  let hasNamespace = true;
  await using scene = await addonRegistrationScene({
    before: (request) => {
      const path = decodeURIComponent(request);
      const isMissing =
        path.includes('rolebindings/curlew:addon') || (!hasNamespace && path.endsWith('namespaces/paris'));
      if (isMissing) throw new StatusError(404, 'NotFound', 'not found');
    },
  });
  const [ofCluster] = KUBE_CLIENT.kubeClient.hubPermissions;
  await scene.template([{ ...KUBE_CLIENT, kubeClient: { hubPermissions: [ofCluster] } }]);
  const controller = scene.hub.start({ reconcile: [['clustermanagementaddons']] });
  await scene.startAgent();
  const why = 'cannot give web on paris its rights: there is no';
  await eventually(async () => (await scene.state()).includes(`${why} ClusterRole web-reader`));
  hasNamespace = false;
  await eventually(async () => (await scene.state()).includes(`${why} namespace paris`));
  await controller.stop();
});

test('the ManagedClusterAddOn says what an add-on registers, and whether the controller could give its rights', async () => {
  let mayBind = false;
  await using scene = await addonRegistrationScene({
    before: (request) => {
      if (!mayBind && decodeURIComponent(request).includes('rolebindings/curlew:addon'))
        throw new StatusError(403, 'Forbidden', 'no bind');
    },
  });
  await scene.template([KUBE_CLIENT]);
  const controller = scene.hub.start({ reconcile: [['clustermanagementaddons']] });
  await scene.startAgent();
  const onCluster = async (): Promise<JsonObject> => {
    const path = '/apis/addon.open-cluster-management.io/v1alpha1/namespaces/paris/managedclusteraddons/web';
    return (await scene.client.get(path)).body;
  };
  const applied = async (): Promise<string> => {
    const all = at(await onCluster(), 'status.conditions');
    const found = (Array.isArray(all) ? all.filter(isMap) : []).find((one) => one['type'] === 'RegistrationApplied');
    return ['status', 'reason', 'message'].map((key) => textAt(found, key)).join(' ');
  };
  await eventually(async () => (await applied()).startsWith('False'));
  assert.match(
    await applied(),
    /^False SetPermissionFailed cannot give web on paris its rights: .*kubectl create (cluster)?role curlew-bind-/,
  );
  mayBind = true;
  await eventually(async () => (await applied()).startsWith('True'));
  const given = 'True SetPermissionApplied it has all that its template asks for at the hub';
  assert.is(await applied(), given);
  const body = await onCluster();
  const { commonName: user, organizations: groups } = SUBJECT;
  assert.equal(at(body, 'status.registrations'), [
    { signerName: 'kubernetes.io/kube-apiserver-client', subject: { user, groups } },
  ]);
  assert.is(textAt(body, 'status.namespace'), 'agents');
  assert.equal(at(body, 'status.supportedConfigs'), [
    { group: 'addon.open-cluster-management.io', resource: 'addondeploymentconfigs' },
    { group: 'addon.open-cluster-management.io', resource: 'addontemplates' },
  ]);
  await scene.template([]);
  await eventually(async () => {
    const entries = at(await onCluster(), 'status.registrations');
    return Array.isArray(entries) && entries.length === 0;
  });
  assert.is(await applied(), given);
  await scene.template([KUBE_CLIENT]);
  await eventually(async () => (await scene.rights()).length === 2);
  await detachCluster({ cluster: 'paris', kubeconfig: scene.kubeconfig }, scene.context);
  await eventually(async () =>
    (await applied()).startsWith('False SetPermissionFailed no agent of the cluster is accepted'),
  );
  await controller.stop();
});

test('an add-on waits with the reason while nothing signs what is approved', async () => {
  let signs = true;
  await using scene = await addonRegistrationScene({ signs: () => signs });
  signs = false;
  await scene.template([KUBE_CLIENT]);
  const controller = scene.hub.start({ reconcile: [['clustermanagementaddons']] });
  await scene.startAgent();
  await eventually(async () => (await scene.state()).includes('has not signed'));
  assert.match(
    await scene.state(),
    /^Progressing Registration the hub has approved curlew-paris-\S+, and kube-controller-manager has not signed it/,
  );
  assert.is((await scene.here.get(PAGE)).status, 404);
  await controller.stop();
});

function newKey(): KeyObject {
  return createPrivateKey(makeKeyPair(undefined).privateKey);
}

test.run();
