/** Test vectors of the Helm add-on provider of Cluster API; conformance.ts has the rest, and exports these. */
import { releaseAction, removalAction } from '../cluster/channel/helm-release.ts';
import { canonicalJson } from '../core/digest.ts';
import { joinCapi, readCapiCluster } from '../fleet/hub/capi.ts';
import { proxyStatus, readProxy } from '../fleet/hub/helm-proxies.ts';
import { namespaceOf, readFleetAddon, readHubCluster, type HubAddon, type Live } from '../fleet/hub/observe.ts';
import type { Cluster, ClusterAddon, ClusterAddonSpec, Observed } from '../fleet/rollout/fleet.ts';
import type { Rules } from '../fleet/rollout/limits.ts';
import { step } from '../fleet/rollout/step.ts';
import { begins, type Target } from '../fleet/rollout/target.ts';
import { COMPAT } from '../fleet/upstream/document.ts';
import { isChartUrl } from '../fleet/upstream/helm-chart-proxy.ts';
import { readYaml } from '../formats/yaml/yaml.ts';

/** May a chart come from this address? */
export function urlOk({ url }: { readonly url: string }): boolean {
  return isChartUrl(url);
}

interface VectorSpec {
  readonly chartName: string;
  readonly repoURL: string;
  readonly namespace?: string;
  readonly releaseName?: string;
  readonly version?: string;
  readonly reconcileStrategy?: string;
  readonly paused?: boolean;
}

interface VectorCluster {
  readonly name: string;
  readonly selected: boolean;
  readonly values?: string;
  readonly paused?: boolean;
  readonly deleting?: boolean;
}

/** A HelmReleaseProxy: what was wanted when it was written. */
interface VectorRelease extends VectorSpec {
  readonly cluster: string;
  readonly values?: string;
  readonly generated: boolean;
  readonly installed?: boolean;
}

const TIME = '2026-01-01T00:00:00Z';
const NOW = Date.parse(TIME) / 1000;
const VERSION = { uid: '', resourceVersion: '', generation: 1, finalizers: [], labels: {}, annotations: {} };
/** Removals are let pass: how many may begin at once is a rule of curlew alone. */
const APPROVED = { 'fleet.curlew.dev/approve': JSON.stringify({ generation: 1, at: TIME, removals: 1e6 }) };
/** Each cluster has its values as one text, and `!error` as what cannot be rendered. */
const TEMPLATE = `{{ $values := default "" .Cluster.metadata.annotations.values }}
{{- if eq $values "!error" }}{{ fail $values }}{{ end }}values: {{ $values | quote }}`;

function proxyOf({ paused = false, version, ...spec }: VectorSpec, compat: Rules): Live {
  const annotations = { [COMPAT]: compat, ...(paused && { 'cluster.x-k8s.io/paused': 'true' }) };
  return {
    apiVersion: 'addons.cluster.x-k8s.io/v1alpha1',
    kind: 'HelmChartProxy',
    metadata: { ...VERSION, name: 'proxy', namespace: 'default', annotations },
    spec: {
      ...spec,
      // A chart has a version of three parts.
      ...(version !== undefined && { version: /^\d+$/.test(version) ? `${version}.0.0` : version }),
      clusterSelector: { matchLabels: { selected: 'true' } },
      valuesTemplate: TEMPLATE,
    },
  };
}

/** The object that the hub makes from it. */
function addonOf(proxy: Live, status?: unknown): HubAddon {
  const { made } = readProxy(proxy);
  if (typeof made === 'string') throw new TypeError(made);
  const { name, annotations, spec } = made;
  return readFleetAddon({ metadata: { ...VERSION, name, annotations: { ...annotations, ...APPROVED } }, spec, status });
}

/** The object that the hub makes from a Cluster of Cluster API. */
function clusterOf({ name, selected, values = '', paused = false, deleting = false }: VectorCluster): Cluster {
  const capi = readCapiCluster({
    apiVersion: 'cluster.x-k8s.io/v1beta1',
    kind: 'Cluster',
    metadata: {
      ...VERSION,
      name,
      namespace: 'default',
      labels: { selected: String(selected) },
      annotations: { values },
      ...(deleting && { deletionTimestamp: TIME }),
    },
    spec: { paused },
  });
  if (typeof capi.made === 'string') throw new TypeError(capi.made);
  const { labels, annotations, spec } = capi.made;
  const available = { type: 'Available', status: 'True', reason: 'Answers', lastTransitionTime: TIME };
  const own = readHubCluster({
    metadata: { ...VERSION, name, namespace: namespaceOf(name), labels, annotations },
    spec,
    status: { facts: { version: 'v1.34.0' }, conditions: [available] },
  });
  if (own === undefined) throw new TypeError(`${name} is not in its namespace`);
  return joinCapi(own, capi, {}).cluster;
}

/** The plan of a step for each cluster. */
function targetsOf(observed: Pick<Observed, 'clusters' | 'addons' | 'clusterAddons'>): ReadonlyMap<string, Target> {
  const targets = new Map<string, Target>();
  step({ ...observed, complete: true }, NOW, undefined, (plan) => {
    for (const one of plan.targets) targets.set(one.cluster.name, one);
  });
  return targets;
}

/** Objects that an earlier step has written. */
function recordOf(
  { cluster, values, generated, installed = false, ...spec }: VectorRelease,
  compat: Rules,
): ClusterAddon {
  const { releaseName, ...unnamed } = spec;
  const named = generated || releaseName === undefined ? unnamed : spec;
  const at = clusterOf({ name: cluster, selected: true, ...(values !== undefined && { values }) });
  const { addon } = addonOf(proxyOf(named, compat));
  const { put } = step({ complete: true, clusters: [at], addons: [addon], clusterAddons: [] }, NOW);
  const [{ spec: written } = { spec: undefined }] = put;
  if (written === undefined) throw new TypeError(`${cluster} has no release`);
  const { revision, specHash: hash }: ClusterAddonSpec = written;
  const status = { applied: { revision, hash }, state: 'Succeeded', since: NOW } as const;
  return { cluster, addon: addon.name, spec: written, ...(installed && { status }) };
}

/** The actions of a HelmChartProxy, in order; `error:…` for the first values that cannot be rendered, natively for each. */
export function hcp(
  {
    spec,
    clusters,
    releases = [],
  }: {
    readonly spec: VectorSpec;
    readonly clusters: readonly VectorCluster[];
    readonly releases?: readonly VectorRelease[];
  },
  compat: Rules = 'caaph',
): readonly string[] {
  const targets = targetsOf({
    clusters: clusters.map(clusterOf),
    addons: [addonOf(proxyOf(spec, compat)).addon],
    clusterAddons: releases.map((one) => recordOf(one, compat)),
  });
  const sorted = clusters.toSorted((a, b) => Number(a.selected) - Number(b.selected));
  return sorted.flatMap(({ name }) => {
    const target = targets.get(name);
    if (target === undefined) return [];
    if (begins(target)) return [`${target.action}:${name}`];
    // What only waits for the values of another cluster holds others, too.
    return target.hold?.reason === 'Content' && target.hold.skips ? ['error:ValueParsingFailed'] : [];
  });
}

/** The action on a release of helm; values are YAML texts. */
export function hrp({
  release,
  desired,
}: {
  readonly release?: { readonly version: string; readonly status?: string; readonly values?: string } | null;
  readonly desired: { readonly version: string; readonly values?: string };
}): string {
  const hashOf = ({ version, values = '' }: typeof desired): string =>
    canonicalJson([version, readYaml('', values).value ?? null]);
  const found = release && { status: release.status ?? 'deployed', hash: hashOf(release) };
  return releaseAction(found ?? undefined, hashOf(desired));
}

/** The consequence of removing a release's record. */
export function hrpDelete({
  strategy,
  ...present
}: {
  readonly strategy: string;
  readonly cluster: boolean;
  readonly release: boolean;
}): string {
  return removalAction({ ...present, once: strategy === 'InstallOnce' });
}

/** Conditions of a HelmChartProxy by its releases. */
export function proxyConditions({
  releases = [],
}: {
  readonly releases?: readonly { readonly ready: boolean }[];
}): Readonly<Record<string, string>> {
  const counts = { Succeeded: 0, Progressing: 0 };
  for (const { ready } of releases) counts[ready ? 'Succeeded' : 'Progressing'] += 1;
  const proxy = proxyOf({ chartName: 'chart', repoURL: 'https://charts.example.com' }, 'caaph');
  const addon = addonOf(proxy, { observedGeneration: 1, revision: '', since: TIME, counts });
  const { conditions } = proxyStatus(readProxy(proxy), addon, { clusters: [], now: NOW });
  return Object.fromEntries(
    (conditions as readonly { readonly type: string; readonly status: string }[])
      .filter(({ type }) => type === 'Ready' || type === 'HelmReleaseProxiesReady')
      .map(({ type, status }) => [type, status]),
  );
}
