/** `kurl rook …`: whether Ceph is healthy, and which versions Rook has rolled out. */
import { CurlewError } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { apiPath, type ApiPath } from '../../kube/path.ts';
import { at, clusterCalls, numberOf, textOf, withinSeconds } from './cluster-calls.ts';
import type { ClusterCalls, VerbContext } from './cluster-calls.ts';

/**
 * Warnings of Ceph (docs.ceph.com, health checks) that hold up neither an upgrade nor a migration: they last on a small
 * cluster, or until somebody changes a setting.
 */
const LASTING: readonly string[] = [
  'TOO_MANY_PGS',
  'POOL_NO_REDUNDANCY',
  'RECENT_CRASH',
  'POOL_PG_NUM_NOT_POWER_OF_TWO',
  'AUTH_INSECURE_GLOBAL_ID_RECLAIM_ALLOWED',
  'MON_DISK_LOW',
];

/** Why Ceph is not healthy, by what `ceph status --format json` says; undefined when it is. */
export function cephTrouble(status: unknown, ignored: readonly string[] = []): string | undefined {
  const troubles = [checksFailing(status, ignored), dataMoving(status), workGoingOn(status)];
  const found = troubles.filter((trouble) => trouble !== undefined);
  return found.length === 0 ? undefined : found.join('; ');
}

function checksFailing(status: unknown, ignored: readonly string[]): string | undefined {
  const health = textOf(at(status, 'health', 'status'));
  if (health === 'HEALTH_OK') return undefined;
  if (health === '') return 'Ceph does not say how its health is';
  const checks = at(status, 'health', 'checks');
  const left = Object.entries(isObject(checks) ? checks : {})
    .filter(([name]) => !LASTING.includes(name) && !ignored.includes(name))
    .map(([name, check]) => textOf(at(check, 'summary', 'message')) || name);
  return left.length === 0 ? undefined : `${health}: ${left.toSorted().join(', ')}`;
}

function dataMoving(status: unknown): string | undefined {
  const of = (name: string): number => numberOf(at(status, 'pgmap', name));
  const ratios = (['inactive_pgs', 'degraded', 'misplaced'] as const).flatMap((name) => {
    const ratio = of(`${name}_ratio`);
    return ratio === 0 ? [] : [`${(ratio * 100).toFixed(2)}% ${name === 'inactive_pgs' ? 'of PGs inactive' : name}`];
  });
  const rate = of('recovering_bytes_per_sec');
  const moving = rate === 0 ? ratios : [...ratios, `${rate} bytes recovered per second`];
  return moving.length === 0 ? undefined : moving.join(', ');
}

/** Work of the whole cluster's recovery alone is no trouble. */
function workGoingOn(status: unknown): string | undefined {
  const events = at(status, 'progress_events');
  const names = Object.keys(isObject(events) ? events : {}).toSorted();
  const messages = names.map((name) => textOf(at(events, name, 'message')));
  const first = messages.findIndex((message) => !message.includes('Global Recovery Event'));
  const message = messages[first] ?? '';
  if (message === '') return undefined;
  const done = numberOf(at(events, names[first] ?? '', 'progress')) * 100;
  return `${names.length} tasks in progress, the first: ${message.replaceAll('\n', ' ')} (${done.toFixed(2)}%)`;
}

const TOOLBOX = 'rook-ceph-tools';
const ROOK_DEPLOYMENTS = apiPath`/apis/apps/v1/namespaces/rook-ceph/deployments?labelSelector=${'rook_cluster=rook-ceph'}`;

function deployment(name: string): ApiPath {
  return apiPath`/apis/apps/v1/namespaces/rook-ceph/deployments/${name}`;
}

/** Add-ons bring the toolbox; where one has none, it is made of the operator's image. */
async function startToolbox(cluster: ClusterCalls, say: VerbContext['say'], signal: AbortSignal): Promise<void> {
  const there = await cluster.find(deployment(TOOLBOX), signal);
  if (there !== undefined && numberOf(at(there, 'status', 'replicas')) > 0) return;
  if (there === undefined) {
    say('There is no deployment rook-ceph-tools: starting it');
    const operator = await cluster.find(deployment('rook-ceph-operator'), signal);
    const image = textOf(at(operator, 'spec', 'template', 'spec', 'containers', 0, 'image'));
    if (image === '')
      throw new CurlewError('CLUSTER_FAILED', 'kurl rook: no deployment rook-ceph-operator to ask Ceph by');
    await cluster.run(['create', '-f', '-'], signal, JSON.stringify(toolbox(image)));
  } else {
    await cluster.run(['-n', 'rook-ceph', 'scale', 'deployment', TOOLBOX, '--replicas=1'], signal);
  }
  await cluster.run(['-n', 'rook-ceph', 'rollout', 'status', `deployment/${TOOLBOX}`, '--timeout=300s'], signal);
}

/** As Rook's own example of a toolbox: where the monitors are, and the secret of older and of newer releases. */
function toolbox(image: string): object {
  const labels = { app: TOOLBOX };
  const secret = (name: string, key: string): object => ({
    name,
    valueFrom: { secretKeyRef: { name: 'rook-ceph-mon', key, optional: true } },
  });
  const container = {
    name: TOOLBOX,
    image,
    command: ['/bin/bash', '-c', 'exec /usr/local/bin/toolbox.sh'],
    env: [
      secret('ROOK_ADMIN_SECRET', 'admin-secret'),
      secret('ROOK_CEPH_USERNAME', 'ceph-username'),
      secret('ROOK_CEPH_SECRET', 'ceph-secret'),
    ],
    volumeMounts: [{ name: 'mon-endpoint-volume', mountPath: '/etc/rook' }],
  };
  const endpoints = { name: 'rook-ceph-mon-endpoints', items: [{ key: 'data', path: 'mon-endpoints' }] };
  const pod = {
    dnsPolicy: 'ClusterFirstWithHostNet',
    hostNetwork: true,
    containers: [container],
    volumes: [{ name: 'mon-endpoint-volume', configMap: endpoints }],
  };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: TOOLBOX, namespace: 'rook-ceph', labels },
    spec: { replicas: 1, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: pod } },
  };
}

async function cephStatus(cluster: ClusterCalls, say: VerbContext['say'], signal: AbortSignal): Promise<unknown> {
  await startToolbox(cluster, say, signal);
  const pods = await cluster.list(apiPath`/api/v1/namespaces/rook-ceph/pods?labelSelector=${`app=${TOOLBOX}`}`, signal);
  const names = pods.map((pod) => textOf(at(pod, 'metadata', 'name')));
  const [name] = names;
  if (name === undefined || names.length > 1) {
    throw new CurlewError('CLUSTER_FAILED', `kurl rook: ${names.length} pods of rook-ceph-tools, expected 1`);
  }
  const container = textOf(at(pods, 0, 'spec', 'containers', 0, 'name'));
  const words = ['-n', 'rook-ceph', 'exec', name, '-c', container, '--', 'ceph', 'status', '--format', 'json'];
  const text = await cluster.run(words, signal);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new CurlewError('CLUSTER_FAILED', 'kurl rook: what `ceph status` printed is not JSON');
  }
}

const MOST_FAILURES = 5;
const HEALTHY_IN_A_ROW = 5;
const HEALTH_PAUSE_MS = 1000;
const VERSION_PAUSE_MS = 10_000;

/** Calls `ask` until it is true; a failure counts only when there are five of them in a row. */
async function until(ask: () => Promise<boolean>, wait: () => Promise<void>): Promise<true> {
  for (let failures = 0; ;) {
    try {
      if (await ask()) return true;
      failures = 0;
    } catch (error) {
      failures += 1;
      if (!(error instanceof CurlewError) || error.code !== 'CLUSTER_FAILED' || failures >= MOST_FAILURES) throw error;
    }
    await wait();
  }
}

/** Says a line only when it is another than the last one. */
function sayChanges(say: VerbContext['say']): VerbContext['say'] {
  let last: string | undefined;
  return (line) => {
    if (line !== last) say(line);
    last = line;
  };
}

/** Once, now. Throws `CLUSTER_FAILED` when Ceph is not healthy. */
export async function health(ignored: readonly string[], { say, env, signal }: VerbContext): Promise<string> {
  const cluster = await clusterCalls('rook health', { env });
  const trouble = cephTrouble(await cephStatus(cluster, say, signal), ignored);
  if (trouble !== undefined)
    throw new CurlewError('CLUSTER_FAILED', `kurl rook health: Ceph is not healthy: ${trouble}`);
  return 'Rook is healthy';
}

/** Until Ceph says five times in a row that it is healthy; `CLUSTER_FAILED` when it does not within so many seconds. */
export async function waitForHealth(
  seconds: number | undefined,
  ignored: readonly string[],
  context: VerbContext,
): Promise<string> {
  const cluster = await clusterCalls('rook wait-for-health', context);
  context.say('Waiting for Rook-Ceph to be healthy');
  const sayTrouble = sayChanges(context.say);
  let trouble: string | undefined = 'not known';
  let healthy = 0;
  const done = await withinSeconds(seconds, context, async (signal) =>
    until(
      async () => {
        trouble = cephTrouble(await cephStatus(cluster, context.say, signal), ignored);
        healthy = trouble === undefined ? healthy + 1 : 0;
        if (trouble !== undefined) sayTrouble(trouble);
        return healthy >= HEALTHY_IN_A_ROW;
      },
      async () => context.pause(HEALTH_PAUSE_MS, { signal }),
    ),
  );
  if (done === true) return 'Rook is healthy';
  const state = trouble === undefined ? 'healthy, but not for long' : trouble;
  throw new CurlewError(
    'CLUSTER_FAILED',
    `kurl rook wait-for-health: Ceph did not become healthy in ${seconds ?? 0} s: ${state}`,
  );
}

/** What the deployments of Rook still lack of a version; `label`: the one that holds theirs. */
export function behindVersion(deployments: readonly unknown[], wanted: string, label: string): readonly string[] {
  const old = new Map<string, string[]>();
  const unready: string[] = [];
  for (const one of deployments) {
    const name = textOf(at(one, 'metadata', 'name'));
    const version = textOf(at(one, 'metadata', 'labels', label)).replace(/^v/, '');
    if (version !== wanted) {
      // Not labelled yet, or by releases of Rook (before 1.4.8) that write down 0.0.0.
      if (version === '' || version.includes('0.0.0')) continue;
      old.set(version, [...(old.get(version) ?? []), name]);
    }
    const of = (field: string): number => numberOf(at(one, 'status', field));
    if (of('replicas') !== of('updatedReplicas') || of('replicas') !== of('readyReplicas')) unready.push(name);
  }
  return [
    ...[...old].map(([version, names]) => `still at ${version}: ${names.join(', ')}`),
    ...(unready.length === 0 ? [] : [`not ready: ${unready.join(', ')}`]),
  ];
}

export interface VersionWait {
  readonly what: 'Rook' | 'Ceph';
  readonly version: string;
  /** Undefined waits for ever. */
  readonly seconds: number | undefined;
}

/** Until no deployment of Rook is left at another version, or not ready. */
export async function waitForVersion({ what, version, seconds }: VersionWait, context: VerbContext): Promise<string> {
  const verb = `rook wait-for-${what.toLowerCase()}-version`;
  const cluster = await clusterCalls(verb, context);
  const wanted = version.replace(/^v/, '');
  context.say(`Waiting for all deployments of Rook-Ceph to use ${what} ${wanted}`);
  const sayLeft = sayChanges(context.say);
  let left = '';
  const done = await withinSeconds(seconds, context, async (signal) =>
    until(
      async () => {
        const items = await cluster.list(ROOK_DEPLOYMENTS, signal);
        left = behindVersion(items, wanted, `${what.toLowerCase()}-version`).join('; ');
        if (left !== '') sayLeft(left);
        return left === '';
      },
      async () => context.pause(VERSION_PAUSE_MS, { signal }),
    ),
  );
  if (done === true) return `${what} ${wanted} has been rolled out`;
  throw new CurlewError(
    'CLUSTER_FAILED',
    `kurl ${verb}: ${what} ${wanted} was not rolled out in ${seconds ?? 0} s: ${left === '' ? 'no answer' : left}`,
  );
}
