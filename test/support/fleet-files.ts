/** Documents of a fleet, for tests. */
const apiVersion = 'fleet.curlew.dev/v1alpha1';

export function cluster(name: string, labels: object = {}, spec: object = {}): object {
  const access = { kubeconfig: `${name}.conf` };
  return { apiVersion, kind: 'Cluster', metadata: { name, labels }, spec: { access, ...spec } };
}

/** Selects clusters with `env: prod`. */
export function addon(name: string, spec: object = {}): object {
  const source = { manifest: `${name}.yaml` };
  const clusterSelector = { matchLabels: { env: 'prod' } };
  return { apiVersion, kind: 'FleetAddon', metadata: { name }, spec: { source, clusterSelector, ...spec } };
}

export function chart(name: string): object {
  return { repoURL: 'https://charts.example.com', name, version: '1.2.3' };
}

export function channel(name: string, ...addons: readonly object[]): object {
  return { apiVersion, kind: 'Channel', metadata: { name }, spec: { addons } };
}

export function documents(...all: readonly object[]): string {
  return all.map((one) => JSON.stringify(one, undefined, 1)).join('\n---\n');
}
