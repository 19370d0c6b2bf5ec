/** Makes a token with which one machine joins the cluster, in a file for its `join`. */
import { resolve } from 'node:path';
import { CurlewError } from '../core/errors.ts';
import { useCase } from '../core/request.ts';
import type { Call } from '../cluster/kube/call.ts';
import { createObject, getObject, listObjects } from '../cluster/kube/objects.ts';
import { createToken, newToken, secretOfToken, type BootstrapToken } from '../cluster/kube/bootstrap-token.ts';
import { granted, may, RBAC, resourceOfRight } from '../fleet/hub/rbac.ts';
import { readStateFile } from '../platform/files/state-file.ts';
import { writeText } from '../platform/files/write-whole.ts';
import { clusterInfo, controlPlaneEndpoint, ownAddresses, requireOwnCluster } from '../machine/run/cluster-info.ts';
import { detailsOf, openNodeApi } from '../machine/run/nodes.ts';
import { folderOf } from '../steps/node/install-folder.ts';
import { kubernetesTask } from '../steps/node/kubernetes-task.ts';
import { JOIN_TOKEN } from '../requests/node.ts';
import { NODES, SECRETS } from '../cluster/kube/core-kinds.ts';

export interface JoinFile {
  /** Readable by its owner only. */
  readonly file: string;
  /** ISO 8601. */
  readonly expires: string;
}

const namespace = 'kube-system';
const HOUR_MS = 60 * 60_000;
/**
 * The hook of the kubernetes package writes the key with the upload of the certificates, and after a blank which Secret and which state of
 * it that made: another control plane may have uploaded them since, with a key of its own.
 */
const CERTIFICATE_KEY = '/etc/kubernetes/curlew/certificate-key';
/** Behind one of them, kubectl and kubeadm would not find the API server. */
const PROXIES = ['http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY'] as const;

/** `CLUSTER_FAILED` if the cluster is not one of kubeadm, or has no certificates for another control plane. */
export const joinToken = useCase(JOIN_TOKEN, async (request, context): Promise<JoinFile> => {
  const file = resolve(context.cwd, request.out ?? '/etc/kubernetes/curlew/join.yaml');
  const { api, call } = await openNodeApi(context);
  const { address, hash } = await clusterInfo(call, 'make a token');
  const upload = async (endpoint: string): Promise<void> => {
    const own = ownAddresses();
    const all = ((await listObjects(call, NODES)) ?? []).flatMap((node) => detailsOf(node).addresses);
    const reached = all.find((one) => own.has(one)) ?? '';
    const proxies = Object.fromEntries(PROXIES.map((name) => [name, undefined]));
    const env = { ...context.env, ...proxies, LOAD_BALANCER_ADDRESS: endpoint, PRIVATE_ADDRESS: reached };
    await kubernetesTask(folderOf({}, context), ['kubernetes_upload_certificates'], { ...context, env });
  };
  // The key is a file of this machine.
  if (request.controlPlane === true) await requireOwnCluster(hash, 'make a token');
  const key = request.controlPlane === true ? await uploadedKey(call, upload) : undefined;
  const token = newToken();
  const settings = {
    masterAddress: address,
    kubeadmToken: `${token.id}.${token.secret}`,
    kubeadmTokenCAHash: hash,
    ...(key === undefined ? {} : { controlPlane: true, certKey: key }),
  };
  const lines = Object.entries(settings).map(([name, value]) => `    ${name}: ${JSON.stringify(value)}\n`);
  // A file that cannot be written leaves no token, and a token that cannot be made a file that is worth nothing.
  await writeText(file, `${HEAD}${lines.join('')}`, { force: true, mode: 0o600 });
  const expires = new Date(api.now().getTime() + HOUR_MS).toISOString();
  await createOwnToken(call, token, expires);
  return { file, expires };
});

const HEAD = `apiVersion: cluster.kurl.sh/v1beta1
kind: Installer
metadata:
  name: join
spec:
  kubernetes:
`;

/**
 * {@link certificateKey}, in a cluster with an address that reaches several control planes after `upload`, which gets the address: it uploads
 * the certificates again where the cluster will not have them for as long as a token is valid, or another control plane has uploaded its own.
 */
export async function uploadedKey(
  call: Call,
  upload: (endpoint: string) => Promise<void>,
  file = CERTIFICATE_KEY,
): Promise<string> {
  const endpoint = await controlPlaneEndpoint(call);
  let cause: CurlewError | undefined;
  try {
    if (endpoint !== undefined) await upload(endpoint);
  } catch (error) {
    if (!(error instanceof CurlewError) || error.code === 'CANCELLED') throw error;
    cause = error;
  }
  try {
    return await certificateKey(call, file);
  } catch (error) {
    throw error instanceof CurlewError && cause !== undefined ? error.with({ cause }) : error;
  }
}

/** The key of the certificates that the cluster has, if this machine has uploaded them; `CLUSTER_FAILED` otherwise. */
export async function certificateKey(call: Call, file = CERTIFICATE_KEY): Promise<string> {
  const [, key, upload] = /^([0-9a-f]{64}) (\S+)$/.exec((await readStateFile(file, 1024))?.trim() ?? '') ?? [];
  const secret = await getObject(call, SECRETS, { namespace, name: 'kubeadm-certs' }, { onlyMetadata: true });
  if (key !== undefined && secret !== undefined) {
    const { uid, resourceVersion } = secret.metadata;
    if (upload === `${uid}/${resourceVersion}`) return key;
  }
  const what =
    secret === undefined
      ? 'the cluster has no certificates for another control plane'
      : 'this machine does not have the key of the certificates for another control plane';
  throw new CurlewError('CLUSTER_FAILED', `cannot make a token: ${what}`, {
    hint: 'make the token where ./install.sh was run last, after running it there again with the same settings: with kubernetes.loadBalancerAddress it uploads them for 2 hours',
  });
}

/** A token with the right to delete itself, which `join` does. The collector of garbage deletes the right with the token. */
async function createOwnToken(call: Call, token: BootstrapToken, expiration: string): Promise<void> {
  const { name } = secretOfToken(token.id);
  const made = await createToken(call, token, {
    description: 'curlew join-token: for one machine',
    expiration,
    'usage-bootstrap-signing': 'true',
    'auth-extra-groups': 'system:bootstrappers:kubeadm:default-node-token',
  });
  if (made === undefined) throw new CurlewError('CLUSTER_FAILED', `cannot make a token: the Secret ${name} exists`);
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Secret', name, uid: made.metadata.uid }];
  const rules = [may('', ['secrets'], ['delete'], [name])];
  const user = { apiGroup: RBAC, kind: 'User', name: `system:bootstrap:${token.id}` };
  for (const right of granted('Role', { namespace, name }, rules, [user])) {
    const value = { ...right, metadata: { ...right.metadata, ownerReferences } };
    await createObject(call, resourceOfRight(right), { namespace, name, value });
  }
}
