/** `kurl netutil nodes-connectivity`: checks whether all nodes can reach each other on a port. */
import { randomUUID } from 'node:crypto';
import { CurlewError } from '../../core/errors.ts';
import { apiPath } from '../../cluster/kube/path.ts';
import { at, clusterCalls, stringOf } from './cluster-calls.ts';
import type { ClusterCalls, VerbContext } from './cluster-calls.ts';
import { removeJob, runJob } from './jobs.ts';

const VERB = 'netutil nodes-connectivity';
const NAME = 'curlew-nodes-connectivity';

export interface PortCheck {
  readonly port: number;
  readonly proto: 'tcp' | 'udp';
  readonly namespace: string;
  /** With bash and a netcat that supports -k. */
  readonly image: string;
  /** For UDP, which may lose packets. */
  readonly attempts: number;
}

/** Runs listener pods on all nodes; throws `CLUSTER_FAILED` if a node cannot reach another. */
export async function nodesConnectivity(check: PortCheck, context: VerbContext): Promise<string> {
  const cluster = await clusterCalls(VERB, context);
  const { say, signal } = context;
  const { namespace, port, proto } = check;
  const title = `port ${port}/${proto.toUpperCase()}`;
  say(`Testing whether all nodes can reach each other on ${title}; this may take a while`);
  await cluster.run(['create', '-f', '-'], signal, JSON.stringify(listeners(check)));
  try {
    const rollout = ['-n', namespace, 'rollout', 'status', `daemonset/${NAME}`, '--timeout=60s'];
    await cluster.run(rollout, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      const what = `kurl ${VERB}: the listeners did not start; ${title} may be in use on a node`;
      throw new CurlewError('CLUSTER_FAILED', what, { cause: error });
    });
    const pods = await cluster.list(
      apiPath`/api/v1/namespaces/${namespace}/pods?labelSelector=${`app=${NAME}`}`,
      signal,
    );
    const running = pods.map(listenerOf);
    for (const to of running) {
      for (const from of running) if (from.node !== to.node) await tryPath(cluster, { from, to }, check, context);
    }
  } finally {
    await removeJob(cluster, ['-n', namespace, 'delete', 'daemonset', NAME], context);
  }
  return `All nodes can reach each other on ${title}`;
}

interface Listener {
  readonly pod: string;
  readonly node: string;
  readonly address: string;
}

function listenerOf(pod: unknown): Listener {
  return {
    pod: stringOf(at(pod, 'metadata', 'name')),
    node: stringOf(at(pod, 'spec', 'nodeName')),
    address: stringOf(at(pod, 'status', 'hostIP')),
  };
}

/** A DaemonSet whose pods use the network of their node, and print what they receive. */
function listeners({ port, proto, namespace, image }: PortCheck): object {
  const labels = { app: NAME };
  const listen = proto === 'udp' ? `exec nc -kulw 0 ${port}` : `exec nc -kl ${port}`;
  const pod = {
    hostNetwork: true,
    terminationGracePeriodSeconds: 1,
    tolerations: [{ operator: 'Exists' }],
    containers: [{ name: 'main', image, imagePullPolicy: 'IfNotPresent', command: ['/bin/bash', '-c', listen] }],
  };
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: NAME, namespace, labels },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: pod } },
  };
}

async function tryPath(
  cluster: ClusterCalls,
  { from, to }: { readonly from: Listener; readonly to: Listener },
  { port, proto, namespace, image, attempts }: PortCheck,
  context: VerbContext,
): Promise<void> {
  const limit = proto === 'tcp' ? 1 : attempts;
  const direction = `from ${from.node} to ${to.node}`;
  for (let attempt = 1; attempt <= limit; attempt += 1) {
    context.say(`Testing ${direction} (${attempt}/${limit})`);
    const token = randomUUID();
    // netcat's exit status is not reliable for UDP: the check looks for the received token.
    const send = `echo ${token} | nc ${proto === 'udp' ? '-uw' : '-w'} 2 ${to.address} ${port} || true`;
    const command = ['/bin/bash', '-c', send];
    await runJob(cluster, { name: NAME, namespace, node: from.node, image, hostNetwork: true, command }, context);
    if (await arrived(cluster, token, to, namespace, context)) return;
  }
  throw new CurlewError(
    'CLUSTER_FAILED',
    `kurl ${VERB}: port ${port}/${proto.toUpperCase()}: no connection ${direction}`,
    { hint: 'open the port in the firewalls of both nodes and between them' },
  );
}

const LOG_READS = 5;

/** Received data may take a moment to appear in the log. */
async function arrived(
  cluster: ClusterCalls,
  token: string,
  { pod }: Listener,
  namespace: string,
  { signal, pause }: VerbContext,
): Promise<boolean> {
  for (let read = 1; read <= LOG_READS; read += 1) {
    const log = await cluster.run(['-n', namespace, 'logs', pod, '--tail=100'], signal);
    if (log.split('\n').includes(token)) return true;
    if (read < LOG_READS) await pause(1000, { signal });
  }
  return false;
}
