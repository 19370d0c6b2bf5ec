/** Values of add-ons in Secrets of the hub. */
import type { SecretValues } from '../../../cluster/channel/channel.ts';
import { CurlewError } from '../../../core/errors.ts';
import { CLUSTERS_AT_ONCE } from '../../run/clusters.ts';
import { Refused, type Call } from '../../../cluster/kube/call.ts';
import { mapLimited } from '../../../platform/limit/each.ts';
import { CONTROLLER_LEASE } from '../manifests.ts';
import type { HubAddon } from '../observe.ts';
import type { Values } from '../../rollout/fleet.ts';
import { valuesIn } from '../values-secret.ts';
import { getSecret, titleOfSecret } from './secrets.ts';

type Place = NonNullable<HubAddon['valuesSecret']>;
/** A digest, or why the Secret has no values. */
type Digest = string | CurlewError;

const { namespace } = CONTROLLER_LEASE;

/** Keeps no values, and their digests for a while: there may be ten passes in a second. */
export class ValuesSecrets {
  /** After this time a pass looks again. */
  static readonly keptMs = 15_000;
  readonly #call: Call;
  readonly #now: () => number;
  readonly #checks = new Map<string, { readonly until: number; readonly digest: Digest }>();

  /** Since when the server refuses to return a Secret, although it may be read. */
  readonly #refused = new Map<string, number>();

  /** `now` in milliseconds. */
  constructor(call: Call, now = (): number => performance.now()) {
    this.#call = call;
    this.#now = now;
  }

  /**
   * With the digests of their values in their sources, or with a problem. What is deleted needs none. Rejects while a Secret that was
   * never read cannot be: which content its add-on has is not known then.
   */
  async complete(all: readonly HubAddon[], signal: AbortSignal): Promise<readonly HubAddon[]> {
    const places = new Map(all.flatMap((one) => placeOf(one) ?? []).map((place) => [keyOf(place), place]));
    for (const key of this.#refused.keys()) if (!places.has(key)) this.#refused.delete(key);
    const work = async ([key, place]: readonly [string, Place]) => [key, await this.#digestOf(place)] as const;
    const digests = new Map(await mapLimited([...places], work, { width: CLUSTERS_AT_ONCE, signal }));
    return all.map((one) => withDigest(one, digests));
  }

  /** The values that have this digest. `CLUSTER_FAILED` if there are others now. */
  async read({ digest, ...place }: Place & { readonly digest: string }): Promise<SecretValues> {
    const answer = await this.#valuesOf(place);
    const values = answer();
    this.#keep(place, values.digest);
    if (values.digest === digest) return values;
    const title = titleOfSecret({ namespace, name: place.name });
    throw new CurlewError('CLUSTER_FAILED', `${title} no longer has the values of this revision`);
  }

  async #digestOf(place: Place): Promise<Digest> {
    const known = this.#checks.get(keyOf(place));
    if (known !== undefined && this.#now() < known.until) return known.digest;
    try {
      const answer = await this.#valuesOf(place);
      return this.#keep(place, digestIn(answer));
    } catch (error) {
      // A server that is away has said nothing new.
      if (typeof known?.digest === 'string' && error instanceof CurlewError) return this.#keep(place, known.digest);
      if (!(error instanceof Refused)) throw error;
      const way = `: apply what curlew hub manifests --values-secret ${place.name} prints`;
      if (error.isForbidden) {
        this.#refused.delete(keyOf(place));
        return this.#keep(place, new CurlewError(error.code, `${error.message}${way}`));
      }
      const since = this.#refused.get(keyOf(place)) ?? this.#now();
      this.#refused.set(keyOf(place), since);
      // A server that starts may refuse for a moment. Later, the Secret is at fault, and only its add-on waits.
      if (this.#now() - since < ValuesSecrets.keptMs) throw error;
      return this.#keep(place, error);
    }
  }

  #keep(place: Place, digest: Digest): Digest {
    this.#checks.set(keyOf(place), { until: this.#now() + ValuesSecrets.keptMs, digest });
    return digest;
  }

  async #valuesOf(place: Place): Promise<() => SecretValues> {
    const { name, key = 'values.yaml' } = place;
    const read = await getSecret(this.#call, { namespace, name });
    this.#refused.delete(keyOf(place));
    return () => read((secret, title) => valuesIn(secret, key, title));
  }
}

/** Where the values of an add-on are; undefined if it needs none. */
function placeOf({ valuesSecret, addon, problem }: HubAddon): Place | undefined {
  return problem === undefined && addon.deleting !== true ? valuesSecret : undefined;
}

function withDigest(one: HubAddon, digests: ReadonlyMap<string, Digest>): HubAddon {
  const place = placeOf(one);
  const digest = place && digests.get(keyOf(place));
  if (place === undefined || digest === undefined) return one;
  if (digest instanceof CurlewError) return { ...one, problem: digest.message };
  const own = <Whole extends { readonly content: Values }>(whole: Whole): Whole => {
    return { ...whole, content: { ...whole.content, valuesSecret: { ...place, digest } } };
  };
  const { addon } = one;
  const { source } = addon;
  const complete =
    'content' in source
      ? own(source)
      : { ...source, channel: source.channel.map((entry) => ('content' in entry ? own(entry) : entry)) };
  return { ...one, addon: { ...addon, source: complete } };
}

function digestIn(read: () => SecretValues): Digest {
  try {
    return read().digest;
  } catch (error) {
    if (error instanceof CurlewError) return error;
    throw error;
  }
}

function keyOf({ name, key = '' }: Place): string {
  return `${name}/${key}`;
}
