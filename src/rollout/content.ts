/** What an add-on is on one cluster: its source, and values from all layers. Pure. */
import { choose } from '../channel/choose.ts';
import { parseTriple } from '../channel/range.ts';
import { isObject } from '../core/json.ts';
import { renderText } from '../formats/go-template/render.ts';
import type { ValueMap } from '../formats/go-template/values.ts';
import { readYaml } from '../formats/yaml/yaml.ts';
import { mergeValues, type Values } from './configs.ts';
import type { Cluster, Content, FleetAddon } from './fleet.ts';
import { selects } from './groups.ts';
import { specHash } from './spec-hash.ts';

/** Contents of single clusters that were made before. If a caller keeps it, a step renders only what has changed since the last one. */
export class Memo {
  readonly contents = new Map<string, { readonly inputs: string; readonly made: Content | string }>();
  readonly #keys = new WeakMap<Cluster, string>();

  /** Hash of what can change a template's result. Facts are seen, and do not. */
  keyOf(cluster: Cluster): string {
    const { labels, kubernetes, networks, server, object } = cluster;
    const key = this.#keys.get(cluster) ?? specHash({ labels, kubernetes, networks, server, object });
    this.#keys.set(cluster, key);
    return key;
  }
}

/** Contents of one add-on, for all clusters. */
export class Contents {
  /** Hash of what people wrote about source and configuration. */
  readonly revision: string;
  readonly #addon: FleetAddon;
  readonly #memo: Memo;
  readonly #sources = new Map<string, { readonly source: Values; readonly version?: string } | undefined>();
  /** What all clusters have that match the same groups, and the same entry of a channel. */
  readonly #shared = new Map<string, Content | string>();

  constructor(addon: FleetAddon, memo: Memo) {
    this.#addon = addon;
    this.#memo = memo;
    const { source, config, valuesTemplate, identity } = addon;
    const entries =
      'channel' in source &&
      source.channel.map(({ name, version, id, hash, kubernetesVersion, source: from }) => {
        return { name, version, id, hash, kubernetesVersion, from };
      });
    this.revision = specHash({ source: entries || source, config, valuesTemplate, identity });
  }

  /** Undefined if no entry of the channel fits a cluster's Kubernetes. */
  sourceOf({
    kubernetes,
  }: Pick<Cluster, 'kubernetes'>): { readonly source: Values; readonly version?: string } | undefined {
    const { source: from } = this.#addon;
    if ('content' in from) return { ...from, source: from.content };
    if (!this.#sources.has(kubernetes)) {
      const triple = parseTriple(kubernetes);
      const { source, version, id, hash } = (triple && choose(from.channel, triple, 'native').get(from.addon)) ?? {};
      const found = source && { source: { ...source, version, id, hash }, ...(version !== undefined && { version }) };
      this.#sources.set(kubernetes, found);
    }
    return this.#sources.get(kubernetes);
  }

  /** `own`: the cluster's own configuration. A text says why there is no content. */
  contentOf(cluster: Cluster, own: Values | undefined): Content | string {
    const { name, config, source, valuesTemplate } = this.#addon;
    let matches = '';
    if (config?.groups)
      for (const { selector } of config.groups) matches += selects(selector, cluster.labels) ? '1' : '0';
    if (valuesTemplate === undefined && own === undefined) {
      const key = 'content' in source ? matches : `${matches} ${cluster.kubernetes}`;
      const made = this.#shared.get(key) ?? this.#make(cluster, matches, own);
      this.#shared.set(key, made);
      return made;
    }
    const inputs = `${this.revision} ${this.#memo.keyOf(cluster)} ${matches} ${own ? specHash({ own }) : ''}`;
    const key = `${name}/${cluster.name}`;
    const known = this.#memo.contents.get(key);
    if (known?.inputs === inputs) return known.made;
    const made = this.#make(cluster, matches, own);
    this.#memo.contents.set(key, { inputs, made });
    return made;
  }

  #make(cluster: Cluster, matches: string, own: Values = {}): Content | string {
    const { default: base = {}, groups = [] } = this.#addon.config ?? {};
    const found = this.sourceOf(cluster);
    if (found === undefined) return `no entry of the channel fits Kubernetes ${cluster.kubernetes}`;
    const rendered = this.#render(cluster, found.version);
    if (typeof rendered === 'string') return `cannot render the values: ${rendered}`;
    const layers = groups.filter((_, at) => matches[at] === '1').map((group) => group.values);
    const values = mergeValues([base, ...layers, rendered, own]);
    const { source, version } = found;
    return { source, ...(version !== undefined && { version }), values, specHash: specHash({ source, values }) };
  }

  /** The values of the template, or why there are none. */
  #render(cluster: Cluster, version = ''): Values | string {
    const { name, namespace = '', valuesTemplate = '' } = this.#addon;
    const [major, minor] = parseTriple(cluster.kubernetes) ?? [];
    const { labels, networks = {}, facts = {}, server = '' } = cluster;
    const kubernetes = { version: cluster.kubernetes, major, minor };
    const seen = cluster.object ?? { name: cluster.name, labels, kubernetes, networks, facts, server };
    try {
      const data = { Cluster: seen, Addon: { name, namespace, version } } as ValueMap;
      const text = renderText(valuesTemplate, data, { strict: 'nested' });
      const { value, diagnostics } = readYaml(name, text, { kubernetes: () => true });
      if (isObject(value)) return value;
      return text.trim() === '' ? {} : (diagnostics[0]?.message ?? 'the result is not a map');
    } catch (error) {
      // Whatever a template leads to concerns only its cluster.
      return error instanceof Error ? error.message : String(error);
    }
  }
}
