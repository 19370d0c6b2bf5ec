/** Bootstrap tokens by which sites register: made only at a hub that can do what follows. */
import { createPrivateKey, randomBytes } from 'node:crypto';
import * as v from 'valibot';
import { CurlewError } from '../../../core/errors.ts';
import { convert, fits } from '../../../core/schema.ts';
import type { Secret } from '../../../core/secret.ts';
import { timeOf } from '../../../core/time.ts';
import { makeRequest } from '../../../formats/signing/certificate-request.ts';
import { makeKeyPair } from '../../../formats/signing/keys.ts';
import { clusterLabel } from '../identity.ts';
import { formatKubeconfig, hubAddress, type HubAddress, type HubKubeconfig } from '../kubeconfig.ts';
import { decision, SIGNING_REQUESTS, requestObject, tokenGroups, type TokenKind } from '../certificate-requests.ts';
import { openApi, type KubeApi } from '../../../cluster/kube/api.ts';
import type { Call } from '../../../cluster/kube/call.ts';
import {
  createObject,
  deleteObject,
  getObject,
  mapObjects,
  mergeObject,
  patchObject,
} from '../../../cluster/kube/objects.ts';
import { apiPath } from '../../../cluster/kube/path.ts';
import { repeatUntil } from '../../../platform/limit/repeat.ts';
import { accessTo } from '../../run/clusters.ts';
import { identifyHub, requireRegistration } from './identify.ts';
import { createToken, newToken, secretOfToken } from '../../../cluster/kube/bootstrap-token.ts';
import { SECRETS } from '../../../cluster/kube/core-kinds.ts';

const NAMESPACE = 'kube-system';
const DEFAULT_LIFE_MS = 3_600_000;
/** How long an accepted site may use its token still, to get its certificate. */
const LAST_MS = 600_000;
const SIGN_MS = 10_000;
const SEEN_MS = 5000;
const CHECK_LIFE_S = 600;

export interface TokenOptions {
  readonly cluster: string;
  readonly kind: TokenKind;
  readonly expires?: number | undefined;
  readonly server?: string | undefined;
  readonly signal: AbortSignal;
}

/**
 * A kubeconfig with a new token for one cluster. `CLUSTER_FAILED` before one is made if the hub is not prepared, signs no client
 * certificates, or accepts no bootstrap tokens.
 */
export async function makeToken(api: KubeApi, call: Call, options: TokenOptions): Promise<Secret> {
  const { cluster, kind, expires = DEFAULT_LIFE_MS, server, signal } = options;
  const hub = await identifyHub(call, DOING);
  await requireRegistration(call, DOING);
  const address = hubAddress((await api.embedded({ signal })).text.reveal());
  await requireSigner(call, signal);
  await requireTokens(call, address, signal);
  const until = new Date(api.now().getTime() + expires);
  const token = await makeSecret(call, until, { groups: tokenGroups(cluster, kind), labels: clusterLabel(cluster) });
  const config = { hub: { ...address, ...(server !== undefined && { server }) }, user: { token } };
  return formatKubeconfig({ ...config, binding: { cluster, hub } });
}

const DOING = 'make a token';

function cannot(what: string, hint: string): CurlewError {
  return new CurlewError('CLUSTER_FAILED', `cannot ${DOING}: ${what}`, { hint });
}

/** Asks for a certificate of a user without rights, whose key is not kept. */
async function requireSigner(call: Call, signal: AbortSignal): Promise<void> {
  const key = createPrivateKey(makeKeyPair(undefined).privateKey);
  const commonName = `curlew:check:${randomBytes(8).toString('hex')}`;
  const prefix = 'curlew-check-';
  const value = requestObject(prefix, makeRequest({ commonName, organizations: ['curlew:check'] }, key), {
    lifeS: CHECK_LIFE_S,
  });
  const created = await createObject(call, SIGNING_REQUESTS, { name: prefix, value });
  if (created === undefined) throw cannot('the hub does not serve certificates.k8s.io/v1', SIGNER_HINT);
  const { name } = created.metadata;
  try {
    const operations = decision(created.metadata, 'Approved', 'curlew checks that the hub signs certificates');
    await patchObject(call, SIGNING_REQUESTS, { name }, { operations, subresource: 'approval' });
    if (!(await isIssued(call, name, { signal, limitMs: SIGN_MS })))
      throw cannot(`the hub has signed no client certificate in ${SIGN_MS / 1000} s`, SIGNER_HINT);
  } finally {
    await deleteObject(call, SIGNING_REQUESTS, { name });
  }
}

const SIGNER_HINT =
  'run kube-controller-manager with --cluster-signing-cert-file and --cluster-signing-key-file: an API server alone signs nothing';

const issued = v.object({ status: v.object({ certificate: v.string() }) });

/** True when the hub has issued the certificate of a request. */
export async function isIssued(
  call: Call,
  name: string,
  { signal, limitMs }: { readonly signal: AbortSignal; readonly limitMs: number },
): Promise<boolean> {
  return repeatUntil(
    async () => fits(issued, await getObject(call, SIGNING_REQUESTS, { name })),
    (is) => is,
    { firstMs: 250, maxMs: 2000, limitMs, signal },
  );
}

/** Uses a token that lives for a moment and is in no group. */
async function requireTokens(call: Call, hub: HubAddress, signal: AbortSignal): Promise<void> {
  const token = await makeSecret(call, new Date(Date.now() + LAST_MS), {});
  try {
    const isKnown = async (): Promise<boolean> => (await statusWith({ hub, user: { token } }, signal)) !== 401;
    // An API server sees a new Secret a moment later.
    if (!(await repeatUntil(isKnown, (is) => is, { firstMs: 250, limitMs: SEEN_MS, signal })))
      throw cannot('the hub accepts no bootstrap tokens', 'run its API server with --enable-bootstrap-token-auth');
  } finally {
    await deleteObject(call, SECRETS, secretOfToken(token.split('.')[0] ?? ''));
  }
}

/** The status of a request that every user may make, if it is not a success. */
async function statusWith(config: HubKubeconfig, signal: AbortSignal): Promise<number | undefined> {
  using access = accessTo({ kubeconfig: '', secret: formatKubeconfig(config).reveal() });
  const api = await openApi({ env: { KUBECONFIG: access.kubeconfig } });
  const answer = await api?.ask({ verb: 'get', path: apiPath`/version` }, { signal });
  return answer?.kind === 'problem' ? answer.status : undefined;
}

async function makeSecret(
  call: Call,
  until: Date,
  { groups, labels }: { readonly groups?: readonly string[]; readonly labels?: Readonly<Record<string, string>> },
): Promise<string> {
  const token = newToken();
  const more = groups && { 'auth-extra-groups': groups.join(), description: 'registers an agent of curlew' };
  const fields = { expiration: timeOf(Math.floor(until.getTime() / 1000)), ...more };
  if ((await createToken(call, token, fields, labels)) !== undefined) return `${token.id}.${token.secret}`;
  const { namespace, name } = secretOfToken(token.id);
  throw cannot(`Secret ${namespace}/${name} exists`, 'run the same command again');
}

const dated = v.object({ data: v.object({ expiration: v.string() }) });

/** A site that was accepted needs its token only to get its certificate. */
export async function endToken(call: Call, id: string, now: Date): Promise<void> {
  const read = convert(dated, await getObject(call, SECRETS, secretOfToken(id)));
  const until = new Date(now.getTime() + LAST_MS);
  if ('problems' in read || Date.parse(Buffer.from(read.value.data.expiration, 'base64').toString()) <= until.getTime())
    return;
  const expiration = timeOf(Math.floor(until.getTime() / 1000));
  await mergeObject(call, SECRETS, secretOfToken(id), { stringData: { expiration } });
}

/** Names of the Secrets of all tokens of a cluster. */
export async function tokensOf(call: Call, cluster: string): Promise<readonly string[]> {
  const [[key, value] = []] = Object.entries(clusterLabel(cluster));
  const options = { namespace: NAMESPACE, labelSelector: `${key}=${value}`, onlyMetadata: true };
  return (await mapObjects(call, SECRETS, options, ({ metadata }) => metadata.name)) ?? [];
}

export async function deleteToken(call: Call, name: string): Promise<void> {
  await deleteObject(call, SECRETS, { namespace: NAMESPACE, name });
}
