/** The state of a cluster now, as its machines and the cluster itself report it. */
import * as v from 'valibot';
import { CurlewError } from '../core/errors.ts';
import { useCase } from '../core/request.ts';
import { shortened } from '../core/shortened.ts';
import type { Held } from '../machine/cluster.ts';
import type { HostLock } from '../machine/facts.ts';
import { expiredProblems } from '../machine/run/certificates.ts';
import { readHosts, type WrittenHost } from '../machine/run/cluster-file.ts';
import type { ClusterHealth } from '../machine/run/node-health.ts';
import { askHost, lookAt, type ClusterLook } from '../machine/run/look.ts';
import { planOf, type PlannedCluster } from '../machine/run/planned-cluster.ts';
import { mapLimited } from '../platform/limit/each.ts';
import { CLUSTER_STATUS } from '../requests/cluster.ts';
import { openSsh, type Ssh } from '../machine/ssh/ssh.ts';

export interface ClusterStatus
  extends Pick<ClusterHealth, 'addons' | 'pods' | 'morePods'>, Pick<PlannedCluster, 'held' | 'refused'> {
  readonly cluster: string;
  /** Version of Kubernetes in the file. */
  readonly version: string;
  readonly hosts: readonly (PlannedCluster['hosts'][number] & {
    /** Undefined for a machine that the cluster does not have as a Node. */
    readonly ready?: boolean | undefined;
    /** Why it is not ready. */
    readonly reason?: string | undefined;
    readonly cordoned: boolean;
    /** The operator who changes the cluster now. */
    readonly lock?: HostLock | undefined;
    /** curlew is there, so that certificates and the disk of images are known. */
    readonly asked: boolean;
  })[];
  /** The certificate of all machines that expires first. */
  readonly certificate?: { readonly host: string; readonly name: string; readonly expires: string } | undefined;
  /** Number of steps that would bring the cluster to what its file says. */
  readonly steps: number;
  readonly problems: readonly Held[];
  /** It is as its file says, and nothing above is wrong. */
  readonly healthy: boolean;
}

const AT_ONCE = 16;
/** A person waits. */
const NODES_MS = 20_000;

/** Limits on the shown part of a list of another machine, and of a text in it. */
const [MAX_PROBLEMS, MAX_LENGTH] = [50, 400];

const list = <Item extends v.GenericSchema>(item: Item) => v.optional(v.array(item), []);
const text = v.pipe(
  v.string(),
  v.transform((all) => shortened(all, MAX_LENGTH)),
);
const unhealthy = v.object({ name: text, reason: text });
/** {@link ClusterHealth} from another machine. */
const healthSchema = v.object({
  nodes: list(unhealthy),
  addons: list(unhealthy),
  pods: list(unhealthy),
  morePods: v.optional(v.number(), 0),
  certificates: list(v.object({ name: text, expires: v.pipe(v.string(), v.isoTimestamp()) })),
  images: v.optional(v.object({ folder: text, used: v.number(), limit: v.number() })),
  problems: list(text),
});
type Health = v.InferOutput<typeof healthSchema>;
type Part = Pick<ClusterHealth, 'addons' | 'pods' | 'morePods'>;

/** Changes nothing. `SPEC_INVALID` and `USAGE` for the file of the cluster; what is wrong with hosts and settings is in the result. */
export const clusterStatus = useCase(CLUSTER_STATUS, async (request, context): Promise<ClusterStatus> => {
  const cluster = await readHosts({ ...request, withoutSettings: true }, 'look at', context);
  await using ssh = openSsh(context.env);
  let answers: readonly Said[] = [];
  const meanwhile = async (seen: ClusterLook['hosts']): Promise<void> => {
    answers = await healthOfHosts(ssh, seen, context.signal);
  };
  const look = await lookAt(cluster, { ssh, bundle: undefined, limitMs: NODES_MS, meanwhile }, context);
  const { hosts, steps, held, refused } = planOf(cluster, look, undefined);
  const broken = new Map(look.hosts.map(({ host, facts }) => [host.name, facts?.broken.join('; ') ?? '']));
  const said = answers.flatMap(({ host, problems: all }) => {
    const more = all.length > MAX_PROBLEMS ? [`${all.length - MAX_PROBLEMS} more problems`] : [];
    return [...all.slice(0, MAX_PROBLEMS), ...more].map((reason) => ({ host, reason }));
  });
  const stopped = [...broken].flatMap(([host, reason]) =>
    reason === '' ? [] : [{ host, reason: `${reason}: curlew machine repair starts it again` }],
  );
  const problems = [...stopped, ...said];
  // Whoever is root on a worker must not be able to speak for the cluster.
  const speaker = answers.find(({ host }) => host === look.speaker?.name)?.health;
  const { addons, pods, morePods }: Part = speaker ?? { addons: [], pods: [], morePods: 0 };
  const reasons = new Map(speaker?.nodes.map(({ name, reason }) => [name, reason]));
  const shown = hosts.map((host): ClusterStatus['hosts'][number] => {
    const { name, joined } = host;
    const node = look.seen.machines.find((one) => one.name === name);
    const member = look.seen.members?.find((one) => one.name === name);
    const why = broken.get(name) || (member?.healthy === false ? 'its member of etcd is not healthy' : '');
    const ready = joined ? node?.ready === true && why === '' : undefined;
    const facts = look.hosts.find((one) => one.host.name === name)?.facts;
    return {
      ...host,
      ready,
      ...(ready === false && { reason: why || reasons.get(name) || 'it is not ready' }),
      cordoned: node?.cordon !== undefined,
      lock: facts?.lock,
      asked: answers.some((one) => one.host === name && one.health !== undefined),
    };
  });
  const certificates = answers.flatMap(({ host, health }) =>
    (health?.certificates ?? []).map((one) => ({ host, ...one })),
  );
  const [certificate] = certificates.toSorted((a, b) => Date.parse(a.expires) - Date.parse(b.expires));
  const isSettled = steps.length + held.length + refused.length === 0;
  const isWell =
    addons.length + pods.length + problems.length === 0 &&
    shown.every(({ ready, answers }) => ready === true && answers);
  return {
    cluster: cluster.name,
    version: cluster.version,
    hosts: shown,
    addons,
    pods,
    morePods,
    certificate,
    steps: steps.length,
    held,
    refused,
    problems,
    healthy: isSettled && isWell,
  };
});

interface Said {
  readonly host: string;
  readonly health?: Health | undefined;
  readonly problems: readonly string[];
}

/** The answer of `curlew status` on each machine of the cluster that has curlew. */
async function healthOfHosts(ssh: Ssh, hosts: ClusterLook['hosts'], signal: AbortSignal): Promise<readonly Said[]> {
  const able = hosts.flatMap(({ host, facts }) => (facts?.isPart && facts.bundle !== undefined ? host : []));
  const ask = async (host: WrittenHost): Promise<Said> => {
    try {
      const health = healthIn(await askHost(ssh, host, { command: ['status'], limitMs: NODES_MS, signal }));
      const problems = health === undefined ? ['it does not say how it is'] : problemsOf(health);
      return { host: host.name, health, problems };
    } catch (error) {
      if (!(error instanceof CurlewError) || signal.aborted) throw error;
      return { host: host.name, problems: [error.message] };
    }
  };
  return mapLimited(able, ask, { width: AT_ONCE, signal });
}

function healthIn(status: unknown): Health | undefined {
  const parsed = v.safeParse(v.object({ cluster: healthSchema }), status);
  return parsed.success ? parsed.output.cluster : undefined;
}

function problemsOf({ problems, images, certificates }: Health): readonly string[] {
  return [
    ...problems,
    // An earlier version has them not among its problems.
    ...expiredProblems(certificates).filter((text) => !problems.includes(text)),
    ...(images === undefined || images.used < images.limit
      ? []
      : [`the disk of ${images.folder} is ${images.used} % full: the kubelet removes images`]),
  ];
}
