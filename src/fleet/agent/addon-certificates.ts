/** Certificates of a hub for add-ons: their keys are made in the cluster of the agent, and kept in Secrets there. */
import { createPrivateKey, type X509Certificate } from 'node:crypto';
import { asError, CurlewError } from '../../core/errors.ts';
import { secret } from '../../core/secret.ts';
import type { RequestSubject } from '../../formats/signing/certificate-request.ts';
import { makeKeyPair } from '../../formats/signing/keys.ts';
import type { KubeApi } from '../../cluster/kube/api.ts';
import { openCalls, type Call } from '../../cluster/kube/call.ts';
import { SECRETS } from '../../cluster/kube/core-kinds.ts';
import {
  applyObject,
  createNamespace,
  deleteObject,
  getObject,
  mapObjects,
  titleOf,
} from '../../cluster/kube/objects.ts';
import { createSemaphore } from '../../platform/limit/semaphore.ts';
import { pause } from '../../platform/limit/repeat.ts';
import { signerRight } from '../hub/addon-rights.ts';
import { registrationIn } from '../hub/content.ts';
import { formatKubeconfig, type HubAddress } from '../hub/kubeconfig.ts';
import { addonRequest } from '../hub/certificate-requests.ts';
import type { AddonContent } from '../rollout/fleet.ts';
import { secretText } from '../upstream/capi-objects.ts';
import { agentName, KUBE_SIGNER, type AddonCertificate } from '../upstream/registration.ts';
import { objectsOf } from '../upstream/template-objects.ts';
import { certificateIn, lifeOf, takeStep } from './certificate.ts';
import type { PendingRequest } from './folder.ts';

const PATIENCE_MS = 30_000;
/** Marks the Secrets of an add-on. */
const LABEL = 'fleet.curlew.dev/addon';
/** How long a hub has for an answer before the agent does something else meanwhile. */
const ANSWER_MS = 10_000;
const LOOK_MS = 500;
/** A request that is not answered within this time is made again, with another key. */
const STALE_MS = 600_000;

interface Parts {
  readonly cluster: string;
  readonly hubApi: KubeApi;
  /** Client of its own cluster. */
  readonly api: KubeApi;
  /** Where the hub is, for the kubeconfigs of add-ons. */
  readonly hub: () => Promise<HubAddress | undefined>;
  readonly answerMs?: number;
}

type Spec = Pick<AddonContent, 'source' | 'values'>;

export class AddonCertificates {
  readonly #parts: Parts;
  readonly #turn = createSemaphore(1);
  /** What was asked for, by Secret. A process that begins again asks again: a key is nowhere before its certificate is there. */
  readonly #pending = new Map<string, PendingRequest>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Brings the certificates of an add-on into its namespace, and renews those that are due. `problem`: what is missing; it holds the
   * add-on if `isHeld`: one of them is not there, or has ended.
   */
  async bring(spec: Spec, signal: AbortSignal): Promise<{ readonly problem?: string; readonly isHeld: boolean }> {
    const { cluster, api } = this.#parts;
    const place = registrationIn(cluster, spec);
    const { namespace, registers } = objectsOf(spec.values, cluster, place?.addon ?? '');
    if (place === undefined || !registers) return { isHeld: false };
    if (namespace === undefined || place.certificates.length === 0)
      return { problem: 'this version of curlew cannot read its registration', isHeld: true };
    const call = openCalls(api, { patienceMs: PATIENCE_MS, signal });
    return this.#turn.run(
      async () => {
        let problem: string | undefined;
        let isHeld = false;
        for (const one of place.certificates) {
          const done = await this.#bringOne(one, { ...place, namespace, call, signal });
          problem ??= done.problem;
          isHeld ||= done.isHeld;
        }
        const kept = new Set(place.certificates.map(({ secretName }) => `${namespace}/${secretName}`));
        await deleteSecrets(call, place.addon, kept);
        return { ...(problem !== undefined && { problem }), isHeld };
      },
      { signal },
    );
  }

  /** Renews those of all add-ons that are here. Returns the first problem. */
  async renew(
    addons: readonly { readonly spec: Spec }[],
    signal: AbortSignal,
  ): Promise<{ readonly problem: string | undefined }> {
    let first: string | undefined;
    for (const { spec } of addons) first ??= (await this.bring(spec, signal)).problem;
    return { problem: first };
  }

  /** After the add-on has gone. */
  async remove(spec: Spec, signal: AbortSignal): Promise<void> {
    const place = registrationIn(this.#parts.cluster, spec);
    const call = openCalls(this.#parts.api, { patienceMs: PATIENCE_MS, signal });
    if (place !== undefined) await deleteSecrets(call, place.addon, new Set());
  }

  async #bringOne(
    one: AddonCertificate,
    at: Place,
  ): Promise<{ readonly problem: string | undefined; readonly isHeld: boolean }> {
    const named = { namespace: at.namespace, name: one.secretName };
    const stored = await getObject(at.call, SECRETS, named);
    const life = stored && lifeIn(stored['data'], one);
    const now = this.#parts.hubApi.now().getTime();
    if (life !== undefined && now < life.renewAt) return { problem: undefined, isHeld: false };
    const problem = await this.#ask(one, at, named).catch((error: unknown) => {
      at.signal.throwIfAborted();
      if (!(error instanceof CurlewError)) throw error;
      return asError(error).message;
    });
    return { problem, isHeld: problem !== undefined && (life === undefined || now >= life.endsAt) };
  }

  /** Returns why there is no certificate yet. */
  async #ask(one: AddonCertificate, at: Place, named: Named): Promise<string | undefined> {
    const { cluster, hubApi, answerMs = ANSWER_MS } = this.#parts;
    const { addon, signal } = at;
    const key = `${named.namespace}/${named.name}`;
    const user = one.subject.commonName;
    const until = performance.now() + answerMs;
    for (;;) {
      const before = this.#pending.get(key);
      const isFresh = before?.user === user && hubApi.now().getTime() - (before.at ?? 0) < STALE_MS;
      const pending = isFresh ? before : { user, key: secret(makeKeyPair(undefined).privateKey) };
      const asked = await takeStep(
        {
          api: hubApi,
          signal,
          cluster,
          subject: one.subject,
          askedFor: addonRequest(addon, one.signer),
          keep: (next) => void (next === undefined ? this.#pending.delete(key) : this.#pending.set(key, next)),
        },
        pending,
      );
      if (asked.state === 'issued') {
        await this.#write(one, at, { named, certificate: asked.certificate, privateKey: asked.key.reveal() });
        this.#pending.delete(key);
        return undefined;
      }
      if (performance.now() >= until) return waitsFor(asked, one);
      await pause(Math.min(LOOK_MS, answerMs), { signal });
    }
  }

  async #write(
    { signer }: AddonCertificate,
    { addon, call }: Place,
    {
      named,
      certificate,
      privateKey,
    }: { readonly named: Named; readonly certificate: string; readonly privateKey: string },
  ): Promise<void> {
    const hub = await this.#parts.hub();
    if (hub === undefined) throw new CurlewError('CLUSTER_FAILED', 'the kubeconfig of the agent is gone');
    const user = { 'client-certificate': 'tls.crt', 'client-key': 'tls.key' };
    const texts = {
      'tls.crt': certificate,
      'tls.key': privateKey,
      'cluster-name': this.#parts.cluster,
      'agent-name': agentName(addon),
      ...(signer === KUBE_SIGNER && { kubeconfig: formatKubeconfig({ hub, user }).reveal() }),
    };
    const data = Object.entries(texts).map(([name, text]) => [name, Buffer.from(text).toString('base64')]);
    const { apiVersion, kind } = SECRETS;
    const metadata = { ...named, labels: { [LABEL]: addon } };
    const value = { apiVersion, kind, metadata, type: 'Opaque', data: Object.fromEntries(data) as object };
    await createNamespace(call, named.namespace);
    const { outcome } = await applyObject(call, SECRETS, { ...named, value }, { force: true });
    if (outcome === 'applied') return;
    throw new CurlewError('CLUSTER_FAILED', `cannot write ${titleOf(SECRETS, named)}: its namespace is gone`);
  }
}

interface Named {
  readonly namespace: string;
  readonly name: string;
}

interface Place {
  readonly addon: string;
  readonly namespace: string;
  readonly call: Call;
  readonly signal: AbortSignal;
}

function waitsFor(
  { request, isApproved }: { readonly request: string; readonly isApproved: boolean },
  one: AddonCertificate,
): string {
  if (one.signer !== KUBE_SIGNER) {
    const done = isApproved ? 'signed' : 'answered';
    return `the hub has not ${done} ${request}: its controller does, with the right for ${one.signer}: ${signerRight(one)}`;
  }
  return isApproved
    ? `the hub has approved ${request}, and kube-controller-manager has not signed it: does it run there?`
    : `the hub has not answered ${request}: its controller does, with --reconcile clustermanagementaddons`;
}

/** How long the certificate in a Secret lives; undefined if it is for another subject or key. */
function lifeIn(data: unknown, { subject }: AddonCertificate): ReturnType<typeof lifeOf> | undefined {
  const [text = '', key = ''] = ['tls.crt', 'tls.key'].map((name) => secretText({ data }, name));
  const certificate = certificateIn(text);
  if (certificate === undefined || !isFor(certificate, subject)) return undefined;
  try {
    return certificate.checkPrivateKey(createPrivateKey(key)) ? lifeOf(certificate) : undefined;
  } catch {
    return undefined;
  }
}

function isFor(certificate: X509Certificate, { commonName, organizations, units = [] }: RequestSubject): boolean {
  const { CN, O, OU } = certificate.toLegacyObject().subject;
  const texts = (value: string | readonly string[] | undefined): string => [value ?? []].flat().toSorted().join('\n');
  const named = [
    [CN, commonName],
    [O, organizations],
    [OU, units],
  ] as const;
  return named.every(([own, wanted]) => texts(own) === texts(wanted));
}

async function deleteSecrets(call: Call, addon: string, kept: ReadonlySet<string>): Promise<void> {
  const options = { labelSelector: `${LABEL}=${addon}`, onlyMetadata: true };
  const all = (await mapObjects(call, SECRETS, options, ({ metadata }) => metadata)) ?? [];
  for (const one of all) if (!kept.has(`${one.namespace ?? ''}/${one.name}`)) await deleteObject(call, SECRETS, one);
}
