/** What an add-on is on one cluster: its source, and values from all layers. Pure. */
import { choose } from '../../cluster/channel/choose.ts';
import { formatRange, parseTriple } from '../../cluster/channel/range.ts';
import { isObject } from '../../core/json.ts';
import { compareVersions } from '../../core/ref.ts';
import { TemplateProblem } from '../../formats/go-template/lex.ts';
import { renderText } from '../../formats/go-template/render.ts';
import type { ValueMap } from '../../formats/go-template/values.ts';
import { readYaml } from '../../formats/yaml/yaml.ts';
import type { Alternative, Cluster, ClusterAddon, AddonContent, FleetAddon, Values } from './fleet.ts';
import { selects } from './groups.ts';
import { specHash } from './spec-hash.ts';

/** Contents of single clusters that were made before. If a caller keeps it, a step renders only what has changed since the last one. */
export class Memo {
  readonly contents = new Map<string, { readonly inputs: string; readonly made: AddonContent | string }>();
  readonly #keys = new WeakMap<Cluster, string>();

  /** Hash of what can change a template's result. Facts are seen, and do not. */
  keyOf(cluster: Cluster): string {
    const { labels, kubernetes, networks, server, object, roots } = cluster;
    const key = this.#keys.get(cluster) ?? specHash({ labels, kubernetes, networks, server, object, roots });
    this.#keys.set(cluster, key);
    return key;
  }
}

type Source = Pick<AddonContent, 'source' | 'version'> & Partial<Pick<Alternative, 'identity' | 'namespace'>>;

/** What can be replaced only by what has the same: two packages of one add-on have one identity, and are not each other's versions. */
function kindOf({ package: packed }: Values, identity: string): string {
  return isObject(packed) ? `package ${String(packed['name'])}` : identity;
}

/**
 * Hash of what people wrote about source and configuration: of the entries of a channel, what they mean. It is stored, and another one
 * begins a rollout: a range counts as the text that it means, whatever a parser makes of it.
 */
export function revisionOf({ source, config, valuesTemplate, identity }: FleetAddon): string {
  const entries =
    'channel' in source &&
    source.channel
      // The order of entries counts only among those of one version.
      .toSorted((a, b) => compareVersions(a.version ?? '', b.version ?? ''))
      .map((one) => {
        const { name, version, id, hash, range, kubernetesVersion } = one;
        const fitting = range === undefined ? kubernetesVersion : formatRange(range);
        return { name, version, id, hash, fitting, from: 'content' in one ? one.content : one.source };
      });
  return specHash({ source: entries || source, config, valuesTemplate, identity });
}

/** Contents of one add-on, for all clusters. */
export class Contents {
  /** The answer of {@link revisionOf}. */
  readonly revision: string;
  readonly #addon: FleetAddon;
  readonly #memo: Memo;
  readonly #sources = new Map<string, Source | undefined>();
  /** All entries of its channel in a hub have one of these kinds. */
  readonly #kinds: ReadonlySet<string>;
  /** What all clusters have that match the same groups, and the same entry of a channel. */
  readonly #shared = new Map<string, AddonContent | string>();

  constructor(addon: FleetAddon, memo: Memo) {
    this.#addon = addon;
    this.#memo = memo;
    this.revision = revisionOf(addon);
    const entries = alternativesOf(addon);
    this.#kinds = new Set(entries.map(({ content, identity }) => kindOf(content, identity ?? addon.identity)));
  }

  /** Undefined if no entry of the channel fits a cluster's Kubernetes. */
  sourceOf({ kubernetes }: Pick<Cluster, 'kubernetes'>): Source | undefined {
    const { source } = this.#addon;
    const key = 'content' in source ? '' : kubernetes;
    if (!this.#sources.has(key)) this.#sources.set(key, sourceFor(source, kubernetes));
    return this.#sources.get(key);
  }

  /** The identity on a cluster: what is there keeps its own while it cannot be replaced. */
  identityOn(cluster: Cluster, record: ClusterAddon | undefined): string {
    if (this.#kinds.size < 2) return this.#addon.identity;
    if (record !== undefined && this.crossing(cluster, record) !== undefined) return record.spec.identity;
    return this.sourceOf(cluster)?.identity ?? record?.spec.identity ?? this.#addon.identity;
  }

  /** Why what is there cannot be replaced by the entry that fits: a channel may have another kind of content for each Kubernetes. */
  crossing(cluster: Cluster, record: ClusterAddon | undefined): string | undefined {
    if (this.#kinds.size < 2 || record?.spec.action !== 'Install') return undefined;
    const { source, version = '', identity = this.#addon.identity } = this.sourceOf(cluster) ?? record.spec;
    const [own, next] = [kindOf(record.spec.source, record.spec.identity), kindOf(source, identity)];
    if (own === next || !this.#kinds.has(own)) return undefined;
    return `${version} for Kubernetes ${cluster.kubernetes} is ${next}, which cannot replace ${own}: make two add-ons of them`;
  }

  /** A text says why there is no content. The record of an installation has the cluster's own configuration. */
  contentOf(cluster: Cluster, record: ClusterAddon | undefined): AddonContent | string {
    const { name, config, source, valuesTemplate, sourceOn } = this.#addon;
    const own = record?.config;
    let matches = '';
    if (config?.groups)
      for (const { selector } of config.groups) matches += selects(selector, cluster.labels) ? '1' : '0';
    if ((valuesTemplate ?? own ?? sourceOn) === undefined) {
      const key = 'content' in source ? matches : `${matches} ${cluster.kubernetes}`;
      const made = this.#shared.get(key) ?? this.#make(cluster, matches);
      this.#shared.set(key, made);
      return made;
    }
    const key = `${name}/${cluster.name}`;
    const inputs = specHash({ revision: this.revision, cluster: this.#memo.keyOf(cluster), matches, own });
    if (record?.spec.inputs === inputs) return record.spec;
    const known = this.#memo.contents.get(key);
    if (known?.inputs === inputs) return known.made;
    const content = this.#make(cluster, matches, own);
    const made = typeof content === 'string' ? content : { ...content, inputs };
    this.#memo.contents.set(key, { inputs, made });
    return made;
  }

  /**
   * Why there is no content on a cluster of which no more is known than what its file says; undefined also if that depends on what the
   * cluster answers. `more`: what is not known either, such as facts that its agent reports.
   */
  problemUnasked(cluster: Cluster, ...more: readonly 'facts'[]): string | undefined {
    const chosen = this.sourceOf(cluster);
    if (chosen === undefined) return cluster.kubernetes === '' ? undefined : unfit(cluster);
    try {
      const rendered = this.#render(cluster, chosen, unasked(cluster, more));
      return typeof rendered === 'string' ? rendered : undefined;
    } catch (error) {
      if (error instanceof Unasked) return undefined;
      throw error;
    }
  }

  /** There is no content, whatever the site reports: its facts are its own. */
  neverHas(cluster: Cluster, record: ClusterAddon | undefined): boolean {
    const isMissing = typeof this.contentOf(cluster, record) === 'string';
    return isMissing && this.problemUnasked({ ...cluster, kubernetes: '' }, 'facts') !== undefined;
  }

  #make(cluster: Cluster, matches: string, own: Values = {}): AddonContent | string {
    const { default: base = {}, groups = [] } = this.#addon.config ?? {};
    const chosen = this.sourceOf(cluster);
    if (chosen === undefined) return unfit(cluster);
    const more = this.#addon.sourceOn?.(cluster.name);
    if (typeof more === 'string') return more;
    const rendered = this.#render(cluster, chosen);
    if (typeof rendered === 'string') return rendered;
    const layers = groups.filter((_, at) => matches[at] === '1').map((group) => group.values);
    const values = mergeValues([base, ...layers, rendered, own]);
    const refusal = this.#addon.refuses?.(values);
    if (refusal !== undefined) return refusal;
    const { version } = chosen;
    const source = more === undefined ? chosen.source : { ...chosen.source, ...more };
    return { source, ...(version !== undefined && { version }), values, specHash: specHash({ source, values }) };
  }

  /** The values of the template, or why there are none. */
  #render(
    cluster: Cluster,
    { version = '', namespace = this.#addon.namespace ?? '' }: Source,
    seen = seenOf(cluster),
  ): Values | string {
    const { name, valuesTemplate = '', compat } = this.#addon;
    try {
      const data = { ...cluster.roots, Cluster: seen, Addon: { name, namespace, version } } as ValueMap;
      const text = renderText(valuesTemplate, data, { strict: compat === 'caaph' ? 'cased' : 'nested' });
      const { value, diagnostics } = readYaml(name, text, { kubernetes: () => true });
      if (isObject(value)) return value;
      if (text.trim() === '') return {};
      return unrendered(diagnostics[0]?.message ?? 'the result is not a map');
    } catch (error) {
      if (error instanceof Unasked) throw error;
      // Whatever a template leads to concerns only its cluster.
      const { message, hint } = error instanceof TemplateProblem ? error : { message: String(error), hint: undefined };
      return unrendered(hint === undefined ? message : `${message}: ${hint}`);
    }
  }
}

function unrendered(why: string): string {
  return `cannot render the values: ${why}`;
}

function unfit({ kubernetes }: Cluster): string {
  return `no entry of the channel fits Kubernetes ${kubernetes}`;
}

/** What templates see of a cluster. */
function seenOf(cluster: Cluster): Values {
  const [major, minor] = parseTriple(cluster.kubernetes) ?? [];
  const { name, labels, networks = {}, facts = {}, server = '' } = cluster;
  const kubernetes = { version: cluster.kubernetes, major, minor };
  return { name, labels, kubernetes, networks, facts, server, ...cluster.object };
}

/** A template uses what is only in the answer of a cluster. */
class Unasked extends Error {}

/** What templates see of a cluster that has not been asked: to use what it would answer throws {@link Unasked}. */
function unasked(cluster: Cluster, more: readonly string[]): Values {
  const hide = (object: Values, ...names: readonly string[]): Values => {
    const get = (): never => {
      throw new Unasked();
    };
    return Object.defineProperties(
      { ...object },
      Object.fromEntries(names.map((one) => [one, { get, enumerable: true }])),
    );
  };
  const kubernetes = cluster.kubernetes === '' && { kubernetes: hide({}, 'version', 'major', 'minor') };
  return hide({ ...seenOf(cluster), ...kubernetes, facts: hide({}, 'version') }, 'server', ...more);
}

/** The entries of its channel, if it is in a hub. */
export function alternativesOf({ source }: FleetAddon): readonly Alternative[] {
  return 'content' in source ? [] : source.channel.filter((one) => 'content' in one);
}

function sourceFor(from: FleetAddon['source'], kubernetes: string): Source | undefined {
  if ('content' in from) return { ...from, source: from.content };
  const triple = parseTriple(kubernetes);
  const chosen = triple && choose(from.channel, triple, 'native').get(from.addon);
  if (chosen === undefined) return undefined;
  const { version, id, hash } = chosen;
  const known = { ...(version !== undefined && { version }) };
  if ('content' in chosen) {
    const { content, identity, namespace } = chosen;
    const place = { ...(identity !== undefined && { identity }), ...(namespace !== undefined && { namespace }) };
    return { source: content, ...known, ...place };
  }
  return chosen.source && { source: { ...chosen.source, version, id, hash }, ...known };
}

/** Maps are merged, other values replace those of the layers before. A null is a value: by it, helm deletes a default of the chart. */
export function mergeValues(layers: readonly Values[]): Values {
  const merged = new Map<string, unknown>();
  for (const [key, value] of layers.flatMap((layer) => Object.entries(layer))) {
    const before = merged.get(key);
    merged.set(key, isObject(value) ? mergeValues([isObject(before) ? before : {}, value]) : value);
  }
  return Object.fromEntries(merged);
}
