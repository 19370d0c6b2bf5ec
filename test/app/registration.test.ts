/** How a cluster comes into a hub and leaves it: tokens, requests, acceptance, and who is refused. */
import { createPrivateKey } from 'node:crypto';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { readCertificate } from '../../src/fleet/agent/certificate.ts';
import { AgentFolder } from '../../src/fleet/agent/folder.ts';
import { registerAgent } from '../../src/app/agent-register.ts';
import { planUnregistration, unregisterAgent } from '../../src/app/agent-unregister.ts';
import { acceptCluster, planAcceptance } from '../../src/app/fleet-accept.ts';
import { detachCluster, planDetachment } from '../../src/app/fleet-detach.ts';
import { makeHubToken, makeRejoinToken } from '../../src/app/hub-token.ts';
import { makeRequest } from '../../src/formats/signing/certificate-request.ts';
import { makeKeyPair } from '../../src/formats/signing/keys.ts';
import { requestObject } from '../../src/fleet/hub/certificate-requests.ts';
import { apiClient, at, textAt } from '../support/api-client.ts';
import { StatusError } from '../support/api-server/store.ts';
import * as assert from '../support/assert.ts';
import { answerTo, requestsOf } from '../support/hub-signer.ts';
import { eventually } from '../support/hub-scene.ts';
import { registrationScene, type RegistrationScene, type Site } from '../support/registration-scene.ts';
import { suite } from '../support/suite.ts';

const test = suite('app/registration', { timeoutMs: 120_000 });
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const REQUESTS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';

async function asked(...sites: readonly Site[]): Promise<void> {
  await eventually(() => sites.every((site) => site.fingerprint() !== ''));
}

/** A site that was accepted. */
async function accepted(scene: RegistrationScene, root = 'site'): Promise<Site> {
  const site = scene.site(root, await scene.token('paris', `${root}.token`));
  await asked(site);
  await acceptCluster({ cluster: 'paris', kubeconfig: scene.kubeconfig }, scene.context);
  await site.done;
  return site;
}

async function subjectOf(scene: RegistrationScene): Promise<string> {
  const { body } = await scene.client.get(`${RBAC}/namespaces/fleet-paris/rolebindings/curlew-agent`);
  return textAt(body, 'subjects.0.name');
}

test('a site with a token is accepted by its key, gets its own rights, and nothing secret is shown', async () => {
  await using scene = await registrationScene();
  const { box, kubeconfig, context } = scene;
  const tokenFile = await scene.token('paris');
  assert.is((await stat(box.at(tokenFile))).mode & 0o777, 0o600);
  const site = scene.site('site', tokenFile);
  await asked(site);
  assert.match(
    site.notes.join(),
    /^waiting until the hub accepts curlew-paris-.{5}: curlew fleet accept paris --fingerprint SHA256:\S+ --yes$/,
  );
  const plan = await planAcceptance({ cluster: 'paris', kubeconfig }, context);
  assert.is(plan.fingerprint, site.fingerprint());
  assert.is(plan.accepted, false);
  assert.is(await subjectOf(scene), '');
  await acceptCluster({ cluster: 'paris', kubeconfig, fingerprint: site.fingerprint() }, context);
  const registered = await site.done;
  assert.is(registered.cluster, 'paris');
  const folder = new AgentFolder(box.at('site'));
  const { cluster, allowUnsigned } = await folder.read();
  assert.equal({ cluster, allowUnsigned }, { cluster: 'paris', allowUnsigned: true });
  const { user } = (await readCertificate(folder)) ?? {};
  assert.is(await subjectOf(scene), user);
  const namespaces = [
    `${RBAC}/clusterrolebindings/curlew:agent:paris`,
    `${RBAC}/clusterroles/curlew:agent-request:paris`,
  ];
  for (const path of namespaces) assert.is((await scene.client.get(path)).status, 200);
  assert.is(
    (await scene.client.get('/apis/fleet.curlew.dev/v1alpha1/namespaces/fleet-paris/clusters/paris')).status,
    200,
  );
  const token = (
    JSON.parse(await readFile(box.at(tokenFile), 'utf8')) as {
      readonly users: readonly [{ readonly user: { readonly token: string } }];
    }
  ).users[0].user.token;
  assert.ok(!JSON.stringify([registered, site.notes, plan]).includes(token.slice(7)));
  // Its keys change without a token, and without the hub.
  await writeFile(box.at('our.pub'), makeKeyPair(undefined).publicKey);
  await writeFile(box.at('their.pub'), makeKeyPair(undefined).publicKey);
  assert.equal(await registerAgent({ root: 'site', key: ['our.pub', 'their.pub'] }, context), registered);
  assert.equal([(await folder.read()).keys.length, (await folder.read()).allowUnsigned], [2, false]);
  await assert.rejectsWith(registerAgent({ root: 'site' }, context), 'USAGE', /no key says whose content may run/);
  await assert.rejectsWith(
    registerAgent({ root: 'new', key: ['our.pub'] }, context),
    'NOT_FOUND',
    /is not registered at a/,
  );
  // The site registers again: it is already known.
  const again = scene.site('site', tokenFile);
  assert.equal(await again.done, registered);
});

test('a cluster with the longest name that is allowed registers', async () => {
  await using scene = await registrationScene();
  const cluster = 'p'.repeat(57);
  const site = scene.site('site', await scene.token(cluster));
  await asked(site);
  await acceptCluster({ cluster, kubeconfig: scene.kubeconfig }, scene.context);
  assert.is((await site.done).cluster, cluster);
});

test('an accepted token ends soon, and no other site is accepted by it', async () => {
  await using scene = await registrationScene();
  const { kubeconfig, context } = scene;
  await accepted(scene);
  const [name] = await scene.tokens();
  const { body } = await scene.client.get(`/api/v1/namespaces/kube-system/secrets/${name}`);
  const until = Date.parse(Buffer.from(textAt(body, 'data.expiration'), 'base64').toString());
  assert.ok(until < Date.now() + 11 * 60_000);
  const thief = scene.site('thief', 'site.token');
  await asked(thief);
  const error = await assert.rejectsWith(acceptCluster({ cluster: 'paris', kubeconfig }, context), 'CLUSTER_FAILED');
  assert.match(error.message, /another site was accepted under this name/);
  thief.stop();
});

test('a hub that signs nothing is named before a token is made', async () => {
  await using scene = await registrationScene({ signs: () => false });
  const error = await assert.rejectsWith(scene.token('paris'), 'CLUSTER_FAILED');
  assert.match(error.message, /the hub has signed no client certificate in 10 s/);
  assert.match(error.hint ?? '', /--cluster-signing-cert-file/);
  assert.equal(await scene.tokens(), []);
  assert.equal(await requestsOf(scene.client), []);
  await assert.rejectsWith(makeHubToken({ cluster: '../x', kubeconfig: scene.kubeconfig }, scene.context), 'USAGE');
});

test('a hub that accepts no bootstrap tokens, or is not prepared, is named before a token is made', async () => {
  await using scene = await registrationScene({
    before: (_, { username }) => {
      if (username.startsWith('system:bootstrap:')) throw new StatusError(401, 'Unauthorized', 'Unauthorized');
    },
  });
  const error = await assert.rejectsWith(scene.token('paris'), 'CLUSTER_FAILED');
  assert.match(error.message, /the hub accepts no bootstrap tokens/);
  assert.equal(await scene.tokens(), []);
  await scene.client.remove(`${RBAC}/clusterrolebindings/curlew-registration`);
  const other = await assert.rejectsWith(scene.token('paris'), 'CLUSTER_FAILED');
  assert.match(other.message, /it has no ClusterRoleBinding curlew-registration/);
});

test('two sites with one token: none is accepted until a person has chosen by the key, and the other is denied', async () => {
  await using scene = await registrationScene();
  const { kubeconfig, context } = scene;
  const tokenFile = await scene.token('paris');
  const [own, thief] = [scene.site('own', tokenFile), scene.site('thief', tokenFile)];
  await asked(own, thief);
  const error = await assert.rejectsWith(acceptCluster({ cluster: 'paris', kubeconfig }, context), 'CLUSTER_FAILED');
  assert.match(
    error.message,
    /several sites have asked: curlew-paris-.{5} with SHA256:\S+, curlew-paris-.{5} with SHA256:\S+$/,
  );
  const { denied } = await acceptCluster({ cluster: 'paris', kubeconfig, fingerprint: own.fingerprint() }, context);
  assert.is(denied.length, 1);
  await own.done;
  const refusal = await assert.rejectsWith(thief.done, 'CLUSTER_FAILED');
  assert.match(refusal.message, /another site was accepted under this name/);
});

test('a token of one cluster asks for another name: neither cluster accepts it', async () => {
  await using scene = await registrationScene();
  const { box, kubeconfig, context } = scene;
  const text = await readFile(box.at(await scene.token('paris')), 'utf8');
  await writeFile(box.at('rome.token'), text.replace('"cluster": "paris"', '"cluster": "rome"'), { mode: 0o600 });
  const site = scene.site('site', 'rome.token');
  await asked(site);
  await assert.rejectsWith(acceptCluster({ cluster: 'rome', kubeconfig }, context), 'NOT_FOUND');
  const error = await assert.rejectsWith(acceptCluster({ cluster: 'paris', kubeconfig }, context), 'CLUSTER_FAILED');
  assert.match(
    error.message,
    /breaks a rule: its name does not begin with curlew-paris-|breaks a rule: it is for another name/,
  );
  const controller = scene.hub.start();
  const refusal = await assert.rejectsWith(site.done, 'CLUSTER_FAILED');
  assert.match(refusal.message, /the hub refuses curlew-rome-/);
  await controller.stop();
});

test('a token that has expired is named; two registrations of one folder do not run at a time', async () => {
  await using scene = await registrationScene();
  const tokenFile = await scene.token('paris');
  const one = scene.site('site', tokenFile);
  await asked(one);
  const error = await assert.rejectsWith(scene.site('site', tokenFile).done, 'BUSY');
  assert.match(error.message, /agent\.json is being written by process/);
  for (const name of await scene.tokens()) await scene.client.remove(`/api/v1/namespaces/kube-system/secrets/${name}`);
  const unknown = await assert.rejectsWith(one.done, 'AUTH_FAILED');
  assert.match(unknown.message, /does not know the token in paris.token: it has expired, or was used/);
});

test('a registration that is interrupted continues with its request, and so does an acceptance', async () => {
  let isDown = false;
  await using scene = await registrationScene({
    before: (request) => {
      if (isDown && request.includes('/approval')) throw new StatusError(403, 'Forbidden', 'killed here');
    },
  });
  const { kubeconfig, context } = scene;
  const tokenFile = await scene.token('paris');
  const first = scene.site('site', tokenFile);
  await asked(first);
  first.stop();
  await first.done.catch(() => undefined);
  isDown = true;
  await assert.rejectsWith(acceptCluster({ cluster: 'paris', kubeconfig }, context), 'CLUSTER_FAILED');
  isDown = false;
  const second = scene.site('site', tokenFile);
  await asked(second);
  assert.is(second.fingerprint(), first.fingerprint());
  await acceptCluster({ cluster: 'paris', kubeconfig }, context);
  await second.done;
  assert.is((await requestsOf(scene.client)).length, 1);
});

test('an accepted cluster gets no token but one to rejoin, whose site replaces the former one', async () => {
  await using scene = await registrationScene();
  const { box, kubeconfig, context } = scene;
  await assert.rejectsWith(makeRejoinToken({ cluster: 'paris', kubeconfig }, context), 'NOT_FOUND');
  await accepted(scene);
  const error = await assert.rejectsWith(makeHubToken({ cluster: 'paris', kubeconfig }, context), 'CLUSTER_FAILED');
  assert.match(error.hint ?? '', /fleet accept paris --rejoin/);
  const before = await subjectOf(scene);
  const { file } = await makeRejoinToken({ cluster: 'paris', kubeconfig, out: 'again.token' }, context);
  const site = scene.site('new', file);
  await asked(site);
  const plan = await planAcceptance({ cluster: 'paris', kubeconfig }, context);
  assert.is(plan.replaces, true);
  await acceptCluster({ cluster: 'paris', kubeconfig }, context);
  await site.done;
  const after = await subjectOf(scene);
  assert.is.not(after, before);
  assert.is(after, (await readCertificate(new AgentFolder(box.at('new'))))?.user);
});

test('a detached cluster has no rights, tokens or requests, and can register again as another user', async () => {
  await using scene = await registrationScene();
  const { kubeconfig, context } = scene;
  await accepted(scene);
  const before = await subjectOf(scene);
  const thief = scene.site('thief', 'site.token');
  await asked(thief);
  const plan = await planDetachment({ cluster: 'paris', kubeconfig }, context);
  assert.equal([plan.user, plan.tokens.length, plan.requests.length, plan.detached], [before, 1, 1, false]);
  await detachCluster({ cluster: 'paris', kubeconfig }, context);
  const refusal = await assert
    .rejectsWith(thief.done, 'CLUSTER_FAILED')
    .catch(async () => assert.rejectsWith(thief.done, 'AUTH_FAILED'));
  assert.ok(refusal);
  assert.is(await subjectOf(scene), '');
  assert.equal(await scene.tokens(), []);
  const lease = '/apis/coordination.k8s.io/v1/namespaces/fleet-paris/leases/curlew-agent';
  assert.is((await scene.client.get(lease)).status, 404);
  const { body } = await scene.client.get(`${RBAC}/clusterrolebindings`);
  const names = (body['items'] as readonly never[]).map((one) => textAt(one, 'metadata.name'));
  assert.equal(
    names.filter((name) => name.includes('paris')),
    [],
  );
  await assert.rejectsWith(detachCluster({ cluster: 'paris', kubeconfig }, context), 'NOT_FOUND');
  await accepted(scene, 'new');
  assert.is.not(await subjectOf(scene), before);
});

test('the controller approves renewals of the accepted agent alone, and leaves tokens to people', async () => {
  await using scene = await registrationScene();
  await accepted(scene);
  const { client, box, hub } = scene;
  const conf = await readFile(new AgentFolder(box.at('site')).kubeconfig, 'utf8');
  const user = await subjectOf(scene);
  const [first] = await requestsOf(client);
  const agent = apiClient(conf);
  const ask = async (commonName: string, more: object = {}): Promise<string> => {
    const key = createPrivateKey(makeKeyPair(undefined).privateKey);
    const request = makeRequest({ commonName, organizations: ['curlew:clusters'] }, key);
    const value = requestObject('curlew-paris-', request) as { readonly spec: object };
    const { body } = await agent.create(REQUESTS, { ...value, spec: { ...value.spec, ...more } });
    return textAt(body, 'metadata.name');
  };
  const old = await ask(user);
  await new Promise((resolve) => setTimeout(resolve, 1100));
  const good = await ask(user);
  const other = await ask(user.replace('paris', 'rome'));
  const wide = await ask(user, { usages: ['client auth', 'server auth'] });
  const waiting = scene.site('thief', 'site.token');
  await asked(waiting);
  const controller = hub.start();
  const answers = async (): Promise<Readonly<Record<string, string>>> =>
    Object.fromEntries((await requestsOf(client)).map((one) => [textAt(one, 'metadata.name'), answerTo(one)]));
  await eventually(async () => Object.values(await answers()).filter((one) => one === '').length === 1);
  const found = await answers();
  assert.equal(
    [old, good, other, wide].map((name) => found[name]),
    ['Denied', 'Approved', 'Denied', 'Denied'],
  );
  const { body } = await client.get(`${RBAC}/clusterroles/curlew:agent-request:paris`);
  assert.equal(at(body, 'rules.0.resourceNames'), [good]);
  assert.is.not(textAt(first, 'metadata.name'), good);
  // Detached: the certificate is still valid, and of nobody.
  await detachCluster({ cluster: 'paris', kubeconfig: scene.kubeconfig }, scene.context);
  const late = await ask(user);
  await eventually(async () => (await answers())[late] !== '');
  assert.is((await answers())[late], 'Denied');
  await waiting.done.catch(() => undefined);
  await controller.stop();
});

test('a site forgets its hub only with a word, and registers at another hub only then', async () => {
  await using scene = await registrationScene();
  const { box, context } = scene;
  await assert.rejectsWith(planUnregistration({ root: 'site' }, context), 'NOT_FOUND');
  await accepted(scene);
  const text = await readFile(box.at('site.token'), 'utf8');
  await writeFile(box.at('b.token'), text.replace(/"hub": "[0-9a-f]{8}/, '"hub": "00000000'), { mode: 0o600 });
  const error = await assert.rejectsWith(scene.site('site', 'b.token').done, 'FILE_EXISTS');
  assert.match(error.message, /this site is paris at another hub/);
  assert.is((await planUnregistration({ root: 'site' }, context)).done, false);
  assert.is((await unregisterAgent({ root: 'site' }, context)).done, true);
  await assert.rejectsWith(new AgentFolder(box.at('site')).read(), 'NOT_FOUND');
});

test('a site that trusts no key registers only if it says so, and a file that is no token is refused', async () => {
  await using scene = await registrationScene();
  const { box, context } = scene;
  const tokenFile = await scene.token('paris');
  await assert.rejectsWith(registerAgent({ tokenFile, root: 'site' }, context), 'USAGE');
  await writeFile(box.at('x'), '{}', { mode: 0o600 });
  await assert.rejectsWith(registerAgent({ tokenFile: 'x', root: 'site' }, context), 'FILE_UNUSABLE');
  await assert.rejectsWith(
    registerAgent({ tokenFile: 'hub.conf', root: 'site', allowUnsigned: true }, context),
    'FILE_UNUSABLE',
  );
  await assert.rejectsWith(registerAgent({ tokenFile: 'none', root: 'site' }, context), 'NOT_FOUND');
  await assert.rejectsWith(registerAgent({ tokenFile, key: ['hub.conf'], root: 'site' }, context), 'SIGNATURE_INVALID');
});

test.run();
