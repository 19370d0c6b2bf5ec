/** The certificate of an agent, at an API server in this process: asked for, and renewed before it expires. */
import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { chmod, readFile, stat, writeFile } from 'node:fs/promises';
import {
  askForCertificate,
  keepCertificate,
  readCertificate,
  renewIfDue,
} from '../../../src/fleet/agent/certificate.ts';
import { AgentFolder } from '../../../src/fleet/agent/folder.ts';
import { secret } from '../../../src/core/secret.ts';
import { readPublicKey, makeKeyPair } from '../../../src/formats/signing/keys.ts';
import type { HubAddress } from '../../../src/fleet/hub/kubeconfig.ts';
import { openApi, type KubeApi } from '../../../src/cluster/kube/api.ts';
import { apiClient, textAt, type ApiClient } from '../../support/api-client.ts';
import { startMemoryApiServer } from '../../support/api-server/server.ts';
import { StatusError } from '../../support/api-server/store.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { answer, issueCertificate, requestsOf, signApproved, type Life } from '../../support/hub-signer.ts';
import { suite } from '../../support/suite.ts';
import { makeCertificate } from '../../support/tls.ts';
import { tree } from '../../support/tree.ts';

const test = suite('fleet/agent/certificate');
const certificate = await makeCertificate();
const RANDOM = '0123456789abcdef'.repeat(2);
const USER = `curlew:cluster:paris:${RANDOM}`;
const DAY = 86_400_000;

interface Scene extends AsyncDisposable {
  readonly folder: AgentFolder;
  readonly api: KubeApi;
  readonly signal: AbortSignal;
  readonly client: ApiClient;
  /** Names of the requests at the hub. */
  readonly names: () => Promise<readonly string[]>;
}

/** A site with a certificate of this life. */
async function scene(life: Life | undefined, before: (request: string) => void = () => undefined): Promise<Scene> {
  const box = await tree();
  const server = await startMemoryApiServer({ certificate, before });
  const folder = new AgentFolder(box.path);
  const conf = JSON.parse(server.kubeconfig) as { readonly clusters: readonly [{ readonly cluster: HubAddress }] };
  await writeFile(box.at('hub.conf'), server.kubeconfig);
  await using _claim = await folder.claim();
  if (life !== undefined) {
    const { privateKey } = makeKeyPair(undefined);
    const key = createPublicKey(createPrivateKey(privateKey));
    const subject = { commonName: USER, organizations: ['curlew:clusters'] };
    const issued = {
      certificate: issueCertificate(subject, key, life),
      key: secret(privateKey),
      state: 'issued',
    } as const;
    await keepCertificate(folder, issued, conf.clusters[0].cluster);
  }
  const api = await openApi({ env: { KUBECONFIG: box.at('hub.conf') } });
  if (api === undefined) throw new Error('there is no API');
  const client = apiClient(server.kubeconfig);
  return {
    folder,
    api,
    signal: never,
    client,
    names: async () => (await requestsOf(client)).map((one) => textAt(one, 'metadata.name')),
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await box[Symbol.asyncDispose]();
    },
  };
}

test('a new certificate is not renewed, and the hub is not asked', async () => {
  let requests = 0;
  await using site = await scene({}, () => void (requests += 1));
  assert.is(await renewIfDue(site.folder, site), 'current');
  assert.is(requests, 0);
});

test('it is due at two thirds of its life, a tenth earlier or later, and always at the same time', async () => {
  const times = new Set<number>();
  for (let count = 0; count < 20; count += 1) {
    await using site = await scene({ from: 0, days: 30 });
    const { renewAt = 0, endsAt = 0 } = (await readCertificate(site.folder)) ?? {};
    assert.is(endsAt, 30 * DAY);
    assert.ok(renewAt >= 17 * DAY && renewAt <= 23 * DAY);
    assert.is((await readCertificate(site.folder))?.renewAt, renewAt);
    times.add(renewAt);
  }
  assert.ok(times.size > 5);
});

test('one that is due is asked for under the same name with a new key, and replaces the old one when it is there', async () => {
  await using site = await scene({ from: Date.now() - 25 * DAY });
  assert.is(await renewIfDue(site.folder, site), 'waiting');
  assert.is(await renewIfDue(site.folder, site), 'waiting');
  const [name = '', ...others] = await site.names();
  assert.equal(others, []);
  assert.match(name, /^curlew-paris-.{5}$/);
  const before = await site.folder.readKubeconfig();
  await answer(site.client, name, 'Approved');
  assert.is(await renewIfDue(site.folder, site), 'waiting');
  await signApproved(site.client);
  assert.is(await renewIfDue(site.folder, site), 'renewed');
  assert.is(await renewIfDue(site.folder, site), 'current');
  const after = await site.folder.readKubeconfig();
  assert.equal(after?.hub, before?.hub);
  assert.is.not(after?.user['client-key-data'], before?.user['client-key-data']);
  assert.is((await readCertificate(site.folder))?.user, USER);
  assert.is((await stat(site.folder.kubeconfig)).mode & 0o777, 0o600);
  assert.is((await stat(site.folder.path)).mode & 0o777, 0o700);
  assert.is(await site.folder.readRequest(), undefined);
});

test('an expired one is an error that says how to come back', async () => {
  await using site = await scene({ from: Date.now() - 31 * DAY });
  const error = await assert.rejectsWith(renewIfDue(site.folder, site), 'CLUSTER_FAILED');
  assert.match(error.message, /has expired at 20/);
  assert.match(error.hint ?? '', /fleet accept --rejoin/);
  assert.equal(await site.names(), []);
});

test('what the hub denies is an error with its reason, and the next request has another key', async () => {
  await using site = await scene({ from: Date.now() - 25 * DAY });
  await renewIfDue(site.folder, site);
  const key = (await site.folder.readRequest())?.key.reveal();
  const [name = ''] = await site.names();
  await answer(site.client, name, 'Denied');
  const error = await assert.rejectsWith(renewIfDue(site.folder, site), 'CLUSTER_FAILED');
  assert.match(error.message, /the hub refuses curlew-paris-.{5}: the test says so/);
  await renewIfDue(site.folder, site);
  assert.is.not((await site.folder.readRequest())?.key.reveal(), key);
});

test('a request that may not be read yet, or that the hub has forgotten, is waited for or made again', async () => {
  let isForbidden = true;
  await using site = await scene({ from: Date.now() - 25 * DAY }, (request) => {
    if (isForbidden && request.startsWith('GET') && request.includes('/curlew-paris-'))
      throw new StatusError(403, 'Forbidden', 'not yet');
  });
  await renewIfDue(site.folder, site);
  assert.is(await renewIfDue(site.folder, site), 'waiting');
  isForbidden = false;
  const [name = ''] = await site.names();
  await site.client.remove(`/apis/certificates.k8s.io/v1/certificatesigningrequests/${name}`);
  assert.is(await renewIfDue(site.folder, site), 'waiting');
  assert.is(await renewIfDue(site.folder, site), 'waiting');
  const [again = ''] = await site.names();
  assert.is.not(again, name);
});

test('an agent that is killed between its key and its request continues with that key', async () => {
  let isDown = true;
  await using site = await scene(undefined, (request) => {
    if (isDown && request.startsWith('POST')) throw new StatusError(403, 'Forbidden', 'killed here');
  });
  const asking = { ...site, cluster: 'paris' };
  await assert.rejectsWith(askForCertificate(site.folder, asking), 'CLUSTER_FAILED');
  const before = await site.folder.readRequest();
  isDown = false;
  await askForCertificate(site.folder, asking);
  const after = await site.folder.readRequest();
  assert.is(after?.key.reveal(), before?.key.reveal());
  assert.is(after?.user, before?.user);
  assert.match(after?.user ?? '', /^curlew:cluster:paris:[0-9a-f]{32}$/);
  assert.is((await site.names()).length, 1);
});

test('another object under the name of the request, and a certificate for another key or user, are not taken', async () => {
  await using site = await scene({ from: Date.now() - 25 * DAY });
  await renewIfDue(site.folder, site);
  const [name = ''] = await site.names();
  await answer(site.client, name, 'Approved');
  const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey;
  await signApproved(site.client, { key });
  const error = await assert.rejectsWith(renewIfDue(site.folder, site), 'CLUSTER_FAILED');
  assert.match(error.message, /is not for the key and the name of the request/);
  await site.client.remove(`/apis/certificates.k8s.io/v1/certificatesigningrequests/${name}`);
  await site.client.create('/apis/certificates.k8s.io/v1/certificatesigningrequests', {
    metadata: { name },
    spec: { request: Buffer.from('x').toString('base64') },
  });
  assert.is(await renewIfDue(site.folder, site), 'waiting');
  assert.is((await site.folder.readRequest())?.name, undefined);
});

test('settings are read as they were written; a file that others may write, or of another format, is refused', async () => {
  await using site = await scene({});
  const { folder } = site;
  await assert.rejectsWith(folder.read(), 'NOT_FOUND');
  const keys = [readPublicKey(makeKeyPair(undefined).publicKey, 'a.pub')];
  const settings = { cluster: 'paris', hub: 'ee4cb5a4-2a95-4b07-a4a5-1d1f0b6b1d12', allowUnsigned: false };
  await folder.writeSettings({ ...settings, keys });
  const {
    keys: [found],
    ...others
  } = await folder.read();
  assert.equal(others, settings);
  assert.ok(keys[0] && found?.key.equals(keys[0].key));
  const path = `${folder.path}/agent.json`;
  await chmod(path, 0o666);
  await assert.rejectsWith(folder.read(), 'FILE_UNUSABLE');
  await chmod(path, 0o600);
  await writeFile(path, (await readFile(path, 'utf8')).replace('"format": 1', '"format": 2'));
  const error = await assert.rejectsWith(folder.read(), 'FILE_UNUSABLE');
  assert.match(error.message, /its format 2 is of another version/);
  await folder.forget();
  await assert.rejectsWith(folder.read(), 'NOT_FOUND');
});

test.run();
