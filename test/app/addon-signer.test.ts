/** Add-ons whose template names a signer of its own: the controller signs, with an authority in a Secret of the hub. */
import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import { detachCluster } from '../../src/app/fleet-detach.ts';
import { openApi } from '../../src/cluster/kube/api.ts';
import { AddonCertificates } from '../../src/fleet/agent/addon-certificates.ts';
import { AgentFolder } from '../../src/fleet/agent/folder.ts';
import { addonRequest, requestObject } from '../../src/fleet/hub/certificate-requests.ts';
import { makeAuthority } from '../../src/formats/signing/authority.ts';
import { makeRequest, type RequestSubject } from '../../src/formats/signing/certificate-request.ts';
import { makeKeyPair } from '../../src/formats/signing/keys.ts';
import { at, textAt } from '../support/api-client.ts';
import { isMap } from '../support/api-server/fields.ts';
import { StatusError } from '../support/api-server/store.ts';
import { addonRegistrationScene, type AddonRegistrationScene } from '../support/addon-registration-scene.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { answer, answerTo } from '../support/hub-signer.ts';
import { eventually } from '../support/hub-scene.ts';
import { suite } from '../support/suite.ts';

const test = suite('app/addon-signer', { timeoutMs: 120_000 });
const DAY = 86_400_000;
const SIGNER = 'example.com/agents';
const REQUESTS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const SECRETS = '/api/v1/namespaces/open-cluster-management-hub/secrets';
const SUBJECT = { user: 'agent', groups: ['agents', 'readers'], organizationUnit: ['sites'] };
const NAMED = { commonName: 'agent', organizations: ['agents', 'readers'], units: ['sites'] };
const CUSTOM = { signerName: SIGNER, signingCA: { name: 'agents-ca' }, subject: SUBJECT };
const KUBE_CLIENT = { type: 'KubeClient' };
const SECRET = 'web-example.com-agents-client-cert';

function signed(more: object = {}): object {
  return { type: 'CustomSigner', customSigner: { ...CUSTOM, ...more } };
}

async function putAuthority(
  { client }: Pick<AddonRegistrationScene, 'client'>,
  data: Readonly<Record<string, string>>,
  annotations: Readonly<Record<string, string>> = { 'fleet.curlew.dev/signer': SIGNER },
): Promise<void> {
  await client.create('/api/v1/namespaces', { metadata: { name: 'open-cluster-management-hub' } });
  const encoded = Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
  await client.create(SECRETS, {
    metadata: { name: 'agents-ca', annotations },
    type: 'kubernetes.io/tls',
    data: Object.fromEntries(encoded) as object,
  });
}

function pairOf(): { readonly 'tls.crt': string; readonly 'tls.key': string } {
  const { certificate, key } = makeAuthority('agents', { days: 30 });
  return { 'tls.crt': certificate, 'tls.key': key.reveal() };
}

async function conditionOf({ client }: AddonRegistrationScene, type: string): Promise<string> {
  const path = '/apis/addon.open-cluster-management.io/v1alpha1/namespaces/paris/managedclusteraddons/web';
  const all = at((await client.get(path)).body, 'status.conditions');
  const found = (Array.isArray(all) ? all.filter(isMap) : []).find((one) => one['type'] === type);
  return ['status', 'reason', 'message'].map((key) => textAt(found, key)).join(' ');
}

test('a certificate for clients alone, with the subject of the template, and for a day, comes before the objects', async () => {
  await using scene = await addonRegistrationScene();
  const pair = pairOf();
  await putAuthority(scene, pair);
  await scene.template([signed()]);
  const controller = scene.hub.start({ reconcile: [['clustermanagementaddons']] });
  await scene.startAgent();
  await eventually(async () => (await scene.state()) === 'Succeeded');
  const secret = (await scene.secret(SECRET)) ?? {};
  assert.equal(Object.keys(secret).toSorted(), ['agent-name', 'cluster-name', 'tls.crt', 'tls.key']);
  const made = new X509Certificate(secret['tls.crt'] ?? '');
  const authority = new X509Certificate(pair['tls.crt']);
  assert.ok(made.verify(authority.publicKey) && made.checkIssued(authority));
  assert.ok(made.checkPrivateKey(createPrivateKey(secret['tls.key'] ?? '')));
  assert.equal(made.subject.split('\n'), ['O=agents', 'O=readers', 'OU=sites', 'CN=agent']);
  assert.equal([made.ca, made.keyUsage], [false, ['1.3.6.1.5.5.7.3.2']]);
  assert.ok(Date.parse(made.validTo) <= Date.now() + DAY);
  assert.equal(await scene.rights(), []);
  await eventually(async () =>
    (await conditionOf(scene, 'RegistrationApplied')).startsWith('True SetPermissionApplied'),
  );
  const path = '/apis/addon.open-cluster-management.io/v1alpha1/namespaces/paris/managedclusteraddons/web';
  assert.equal(at((await scene.client.get(path)).body, 'status.registrations'), [
    { signerName: SIGNER, subject: SUBJECT },
  ]);
  await scene.template([signed({ subject: { ...SUBJECT, groups: ['agents'] } })]);
  const subject = async (): Promise<string> =>
    new X509Certificate((await scene.secret(SECRET))?.['tls.crt'] ?? '').subject;
  await eventually(async () => (await subject()) === 'O=agents\nOU=sites\nCN=agent');
  await controller.stop();
});

test('an authority that cannot sign is named with what to do, and holds no other add-on', async () => {
  await using scene = await addonRegistrationScene();
  await scene.template([signed()]);
  const controller = scene.hub.start({ reconcile: [['clustermanagementaddons']] });
  await scene.startAgent();
  await eventually(async () => (await scene.state()).includes('there is no Secret'));
  assert.match(
    await scene.state(),
    /^Progressing Registration cannot get a certificate: the hub refuses curlew-paris-\S+: example.com\/agents cannot sign: there is no Secret open-cluster-management-hub\/agents-ca\. Put an authority there: kubectl create secret tls agents-ca -n open-cluster-management-hub --cert=ca.crt --key=ca.key$/,
  );
  await eventually(async () => (await conditionOf(scene, 'RegistrationApplied')).startsWith('False'));
  assert.match(await conditionOf(scene, 'RegistrationApplied'), /^False SetPermissionFailed .*there is no Secret/);
  await scene.template([KUBE_CLIENT]);
  await eventually(async () => (await scene.state()) === 'Succeeded');
  await eventually(async () => (await conditionOf(scene, 'RegistrationApplied')).startsWith('True'));
  await putAuthority(scene, pairOf());
  await scene.template([KUBE_CLIENT, signed()]);
  await eventually(async () => (await scene.secret(SECRET)) !== undefined);
  await controller.stop();
});

test('an authority whose Secret does not name the signer signs nothing until its owner has annotated it', async () => {
  await using scene = await addonRegistrationScene();
  await putAuthority(scene, pairOf(), {});
  await scene.template([signed()]);
  const controller = scene.hub.start({ reconcile: [['clustermanagementaddons']] });
  await scene.startAgent();
  await eventually(async () => (await scene.state()).includes('does not name it as its signer'));
  const [, annotation = '', signer = ''] =
    /kubectl annotate secret agents-ca -n open-cluster-management-hub (\S+)=(\S+)$/.exec(await scene.state()) ?? [];
  await scene.client.merge(`${SECRETS}/agents-ca`, { metadata: { annotations: { [annotation]: signer } } });
  await eventually(async () => (await scene.secret(SECRET)) !== undefined);
  await controller.stop();
});

test('both kinds of certificates are renewed after two thirds of their life, and stay until their end while that fails', async () => {
  await using scene = await addonRegistrationScene();
  await putAuthority(scene, pairOf());
  await scene.template([KUBE_CLIENT, signed()]);
  const controller = scene.hub.start({ reconcile: [['clustermanagementaddons']] });
  const stop = await scene.startAgent();
  await eventually(async () => (await scene.state()) === 'Succeeded');
  await stop();
  const { body } = await scene.client.get('/apis/fleet.curlew.dev/v1alpha1/namespaces/fleet-paris/clusteraddons/web');
  const folder = new AgentFolder(scene.box.at('site'));
  const [hubApi, api] = await Promise.all(
    [folder.kubeconfig, scene.box.at('here.conf')].map(async (KUBECONFIG) => openApi({ env: { KUBECONFIG } })),
  );
  if (hubApi === undefined || api === undefined) throw new Error('there is no API');
  let hours = 0;
  const certificates = new AddonCertificates({
    cluster: 'paris',
    api,
    hubApi: { ...hubApi, now: () => new Date(hubApi.now().getTime() + hours * 3_600_000) },
    hub: async () => (await folder.readKubeconfig())?.hub,
    answerMs: 60_000,
  });
  const bring = async () => certificates.bring(at(body, 'spec') as never, never);
  const texts = async (): Promise<readonly string[]> => {
    const secrets = await Promise.all(['web-hub-kubeconfig', SECRET].map(async (name) => scene.secret(name)));
    for (const one of secrets) {
      const [text = '', key = ''] = [one?.['tls.crt'], one?.['tls.key']];
      assert.ok(new X509Certificate(text).checkPrivateKey(createPrivateKey(key)));
    }
    return secrets.map((one) => one?.['tls.crt'] ?? '');
  };
  const [first, signedFirst] = await texts();
  hours = 13;
  assert.equal(await bring(), { isHeld: false });
  assert.equal(await texts(), [first, signedFirst]);
  hours = 20;
  assert.equal(await bring(), { isHeld: false });
  const [second, signedSecond] = await texts();
  assert.ok(second !== first && signedSecond !== signedFirst);
  await scene.client.remove(`${SECRETS}/agents-ca`);
  const late = await bring();
  assert.is(late.isHeld, false);
  assert.match(late.problem ?? '', /there is no Secret/);
  assert.is((await texts())[1], signedSecond);
  hours = 25;
  assert.is((await bring()).isHeld, true);
  await controller.stop();
});

test('nothing is signed but what the template asks for on the cluster of an accepted agent, whoever has approved it', async () => {
  await using scene = await addonRegistrationScene();
  await putAuthority(scene, pairOf());
  await scene.template([signed()]);
  const controller = scene.hub.start({ reconcile: [['clustermanagementaddons']] });
  const stop = await scene.startAgent();
  await eventually(async () => (await scene.state()) === 'Succeeded');
  await stop();
  await controller.stop();
  const OTHER = 'it is not exactly for user and groups of web on paris';
  const own = await ask(scene, {});
  const attacks: readonly (readonly [Attack, string])[] = [
    [{ subject: { commonName: 'root' } }, OTHER],
    [{ subject: { organizations: ['agents', 'readers', 'system:masters'] } }, OTHER],
    [{ subject: { units: [] } }, OTHER],
    [{ addon: 'db' }, 'paris is to have no add-on db'],
    [{ signer: 'example.com/others' }, 'the template of web asks for no certificate of example.com/others'],
  ];
  const asked: (readonly [string, string])[] = [];
  for (const [attack, why] of attacks) asked.push([await ask(scene, attack), why]);
  const key = createPrivateKey(makeKeyPair(undefined).privateKey);
  const twins = [await ask(scene, { key }), await ask(scene, { key })];
  for (const name of [own, ...asked.map(([name]) => name), ...twins]) await answer(scene.client, name, 'Approved');
  const again = scene.hub.start({ reconcile: [['clustermanagementaddons']] });
  const end = async (name: string): Promise<string> => {
    const status = async () => at((await scene.client.get(`${REQUESTS}/${name}`)).body, 'status');
    const isOver = (one: unknown): boolean =>
      textAt(one as never, 'conditions.1.message') + textAt(one as never, 'certificate') !== '';
    await eventually(async () => isOver(await status()));
    const over = await status();
    return textAt(over, 'certificate') === ''
      ? `${textAt(over, 'conditions.1.type')} ${textAt(over, 'conditions.1.message')}`
      : 'signed';
  };
  assert.is(await end(own), 'signed');
  for (const [name, why] of asked) assert.is(await end(name), `Failed ${why}`);
  for (const name of twins) assert.match(await end(name), /^Failed its key is also that of /);
  await detachCluster({ cluster: 'paris', kubeconfig: scene.kubeconfig }, scene.context);
  const late = await ask(scene, {});
  assert.equal(await answerOf(scene, late), ['Denied', 'this is not the accepted agent of paris']);
  await again.stop();
});

test('a controller without the right for a signer says which manifests give it', async () => {
  let mayApprove = true;
  await using scene = await addonRegistrationScene({
    before: (request) => {
      if (!mayApprove && request.includes('approval')) throw new StatusError(403, 'Forbidden', 'no approve');
    },
  });
  await putAuthority(scene, pairOf());
  await scene.template([signed()]);
  mayApprove = false;
  const controller = scene.hub.start({ reconcile: [['clustermanagementaddons']] });
  await scene.startAgent();
  const RIGHT =
    'apply what curlew hub manifests --signer example.com/agents=open-cluster-management-hub/agents-ca prints; repeat the options of earlier runs, or their rights are lost';
  await eventually(async () => (await scene.state()).includes(RIGHT));
  await eventually(async () => (await conditionOf(scene, 'RegistrationApplied')).includes(RIGHT));
  assert.is(
    await conditionOf(scene, 'RegistrationApplied'),
    `False SetPermissionFailed the controller may not sign for example.com/agents: ${RIGHT}`,
  );
  await controller.stop();
});

interface Attack {
  readonly subject?: Partial<RequestSubject>;
  readonly addon?: string;
  readonly signer?: string;
  readonly key?: KeyObject;
}

/** Asks as the agent of paris. */
async function ask(
  scene: AddonRegistrationScene,
  { subject, addon = 'web', signer = SIGNER, key = createPrivateKey(makeKeyPair(undefined).privateKey) }: Attack,
): Promise<string> {
  const request = makeRequest({ ...NAMED, ...subject }, key);
  const agent = await scene.agent();
  const { body } = await agent.create(REQUESTS, requestObject('curlew-paris-', request, addonRequest(addon, signer)));
  return textAt(body, 'metadata.name');
}

async function answerOf({ client }: AddonRegistrationScene, name: string): Promise<readonly [string, string]> {
  const path = `${REQUESTS}/${name}`;
  await eventually(async () => answerTo((await client.get(path)).body) !== '');
  const { body } = await client.get(path);
  return [answerTo(body), textAt(body, 'status.conditions.0.message')];
}

test.run();
