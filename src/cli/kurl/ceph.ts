/** `kurl rook …`: checks the health of Ceph, and the versions of Rook's deployments. */
import { CurlewError } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { apiPath, type ApiPath } from '../../cluster/kube/path.ts';
import { at, clusterCalls, countFrom, stringOf, withinSeconds } from './cluster-calls.ts';
import type { ClusterCalls, VerbContext } from './cluster-calls.ts';

/**
 * Warnings of Ceph (docs.ceph.com, health checks) that do not block an upgrade or a migration: they are permanent on a small
 * cluster, or until an administrator changes a setting.
 */
const IGNORED_WARNINGS: readonly string[] = [
  'TOO_MANY_PGS',
  'POOL_NO_REDUNDANCY',
  'RECENT_CRASH',
  'POOL_PG_NUM_NOT_POWER_OF_TWO',
  'AUTH_INSECURE_GLOBAL_ID_RECLAIM_ALLOWED',
  'MON_DISK_LOW',
];

/** Why Ceph is not healthy according to `ceph status --format json`; undefined if it is. */
export function cephTrouble(status: unknown, ignored: readonly string[] = []): string | undefined {
  const problems = [failedChecks(status, ignored), movingData(status), runningTasks(status)];
  const present = problems.filter((trouble) => trouble !== undefined);
  return present.length === 0 ? undefined : present.join('; ');
}

function failedChecks(status: unknown, ignored: readonly string[]): string | undefined {
  const health = stringOf(at(status, 'health', 'status'));
  if (health === 'HEALTH_OK') return undefined;
  if (health === '') return 'Ceph does not report its health';
  const checks = at(status, 'health', 'checks');
  const warnings = Object.entries(isObject(checks) ? checks : {})
    .filter(([name]) => !IGNORED_WARNINGS.includes(name) && !ignored.includes(name))
    .map(([name, check]) => stringOf(at(check, 'summary', 'message')) || name);
  return warnings.length === 0 ? undefined : `${health}: ${warnings.toSorted().join(', ')}`;
}

function movingData(status: unknown): string | undefined {
  const of = (name: string): number => countFrom(at(status, 'pgmap', name));
  const ratios = (['inactive_pgs', 'degraded', 'misplaced'] as const).flatMap((name) => {
    const ratio = of(`${name}_ratio`);
    return ratio === 0 ? [] : [`${(ratio * 100).toFixed(2)}% ${name === 'inactive_pgs' ? 'of PGs inactive' : name}`];
  });
  const rate = of('recovering_bytes_per_sec');
  const moving = rate === 0 ? ratios : [...ratios, `${rate} bytes recovered per second`];
  return moving.length === 0 ? undefined : moving.join(', ');
}

/** Running tasks, except if only the global recovery event is running. */
function runningTasks(status: unknown): string | undefined {
  const events = at(status, 'progress_events');
  const names = Object.keys(isObject(events) ? events : {}).toSorted();
  const messages = names.map((name) => stringOf(at(events, name, 'message')));
  const first = messages.findIndex((message) => !message.includes('Global Recovery Event'));
  const message = messages[first] ?? '';
  if (message === '') return undefined;
  const done = countFrom(at(events, names[first] ?? '', 'progress')) * 100;
  return `${names.length} tasks in progress, first: ${message.replaceAll('\n', ' ')} (${done.toFixed(2)}%)`;
}

const TOOLBOX = 'rook-ceph-tools';
const ROOK_DEPLOYMENTS = apiPath`/apis/apps/v1/namespaces/rook-ceph/deployments?labelSelector=${'rook_cluster=rook-ceph'}`;

function deployment(name: string): ApiPath {
  return apiPath`/apis/apps/v1/namespaces/rook-ceph/deployments/${name}`;
}

/** Starts the toolbox of the add-on; creates one from the operator's image if it is missing. */
async function startToolbox(cluster: ClusterCalls, say: VerbContext['say'], signal: AbortSignal): Promise<void> {
  const existing = await cluster.find(deployment(TOOLBOX), signal);
  if (existing !== undefined && countFrom(at(existing, 'status', 'replicas')) > 0) return;
  if (existing === undefined) {
    say('The deployment rook-ceph-tools does not exist: creating it');
    const operator = await cluster.find(deployment('rook-ceph-operator'), signal);
    const image = stringOf(at(operator, 'spec', 'template', 'spec', 'containers', 0, 'image'));
    if (image === '')
      throw new CurlewError('CLUSTER_FAILED', 'kurl rook: the deployment rook-ceph-operator does not exist');
    await cluster.run(['create', '-f', '-'], signal, JSON.stringify(toolbox(image)));
  } else {
    await cluster.run(['-n', 'rook-ceph', 'scale', 'deployment', TOOLBOX, '--replicas=1'], signal);
  }
  await cluster.run(['-n', 'rook-ceph', 'rollout', 'status', `deployment/${TOOLBOX}`, '--timeout=300s'], signal);
}

/** Like Rook's example of a toolbox, with the monitors' endpoints, and the secrets of older and newer releases. */
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
  const names = pods.map((pod) => stringOf(at(pod, 'metadata', 'name')));
  const [name] = names;
  if (name === undefined || names.length > 1) {
    throw new CurlewError('CLUSTER_FAILED', `kurl rook: ${names.length} pods of rook-ceph-tools, expected 1`);
  }
  const container = stringOf(at(pods, 0, 'spec', 'containers', 0, 'name'));
  const args = ['-n', 'rook-ceph', 'exec', name, '-c', container, '--', 'ceph', 'status', '--format', 'json'];
  const text = await cluster.run(args, signal);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new CurlewError('CLUSTER_FAILED', 'kurl rook: the output of `ceph status` is not JSON');
  }
}

const MAX_FAILURES = 5;
const HEALTHY_IN_A_ROW = 5;
const HEALTH_PAUSE_MS = 1000;
const VERSION_PAUSE_MS = 10_000;

/** Calls `check` until it returns true; throws after five consecutive failures. */
async function until(check: () => Promise<boolean>, wait: () => Promise<void>): Promise<true> {
  for (let failures = 0; ;) {
    try {
      if (await check()) return true;
      failures = 0;
    } catch (error) {
      failures += 1;
      if (!(error instanceof CurlewError) || error.code !== 'CLUSTER_FAILED' || failures >= MAX_FAILURES) throw error;
    }
    await wait();
  }
}

/** Prints a line only if it differs from the previous one. */
function sayChanges(say: VerbContext['say']): VerbContext['say'] {
  let last: string | undefined;
  return (line) => {
    if (line !== last) say(line);
    last = line;
  };
}

/** Checks the health once. Throws `CLUSTER_FAILED` if Ceph is not healthy. */
export async function health(ignored: readonly string[], { say, env, signal }: VerbContext): Promise<string> {
  const cluster = await clusterCalls('rook health', { env });
  const trouble = cephTrouble(await cephStatus(cluster, say, signal), ignored);
  if (trouble !== undefined)
    throw new CurlewError('CLUSTER_FAILED', `kurl rook health: Ceph is not healthy: ${trouble}`);
  return 'Rook is healthy';
}

/** Waits until five consecutive checks find Ceph healthy; `CLUSTER_FAILED` if that takes longer than `seconds`. */
export async function waitForCephHealth(
  seconds: number | undefined,
  ignored: readonly string[],
  context: VerbContext,
): Promise<string> {
  const cluster = await clusterCalls('rook wait-for-health', context);
  context.say('Waiting for Rook-Ceph to be healthy');
  const sayTrouble = sayChanges(context.say);
  let trouble: string | undefined = 'unknown';
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
  const state = trouble === undefined ? 'healthy, but not long enough' : trouble;
  throw new CurlewError(
    'CLUSTER_FAILED',
    `kurl rook wait-for-health: Ceph did not become healthy within ${seconds ?? 0} s: ${state}`,
  );
}

/** Rook's deployments that do not have the target version yet; `label` is the name of the version label. */
export function outdatedDeployments(deployments: readonly unknown[], target: string, label: string): readonly string[] {
  const old = new Map<string, string[]>();
  const unready: string[] = [];
  for (const one of deployments) {
    const name = stringOf(at(one, 'metadata', 'name'));
    const version = stringOf(at(one, 'metadata', 'labels', label)).replace(/^v/, '');
    if (version !== target) {
      // Not labeled yet, or labeled 0.0.0 by Rook before 1.4.8.
      if (version === '' || version.includes('0.0.0')) continue;
      old.set(version, [...(old.get(version) ?? []), name]);
    }
    const of = (field: string): number => countFrom(at(one, 'status', field));
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
  /** Undefined waits forever. */
  readonly seconds: number | undefined;
}

/** Waits until all deployments of Rook have the version and are ready. */
export async function waitForVersion({ what, version, seconds }: VersionWait, context: VerbContext): Promise<string> {
  const verb = `rook wait-for-${what.toLowerCase()}-version`;
  const cluster = await clusterCalls(verb, context);
  const target = version.replace(/^v/, '');
  context.say(`Waiting for all deployments of Rook-Ceph to use ${what} ${target}`);
  const sayLeft = sayChanges(context.say);
  let problem = '';
  const done = await withinSeconds(seconds, context, async (signal) =>
    until(
      async () => {
        const items = await cluster.list(ROOK_DEPLOYMENTS, signal);
        problem = outdatedDeployments(items, target, `${what.toLowerCase()}-version`).join('; ');
        if (problem !== '') sayLeft(problem);
        return problem === '';
      },
      async () => context.pause(VERSION_PAUSE_MS, { signal }),
    ),
  );
  if (done === true) return `${what} ${target} has been rolled out`;
  throw new CurlewError(
    'CLUSTER_FAILED',
    `kurl ${verb}: ${what} ${target} was not rolled out within ${seconds ?? 0} s: ${problem === '' ? 'no response' : problem}`,
  );
}
