/** The certificate by which a hub knows the agent of a cluster: asked for, waited for, and renewed before it expires. */
import { createPrivateKey, createPublicKey, randomBytes, X509Certificate, type KeyObject } from 'node:crypto';
import * as v from 'valibot';
import { CurlewError } from '../../core/errors.ts';
import { visible } from '../../core/diagnostic.ts';
import { convert } from '../../core/schema.ts';
import { secret, type Secret } from '../../core/secret.ts';
import { makeKeyPair } from '../../formats/signing/keys.ts';
import { makeRequest, readRequest, type RequestSubject } from '../../formats/signing/certificate-request.ts';
import { agentUser, clusterOfUser, ORGANIZATION } from '../hub/identity.ts';
import type { HubAddress } from '../hub/kubeconfig.ts';
import {
  fingerprintOf,
  requestObject,
  SIGNING_REQUESTS,
  requestPrefix,
  type AskedFor,
} from '../hub/certificate-requests.ts';
import type { KubeApi } from '../../cluster/kube/api.ts';
import { openCalls, Refused } from '../../cluster/kube/call.ts';
import { createObject, getObject } from '../../cluster/kube/objects.ts';
import type { AgentFolder, PendingRequest } from './folder.ts';

const PATIENCE_MS = 30_000;
/** A hub forgets requests that wait for a day, and those that it has answered after an hour. */
const STALE_MS = 6 * 3_600_000;

/** At which part of a life a certificate is renewed: two thirds, a tenth earlier or later. */
const JITTER = 0.2;
const REJOIN = 'get a token by curlew fleet accept --rejoin on the hub, and run curlew agent register with it';

const answered = v.object({
  spec: v.object({ request: v.string() }),
  status: v.optional(
    v.object({
      certificate: v.optional(v.string()),
      conditions: v.optional(v.array(v.object({ type: v.string(), message: v.optional(v.string(), '') })), []),
    }),
    { conditions: [] },
  ),
});

export interface Asking {
  readonly api: KubeApi;
  readonly signal: AbortSignal;
  readonly cluster: string;
  /** The user that asks for a certificate of its own name; undefined for a new registration. */
  readonly user?: string | undefined;
}

export type Asked =
  | {
      readonly state: 'waiting';
      readonly request: string;
      readonly fingerprint: string;
      /** The hub has approved it, and its signer has not signed it. */
      readonly isApproved: boolean;
    }
  | { readonly state: 'issued'; readonly certificate: string; readonly key: Secret };

/**
 * One step toward a certificate: makes a key, or creates the request, or looks whether it was answered. Each is kept in the folder
 * before the next one, so that a process that is killed continues. Errors are `CLUSTER_FAILED`, also for a request that was denied,
 * which is then forgotten.
 */
export async function askForCertificate(folder: AgentFolder, asking: Asking): Promise<Asked> {
  const pending = await currentRequest(folder, asking);
  const subject = { commonName: pending.user, organizations: [ORGANIZATION] };
  return takeStep({ ...asking, subject, keep: async (next) => folder.writeRequest(next) }, pending);
}

export interface Wanted extends Pick<Asking, 'api' | 'signal' | 'cluster'> {
  readonly subject: RequestSubject;
  /** Default: what an agent asks for. */
  readonly askedFor?: AskedFor;
  /** Keeps what waits; undefined when nothing does any more. */
  readonly keep: (pending: PendingRequest | undefined) => Promise<void> | void;
}

/** The step after those that `pending` has behind it. */
export async function takeStep(
  { api, signal, cluster, subject, askedFor, keep }: Wanted,
  pending: PendingRequest,
): Promise<Asked> {
  const call = openCalls(api, { patienceMs: PATIENCE_MS, signal });
  const { user } = pending;
  const key = createPrivateKey(pending.key.reveal());
  const fingerprint = fingerprintOf(createPublicKey(key));
  if (pending.name === undefined) {
    const value = requestObject(requestPrefix(cluster), makeRequest(subject, key), askedFor);
    const created = await createObject(call, SIGNING_REQUESTS, { name: requestPrefix(cluster), value });
    if (created === undefined) throw failed('the hub does not serve certificates.k8s.io/v1');
    const { name } = created.metadata;
    await keep({ ...pending, name, at: api.now().getTime() });
    return { state: 'waiting', request: name, fingerprint, isApproved: false };
  }
  const waiting = { state: 'waiting', request: pending.name, fingerprint, isApproved: false } as const;
  const object = await getObject(call, SIGNING_REQUESTS, { name: pending.name }).catch((error: unknown) => {
    // The right to read it comes with the approval.
    if (error instanceof Refused && error.isForbidden) return waiting;
    throw error;
  });
  if (object === waiting) return waiting;
  const read = convert(answered, object);
  // The hub has forgotten it, or was restored and has another one of this name: the next step asks again.
  if ('problems' in read || !isOwn(read.value.spec.request, { user, key })) {
    await keep({ user, key: pending.key });
    return waiting;
  }
  const { certificate, conditions } = read.value.status;
  const refusal = conditions.find(({ type }) => type === 'Denied' || type === 'Failed');
  if (refusal !== undefined) {
    await keep(undefined);
    throw failed(`the hub refuses ${pending.name}: ${visible(refusal.message)}`, 'ask who administers the hub');
  }
  if (certificate === undefined) return { ...waiting, isApproved: conditions.some(({ type }) => type === 'Approved') };
  const text = Buffer.from(certificate, 'base64').toString();
  requireOwn(text, { user, key });
  return { state: 'issued', certificate: text, key: pending.key };
}

function failed(what: string, hint?: string): CurlewError {
  return new CurlewError('CLUSTER_FAILED', `cannot get a certificate: ${what}`, { hint });
}

/** The one that waits, or another one with a new key. */
async function currentRequest(folder: AgentFolder, { api, cluster, user }: Asking): Promise<PendingRequest> {
  const pending = await folder.readRequest();
  const present = (await readCertificate(folder))?.user;
  const isWanted =
    user === undefined
      ? pending !== undefined && clusterOfUser(pending.user) === cluster && pending.user !== present
      : pending?.user === user;
  if (pending !== undefined && isWanted) {
    const age = Math.abs(api.now().getTime() - (pending.at ?? 0));
    return pending.name === undefined || age < STALE_MS ? pending : { user: pending.user, key: pending.key };
  }
  const made = {
    user: user ?? agentUser(cluster, randomBytes(16).toString('hex')),
    key: secret(makeKeyPair(undefined).privateKey),
  };
  await folder.writeRequest(made);
  return made;
}

interface Own {
  readonly user: string;
  readonly key: KeyObject;
}

function isOwn(request: string, { user, key }: Own): boolean {
  const csr = readRequest(Buffer.from(request, 'base64').toString());
  return csr?.subject.commonName === user && csr.key.equals(createPublicKey(key));
}

/** A certificate for another key or another user would never work. */
function requireOwn(text: string, { user, key }: Own): void {
  const certificate = certificateIn(text);
  if (certificate?.checkPrivateKey(key) === true && subjectOf(certificate) === user) return;
  throw failed('what the hub has issued is not for the key and the name of the request');
}

export function certificateIn(text: string): X509Certificate | undefined {
  try {
    return new X509Certificate(text);
  } catch {
    return undefined;
  }
}

function subjectOf(certificate: X509Certificate): string | undefined {
  return /^CN=(.*)$/m.exec(certificate.subject)?.[1];
}

export interface AgentCertificate {
  readonly user: string;
  /** Milliseconds since 1970. */
  readonly renewAt: number;
  readonly endsAt: number;
}

/** The certificate in the kubeconfig of the folder; undefined if there is none, or none of an agent. */
export async function readCertificate(folder: AgentFolder): Promise<AgentCertificate | undefined> {
  const { 'client-certificate-data': data = '' } = (await folder.readKubeconfig())?.user ?? {};
  const certificate = certificateIn(Buffer.from(data, 'base64').toString());
  const user = certificate && subjectOf(certificate);
  if (certificate === undefined || user === undefined || clusterOfUser(user) === undefined) return undefined;
  return { user, ...lifeOf(certificate) };
}

/** When a certificate is renewed, and when it ends, in milliseconds since 1970. */
export function lifeOf(certificate: X509Certificate): Omit<AgentCertificate, 'user'> {
  const [from, endsAt] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)];
  // Jitter that is the same each time: agents that were registered together do not all ask at once.
  const jitter = Number.parseInt(certificate.fingerprint256.slice(0, 2), 16) / 0xff - 0.5;
  return { endsAt, renewAt: from + (endsAt - from) * (2 / 3 + jitter * JITTER) };
}

/**
 * For the loop of an agent, which calls it every few minutes; each call takes one step of at most a few requests. `current`: there is
 * nothing to do. `waiting`: a request was made, and the hub has not answered it. `renewed`: the kubeconfig has a new certificate, which
 * `api` uses from its next request on. Times are those of the hub's clock. `CLUSTER_FAILED` if the certificate has expired or the hub
 * refuses a new one; until it expires, the agent continues.
 */
export async function renewIfDue(
  folder: AgentFolder,
  { api, signal }: Pick<Asking, 'api' | 'signal'>,
): Promise<'current' | 'waiting' | 'renewed'> {
  const present = await readCertificate(folder);
  if (present === undefined) throw failed(`${folder.kubeconfig} has no certificate of an agent`, REJOIN);
  const { user, renewAt, endsAt } = present;
  const now = api.now().getTime();
  if (now < renewAt) return 'current';
  if (now >= endsAt) throw failed(`the present one has expired at ${new Date(endsAt).toISOString()}`, REJOIN);
  await using _claim = await folder.claim();
  const asked = await askForCertificate(folder, { api, signal, cluster: clusterOfUser(user) ?? '', user });
  if (asked.state === 'waiting') return 'waiting';
  const { hub } = (await folder.readKubeconfig()) ?? {};
  if (hub === undefined) throw failed(`${folder.kubeconfig} is gone`, REJOIN);
  await keepCertificate(folder, asked, hub);
  return 'renewed';
}

/** Makes it the one by which the agent is known; the request is done. */
export async function keepCertificate(
  folder: AgentFolder,
  { certificate, key }: Extract<Asked, { readonly state: 'issued' }>,
  hub: HubAddress,
): Promise<void> {
  const data = (text: string): string => Buffer.from(text).toString('base64');
  const user = { 'client-certificate-data': data(certificate), 'client-key-data': data(key.reveal()) };
  await folder.writeKubeconfig({ hub, user });
  await folder.writeRequest(undefined);
}
