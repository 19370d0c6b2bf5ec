/**
 * What controllers, a scheduler and kubelets would do while hooks run against an API server alone: workloads get pods,
 * pods run and become ready, jobs complete, claims are bound, services have endpoints, what is being deleted goes.
 * Nothing is pulled and nothing runs: a hook that looks into a container finds none.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { isObject } from '../../src/core/json.ts';
import { pathOf, type Kube, type KubeObject } from './kube.ts';
import { ADDRESS, job, NODE, NOW, PLAYED, pod, workload } from './played.ts';

const WORKLOADS = [
  ['deployments', 'Deployment'],
  ['daemonsets', 'DaemonSet'],
  ['statefulsets', 'StatefulSet'],
] as const;

/** All that a round looks at. */
const WATCHED = [
  ...['namespaces', 'serviceaccounts', 'pods', 'persistentvolumeclaims', 'endpoints', 'services'].map(
    (name) => `/api/v1/${name}`,
  ),
  ...WORKLOADS.map(([resource]) => `/apis/apps/v1/${resource}`),
  '/apis/batch/v1/jobs',
];
/** Between two rounds. */
const ROUND_MS = 300;
/** After so long there is a round although nothing has changed: what was refused may be let in. */
const IDLE_MS = 3000;

/** What `kubeadm init` leaves: the node itself, and what of it is looked at. */
async function begin({ send }: Kube): Promise<void> {
  const annotations = { [PLAYED]: '' };
  const labels = {
    'node-role.kubernetes.io/control-plane': '',
    'kubernetes.io/hostname': NODE,
    'node-role.kubernetes.io/master': '',
    'kubernetes.io/os': 'linux',
  };
  await send('POST', '/api/v1/nodes', {
    kind: 'Node',
    metadata: {
      name: NODE,
      labels,
      annotations: {
        ...annotations,
        'kubeadm.alpha.kubernetes.io/cri-socket': 'unix:///run/containerd/containerd.sock',
      },
    },
  });
  const amounts = { cpu: '8', memory: '32Gi', pods: '110', 'ephemeral-storage': '500Gi' };
  await send('PATCH', `/api/v1/nodes/${NODE}/status`, {
    status: {
      capacity: amounts,
      allocatable: amounts,
      addresses: [{ type: 'InternalIP', address: ADDRESS }],
      conditions: [
        { type: 'Ready', status: 'True', reason: 'KubeletReady', lastHeartbeatTime: NOW, lastTransitionTime: NOW },
      ],
      nodeInfo: {
        kubeletVersion: 'v1.34.4',
        containerRuntimeVersion: 'containerd://1.6.20',
        machineID: '',
        systemUUID: '',
        bootID: '',
        kernelVersion: '6.1.0',
        osImage: 'Ubuntu 22.04',
        kubeProxyVersion: '',
        operatingSystem: 'linux',
        architecture: 'amd64',
      },
    },
  });
  const selector = { 'k8s-app': 'kube-dns' };
  await send('POST', '/apis/apps/v1/namespaces/kube-system/deployments', {
    metadata: { name: 'coredns', annotations, labels: selector },
    spec: {
      replicas: 1,
      selector: { matchLabels: selector },
      template: { metadata: { labels: selector }, spec: { containers: [{ name: 'coredns', image: 'coredns' }] } },
    },
  });
  const files = {
    ClusterConfiguration:
      'apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\nkubernetesVersion: v1.34.4\n',
  };
  await send('POST', '/api/v1/namespaces/kube-system/configmaps', {
    metadata: { name: 'kubeadm-config', annotations },
    data: files,
  });
}

/** Plays until it is disposed of. */
export async function play(kube: Kube): Promise<AsyncDisposable> {
  const ended = new AbortController();
  await begin(kube);
  let changed = (): void => undefined;
  const watching = WATCHED.map(async (path) => {
    // Each watch has several listeners: all of them are more than one signal should have.
    const signal = AbortSignal.any([ended.signal]);
    while (!signal.aborted) {
      await kube.watch(path, () => changed(), signal).catch(() => undefined);
      await pause(ROUND_MS, undefined, { signal }).catch(() => undefined);
    }
  });
  const run = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      const next = new AbortController();
      changed = () => next.abort();
      // Objects go while they are looked at: the next round sees what there is.
      const isWhole = await round(kube).then(
        () => true,
        () => false,
      );
      await pause(ROUND_MS);
      if (isWhole) await pause(IDLE_MS - ROUND_MS, undefined, { signal: next.signal }).catch(() => undefined);
    }
  };
  const running = Promise.all([run(), ...watching]);
  return {
    [Symbol.asyncDispose]: async () => {
      ended.abort();
      changed();
      await running;
    },
  };
}

async function round(kube: Kube): Promise<void> {
  const [namespaces, accounts] = [await kube.list('/api/v1/namespaces'), await kube.list('/api/v1/serviceaccounts')];
  await Promise.all(namespaces.map(async (one) => namespace(kube, one, accounts)));
  const owners = new Set<string>();
  const pods = await kube.list('/api/v1/pods');
  for (const [resource, kind] of WORKLOADS) {
    for (const one of await kube.list(`/apis/apps/v1/${resource}`)) {
      owners.add(one.metadata.uid ?? '');
      await workload(kube, resource, { ...one, apiVersion: 'apps/v1', kind }, pods);
    }
  }
  for (const one of await kube.list('/apis/batch/v1/jobs')) {
    owners.add(one.metadata.uid ?? '');
    await job(kube, { ...one, apiVersion: 'batch/v1' });
  }
  for (const one of pods) await pod(kube, { ...one, apiVersion: 'v1' }, owners);
  for (const one of await kube.list('/api/v1/persistentvolumeclaims')) await claim(kube, { ...one, apiVersion: 'v1' });
  const endpoints = new Set(
    (await kube.list('/api/v1/endpoints')).map(({ metadata }) => `${metadata.namespace}/${metadata.name}`),
  );
  for (const one of await kube.list('/api/v1/services')) {
    const { name, namespace: space } = one.metadata;
    if (isObject(one.spec?.['selector']) && !endpoints.has(`${space}/${name}`)) await endpointsOf(kube, one);
  }
}

async function namespace(
  { send, all }: Kube,
  { metadata: { name, deletionTimestamp } }: KubeObject,
  accounts: readonly KubeObject[],
): Promise<void> {
  if (deletionTimestamp !== undefined) {
    for (const item of (await all()).values()) {
      if (item.metadata.namespace === name)
        await send('DELETE', pathOf(item, String(item['resource'])), { gracePeriodSeconds: 0 });
    }
    await send('PUT', `/api/v1/namespaces/${name}/finalize`, {
      kind: 'Namespace',
      apiVersion: 'v1',
      metadata: { name },
      spec: { finalizers: [] },
    });
  } else if (!accounts.some(({ metadata }) => metadata.namespace === name && metadata.name === 'default')) {
    await send('POST', `/api/v1/namespaces/${name}/serviceaccounts`, {
      metadata: { name: 'default', annotations: { [PLAYED]: '' } },
    });
  }
}

async function claim(kube: Kube, one: KubeObject): Promise<void> {
  const path = pathOf(one, 'persistentvolumeclaims');
  if (one.metadata.deletionTimestamp !== undefined) await kube.send('PATCH', path, { metadata: { finalizers: null } });
  if (one.status?.['phase'] === 'Bound') return;
  const resources = one.spec?.['resources'] as { readonly requests?: object } | undefined;
  await kube.send('PATCH', `${path}/status`, {
    status: { phase: 'Bound', capacity: resources?.requests ?? {}, accessModes: one.spec?.['accessModes'] },
  });
}

async function endpointsOf(kube: Kube, { metadata: { name, namespace: space }, spec = {} }: KubeObject): Promise<void> {
  const ports = (
    (spec['ports'] ?? []) as readonly { readonly name?: string; readonly port: number; readonly protocol?: string }[]
  ).map(({ name: port, port: number, protocol }) => ({
    ...(port === undefined ? {} : { name: port }),
    port: number,
    protocol: protocol ?? 'TCP',
  }));
  await kube.send('POST', `/api/v1/namespaces/${space}/endpoints`, {
    metadata: { name, annotations: { [PLAYED]: '' } },
    subsets: [{ addresses: [{ ip: '10.32.0.9' }], ports }],
  });
}
