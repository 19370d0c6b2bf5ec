/** Rights of add-ons of Open Cluster Management at a hub: those that their templates ask for, as long as they are on a cluster whose agent is accepted. */
import { isObject } from '../../../core/json.ts';
import type { KubeApi } from '../../../cluster/kube/api.ts';
import { Refused, type Call } from '../../../cluster/kube/call.ts';
import { NAMESPACES } from '../../../cluster/kube/core-kinds.ts';
import type { Signer } from '../../../formats/signing/authority.ts';
import { applyObject, deleteObject, getObject, type LiveObject } from '../../../cluster/kube/objects.ts';
import { Watch } from '../../../cluster/kube/watch.ts';
import { canonicalJson } from '../../../core/digest.ts';
import { CurlewError } from '../../../core/errors.ts';
import { Backoff } from '../../../platform/limit/backoff.ts';
import { addonBinding, BINDING_PREFIX, requestProblem, signerRight, unbindable } from '../addon-rights.ts';
import { registrationIn, type AddonPlace } from '../content.ts';
import { AGENT, clusterOfUser } from '../identity.ts';
import { namespaceOf, objectVersion, type HubClusterAddon, type Version } from '../observe.ts';
import { ADDON_LABEL, type AgentRequest } from '../certificate-requests.ts';
import { resourceOfRight, type Right } from '../rbac.ts';
import type { ClusterAddon } from '../../rollout/fleet.ts';
import type { AddonRegistration } from '../ocm.ts';
import type { AddonCertificate, Permission } from '../../upstream/registration.ts';
import { namespaceIn } from '../../upstream/template-objects.ts';
import { NAME_LABEL } from '../../upstream/kinds.ts';
import { BINDINGS } from './accepted-agents.ts';
import { readAuthority } from './addon-authority.ts';
import { eachJob, type Errand } from './jobs.ts';

/** A RoleBinding of an add-on, or of the agent of a cluster. */
type Binding =
  | { readonly kind: 'addon'; readonly at: Version; readonly text: string }
  | { readonly kind: 'agent'; readonly cluster: string };

/** Undefined for those of others. */
function readBinding(live: LiveObject): Binding | undefined {
  const { metadata, roleRef, subjects } = live;
  const { [NAME_LABEL]: cluster, [ADDON_LABEL]: addon } = metadata.labels;
  if (cluster !== undefined && addon !== undefined && metadata.name.startsWith(BINDING_PREFIX))
    return { kind: 'addon', at: objectVersion(live), text: textOf(roleRef, subjects) };
  if (metadata.name !== AGENT) return undefined;
  const users: readonly unknown[] = Array.isArray(subjects) ? subjects : [];
  const [user] = users.flatMap((one) => (isObject(one) && typeof one['name'] === 'string' ? [one['name']] : []));
  const own = clusterOfUser(user ?? '');
  return own !== undefined && metadata.namespace === namespaceOf(own) ? { kind: 'agent', cluster: own } : undefined;
}

function textOf(roleRef: unknown, subjects: unknown): string {
  return canonicalJson({ roleRef, subjects });
}

interface Wanted extends AddonPlace {
  readonly right: Right;
  readonly permission: Permission;
}

interface Parts {
  readonly call: Call;
  readonly clusterAddons: Pick<Watch<HubClusterAddon | undefined>, 'problem' | 'values'>;
  readonly onChange: () => void;
}

export class AddonRights {
  readonly #parts: Parts;
  readonly #bindings: Watch<Binding | undefined>;
  readonly #backoff = new Backoff();
  /** What could not be written, by the RoleBinding. */
  readonly #refused = new Map<string, AddonPlace & { readonly message: string }>();
  /** Which signer cannot sign for which add-on, by both. */
  readonly #unsigned = new Map<string, AddonPlace & { readonly signer: string; readonly message: string }>();
  /** Milliseconds since 1970, by the clock of the hub. */
  readonly now: () => number;

  constructor(api: KubeApi, parts: Parts) {
    this.#parts = parts;
    this.now = () => api.now().getTime();
    this.#bindings = new Watch(api, { resource: BINDINGS, look: readBinding, onChange: parts.onChange });
  }

  /** Why what is known may not be all. */
  get problem(): string | undefined {
    return this.#parts.clusterAddons.problem ?? this.#bindings.problem;
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.#bindings.run(signal);
  }

  /** Writes what is missing or different, and deletes what no template asks for any more. */
  async pass(signal: AbortSignal): Promise<{ readonly problem: string | undefined; readonly nextMs: number }> {
    const { call } = this.#parts;
    if (this.problem !== undefined) return { problem: this.problem, nextMs: Infinity };
    const all = this.#bindings.values().flatMap((one) => one ?? []);
    const agents = new Set(all.flatMap((one) => (one.kind === 'agent' ? [one.cluster] : [])));
    const present = new Map(all.flatMap((one) => (one.kind === 'addon' ? [[keyOf(one.at), one] as const] : [])));
    const wanted = new Map(this.#wanted(agents).map((one) => [keyOf(one.right.metadata), one] as const));
    const jobs: Errand[] = [];
    for (const [key, { at }] of present) {
      if (wanted.has(key)) continue;
      const run = async (): Promise<void> => {
        await deleteObject(call, BINDINGS, at);
        this.#bindings.drop(at);
      };
      jobs.push({ key, run });
    }
    for (const [key, one] of wanted) {
      if (!isBound(present.get(key), one.right)) jobs.push({ key, run: async () => this.#write(key, one) });
    }
    for (const key of this.#refused.keys()) {
      if (wanted.has(key)) continue;
      this.#refused.delete(key);
      this.#parts.onChange();
    }
    for (const [key, { signer, ...place }] of this.#unsigned)
      if (this.#certificate(place, signer) === undefined) this.#unsigned.delete(key);
    const { problem } = await eachJob(jobs, { signal, backoff: this.#backoff });
    return { problem, nextMs: this.#backoff.keep(new Set(jobs.map(({ key }) => key))) };
  }

  #wanted(agents: ReadonlySet<string>): readonly Wanted[] {
    return this.#parts.clusterAddons.values().flatMap((one) => {
      const place = one?.record && agents.has(one.record.cluster) ? registered(one.record) : undefined;
      return place === undefined ? [] : rightsOf(place);
    });
  }

  async #write(key: string, { right, permission, ...place }: Wanted): Promise<void> {
    const { call } = this.#parts;
    const { cluster, addon } = place;
    try {
      const object = { ...right.metadata, value: right };
      const result = await applyObject(call, resourceOfRight(right), object, { force: true });
      if (result.outcome !== 'applied') throw failed(place, await this.#missing(permission));
      this.#bindings.put(result.object);
      this.#refused.delete(key);
    } catch (error) {
      if (!(error instanceof CurlewError)) throw error;
      const refused =
        error instanceof Refused && error.isForbidden ? failed(place, unbindable(permission, place)) : error;
      const { message } = refused;
      const isNew = this.#refused.get(key)?.message !== message;
      this.#refused.set(key, { cluster, addon, message });
      if (isNew) this.#parts.onChange();
      throw refused;
    }
  }

  /** What a RoleBinding that was not found needs: the server answers the same without its namespace as without its role. */
  async #missing({ namespace, kind, name }: Permission): Promise<string> {
    const found = await getObject(this.#parts.call, NAMESPACES, { name: namespace });
    if (found === undefined) return `there is no namespace ${namespace}`;
    return `there is no ${kind} ${name}${kind === 'Role' ? ` in namespace ${namespace}` : ''}`;
  }

  /** Why a request for a certificate must not be approved. */
  problemOf(request: AgentRequest): string | undefined {
    const { cluster, addon: { name: addon } = { name: '' } } = request;
    const refusal = messageOf(this.#refused, { cluster, addon });
    return requestProblem(request, this.#certificates({ cluster, addon })) ?? refusal;
  }

  /** The authority that signs a request of an add-on; or why it cannot. Not for what kube-controller-manager signs. */
  async authorityOf(request: AgentRequest): Promise<Signer | { readonly problem: string }> {
    const { cluster, addon: { name: addon, signer } = { name: '', signer: '' } } = request;
    const certificate = this.#certificate({ cluster, addon }, signer);
    const { call } = this.#parts;
    const found = certificate
      ? await readAuthority(call, certificate, this.now())
      : { problem: `the template of ${addon} asks for no certificate of ${signer}` };
    // Whether the server takes its answer, too, is known once the request is signed.
    if ('problem' in found) this.#note(request, found.problem);
    return found;
  }

  /** What was said of its signer has ended. */
  signed(request: AgentRequest): void {
    this.#note(request, undefined);
  }

  /** The server refuses what the controller answers to a request. Returns what is to be said about that. */
  refused(request: AgentRequest, error: Refused): CurlewError {
    const { cluster, addon: { name: addon, signer } = { name: '', signer: '' } } = request;
    const certificate = this.#certificate({ cluster, addon }, signer);
    if (certificate?.signingCA === undefined || !error.isForbidden) return error;
    const problem = `the controller may not sign for ${signer}: ${signerRight(certificate)}`;
    this.#note(request, problem);
    return new CurlewError(error.code, problem);
  }

  #note({ cluster, addon: asked }: AgentRequest, problem: string | undefined): void {
    const { name: addon, signer } = asked ?? { name: '', signer: '' };
    const key = `${cluster}/${addon} ${signer}`;
    if (this.#unsigned.get(key)?.message === problem) return;
    if (problem === undefined) this.#unsigned.delete(key);
    else this.#unsigned.set(key, { cluster, addon, signer, message: problem });
    this.#parts.onChange();
  }

  #certificate(place: AddonPlace, signer: string): AddonCertificate | undefined {
    return this.#certificates(place)?.find((one) => one.signer === signer);
  }

  /** Undefined if the cluster is to have no such add-on. */
  #certificates({ cluster, addon }: AddonPlace): readonly AddonCertificate[] | undefined {
    const all = this.#parts.clusterAddons.values(namespaceOf(cluster));
    const places = all.flatMap((one) => (one?.record && registered(one.record)) ?? []);
    return places.find((one) => one.addon === addon)?.certificates;
  }

  /** What an add-on registers, and how far it is with that; undefined if it is to be removed, or has no template. */
  registrationOf(record: ClusterAddon): AddonRegistration | undefined {
    const place = registered(record);
    if (place === undefined) return undefined;
    const isKnown = this.problem === undefined;
    const agent = this.#bindings.get({ name: AGENT, namespace: namespaceOf(record.cluster) });
    const isLost = isKnown && place.certificates.length > 0 && agent?.kind !== 'agent';
    const refusal = isLost ? NOT_ACCEPTED : (messageOf(this.#refused, place) ?? messageOf(this.#unsigned, place));
    const isAll = rightsOf(place).every(({ right }) => isBound(this.#bindings.get(right.metadata), right));
    return { ...place, refusal, isBound: isAll && isKnown };
  }
}

/** Why an add-on never gets a certificate for its rights. */
const NOT_ACCEPTED =
  'no agent of the cluster is accepted at this hub, and only an agent gets what the template asks for';

/** All rights of a template, each as the RoleBinding that gives it. */
function rightsOf(place: Registered): readonly Wanted[] {
  const permissions = place.certificates.flatMap((certificate) => certificate.permissions);
  return permissions.map((permission) => ({ ...place, permission, right: addonBinding(place, permission) }));
}

function messageOf(
  all: ReadonlyMap<string, AddonPlace & { readonly message: string }>,
  { cluster, addon }: AddonPlace,
): string | undefined {
  return [...all.values()].find((one) => one.cluster === cluster && one.addon === addon)?.message;
}

function isBound(binding: Binding | undefined, right: Right): boolean {
  return binding?.kind === 'addon' && binding.text === textOf(right['roleRef'], right['subjects']);
}

function failed({ addon, cluster }: AddonPlace, why: string): CurlewError {
  return new CurlewError('CLUSTER_FAILED', `cannot give ${addon} on ${cluster} its rights: ${why}`);
}

function keyOf({ namespace = '', name }: { readonly namespace?: string | undefined; readonly name: string }): string {
  return `${namespace}/${name}`;
}

type Registered = NonNullable<ReturnType<typeof registrationIn>> & { readonly namespace: string | undefined };

/** By the spec, which is the same object until it changes. */
const known = new WeakMap<object, Registered | undefined>();

/** What an add-on that is to be on its cluster registers. */
function registered({ cluster, spec }: ClusterAddon): Registered | undefined {
  if (spec.action !== 'Install') return undefined;
  if (!known.has(spec)) {
    const place = registrationIn(cluster, spec);
    known.set(spec, place && { ...place, namespace: namespaceIn(spec.values, place) });
  }
  return known.get(spec);
}
