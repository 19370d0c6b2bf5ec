/** The file of a cluster that runs already, from what its API server says. Host keys are left to a person: nothing here may vouch for them. */
import { isIP } from 'node:net';
import type { AddonVersion } from '../../core/ref.ts';
import { CHANNEL_API_VERSION } from '../../cluster/channel/channel.ts';
import { visible } from '../../core/diagnostic.ts';
import { CurlewError } from '../../core/errors.ts';
import { fieldsOf } from '../../core/json.ts';
import { readFleet } from '../../fleet/read.ts';
import { commentedYaml, type Comments } from '../../formats/yaml/commented.ts';
import { readYaml } from '../../formats/yaml/yaml.ts';
import type { Call } from '../../cluster/kube/call.ts';
import { getObject, listObjects, type LiveObject } from '../../cluster/kube/objects.ts';
import type { Role } from '../cluster.ts';
import { byVersion } from '../refusals.ts';
import { isSemver } from '../versions.ts';
import { detailsOf, seenNode } from './nodes.ts';
import { CONFIG_MAPS, NODES } from '../../cluster/kube/core-kinds.ts';

const API_PORT = 6443;
/** kubeadm's name for a cluster that was given none. */
const UNNAMED = 'kubernetes';
const HOST_NAME = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/;
/** With kURL's internal load balancer each machine has a proxy of its own, at localhost:6444. */
const LOOPBACK = /^(?:localhost|127\.|\[::1\])/;
/** Labels and taints that Kubernetes itself sets. */
const SYSTEM = /^(?:[^/]+\.)?(?:kubernetes|k8s)\.io\//;

export interface AdoptedMachine {
  readonly name: string;
  readonly role: Role;
  readonly address: string;
  /** The line that prints the fingerprint of its host key, for a person to compare. */
  readonly hostKeyBy: string;
}

export interface AdoptedCluster extends AddonVersion {
  readonly machines: readonly AdoptedMachine[];
  /** The file. */
  readonly text: string;
}

/**
 * `CLUSTER_FAILED` for a cluster without nodes, one that kubeadm has not made, and one whose names cannot be in a file. `kubeconfig`: its path
 * from the folder of the file.
 */
export async function adoptedCluster(
  call: Call,
  { name, kubeconfig }: { readonly name?: string | undefined; readonly kubeconfig: string },
): Promise<AdoptedCluster> {
  const config = await kubeadmConfig(call);
  const nodes = (await listObjects(call, NODES)) ?? [];
  if (nodes.length === 0)
    throw refusal('it has no nodes', 'a cluster from bare hosts begins with a file: curlew cluster apply');
  const { clusterName, kubernetesVersion, networking, controlPlaneEndpoint } = config;
  const own = name ?? (typeof clusterName === 'string' ? clusterName : UNNAMED);
  const machines = nodes.map(machineOf).toSorted((a, b) => rank(a) - rank(b));
  const version = versionOf(kubernetesVersion, machines);
  const { podSubnet: pods, serviceSubnet: services, dnsDomain: domain } = fieldsOf(networking);
  const balancer = balancerOf(controlPlaneEndpoint, machines);
  const cluster = {
    apiVersion: CHANNEL_API_VERSION,
    kind: 'Cluster',
    metadata: { name: own },
    spec: {
      kubernetes: { version },
      access: { kubeconfig },
      networks: withoutMissing({ pods, services, domain }),
      ...(balancer !== undefined && { installer: { kubernetes: { loadBalancerAddress: balancer } } }),
      machines: machines.map(({ written }) => written),
    },
  };
  const comments = machines.map((one) => commentsOf(one, version));
  const first = balancer !== undefined && LOOPBACK.test(balancer) ? proxyNote(balancer) : undefined;
  const text = commentedYaml(cluster, { path: ['spec', 'machines'], comments, first });
  const { diagnostics } = readFleet([{ path: 'cluster.yaml', folder: '.', text }]);
  const wrong = diagnostics.find(({ severity }) => severity === 'error');
  if (wrong !== undefined)
    throw refusal(wrong.message, wrong.message.includes('name') ? 'give it a name with --name' : undefined);
  return { name: own, version, machines: machines.map(adoptedMachine), text };
}

function refusal(what: string, hint?: string): CurlewError {
  return new CurlewError('CLUSTER_FAILED', `cannot adopt the cluster: ${what}`, { hint });
}

async function kubeadmConfig(call: Call): Promise<Readonly<Record<string, unknown>>> {
  const configMap = await getObject(call, CONFIG_MAPS, { namespace: 'kube-system', name: 'kubeadm-config' });
  if (configMap === undefined) {
    throw refusal(
      'it has no ConfigMap kube-system/kubeadm-config, so kubeadm has not made it',
      'only clusters of kubeadm, kURL and curlew can be adopted; those of a cloud, k3s or RKE2 are changed by their own tools',
    );
  }
  const text = fieldsOf(configMap['data'])['ClusterConfiguration'];
  const config = typeof text === 'string' ? fieldsOf(readYaml('kubeadm-config', text).value) : {};
  if (config['kind'] === 'ClusterConfiguration') return config;
  throw refusal(
    'its ConfigMap kube-system/kubeadm-config has no ClusterConfiguration that can be read',
    'kubeadm init phase upload-config kubeadm writes it again',
  );
}

interface Found {
  /** Checked with the whole file. */
  readonly written: Readonly<Record<string, unknown>> & Pick<AdoptedMachine, 'name' | 'role'>;
  readonly address: string;
  readonly kubelet: string;
  readonly os: string;
}

function machineOf(node: LiveObject): Found {
  const { name, role = 'worker', kubelet = '' } = seenNode(node);
  const { addresses, os, taints } = detailsOf(node);
  if (!HOST_NAME.test(name)) throw refusal(`a Node has the name ${visible(name)}, which no machine can have`);
  const address = addresses[0] ?? name;
  // It becomes part of a line that people run.
  if (isIP(address) === 0 && !HOST_NAME.test(address))
    throw refusal(`the Node ${name} has the address ${visible(address)}, which is none`);
  const labels = Object.entries(node.metadata.labels).filter(([key]) => !SYSTEM.test(key));
  const own = taints.filter(({ key }) => !SYSTEM.test(key));
  const written = {
    name,
    role,
    address,
    ...(labels.length > 0 && { labels: Object.fromEntries(labels) }),
    ...(own.length > 0 && { taints: own }),
  };
  return { written, address, kubelet, os };
}

function rank({ written }: Found): number {
  return written.role === 'control-plane' ? 0 : 1;
}

/** A control plane that is ahead of kubeadm's record cannot go down to it. */
function versionOf(recorded: unknown, machines: readonly Found[]): string {
  const control = machines.flatMap(({ written, kubelet }) => (written.role === 'control-plane' ? [kubelet] : []));
  if (control.length === 0) throw refusal('none of its nodes is a control plane');
  const versions = [...control, ...(typeof recorded === 'string' ? [recorded] : [])].filter((one) => isSemver(one));
  const highest = versions.toSorted(byVersion).at(-1);
  if (highest !== undefined) return highest.replace(/^v?/, 'v');
  throw refusal('its version of Kubernetes cannot be read');
}

/** kURL and curlew name a single control plane itself; only another address reaches several. */
function balancerOf(endpoint: unknown, machines: readonly Found[]): string | undefined {
  if (typeof endpoint !== 'string' || !URL.canParse(`https://${endpoint}`)) return undefined;
  const { hostname, port } = new URL(`https://${endpoint}`);
  const isNode = machines.some(({ written, address }) => address === hostname || written.name === hostname);
  return isNode ? undefined : `${hostname}:${port === '' ? API_PORT : port}`;
}

function proxyNote(balancer: string): string {
  return `Each machine reaches the API server at ${balancer}, by a proxy of its own: with kURL, the internal load balancer.\nA machine that joins needs that proxy before.`;
}

function commentsOf({ address, os, kubelet }: Found, version: string): Comments {
  const differs = kubelet === version ? '' : `; its kubelet has ${visible(kubelet) || 'no version'}, not ${version}`;
  return {
    before: `${visible(os)}${differs}`,
    after: `Its host key, compared with its console: ${keyLine(address)}\nssh: { hostKey: 'SHA256:…' }`,
  };
}

function adoptedMachine({ written: { name, role }, address }: Found): AdoptedMachine {
  return { name, role, address, hostKeyBy: keyLine(address) };
}

function keyLine(address: string): string {
  return `ssh-keyscan -t ed25519 ${address} | ssh-keygen -lf -`;
}

function withoutMissing(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => typeof value === 'string' && value !== ''));
}
