/** The certificate authority of an add-on (kops: needsPKI): a Secret, and the Issuer of cert-manager that uses it. */
import { CurlewError } from '../../core/errors.ts';
import { makeAuthority } from '../../formats/signing/authority.ts';
import { getObject } from '../kube/objects.ts';
import { collectionPath, type Resource } from '../kube/resources.ts';
import type { Addon } from './addon.ts';
import type { ChannelCluster } from './channel-cluster.ts';
import { SECRETS } from '../kube/core-kinds.ts';

const NAMESPACE = 'kube-system';
const DAYS = 3650;
const ISSUERS: Resource = { apiVersion: 'cert-manager.io/v1', kind: 'Issuer', plural: 'issuers', namespaced: true };

/** Is there something to create for the add-on? */
export async function needsPki(
  { call }: Pick<ChannelCluster, 'call'>,
  { name, needsPKI }: Pick<Addon, 'name' | 'needsPKI'>,
): Promise<boolean> {
  if (!needsPKI) return false;
  const objects = await Promise.all([
    getObject(call, SECRETS, { namespace: NAMESPACE, name: `${name}-ca` }),
    getObject(call, ISSUERS, { namespace: NAMESPACE, name }),
  ]);
  return objects.includes(undefined);
}

/** Creates what is missing. An existing authority is kept: certificates of it are in use. */
export async function ensurePki(
  { call }: Pick<ChannelCluster, 'call'>,
  addon: Pick<Addon, 'name' | 'needsPKI'>,
): Promise<void> {
  const { name } = addon;
  if (!(await needsPki({ call }, addon))) return;
  const { certificate, key } = makeAuthority(name, { days: DAYS });
  const ca = `${name}-ca`;
  await create({ call }, SECRETS, {
    metadata: { name: ca, namespace: NAMESPACE },
    type: 'kubernetes.io/tls',
    stringData: { 'tls.crt': certificate, 'tls.key': key.reveal() },
  });
  if (await create({ call }, ISSUERS, { metadata: { name, namespace: NAMESPACE }, spec: { ca: { secretName: ca } } }))
    return;
  throw new CurlewError(
    'CLUSTER_FAILED',
    `cannot create Issuer ${NAMESPACE}/${name}: the cluster has no cert-manager.io/v1`,
    {
      hint: 'apply cert-manager first, then run the same command again',
    },
  );
}

/** False if the kind does not exist. Several programs may do this at once: what already exists is right. */
async function create(
  { call }: Pick<ChannelCluster, 'call'>,
  resource: Resource,
  object: {
    readonly metadata: { readonly name: string; readonly namespace: string };
    readonly [field: string]: unknown;
  },
): Promise<boolean> {
  const { apiVersion, kind } = resource;
  const answer = await call(`create ${kind} ${NAMESPACE}/${object.metadata.name}`, {
    verb: 'create',
    path: collectionPath(resource, NAMESPACE),
    document: JSON.stringify({ apiVersion, kind, ...object }),
  });
  return answer.outcome !== 'not found';
}
