/** Objects of a hub, for tests. */
import { specHash } from '../../src/fleet/rollout/spec-hash.ts';

const apiVersion = 'fleet.curlew.dev/v1alpha1';

export function hubCluster(name: string, labels: object = {}, spec: object = {}): object {
  return { apiVersion, kind: 'Cluster', metadata: { name, namespace: `fleet-${name}`, labels }, spec };
}

export function hubChart(version = '1.2.3') {
  return { chart: { repoURL: 'https://charts.example.com', name: 'web', version, namespace: 'web' } };
}

/** Selects clusters with `env: prod`. */
export function hubAddon(name: string, spec: object = {}): object {
  const clusterSelector = { matchLabels: { env: 'prod' } };
  return { apiVersion, kind: 'FleetAddon', metadata: { name }, spec: { source: hubChart(), clusterSelector, ...spec } };
}

export function hubChannel(name: string, addons: readonly object[]): object {
  return { apiVersion, kind: 'Channel', metadata: { name }, spec: { addons } };
}

/** Unless `spec` has them, the hash is that of source and values, and the version that of the source. */
export function hubClusterAddon(name: string, cluster: string, spec: object = {}): object {
  const content = { source: hubChart() as object, values: {}, ...spec };
  const { source, values } = content;
  const { chart, package: packed } = source as Record<string, { readonly version?: string } | undefined>;
  const made = { version: (packed ?? chart ?? { version: '1.2.3' }).version, specHash: specHash({ source, values }) };
  const own = { revision: 1, action: 'Install', identity: 'release:web/web', startedAt: '2026-01-02T03:04:05Z' };
  const metadata = { name, namespace: `fleet-${cluster}` };
  return { apiVersion, kind: 'ClusterAddon', metadata, spec: { ...own, ...made, ...content } };
}
