/** Runs a pod once on a node, for verbs of kURL's program. */
import { randomBytes } from 'node:crypto';
import { CurlewError } from '../../core/errors.ts';
import { apiPath } from '../../cluster/kube/path.ts';
import { at, stringOf, withinSeconds } from './cluster-calls.ts';
import type { ClusterCalls, VerbContext } from './cluster-calls.ts';

export interface NodeJob {
  /** Prefix of the pod's name. */
  readonly name: string;
  readonly namespace: string;
  readonly node: string;
  readonly image: string;
  readonly command: readonly string[];
  readonly hostNetwork?: boolean;
  readonly hostPath?: { readonly path: string; readonly mountPath: string; readonly type: string };
}

const SECONDS = 120;
const PAUSE_MS = 1000;
const CLEANUP_MS = 60_000;

/** Runs a pod, always removes it, and returns its output. `CLUSTER_FAILED` if it fails or takes longer than two minutes. */
export async function runJob(cluster: ClusterCalls, job: NodeJob, context: VerbContext): Promise<string> {
  const name = `${job.name}-${randomBytes(4).toString('hex')}`;
  await cluster.run(['create', '-f', '-'], context.signal, JSON.stringify(podOf(name, job)));
  try {
    const path = apiPath`/api/v1/namespaces/${job.namespace}/pods/${name}`;
    let phase = 'not started';
    const end = await withinSeconds(SECONDS, context, async (signal) => {
      for (; ; await context.pause(PAUSE_MS, { signal })) {
        phase = stringOf(at(await cluster.find(path, signal), 'status', 'phase'));
        if (phase === 'Succeeded' || phase === 'Failed') return phase;
      }
    });
    const output = end === undefined ? '' : await cluster.run(['-n', job.namespace, 'logs', name], context.signal);
    if (end === 'Succeeded') return output;
    const state =
      end === undefined ? `${phase === '' ? 'gone' : phase} after ${SECONDS} s` : `failed: ${output.trim()}`;
    throw new CurlewError('CLUSTER_FAILED', `pod ${name} on node ${job.node}: ${state}`);
  } finally {
    await removeJob(cluster, ['-n', job.namespace, 'delete', 'pod', name], context);
  }
}

/** Deletes objects, also after an interrupt. Reports a failure, but does not throw. */
export async function removeJob(cluster: ClusterCalls, args: readonly string[], { say }: VerbContext): Promise<void> {
  const all = [...args, '--ignore-not-found', '--grace-period=1'];
  await cluster.run(all, AbortSignal.timeout(CLEANUP_MS)).catch((error: unknown) => {
    say(`not removed: kubectl ${all.join(' ')}: ${error instanceof Error ? error.message : 'unknown'}`);
  });
}

function podOf(name: string, { namespace, node, image, command, hostNetwork = false, hostPath }: NodeJob): object {
  const mounts = hostPath === undefined ? [] : [{ name: 'host', mountPath: hostPath.mountPath, readOnly: true }];
  const volumes =
    hostPath === undefined ? [] : [{ name: 'host', hostPath: { path: hostPath.path, type: hostPath.type } }];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels: { 'app.kubernetes.io/managed-by': 'curlew' } },
    spec: {
      nodeName: node,
      restartPolicy: 'Never',
      hostNetwork,
      tolerations: [{ operator: 'Exists' }],
      containers: [{ name: 'main', image, imagePullPolicy: 'IfNotPresent', command, volumeMounts: mounts }],
      volumes,
    },
  };
}
