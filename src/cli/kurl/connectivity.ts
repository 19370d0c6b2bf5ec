/** `kurl netutil nodes-connectivity`: whether each node reaches each other one by a port. */
import { randomUUID } from 'node:crypto';
import { CurlewError } from '../../core/errors.ts';
import { apiPath } from '../../kube/path.ts';
import { at, clusterCalls, textOf } from './cluster-calls.ts';
import type { ClusterCalls, VerbContext } from './cluster-calls.ts';
import { removed, runJob } from './jobs.ts';

const VERB = 'netutil nodes-connectivity';
const NAME = 'curlew-nodes-connectivity';

export interface PortQuestion {
  readonly port: number;
  readonly proto: 'tcp' | 'udp';
  readonly namespace: string;
  /** With bash and a netcat that knows -k. */
  readonly image: string;
  /** Of UDP, which may lose a packet. */
  readonly attempts: number;
}

/** Throws `CLUSTER_FAILED` when one node does not reach another. Pods on all nodes listen while it works. */
export async function nodesConnectivity(question: PortQuestion, context: VerbContext): Promise<string> {
  const cluster = await clusterCalls(VERB, context);
  const { say, signal } = context;
  const { namespace, port, proto } = question;
  const title = `port ${port}/${proto.toUpperCase()}`;
  say(`Testing whether all nodes reach each other by ${title}, this may take a while`);
  await cluster.run(['create', '-f', '-'], signal, JSON.stringify(listeners(question)));
  try {
    const rollout = ['-n', namespace, 'rollout', 'status', `daemonset/${NAME}`, '--timeout=60s'];
    await cluster.run(rollout, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      const what = `kurl ${VERB}: the listeners did not start, perhaps ${title} is in use on a node`;
      throw new CurlewError('CLUSTER_FAILED', what, { cause: error });
    });
    const pods = await cluster.list(
      apiPath`/api/v1/namespaces/${namespace}/pods?labelSelector=${`app=${NAME}`}`,
      signal,
    );
    const there = pods.map(listenerOf);
    for (const to of there) {
      for (const from of there) if (from.node !== to.node) await tryPath(cluster, { from, to }, question, context);
    }
  } finally {
    await removed(cluster, ['-n', namespace, 'delete', 'daemonset', NAME], context);
  }
  return `All nodes reach each other by ${title}`;
}

interface Listener {
  readonly pod: string;
  readonly node: string;
  readonly address: string;
}

function listenerOf(pod: unknown): Listener {
  return {
    pod: textOf(at(pod, 'metadata', 'name')),
    node: textOf(at(pod, 'spec', 'nodeName')),
    address: textOf(at(pod, 'status', 'hostIP')),
  };
}

/** Its pods use the network of their node, and print what comes. */
function listeners({ port, proto, namespace, image }: PortQuestion): object {
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

interface NodePath {
  readonly from: Listener;
  readonly to: Listener;
}

async function tryPath(
  cluster: ClusterCalls,
  { from, to }: NodePath,
  { port, proto, namespace, image, attempts }: PortQuestion,
  context: VerbContext,
): Promise<void> {
  const most = proto === 'tcp' ? 1 : attempts;
  const way = `from ${from.node} to ${to.node}`;
  for (let attempt = 1; attempt <= most; attempt += 1) {
    context.say(`Testing ${way} (${attempt}/${most})`);
    const word = randomUUID();
    // The status of netcat says little about UDP: what counts is what has arrived.
    const send = `echo ${word} | nc ${proto === 'udp' ? '-uw' : '-w'} 2 ${to.address} ${port} || true`;
    const command = ['/bin/bash', '-c', send];
    await runJob(cluster, { name: NAME, namespace, node: from.node, image, hostNetwork: true, command }, context);
    if (await arrived(cluster, word, to, namespace, context)) return;
  }
  throw new CurlewError('CLUSTER_FAILED', `kurl ${VERB}: port ${port}/${proto.toUpperCase()}: no way ${way}`, {
    hint: 'open the port in the firewalls of both nodes and between them',
  });
}

const LOOKS = 5;

/** Data that has arrived may take a moment to appear in the log. */
async function arrived(
  cluster: ClusterCalls,
  word: string,
  { pod }: Listener,
  namespace: string,
  { signal, pause }: VerbContext,
): Promise<boolean> {
  for (let look = 1; look <= LOOKS; look += 1) {
    const log = await cluster.run(['-n', namespace, 'logs', pod, '--tail=100'], signal);
    if (log.split('\n').includes(word)) return true;
    if (look < LOOKS) await pause(1000, { signal });
  }
  return false;
}
