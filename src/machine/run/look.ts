/** A cluster of a file as it is now: what each host says over SSH, and what a control plane sees of its Nodes. */
import { createHash } from 'node:crypto';
import * as v from 'valibot';
import type { Context } from '../../core/context.ts';
import { CurlewError } from '../../core/errors.ts';
import { fieldsOf, jsonIn, listOf } from '../../core/json.ts';
import { convert } from '../../core/schema.ts';
import { parseKubeconfig } from '../../cluster/kube/kubeconfig.ts';
import { readObject } from '../../cluster/kube/objects.ts';
import type { Held, SeenAddon, SeenCluster, SeenMachine } from '../cluster.ts';
import type { EtcdMember } from '../etcd.ts';
import { saysLostQuorum } from '../etcd.ts';
import { authorityOf, clusterNameOf, FACTS_SCRIPT, readFacts, type HostFacts } from '../facts.ts';
import { refusedTwins } from '../twins.ts';
import { readStateFile } from '../../platform/files/state-file.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import type { PackageRoom } from '../../runtime/plan/disk.ts';
import { firstAnswer } from '../../platform/limit/first-answer.ts';
import { SshError, type Ssh } from '../ssh/ssh.ts';
import type { WrittenCluster, WrittenHost } from './cluster-file.ts';
import { bornOutdated, listHosts, lostMachines, type ListedHost } from './provided-hosts.ts';
import { seenNode } from './nodes.ts';

/** On a host: curlew's own files there, which only root can read. */
export const REMOTE = '/var/lib/curlew-remote';
const AT_ONCE = 16;
const LIMIT_MS = 60_000;
/** After that, all control planes are asked for the nodes. */
const PATIENCE_MS = 5000;
/** The same for one on which something does not run. */
const BROKEN_MS = 6000;
const FACTS_LIMIT = 64 << 10;
const NODES_LIMIT = 32 << 20;
const KUBECONFIG_LIMIT = 1 << 20;

/** The bundle that hosts get. */
export interface BundleFacts {
  /** Digest of its table of contents. */
  readonly digest: string;
  /** Bytes of its file. */
  readonly size: number;
  /** The machine type, as `uname -m` prints it. */
  readonly arch: string;
  /** Version of the package kubernetes: `v1.37.2`. */
  readonly kubernetes: string;
  /** Its packages with images, and the bytes of these; what several have counts for the first. */
  readonly images?: readonly (Pick<PackageRoom, 'addon' | 'imageFormat'> & { readonly bytes: number })[];
  /** Its packages that are only for some versions of Kubernetes, and their ranges. */
  readonly ranges?: readonly { readonly name: string; readonly version: string; readonly range: string }[];
}

export interface HostLook extends ListedHost {
  readonly facts?: HostFacts;
}

export interface ClusterLook {
  readonly hosts: readonly HostLook[];
  /** Machines that only a provider has. */
  readonly extras: readonly ListedHost[];
  readonly seen: SeenCluster;
  /** Differences of the cluster from the file that stop nothing. */
  readonly held: readonly Held[];
  /** Hosts that are not as the file needs them. */
  readonly refused: readonly Held[];
  /** The Nodes of the cluster are known: otherwise nothing says that a machine is none. */
  readonly isListed: boolean;
  /** A control plane that answers for the cluster; undefined while none runs. */
  readonly speaker: WrittenHost | undefined;
  /** A control plane that must get the bundle before it can be asked. */
  readonly silent: WrittenHost | undefined;
  /** Control planes that run a step, as long as none can be asked: kubeadm may be replacing etcd or the API server. */
  readonly busy: readonly WrittenHost[];
  /** Why no control plane can be asked, where none runs a step: nothing is known of nodes, be it for a moment, as after a start. */
  readonly unasked: readonly Held[];
}

export async function lookAt(
  cluster: WrittenCluster,
  options: {
    readonly ssh: Ssh;
    readonly bundle: BundleFacts | undefined;
    /** Machines that this command has made new. */
    readonly born?: ReadonlySet<string>;
    /** How long a control plane may take to list the nodes, in milliseconds. */
    readonly limitMs?: number;
    /** A further question to hosts, at the same time as to control planes for the nodes. */
    readonly meanwhile?: (hosts: readonly HostLook[]) => Promise<void>;
  },
  context: Context,
): Promise<ClusterLook> {
  const { ssh, bundle, born, limitMs = LIMIT_MS, meanwhile } = options;
  const { signal } = context;
  const listed = await listHosts(cluster, signal);
  const look = async (one: ListedHost, at: { readonly signal: AbortSignal }): Promise<HostLook> =>
    one.problem === undefined ? { ...one, ...(await lookAtHost(ssh, one.host, at.signal)) } : one;
  const hosts = await mapLimited(listed.hosts, look, { width: AT_ONCE, signal });
  // Whoever is root on a worker must not be able to speak for the cluster.
  const control = hosts.filter(({ host }) => host.role === 'control-plane');
  const known = control.flatMap(({ facts }) => facts ?? []);
  const own = {
    name: cluster.name,
    authority: authorityOf(known, cluster.name) ?? (await authorityIn(cluster.kubeconfig)),
  };
  // kubeadm writes admin.conf before the first API server runs: such an init is continued.
  const speakers = control.filter(({ facts }) => {
    return facts?.isControlPlane === true && clusterNameOf(facts, own) === cluster.name;
  });
  const isBroken = ({ facts }: HostLook): boolean => (facts?.broken ?? []).length > 0;
  const able = speakers
    .filter(({ facts }) => facts?.bundle !== undefined)
    .toSorted((a, b) => Number(isBroken(a)) - Number(isBroken(b)));
  const ask = async (one: HostLook, at: { readonly signal: AbortSignal }): Promise<Nodes> => {
    // It would wait for an API server that does not run.
    const most = isBroken(one) ? Math.min(limitMs, BROKEN_MS) : limitMs;
    return nodesOf(ssh, one.host, { limitMs: most, signal: at.signal });
  };
  const patienceMs = able.some((one) => !isBroken(one)) ? PATIENCE_MS : 0;
  const [answers] = await Promise.all([firstAnswer(able, ask, { patienceMs, signal }), meanwhile?.(hosts)]);
  const speaker = answers.found?.item.host;
  let nodes = answers.found?.answer;
  const failures = answers.failures.map(({ item, error }): Held => {
    const reason = error instanceof SshError ? error.reason : error.message;
    const how = saysLostQuorum(reason) && error.hint !== undefined ? `; ${error.hint}` : '';
    return { host: item.host.name, reason: `its cluster cannot be asked yet: ${reason}${how}` };
  });
  const silent = able.length === 0 ? speakers : [];
  for (const { host } of silent) nodes ??= await nodesByKubectl(ssh, host, signal);
  const byName = new Map((nodes?.machines ?? []).map((one) => [one.name, one]));
  // Another operator's file, which this one may not be able to read, counts only where nodes cannot be asked for machines that are gone.
  const isGone = nodes === undefined && control.some(({ exists }) => exists === false);
  const isMade = isGone && (await readStateFile(cluster.kubeconfig, KUBECONFIG_LIMIT)) !== undefined;
  const lost = lostMachines(hosts, {
    nodes: nodes && new Set(byName.keys()),
    madeBy: isMade ? cluster.kubeconfig : undefined,
  });
  const stuck = hosts.flatMap((one) => bornOutdated(one, born));
  const machines = hosts.map(({ host: { name }, facts, problem, toCreate, exists, outdated }): SeenMachine => {
    const node = byName.get(name);
    byName.delete(name);
    const belongs = facts && clusterNameOf(facts, own);
    return {
      ...(node ?? { name, joined: false }),
      answers: facts !== undefined,
      ...(problem !== undefined && problem.problem !== 'unreachable' && { silence: problem.reason }),
      toCreate,
      exists,
      outdated: stuck.some(({ host }) => host === name) ? undefined : outdated,
      hostId: facts?.machineId,
      cluster: belongs,
      attempted: facts?.isUnfinished === true,
      begun: belongs === cluster.name ? facts?.begun : undefined,
      settings: belongs === cluster.name ? facts?.settings : undefined,
      images: bundle !== undefined && hasImages(facts, bundle, node) ? [bundle.kubernetes] : [],
    };
  });
  const busy =
    nodes === undefined && failures.length > 0 ? control.filter(({ facts }) => facts?.running !== undefined) : [];
  const waits = busy.map(({ host, facts }) => {
    const reason = `${facts?.running ?? ''} still runs there, and the cluster cannot be asked before it ends: curlew cluster apply follows it`;
    return { host: host.name, reason };
  });
  const unasked = nodes === undefined && busy.length === 0 ? failures : [];
  const isAlone = speakers.length === 0 && hosts.every(({ facts }) => facts?.isControlPlane !== true);
  return {
    hosts,
    extras: listed.extras,
    held: [...listed.held, ...stuck, ...waits, ...unasked],
    seen: {
      complete:
        nodes !== undefined || (isAlone && hosts.some(({ facts }) => facts !== undefined)) || failures.length === 0,
      machines: [...machines, ...byName.values()],
      members: nodes === undefined ? undefined : nodes.members,
      addons: new Map(nodes?.addons?.map((one) => [one.name, one])),
    },
    refused: [...refusedHosts(hosts), ...lost],
    isListed: nodes !== undefined,
    speaker,
    silent: silent[0]?.host,
    busy: busy.map(({ host }) => host),
    unasked,
  };
}

/** The run that makes a host a node loads them by itself. */
function hasImages(
  facts: HostFacts | undefined,
  { digest, kubernetes }: BundleFacts,
  node: SeenMachine | undefined,
): boolean {
  if (facts?.bundle !== digest) return false;
  return node?.joined !== true || facts.hasImages || node.kubelet === kubernetes;
}

async function lookAtHost(ssh: Ssh, host: WrittenHost, signal: AbortSignal): Promise<HostLook> {
  try {
    const limits = { limitMs: LIMIT_MS, outputLimit: FACTS_LIMIT, signal };
    const facts = readFacts(await ssh.run(host.ssh, { script: FACTS_SCRIPT, operands: [REMOTE], ...limits }));
    if (facts !== undefined) return { host, facts };
    return { host, problem: new SshError(host.ssh, 'status', 'it does not say what it is', 'connect to it: ssh') };
  } catch (error) {
    if (!(error instanceof SshError) || signal.aborted) throw error;
    return { host, problem: error };
  }
}

interface Limits {
  readonly limitMs: number;
  readonly signal: AbortSignal;
}

interface Nodes {
  readonly machines: readonly SeenMachine[];
  readonly members?: readonly EtcdMember[];
  readonly addons?: readonly (SeenAddon & { readonly name: string })[];
}

/** The document that `curlew cluster nodes` prints; another version may say more. */
const nodesSchema = v.object({
  machines: v.array(
    v.object({
      name: v.string(),
      answers: v.boolean(),
      joined: v.boolean(),
      role: v.exactOptional(v.picklist(['control-plane', 'worker'])),
      kubelet: v.exactOptional(v.string()),
      apiServer: v.exactOptional(v.string()),
      ready: v.exactOptional(v.boolean()),
      cordon: v.exactOptional(v.picklist(['curlew', 'other'])),
      cordonFor: v.exactOptional(v.string()),
      leaving: v.exactOptional(v.boolean()),
      labels: v.exactOptional(v.record(v.string(), v.string())),
      taints: v.exactOptional(v.array(v.string())),
    }),
  ),
  members: v.exactOptional(
    v.array(
      v.object({
        name: v.string(),
        healthy: v.exactOptional(v.boolean()),
        learner: v.exactOptional(v.boolean()),
      }),
    ),
  ),
  addons: v.exactOptional(
    v.array(
      v.object({
        name: v.string(),
        version: v.exactOptional(v.string()),
        id: v.exactOptional(v.string()),
        hash: v.exactOptional(v.string()),
        channel: v.exactOptional(v.string()),
      }),
    ),
  ),
});

/** The answer of `curlew cluster nodes` on a control plane: the other end of the same program. */
async function nodesOf(ssh: Ssh, host: WrittenHost, limits: Limits): Promise<Nodes> {
  const read = convert(nodesSchema, await askHost(ssh, host, { command: ['cluster', 'nodes'], ...limits }));
  if ('value' in read) return read.value;
  throw new SshError(
    host.ssh,
    'status',
    `it does not list the nodes of the cluster as this version reads them: ${read.problems[0].message}`,
    'send it this bundle: cluster apply',
  );
}

const KUBECTL = `export KUBECONFIG=/etc/kubernetes/admin.conf
kubectl get nodes -o json && echo && kubectl -n kube-system get pods -l component=etcd,tier=control-plane -o json`;
const podSchema = v.object({
  spec: v.object({ nodeName: v.string() }),
  status: v.object({ conditions: v.optional(v.array(v.object({ type: v.string(), status: v.string() })), []) }),
});

/**
 * The same on a control plane without curlew, such as that of a cluster that is adopted, for a look only: before anything is done there, it
 * gets curlew and is asked again. Undefined where kubectl does not answer.
 */
async function nodesByKubectl(ssh: Ssh, host: WrittenHost, signal: AbortSignal): Promise<Nodes | undefined> {
  try {
    const limits = { limitMs: LIMIT_MS, outputLimit: NODES_LIMIT, signal };
    const text = await ssh.run(host.ssh, { script: KUBECTL, ...limits });
    const [nodes = [], pods = []] = text.split(/^(?=\{)/m).map((one) => itemsIn(jsonIn(one)));
    const members = pods.map((pod) => {
      const { spec, status } = v.parse(podSchema, pod);
      return { name: spec.nodeName, healthy: status.conditions.some(isReady) };
    });
    if (nodes.length === 0) return undefined;
    const machines = nodes.map((node) => seenNode(readObject(node, 'list nodes')));
    // An etcd outside of the cluster has no pods.
    return { machines, ...(members.length > 0 && { members }) };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof CurlewError || error instanceof v.ValiError) return undefined;
    throw error;
  }
}

function itemsIn(list: unknown): readonly unknown[] {
  return listOf(fieldsOf(list)['items']);
}

function isReady({ type, status }: { readonly type: string; readonly status: string }): boolean {
  return type === 'Ready' && status === 'True';
}

/** The JSON document that a command of the curlew on a host prints. Throws `SshError`. */
export async function askHost(
  ssh: Ssh,
  host: WrittenHost,
  {
    command,
    limitMs = LIMIT_MS,
    signal,
  }: Partial<Limits> & { readonly command: readonly string[]; readonly signal: AbortSignal },
): Promise<unknown> {
  const script = 'cd "$1/bundle" && shift && exec ./tasks.sh "$@" --json';
  const limits = { limitMs, outputLimit: NODES_LIMIT, signal };
  return jsonIn(await ssh.run(host.ssh, { script, operands: [REMOTE, ...command], ...limits }));
}

/** sha256 of the authority that a kubeconfig names, as hosts say it; undefined without the file. */
async function authorityIn(path: string): Promise<string | undefined> {
  const text = await readStateFile(path, KUBECONFIG_LIMIT);
  if (text === undefined) return undefined;
  const { clusters, contexts, currentContext } = parseKubeconfig(path, text);
  const named = contexts.get(currentContext)?.fields['cluster'];
  const cluster = clusters.get(typeof named === 'string' ? named : '') ?? [...clusters.values()][0];
  const data = cluster?.fields['certificate-authority-data'];
  if (typeof data !== 'string') return undefined;
  return createHash('sha256').update(Buffer.from(data, 'base64')).digest('hex');
}

/** A host that is another machine of the file says nothing about what is wrong with this one. */
function refusedHosts(hosts: readonly HostLook[]): readonly Held[] {
  const twins = refusedTwins(
    hosts.flatMap(({ host: { name, ssh }, facts }) =>
      facts === undefined ? [] : { name, hostKey: ssh.hostKey, facts },
    ),
  );
  const isTwin = ({ host }: HostLook): boolean => twins.some((one) => one.host === host.name);
  return [...twins, ...hosts.flatMap((one) => (isTwin(one) ? [] : refusedHost(one)))];
}

function refusedHost({ host: { name, provided }, facts, problem }: HostLook): readonly Held[] {
  const refuse = (reason: string): readonly Held[] => [{ host: name, reason }];
  // A host that is only away is no mistake, and one that prints without end must not stop the others.
  if (problem !== undefined) {
    const isAway = ['unreachable', 'cut', 'late', 'output'].includes(problem.problem);
    const hint = provided === undefined ? problem.hint : `its provider ${provided.by.name} says how it is reached`;
    return isAway ? [] : refuse(`${problem.reason}: ${hint}`);
  }
  if (facts === undefined) return [];
  if (facts.hostname !== name)
    return refuse(
      `its hostname is ${facts.hostname}, so its Node would have that name: hostnamectl set-hostname ${name}`,
    );
  if (!facts.isPart && facts.machineId === '')
    return refuse('its /etc/machine-id is empty: systemd-machine-id-setup on it sets it up');
  return [];
}
