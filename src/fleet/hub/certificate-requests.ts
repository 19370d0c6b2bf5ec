/** Requests for certificates of agents: what they are, and which of them are as the rules demand. Pure. */
import { createHash, type KeyObject } from 'node:crypto';
import * as v from 'valibot';
import { canonicalJson } from '../../core/digest.ts';
import { convert } from '../../core/schema.ts';
import { readRequest, type RequestSubject } from '../../formats/signing/certificate-request.ts';
import { KUBE_SIGNER } from '../upstream/registration.ts';
import { clusterOfUser, ORGANIZATION } from './identity.ts';

/** Seconds that a certificate is valid; a hub may make it shorter. */
const LIFE_S = 30 * 86_400;
/** The certificate of an add-on lives shorter. A cluster that is registered again has its names: what is left of the former one ends soon. */
const ADDON_LIFE_S = 86_400;
/** The label of Open Cluster Management that says which add-on a request is for. */
export const ADDON_LABEL = 'open-cluster-management.io/addon-name';
const MAX_ADDON = 63;

export const SIGNING_REQUESTS = {
  apiVersion: 'certificates.k8s.io/v1',
  kind: 'CertificateSigningRequest',
  plural: 'certificatesigningrequests',
  namespaced: false,
} as const;

/** An API server cuts what is longer, and adds five characters. */
const MAX_PREFIX = 58;

/** The API server adds a random part. Who may create a request could also choose the rest of its name, which gives no right. */
export function requestPrefix(cluster: string): string {
  return `curlew-${cluster}-`.slice(0, MAX_PREFIX);
}

export interface AskedFor {
  /** Seconds. */
  readonly lifeS?: number;
  readonly signer?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** What is asked for an add-on. */
export function addonRequest(addon: string, signer: string): AskedFor {
  return { lifeS: ADDON_LIFE_S, signer, labels: { [ADDON_LABEL]: addon } };
}

/** `request` in PEM. */
export function requestObject(
  prefix: string,
  request: string,
  { lifeS = LIFE_S, signer = KUBE_SIGNER, labels }: AskedFor = {},
): object {
  return {
    apiVersion: SIGNING_REQUESTS.apiVersion,
    kind: SIGNING_REQUESTS.kind,
    metadata: { generateName: prefix, ...(labels && { labels }) },
    spec: {
      request: Buffer.from(request).toString('base64'),
      signerName: signer,
      usages: ['client auth'],
      expirationSeconds: lifeS,
    },
  };
}

/** What people compare of a public key. */
export function fingerprintOf(key: KeyObject): string {
  return `SHA256:${createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('base64')}`;
}

/** The group of all tokens for agents. */
export const TOKENS = 'system:bootstrappers:curlew';
const BOUND = /^system:bootstrappers:curlew:(join|rejoin):([a-z0-9](?:[a-z0-9-]{0,55}[a-z0-9])?)$/;
export type TokenKind = 'join' | 'rejoin';

/** The groups of a token: the API server says them of each request, so that they bind it to a cluster. */
export function tokenGroups(cluster: string, kind: TokenKind): readonly string[] {
  return [TOKENS, `${TOKENS}:${kind}:${cluster}`];
}

const texts = v.optional(v.array(v.string()), []);
const object = v.object({
  metadata: v.object({
    name: v.string(),
    resourceVersion: v.string(),
    creationTimestamp: v.string(),
    labels: v.optional(v.record(v.string(), v.string()), {}),
  }),
  spec: v.object({
    request: v.string(),
    signerName: v.string(),
    username: v.optional(v.string(), ''),
    groups: texts,
    usages: texts,
    expirationSeconds: v.optional(v.number()),
  }),
  status: v.optional(
    v.object({
      conditions: v.optional(v.array(v.object({ type: v.string() })), []),
      certificate: v.optional(v.string()),
    }),
    { conditions: [] },
  ),
});

/** A request by a token for an agent, or by an agent. */
export interface AgentRequest {
  readonly name: string;
  readonly resourceVersion: string;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly kind: TokenKind | 'renewal' | 'addon';
  /** The cluster to which the sender is bound. */
  readonly cluster: string;
  /** The user that sent it. */
  readonly by: string;
  /** The user that it is for, and the fingerprint of its key; empty if it is of no form that is accepted. */
  readonly user: string;
  readonly fingerprint: string;
  /** What an add-on asks for: its name, the signer, the subject in one text, and the life in seconds. */
  readonly addon?: {
    readonly name: string;
    readonly signer: string;
    readonly subject: string;
    readonly lifeS: number;
    /** The request in PEM, while it is approved and its signer has not answered. */
    readonly unsigned?: string;
  };
  /** Nothing has been decided about it. */
  readonly isPending: boolean;
  readonly isApproved: boolean;
  readonly isIssued: boolean;
  /** Why it must not be approved. */
  readonly problem: string | undefined;
}

/**
 * Undefined for requests of others: those are left alone. Who sent it is what the API server says in the request, and what it is for
 * must be exactly the user of an agent of the cluster that its sender is bound to.
 */
export function readAgentRequest(live: unknown): AgentRequest | undefined {
  const read = convert(object, live);
  if ('problems' in read) return undefined;
  const { metadata, spec, status } = read.value;
  const { username: by, groups } = spec;
  const sender = senderOf(by, groups);
  if (sender === undefined) return undefined;
  const request = Buffer.from(spec.request, 'base64').toString('latin1');
  const csr = readRequest(request);
  const user = csr?.subject.commonName ?? '';
  const { name, resourceVersion, creationTimestamp: createdAt, labels } = metadata;
  const prefix = requestPrefix(sender.cluster);
  const { [ADDON_LABEL]: addon } = sender.kind === 'renewal' ? labels : {};
  const lifeS = addon === undefined ? LIFE_S : ADDON_LIFE_S;
  const has = (type: string): boolean => status.conditions.some((one) => one.type === type);
  const isUnsigned = has('Approved') && !has('Failed') && status.certificate === undefined;
  const rules: readonly (readonly [boolean, string])[] = [
    [spec.usages.join() === 'client auth', 'its usages are not exactly "client auth"'],
    [(spec.expirationSeconds ?? Infinity) <= lifeS, `its certificate would live longer than ${lifeS} seconds`],
    [name.startsWith(prefix), `its name does not begin with ${prefix}`],
    ...(addon === undefined
      ? agentRules(sender, { by, csr: csr?.subject, signer: spec.signerName })
      : ([[csr !== undefined && addon.length <= MAX_ADDON, 'it is no request with a P-256 key']] as const)),
  ];
  return {
    name,
    resourceVersion,
    createdAt,
    ...sender,
    ...(addon !== undefined &&
      csr && {
        kind: 'addon' as const,
        addon: {
          name: addon,
          signer: spec.signerName,
          subject: subjectText(csr.subject),
          lifeS: spec.expirationSeconds ?? lifeS,
          // Requests of thousands of sites are kept for an hour, and only a signer reads them.
          ...(isUnsigned && { unsigned: request }),
        },
      }),
    by,
    user,
    fingerprint: csr === undefined ? '' : fingerprintOf(csr.key),
    isPending: status.conditions.length === 0,
    isApproved: has('Approved'),
    isIssued: status.certificate !== undefined,
    problem: rules.find(([holds]) => !holds)?.[1],
  };
}

/** Subjects are equal if their texts are. */
export function subjectText({ commonName, organizations, units = [] }: RequestSubject): string {
  return canonicalJson({ commonName, organizations, units });
}

function agentRules(
  { kind, cluster }: Pick<AgentRequest, 'kind' | 'cluster'>,
  { by, csr, signer }: { readonly by: string; readonly csr: RequestSubject | undefined; readonly signer: string },
): readonly (readonly [boolean, string])[] {
  const { commonName: user = '', organizations = [], units = [] } = csr ?? {};
  const isOfAgents = organizations.join('\n') === ORGANIZATION && units.length === 0;
  return [
    [signer === KUBE_SIGNER, `it is for another signer than ${KUBE_SIGNER}`],
    [isOfAgents, `it is not for one user of ${ORGANIZATION}, with a P-256 key`],
    [clusterOfUser(user) === cluster, `it is for another name than the cluster ${cluster}`],
    [kind !== 'renewal' || user === by, 'an agent can only renew its own certificate'],
  ];
}

function senderOf(by: string, groups: readonly string[]): Pick<AgentRequest, 'kind' | 'cluster'> | undefined {
  const own = clusterOfUser(by);
  if (own !== undefined) return groups.includes(ORGANIZATION) ? { kind: 'renewal', cluster: own } : undefined;
  const bound = groups.flatMap((group) => (BOUND.exec(group) === null ? [] : [BOUND.exec(group) ?? []]));
  const [[, kind, cluster] = []] = bound;
  const isToken = requestToken(by) !== undefined && groups.includes(TOKENS) && bound.length === 1;
  return isToken && cluster !== undefined ? { kind: kind === 'join' ? 'join' : 'rejoin', cluster } : undefined;
}

/** The identifier of the token whose user this is. */
export function requestToken(user: string): string | undefined {
  return /^system:bootstrap:([a-z0-9]{6})$/.exec(user)?.[1];
}

/** A patch that changes the status of a request as it was seen. */
function patch({ resourceVersion }: Pick<AgentRequest, 'resourceVersion'>, ...changes: readonly object[]) {
  return [{ op: 'test', path: '/metadata/resourceVersion', value: resourceVersion }, ...changes];
}

/** A patch that decides about a request as it was seen. */
export function decision(
  one: Pick<AgentRequest, 'resourceVersion'>,
  type: 'Approved' | 'Denied',
  message: string,
): readonly object[] {
  const condition = { type, status: 'True', reason: 'Curlew', message };
  return patch(one, { op: 'add', path: '/status', value: { conditions: [condition] } });
}

/** A patch by which its signer answers a request that was approved: with a certificate in PEM, or why there is none. */
export function signature(
  one: Pick<AgentRequest, 'resourceVersion'>,
  answer: { readonly certificate: string } | { readonly problem: string },
): readonly object[] {
  if ('certificate' in answer) {
    const value = Buffer.from(answer.certificate).toString('base64');
    return patch(one, { op: 'add', path: '/status/certificate', value });
  }
  const value = { type: 'Failed', status: 'True', reason: 'Curlew', message: answer.problem };
  return patch(one, { op: 'add', path: '/status/conditions/-', value });
}
