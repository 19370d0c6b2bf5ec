/** Values of add-ons in Secrets and ConfigMaps of the hub. */
import type { ChartAccess } from '../../../cluster/channel/channel.ts';
import { digestOf } from '../../../core/digest.ts';
import { CurlewError } from '../../../core/errors.ts';
import { CLUSTERS_AT_ONCE } from '../../run/clusters.ts';
import { Refused, type Call } from '../../../cluster/kube/call.ts';
import { CONFIG_MAPS, SECRETS } from '../../../cluster/kube/core-kinds.ts';
import { titleOf } from '../../../cluster/kube/objects.ts';
import { mapLimited } from '../../../platform/limit/each.ts';
import { CONTROLLER_LEASE, wayToRight } from '../manifests.ts';
import type { HubAddon } from '../observe.ts';
import { mergeValues } from '../../rollout/content.ts';
import type { FleetAddon, Values } from '../../rollout/fleet.ts';
import { VALUES_FIELDS } from '../../schema.ts';
import type { ValuesPlace } from '../content-source.ts';
import { noText } from '../push.ts';
import { keyOn, valuesDigest, valuesIn, type ValuesDigest } from '../values-object.ts';
import { getSecret, type Reader } from './secrets.ts';

/** What is known of an object, or why it has no values. */
type Found = ValuesDigest | CurlewError;
interface Check {
  until: number;
  readonly found: Found;
  /** The version of the object that was read. */
  readonly version: string;
}

const { namespace } = CONTROLLER_LEASE;
const RESOURCES = { ConfigMap: CONFIG_MAPS, Secret: SECRETS } as const;
const OPTIONS = { ConfigMap: '--values-config-map', Secret: '--values-secret' } as const;

/** Keeps no values, and their digests for a while: there may be ten passes in a second. */
export class ValuesObjects {
  /** After this time a pass looks again. */
  static readonly keptMs = 15_000;
  readonly #call: Call;
  readonly #now: () => number;
  readonly #checks = new Map<string, Check>();

  /** Since when the server refuses to return an object, although it may be read. */
  readonly #refused = new Map<string, number>();

  /** `now` in milliseconds. */
  constructor(call: Call, now = (): number => performance.now()) {
    this.#call = call;
    this.#now = now;
  }

  /**
   * With the digests of their values in their sources, or with a problem. What is deleted needs none. Rejects while an object that was
   * never read cannot be: which content its add-on has is not known then.
   */
  async complete(all: readonly HubAddon[], signal: AbortSignal): Promise<readonly HubAddon[]> {
    const places = new Map(all.flatMap(placesOf).map((place) => [keyOf(place), place]));
    for (const kept of [this.#refused, this.#checks])
      for (const key of kept.keys()) if (!places.has(key)) kept.delete(key);
    const work = async ([key, place]: readonly [string, ValuesPlace]) => [key, await this.#look(place)] as const;
    const found = new Map(await mapLimited([...places], work, { width: CLUSTERS_AT_ONCE, signal }));
    return all.map((one) => withDigests(one, found));
  }

  /** The values that have these digests; undefined for no place. `CLUSTER_FAILED` if there are others now. */
  async read(places: readonly (ValuesPlace & { readonly digest: string })[]): Promise<ChartAccess['values']> {
    const layers: Values[] = [];
    for (const { digest, ...place } of places) {
      const read = await this.#get(place);
      const { values, ...own } = read((object, title) => ({ title, ...valuesIn(object, place.key, title) }));
      if (own.digest !== digest) {
        // The next pass is to know of it.
        for (const [key, check] of this.#checks) if (key.startsWith(`${place.kind} ${place.name}/`)) check.until = 0;
        throw new CurlewError('CLUSTER_FAILED', `${own.title} no longer has the values of this revision`);
      }
      layers.push(values);
    }
    const [first, ...others] = places;
    if (first === undefined) return undefined;
    const digest = others.length === 0 ? first.digest : digestOf(places.map((one) => one.digest).join(' '));
    // What a ConfigMap has may be seen.
    const hidden = mergeValues(layers.filter((_, at) => places[at]?.kind === 'Secret'));
    return { digest, values: mergeValues(layers), hidden };
  }

  async #look(place: ValuesPlace): Promise<Found> {
    const key = keyOf(place);
    const known = this.#checks.get(key);
    if (known !== undefined && this.#now() < known.until) return known.found;
    try {
      const read = await this.#get(place);
      return this.#keep(place, ...foundBy(read, place, known));
    } catch (error) {
      // A server that is away has said nothing new.
      if (known !== undefined && !(known.found instanceof CurlewError) && error instanceof CurlewError)
        return this.#keep(place, known.found, known.version);
      if (!(error instanceof Refused)) throw error;
      if (error.isForbidden) {
        this.#refused.delete(key);
        const way = wayToRight(`${OPTIONS[place.kind]} ${place.name}`);
        return this.#keep(place, new CurlewError(error.code, `${error.message}: ${way}`));
      }
      const since = this.#refused.get(key) ?? this.#now();
      this.#refused.set(key, since);
      // A server that starts may refuse for a moment. Later, the object is at fault, and only its add-on waits.
      if (this.#now() - since < ValuesObjects.keptMs) throw error;
      return this.#keep(place, error);
    }
  }

  #keep(place: ValuesPlace, found: Found, version = ''): Found {
    this.#checks.set(keyOf(place), { until: this.#now() + ValuesObjects.keptMs, found, version });
    return found;
  }

  async #get(place: ValuesPlace): Promise<Reader> {
    const read = await getSecret(this.#call, { namespace, name: place.name }, RESOURCES[place.kind]);
    this.#refused.delete(keyOf(place));
    return read;
  }
}

/** What an object has, and its version: one that has not changed is not read again. */
function foundBy(read: Reader, place: ValuesPlace, known: Check | undefined): readonly [Found, string] {
  try {
    return read((object, title) => {
      const { uid, resourceVersion } = object.metadata;
      const version = `${uid} ${resourceVersion}`;
      return [version === known?.version ? known.found : valuesDigest(object, place, title), version] as const;
    });
  } catch (error) {
    if (error instanceof CurlewError) return [error, ''];
    throw error;
  }
}

/** Where the values of an add-on are. */
function placesOf({ valuesFrom, addon, problem }: HubAddon): readonly ValuesPlace[] {
  return problem === undefined && addon.deleting !== true ? valuesFrom : [];
}

function withDigests(one: HubAddon, found: ReadonlyMap<string, Found>): HubAddon {
  const all = placesOf(one).map((place) => [place, found.get(keyOf(place))] as const);
  const known = all.flatMap(([place, its]) =>
    its === undefined || its instanceof CurlewError ? [] : [{ place, ...its }],
  );
  const [problem] = all.flatMap(([, its]) => (its instanceof CurlewError ? [its.message] : []));
  if (problem !== undefined) return { ...one, problem };
  if (known.length === 0) return one;
  const digests = Object.fromEntries(
    known.map(({ place: { kind, name, key }, digest }) => [
      VALUES_FIELDS[kind],
      { name, ...(key !== undefined && { key }), digest },
    ]),
  );
  const own = <Whole extends { readonly content: Values }>(whole: Whole): Whole => {
    return { ...whole, content: { ...whole.content, ...digests } };
  };
  const { addon } = one;
  const { source } = addon;
  const complete =
    'content' in source
      ? own(source)
      : { ...source, channel: source.channel.map((entry) => ('content' in entry ? own(entry) : entry)) };
  const differ = known.filter(({ byCluster }) => byCluster !== undefined);
  return {
    ...one,
    addon: { ...addon, source: complete, ...(differ.length > 0 && { sourceOn: (cluster) => ownOf(cluster, differ) }) },
  };
}

/** What the source of one cluster has instead of what says where all clusters have theirs. */
function ownOf(
  cluster: string,
  known: readonly (ValuesDigest & { readonly place: ValuesPlace })[],
): ReturnType<NonNullable<FleetAddon['sourceOn']>> {
  const sources: Record<string, Values> = {};
  for (const { place, byCluster } of known) {
    const { kind, name } = place;
    const key = keyOn(cluster, place.key);
    const digest = byCluster?.get(cluster);
    if (digest === undefined) return noText(key, titleOf(RESOURCES[kind], { namespace, name }));
    if (digest instanceof CurlewError) return digest.message;
    sources[VALUES_FIELDS[kind]] = { name, key, digest };
  }
  return sources;
}

function keyOf({ kind, name, key = '', perCluster = false }: ValuesPlace): string {
  return `${kind} ${name}/${key}${perCluster ? ' per cluster' : ''}`;
}
