/** Rights of add-ons of Open Cluster Management at a hub: those that their templates ask for, as long as they are on a cluster whose agent is accepted. */
import { isObject } from '../../../core/json.ts';
import type { KubeApi } from '../../../cluster/kube/api.ts';
import { Refused, type Call } from '../../../cluster/kube/call.ts';
import { applyObject, deleteObject, type LiveObject } from '../../../cluster/kube/objects.ts';
import { Watch } from '../../../cluster/kube/watch.ts';
import { canonicalJson } from '../../../core/digest.ts';
import { CurlewError } from '../../../core/errors.ts';
import { Backoff } from '../../../platform/limit/backoff.ts';
import { addonBinding, BINDING_PREFIX, requestProblem, unbindable } from '../addon-rights.ts';
import { registrationIn, type AddonPlace } from '../content.ts';
import { AGENT, clusterOfUser } from '../identity.ts';
import { namespaceOf, objectVersion, type HubClusterAddon, type Version } from '../observe.ts';
import { ADDON_LABEL, type AgentRequest } from '../requests.ts';
import { resourceOfRight, type Right } from '../rights.ts';
import type { AddonCertificate, Permission } from '../../upstream/registration.ts';
import { NAME_LABEL } from '../../upstream/kinds.ts';
import { BINDINGS } from './accepted-agents.ts';
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

  constructor(api: KubeApi, parts: Parts) {
    this.#parts = parts;
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
      if (present.get(key)?.text !== textOf(one.right['roleRef'], one.right['subjects']))
        jobs.push({ key, run: async () => this.#write(key, one) });
    }
    for (const key of this.#refused.keys()) if (!wanted.has(key)) this.#refused.delete(key);
    const { problem } = await eachJob(jobs, { signal, backoff: this.#backoff });
    return { problem, nextMs: this.#backoff.keep(new Set(jobs.map(({ key }) => key))) };
  }

  #wanted(agents: ReadonlySet<string>): readonly Wanted[] {
    return this.#parts.clusterAddons.values().flatMap((one) => {
      const place = one && agents.has(one.record?.cluster ?? '') ? registered(one) : undefined;
      if (place === undefined) return [];
      const permissions = place.certificates.flatMap((certificate) => certificate.permissions);
      return permissions.map((permission) => ({ ...place, permission, right: addonBinding(place, permission) }));
    });
  }

  async #write(key: string, { right, permission, ...place }: Wanted): Promise<void> {
    const { call } = this.#parts;
    const { cluster, addon } = place;
    try {
      const object = { ...right.metadata, value: right };
      const result = await applyObject(call, resourceOfRight(right), object, { force: true });
      if (result.outcome !== 'applied') throw failed(place, `there is no namespace ${permission.namespace}`);
      this.#bindings.put(result.object);
      this.#refused.delete(key);
    } catch (error) {
      if (!(error instanceof CurlewError)) throw error;
      const refused =
        error instanceof Refused && error.isForbidden ? failed(place, unbindable(permission, place)) : error;
      this.#refused.set(key, { cluster, addon, message: refused.message });
      throw refused;
    }
  }

  /** Why a request for a certificate must not be approved. */
  problemOf(request: AgentRequest): string | undefined {
    const { cluster, addon: { name: addon } = { name: '' } } = request;
    return requestProblem(request, this.#certificates({ cluster, addon })) ?? this.refusalOf({ cluster, addon });
  }

  /** Why an add-on has not all rights that its template asks for. */
  refusalOf({ cluster, addon }: AddonPlace): string | undefined {
    return [...this.#refused.values()].find((one) => one.cluster === cluster && one.addon === addon)?.message;
  }

  /** Undefined if the cluster is to have no such add-on. */
  #certificates({ cluster, addon }: AddonPlace): readonly AddonCertificate[] | undefined {
    const all = this.#parts.clusterAddons.values(namespaceOf(cluster));
    return all.flatMap((one) => (one && registered(one)) ?? []).find((one) => one.addon === addon)?.certificates;
  }
}

function failed({ addon, cluster }: AddonPlace, why: string): CurlewError {
  return new CurlewError('CLUSTER_FAILED', `cannot give ${addon} on ${cluster} its rights: ${why}`);
}

function keyOf({ namespace = '', name }: { readonly namespace?: string | undefined; readonly name: string }): string {
  return `${namespace}/${name}`;
}

/** By the spec, which is the same object until it changes. */
const known = new WeakMap<object, ReturnType<typeof registrationIn>>();

/** What an add-on that is to be on its cluster registers. */
function registered({ record }: HubClusterAddon): ReturnType<typeof registrationIn> {
  if (record?.spec.action !== 'Install') return undefined;
  if (!known.has(record.spec)) known.set(record.spec, registrationIn(record.cluster, record.spec));
  return known.get(record.spec);
}
