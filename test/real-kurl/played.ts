/** What becomes of workloads, pods and jobs where nothing runs: they are taken for ready, running, done. */
import { networkInterfaces } from 'node:os';
import { pathOf, type Kube, type KubeObject } from './kube.ts';

/** On what is made here, which is no add-on's. */
export const PLAYED = 'curlew.example/played';
export const NODE = 'node-1';
export const NOW = '2026-01-01T00:00:00Z';

/** Address of the node: the first that this machine has, so that hooks find its interface. */
export const ADDRESS: string =
  Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .find(({ family, internal }) => family === 'IPv4' && !internal)?.address ?? '127.0.0.1';

export function isPlayed({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[PLAYED] !== undefined;
}

export async function workload(
  kube: Kube,
  resource: string,
  one: KubeObject,
  pods: readonly KubeObject[],
): Promise<void> {
  const { metadata, spec = {}, status = {} } = one;
  const path = pathOf(one, resource);
  if (metadata.deletionTimestamp !== undefined) {
    await kube.send('PATCH', path, { metadata: { finalizers: null } });
    return;
  }
  const wanted = resource === 'daemonsets' ? 1 : Number(spec['replicas'] ?? 1);
  const own = pods.filter((pod) => pod.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid));
  await Promise.all(
    own
      .slice(wanted)
      .map(async (pod) => kube.send('DELETE', pathOf({ ...pod, apiVersion: 'v1' }, 'pods'), { gracePeriodSeconds: 0 })),
  );
  for (let index = own.length; index < wanted; index += 1) {
    await kube.send(
      'POST',
      `/api/v1/namespaces/${metadata.namespace}/pods`,
      podOf(one, resource === 'statefulsets' ? String(index) : undefined),
    );
  }
  await claims(kube, one, wanted);
  if (
    status['observedGeneration'] === metadata.generation &&
    (status['readyReplicas'] ?? status['numberReady'] ?? 0) === wanted
  )
    return;
  const counts =
    resource === 'daemonsets'
      ? ['currentNumberScheduled', 'desiredNumberScheduled', 'numberReady', 'numberAvailable', 'updatedNumberScheduled']
      : [
          'replicas',
          'readyReplicas',
          'availableReplicas',
          'updatedReplicas',
          ...(resource === 'statefulsets' ? ['currentReplicas'] : []),
        ];
  const conditions = [
    { type: 'Available', status: 'True', reason: 'Played', message: '', lastTransitionTime: NOW, lastUpdateTime: NOW },
  ];
  await kube.send('PATCH', `${path}/status`, {
    status: {
      ...Object.fromEntries(counts.map((count) => [count, wanted])),
      ...(resource === 'daemonsets' ? { numberMisscheduled: 0 } : {}),
      ...(resource === 'deployments' ? { conditions } : {}),
      observedGeneration: metadata.generation,
    },
  });
}

/** The claims of a stateful set's templates, one for each of its pods. */
async function claims(kube: Kube, { metadata, spec = {} }: KubeObject, wanted: number): Promise<void> {
  for (const template of (spec['volumeClaimTemplates'] ?? []) as readonly KubeObject[]) {
    for (let index = 0; index < wanted; index += 1) {
      const name = `${template.metadata.name}-${metadata.name}-${index}`;
      const { labels = {} } = template.metadata;
      await kube.send('POST', `/api/v1/namespaces/${metadata.namespace}/persistentvolumeclaims`, {
        metadata: { name, labels, annotations: { [PLAYED]: '' } },
        spec: template.spec,
      });
    }
  }
}

function podOf(owner: KubeObject, ordinal: string | undefined): object {
  const { metadata, spec = {}, kind, apiVersion } = owner;
  const template = spec['template'] as { readonly metadata?: { readonly labels?: object }; readonly spec: object };
  const name = ordinal === undefined ? { generateName: `${metadata.name}-` } : { name: `${metadata.name}-${ordinal}` };
  const { name: ownerName, uid } = metadata;
  return {
    metadata: {
      ...name,
      labels: template.metadata?.labels ?? {},
      annotations: { [PLAYED]: '' },
      ownerReferences: [{ apiVersion, kind, name: ownerName, uid, controller: true }],
    },
    spec: { ...template.spec, nodeName: NODE },
  };
}

export async function pod(kube: Kube, one: KubeObject, owners: ReadonlySet<string>): Promise<void> {
  const { metadata, spec = {}, status = {} } = one;
  const path = pathOf(one, 'pods');
  const [owner] = metadata.ownerReferences ?? [];
  if (metadata.deletionTimestamp !== undefined || (isPlayed(one) && owner !== undefined && !owners.has(owner.uid))) {
    await kube.send('DELETE', path, { gracePeriodSeconds: 0 });
    return;
  }
  if (status['phase'] !== 'Pending' && status['phase'] !== undefined) return;
  const isTask = (spec['restartPolicy'] ?? 'Always') !== 'Always';
  const containers = (spec['containers'] ?? []) as readonly { readonly name: string; readonly image: string }[];
  const states = containers.map(({ name, image }) => ({
    name,
    image,
    imageID: '',
    restartCount: 0,
    ready: !isTask,
    started: !isTask,
    state: isTask ? { terminated: { exitCode: 0, reason: 'Completed' } } : { running: { startedAt: NOW } },
  }));
  const conditions = ['Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map((type) => ({
    type,
    status: 'True',
    lastTransitionTime: NOW,
  }));
  await kube.send('PATCH', `${path}/status`, {
    status: {
      phase: isTask ? 'Succeeded' : 'Running',
      conditions,
      containerStatuses: states,
      podIP: '10.32.0.9',
      hostIP: ADDRESS,
      startTime: NOW,
    },
  });
}

export async function job(kube: Kube, one: KubeObject): Promise<void> {
  const path = pathOf(one, 'jobs');
  if (one.metadata.deletionTimestamp !== undefined) await kube.send('PATCH', path, { metadata: { finalizers: null } });
  if ((one.status?.['succeeded'] ?? 0) !== 0) return;
  const conditions = ['SuccessCriteriaMet', 'Complete'].map((type) => ({
    type,
    status: 'True',
    lastTransitionTime: NOW,
    lastProbeTime: NOW,
  }));
  const completions = Number(one.spec?.['completions'] ?? 1);
  await kube.send('PATCH', `${path}/status`, {
    status: {
      succeeded: completions,
      startTime: NOW,
      completionTime: NOW,
      conditions,
      ready: 0,
      uncountedTerminatedPods: {},
    },
  });
}
