import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { certificateKey, joinToken, uploadedKey } from '../../src/app/join-token.ts';
import { CurlewError } from '../../src/core/errors.ts';
import { requireOwnCluster } from '../../src/machine/run/cluster-info.ts';
import { openNodeApi } from '../../src/machine/run/nodes.ts';
import { apiClient, at } from '../support/api-client.ts';
import { startMemoryApiServer, type MemoryApiServer } from '../support/api-server/server.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('app/join-token');
const certificate = await makeCertificate();
const SECRETS = '/api/v1/namespaces/kube-system/secrets';

const KEY = '0123456789abcdef'.repeat(4);

/** What the hook of the kubernetes package leaves. */
async function uploadCertificates(api: ReturnType<typeof apiClient>, file: string): Promise<void> {
  const metadata = { name: 'kubeadm-certs', namespace: 'kube-system' };
  const { body } = await api.create(SECRETS, { apiVersion: 'v1', kind: 'Secret', metadata });
  const { uid, resourceVersion } = at(body, 'metadata') as Readonly<Record<string, string>>;
  await writeFile(file, `${KEY} ${uid}/${resourceVersion}\n`);
}

async function publish({ kubeconfig }: MemoryApiServer, server: string): Promise<void> {
  const authority = Buffer.from(certificate.ca).toString('base64');
  const cluster = { server, 'certificate-authority-data': authority };
  const conf = JSON.stringify({ apiVersion: 'v1', kind: 'Config', clusters: [{ cluster, name: '' }], contexts: null });
  const metadata = { name: 'cluster-info', namespace: 'kube-public' };
  const data = { kubeconfig: conf };
  const path = '/api/v1/namespaces/kube-public/configmaps';
  await apiClient(kubeconfig).create(path, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
}

async function make(box: Tree, server: MemoryApiServer, request: Parameters<typeof joinToken>[0] = {}) {
  await writeFile(box.at('conf'), server.kubeconfig);
  const context = { signal: never, report: () => undefined, env: { KUBECONFIG: box.at('conf') }, cwd: box.path };
  return joinToken({ out: 'join.yaml', ...request }, context);
}

test('the file is for its owner only, and has what a machine needs to join; the token ends in an hour', async () => {
  await using box = await tree();
  await using server = await startMemoryApiServer({ certificate });
  await publish(server, 'https://10.0.0.9:6443');
  const { file, expires } = await make(box, server);
  assert.equal([file, (await stat(file)).mode & 0o777], [box.at('join.yaml'), 0o600]);
  const text = await readFile(file, 'utf8');
  assert.match(text, /masterAddress: "10\.0\.0\.9:6443"/);
  assert.match(text, /kubeadmTokenCAHash: "sha256:[0-9a-f]{64}"\n$/);
  const [, id = '', secret] = /kubeadmToken: "([a-z0-9]{6})\.([a-z0-9]{16})"/.exec(text) ?? [];
  const { body } = await apiClient(server.kubeconfig).get(`${SECRETS}/bootstrap-token-${id}`);
  const data = at(body, 'data') as Readonly<Record<string, string>>;
  const decoded = (name: string): string => Buffer.from(data[name] ?? '', 'base64').toString();
  assert.equal([decoded('token-secret'), decoded('expiration')], [secret, expires]);
  const aheadMs = Date.parse(expires) - Date.now();
  assert.ok(aheadMs > 50 * 60_000 && aheadMs <= 60 * 60_000);
});

test('the token may delete itself and nothing else, and its right goes with it', async () => {
  await using box = await tree();
  await using server = await startMemoryApiServer({ certificate });
  await publish(server, 'https://10.0.0.9');
  const { file } = await make(box, server);
  const text = await readFile(file, 'utf8');
  assert.match(text, /masterAddress: "10\.0\.0\.9:443"/);
  const name = `bootstrap-token-${/kubeadmToken: "([a-z0-9]{6})/.exec(text)?.[1]}`;
  const api = apiClient(server.kubeconfig);
  const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system';
  const uid = at((await api.get(`${SECRETS}/${name}`)).body, 'metadata.uid');
  const role = (await api.get(`${rbac}/roles/${name}`)).body;
  const rule = { apiGroups: [''], resources: ['secrets'], resourceNames: [name], verbs: ['delete'] };
  assert.equal(at(role, 'rules'), [rule]);
  const binding = (await api.get(`${rbac}/rolebindings/${name}`)).body;
  assert.equal(at(binding, 'subjects.0.name'), `system:bootstrap:${name.slice(-6)}`);
  for (const object of [role, binding]) assert.equal(at(object, 'metadata.ownerReferences.0.uid'), uid);
});

test('without certificates there is no token for a control plane, and nothing is written', async () => {
  await using box = await tree();
  await using server = await startMemoryApiServer({ certificate });
  await publish(server, 'https://10.0.0.9:6443');
  const made = make(box, server, { controlPlane: true });
  await assert.rejectsWith(made, 'CLUSTER_FAILED', /no certificates for another control plane/);
  assert.equal(
    server.requests.filter((request) => request.startsWith('POST') && request.includes('secrets')),
    [],
  );
  assert.equal((await readdir(box.path)).includes('join.yaml'), false);
});

test('the key of certificates that another control plane has replaced makes no token', async () => {
  await using box = await tree({ conf: '' });
  await using server = await startMemoryApiServer({ certificate });
  await writeFile(box.at('conf'), server.kubeconfig);
  const context = { signal: never, report: () => undefined, env: { KUBECONFIG: box.at('conf') }, cwd: box.path };
  const { call } = await openNodeApi(context);
  const api = apiClient(server.kubeconfig);
  await uploadCertificates(api, box.at('key'));
  assert.is(await certificateKey(call, box.at('key')), KEY);
  await api.merge(`${SECRETS}/kubeadm-certs`, { data: { 'ca.key': 'AAAA' } });
  const outdated = certificateKey(call, box.at('key'));
  await assert.rejectsWith(outdated, 'CLUSTER_FAILED', /this machine does not have the key of the certificates/);
  // An earlier version of the package wrote only the key.
  await writeFile(box.at('key'), KEY);
  await assert.rejectsWith(certificateKey(call, box.at('key')), 'CLUSTER_FAILED', /does not have the key/);
});

test('certificates that the cluster no longer has are uploaded again, where an address reaches several control planes', async () => {
  await using box = await tree({ conf: '' });
  await using server = await startMemoryApiServer({ certificate });
  await writeFile(box.at('conf'), server.kubeconfig);
  const context = { signal: never, report: () => undefined, env: { KUBECONFIG: box.at('conf') }, cwd: box.path };
  const { call } = await openNodeApi(context);
  const api = apiClient(server.kubeconfig);
  const endpoints: string[] = [];
  const upload = async (endpoint: string): Promise<void> => {
    if (endpoints.push(endpoint) === 1) await uploadCertificates(api, box.at('key'));
  };
  const missing = /no certificates for another control plane/;
  const fails = async (): Promise<void> => {
    throw new CurlewError('HOOK_FAILED', 'kubeadm has failed');
  };
  await assert.rejectsWith(uploadedKey(call, upload, box.at('key')), 'CLUSTER_FAILED', missing);
  const metadata = { name: 'kubeadm-config', namespace: 'kube-system' };
  const data = {
    ClusterConfiguration: 'apiVersion: kubeadm.k8s.io/v1beta4\ncontrolPlaneEndpoint: "10.0.0.100:6443"\n',
  };
  await api.create('/api/v1/namespaces/kube-system/configmaps', {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata,
    data,
  });
  const failed = await assert.rejectsWith(uploadedKey(call, fails, box.at('key')), 'CLUSTER_FAILED', missing);
  assert.match(String(failed.cause), 'kubeadm has failed');
  assert.is(await uploadedKey(call, upload, box.at('key')), KEY);
  assert.equal(endpoints, ['10.0.0.100:6443']);
  // The hook knows how old they are; those of an earlier upload are of use where it fails.
  assert.is(await uploadedKey(call, upload, box.at('key')), KEY);
  assert.equal(endpoints.length, 2);
  assert.is(await uploadedKey(call, fails, box.at('key')), KEY);
});

test('files of this machine are not used for another cluster', async () => {
  await using box = await tree();
  await using server = await startMemoryApiServer({ certificate });
  await publish(server, 'https://10.0.0.9:6443');
  const [, hash = ''] = /CAHash: "(.*)"/.exec(await readFile((await make(box, server)).file, 'utf8')) ?? [];
  await requireOwnCluster(hash, 'remove two', box.at('none'));
  await writeFile(box.at('ca.crt'), certificate.ca);
  await requireOwnCluster(hash, 'remove two', box.at('ca.crt'));
  await writeFile(box.at('ca.crt'), (await makeCertificate()).ca);
  const other = requireOwnCluster(hash, 'remove two', box.at('ca.crt'));
  await assert.rejectsWith(other, 'CLUSTER_FAILED', /cannot remove two: KUBECONFIG leads to another cluster/);
});

test('a cluster that kubeadm has not made, and a folder that does not exist, leave no token', async () => {
  await using box = await tree();
  await using server = await startMemoryApiServer({ certificate });
  await assert.rejectsWith(
    make(box, server),
    'CLUSTER_FAILED',
    /kube-public\/cluster-info is not as kubeadm writes it/,
  );
  await publish(server, 'https://10.0.0.9:6443');
  await assert.rejectsWith(make(box, server, { out: 'none/join.yaml' }), 'FILE_UNUSABLE', /none\/join\.yaml/);
  const { body } = await apiClient(server.kubeconfig).get(SECRETS);
  assert.equal(body['items'], []);
});

test.run();
