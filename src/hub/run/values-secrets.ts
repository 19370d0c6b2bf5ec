/** Values of add-ons in Secrets of the hub. */
import type { SecretValues } from '../../channel/channel.ts';
import { CurlewError } from '../../core/errors.ts';
import { Refused, type Call } from '../../kube/call.ts';
import { getObject, type LiveObject } from '../../kube/objects.ts';
import type { Resource } from '../../kube/resources.ts';
import { CONTROLLER_LEASE } from '../manifests.ts';
import type { HubAddon } from '../observe.ts';
import { valuesIn } from '../values-secret.ts';

export const SECRETS: Resource = { apiVersion: 'v1', kind: 'Secret', plural: 'secrets', namespaced: true };

type Place = NonNullable<HubAddon['valuesSecret']>;

const { namespace } = CONTROLLER_LEASE;

/** Keeps no values, and their digests for a while: there may be ten passes in a second. */
export class ValuesSecrets {
  /** After this time a pass looks again. */
  static readonly keptMs = 15_000;
  readonly #call: Call;
  readonly #now: () => number;
  readonly #kept = new Map<string, { readonly until: number; readonly found: string | CurlewError }>();

  /** `now` in milliseconds. */
  constructor(call: Call, now = (): number => performance.now()) {
    this.#call = call;
    this.#now = now;
  }

  /** An add-on whose source has the digest of its values, or a problem. What is deleted needs none. */
  async complete(one: HubAddon): Promise<HubAddon> {
    const { valuesSecret: place, addon, problem } = one;
    if (place === undefined || problem !== undefined || addon.deleting === true || !('content' in addon.source))
      return one;
    const digest = await this.#digestOf(place);
    if (digest instanceof CurlewError) return { ...one, problem: digest.message };
    const content = { ...addon.source.content, valuesSecret: { ...place, digest } };
    return { ...one, addon: { ...addon, source: { ...addon.source, content } } };
  }

  /** The values that have this digest. `CLUSTER_FAILED` if there are others now. */
  async read({ digest, ...place }: Place & { readonly digest: string }): Promise<SecretValues> {
    const found = valuesOf(await this.#get(place), place);
    this.#keep(place, found.digest);
    if (found.digest === digest) return found;
    throw new CurlewError('CLUSTER_FAILED', `${titleOf(place)} no longer has the values of this revision`);
  }

  async #digestOf(place: Place): Promise<string | CurlewError> {
    const known = this.#kept.get(keyOf(place));
    if (known !== undefined && this.#now() < known.until) return known.found;
    const secret = await this.#get(place).catch((error: unknown) => asFailure(error));
    if (!(secret instanceof CurlewError)) return this.#keep(place, digestIn(secret, place));
    // A server that is away has said nothing new.
    if (typeof known?.found === 'string') return this.#keep(place, known.found);
    const isForbidden = secret instanceof Refused && secret.isForbidden;
    const way = `: apply what curlew hub manifests --values-secret ${place.name} prints`;
    return this.#keep(place, new CurlewError(secret.code, `${secret.message}${isForbidden ? way : ''}`));
  }

  #keep<Found extends string | CurlewError>(place: Place, found: Found): Found {
    this.#kept.set(keyOf(place), { until: this.#now() + ValuesSecrets.keptMs, found });
    return found;
  }

  async #get({ name }: Place): Promise<LiveObject | undefined> {
    return getObject(this.#call, SECRETS, { namespace, name });
  }
}

function digestIn(secret: LiveObject | undefined, place: Place): string | CurlewError {
  try {
    return valuesOf(secret, place).digest;
  } catch (error) {
    return asFailure(error);
  }
}

function valuesOf(secret: LiveObject | undefined, { key = 'values.yaml', ...place }: Place): SecretValues {
  const title = titleOf(place);
  if (secret === undefined) throw new CurlewError('CLUSTER_FAILED', `there is no ${title}`);
  return valuesIn(secret, key, title);
}

function asFailure(error: unknown): CurlewError {
  if (error instanceof CurlewError) return error;
  throw error;
}

function titleOf({ name }: Place): string {
  return `Secret ${namespace}/${name}`;
}

function keyOf({ name, key = '' }: Place): string {
  return `${name}/${key}`;
}
