/** Objects of a hub, for tests. */
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

export function hubClusterAddon(name: string, cluster: string, spec: object = {}): object {
  const content = { source: hubChart(), version: '1.2.3', values: {}, specHash: 'a1' };
  const own = { revision: 1, action: 'Install', identity: 'release:web/web', startedAt: '2026-01-02T03:04:05Z' };
  const metadata = { name, namespace: `fleet-${cluster}` };
  return { apiVersion, kind: 'ClusterAddon', metadata, spec: { ...own, ...content, ...spec } };
}
