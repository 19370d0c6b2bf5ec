/** What would change on the machines of a cluster in a file, and why. */
import { resolve } from 'node:path';
import type { Context } from '../core/context.ts';
import { canonicalJson, digestOf, type Digest } from '../core/digest.ts';
import { CurlewError } from '../core/errors.ts';
import { printableJson } from '../core/json.ts';
import { useCase } from '../core/request.ts';
import type { Held, Step } from '../machine/cluster.ts';
import { planCluster } from '../machine/plan.ts';
import { writeText } from '../platform/files/write-whole.ts';
import { openSsh, type Ssh } from '../ssh/ssh.ts';
import { inspect } from './inspect.ts';
import { readHosts, type WrittenCluster } from '../machine/run/cluster-file.ts';
import { lookAt, type BundleFacts, type ClusterLook } from '../machine/run/look.ts';
import { CLUSTER_PLAN } from '../requests/cluster.ts';

export interface PlannedCluster {
  readonly cluster: string;
  readonly hosts: readonly {
    readonly name: string;
    readonly role: string;
    /** `debian 12, x86_64, 3900 MiB`; why it does not answer otherwise. */
    readonly text: string;
    readonly answers: boolean;
    readonly joined: boolean;
    readonly kubelet?: string | undefined;
  }[];
  readonly steps: readonly Step[];
  readonly held: readonly Held[];
  readonly refused: readonly Held[];
  /** Digest of everything that the plan depends on. */
  readonly digest: Digest;
}

export interface SavedPlan {
  readonly format: 1;
  readonly cluster: string;
  readonly digest: Digest;
  readonly steps: readonly Step[];
}

/** Changes nothing. `SPEC_INVALID` and `USAGE` for the file of the cluster; what is wrong with hosts is in the result. */
export const clusterPlan = useCase(CLUSTER_PLAN, async (request, context: Context): Promise<PlannedCluster> => {
  const { files, out, force = false } = request;
  const cluster = await readHosts(files, 'plan', context);
  const bundle = request.bundle === undefined ? undefined : await bundleFacts(request.bundle, context);
  await using ssh: Ssh = openSsh(context.env);
  const plan = planOf(cluster, await lookAt(cluster, { ssh, bundle }, context), bundle);
  if (out !== undefined) {
    const { digest, steps } = plan;
    const saved: SavedPlan = { format: 1, cluster: cluster.name, digest, steps };
    await writeText(resolve(context.cwd, out), `${printableJson(saved, 1)}\n`, { force });
  }
  return plan;
});

/** `SPEC_INVALID` for a bundle without Kubernetes. */
export async function bundleFacts(path: string, context: Context): Promise<BundleFacts> {
  const { digest, size, packages } = await inspect({ path }, context);
  const kubernetes = packages.find(({ name }) => name === 'kubernetes');
  if (kubernetes === undefined) {
    throw new CurlewError('SPEC_INVALID', `cannot use ${path}: it has no package kubernetes`, {
      hint: 'add it to the spec of the bundle: docs/cluster.md',
    });
  }
  const arch = kubernetes.arch === 'arm64' ? 'aarch64' : 'x86_64';
  return { digest, size, arch, kubernetes: `v${kubernetes.version}` };
}

/** Pure. */
export function planOf(cluster: WrittenCluster, look: ClusterLook, bundle: BundleFacts | undefined): PlannedCluster {
  const { hosts, seen, silent } = look;
  const own = { name: cluster.name, version: cluster.version, paused: cluster.paused };
  const machines = cluster.machines.map(({ name, role, address, kubeletVersion }) => {
    return { name, role, address, kubeletVersion };
  });
  const desired = { ...own, machines };
  const planned = planCluster(desired, seen);
  const early = planned.steps.filter(({ phase, to }) => phase === 'join' && to !== cluster.version);
  const refused = [
    ...refusals(cluster, bundle),
    ...look.refused,
    ...planned.refused,
    ...early.map(({ host = '', to }) => ({
      host,
      reason: `it would join with ${to}, and the bundle has ${cluster.version}: let it join with the bundle of ${to} first, or add it after the upgrade`,
    })),
  ];
  const first: readonly Step[] =
    silent === undefined
      ? planned.steps
      : [
          {
            host: silent.name,
            phase: 'images',
            to: cluster.version,
            reason: 'curlew must be there to ask it',
            waits: [],
          },
        ];
  const steps = refused.length > 0 ? [] : first;
  const shown = hosts.map(({ host: { name, role }, facts, problem }) => {
    const node = seen.machines.find((one) => one.name === name);
    return {
      name,
      role,
      text: facts === undefined ? (problem?.reason ?? '') : `${facts.os}, ${facts.arch}, ${facts.memoryMiB} MiB`,
      answers: facts !== undefined,
      joined: node?.joined === true,
      kubelet: node?.kubelet,
    };
  });
  const held = silent === undefined ? planned.held : [];
  // Free space changes all the time.
  const digest = digestOf(
    canonicalJson({
      desired,
      installer: cluster.installer,
      seen: jsonOf(seen),
      refused,
      steps,
      bundle: bundle ?? null,
    }),
  );
  return { cluster: cluster.name, hosts: shown, steps, held, refused, digest };
}

function jsonOf(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

function refusals({ machines, version, installer }: WrittenCluster, bundle: BundleFacts | undefined): readonly Held[] {
  const found: Held[] = [];
  const { loadBalancerAddress } = Object(installer['kubernetes']);
  const control = machines.filter(({ role }) => role === 'control-plane');
  if (control.length > 1 && typeof loadBalancerAddress !== 'string') {
    found.push({
      reason: `${control.length} control planes need an address that reaches all of them: add spec.installer.kubernetes.loadBalancerAddress`,
    });
  }
  if (bundle !== undefined && bundle.kubernetes !== version)
    found.push({
      reason: `the bundle has Kubernetes ${bundle.kubernetes}, and the file wants ${version}: add its bundle`,
    });
  return found;
}
