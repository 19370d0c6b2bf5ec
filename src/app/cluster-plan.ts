/** The changes that are due on the machines of a cluster in a file, and why. */
import { resolve } from 'node:path';
import type { Context } from '../core/context.ts';
import { CurlewError } from '../core/errors.ts';
import { printableJson } from '../core/json.ts';
import { useCase } from '../core/request.ts';
import { refuseExisting } from '../platform/files/name-file.ts';
import { writeText } from '../platform/files/write-whole.ts';
import { openSsh, type Ssh } from '../machine/ssh/ssh.ts';
import { channelsOf, openAddons } from './cluster-addons.ts';
import { inspect } from './inspect.ts';
import { readHosts } from '../machine/run/cluster-file.ts';
import { lookAt, type BundleFacts } from '../machine/run/look.ts';
import { planOf, type PlannedCluster } from '../machine/run/planned-cluster.ts';
import type { SavedClusterPlan } from '../machine/run/saved-plan.ts';
import { CLUSTER_PLAN } from '../requests/cluster.ts';

/** Changes nothing. `SPEC_INVALID` and `USAGE` for the file of the cluster; what is wrong with hosts is in the result. */
export const clusterPlan = useCase(CLUSTER_PLAN, async (request, context: Context): Promise<PlannedCluster> => {
  const { force = false } = request;
  const out = request.out === undefined ? undefined : resolve(context.cwd, request.out);
  if (out !== undefined) await refuseExisting(out, force);
  const cluster = await readHosts(request, 'plan', context);
  const bundle = request.bundle === undefined ? undefined : await bundleFacts(request.bundle, context);
  await using files = await openAddons(request, context);
  const choices = { ...request, channels: channelsOf(files) };
  await using ssh: Ssh = openSsh(context.env);
  const plan = planOf(cluster, await lookAt(cluster, { ssh, bundle }, context), bundle, choices);
  if (out !== undefined) {
    const { digest, steps } = plan;
    const saved: SavedClusterPlan = { format: 1, cluster: cluster.name, digest, steps };
    await writeText(out, `${printableJson(saved, 1)}\n`, { force });
  }
  return plan;
});

/** `SPEC_INVALID` for a bundle without Kubernetes. */
export async function bundleFacts(path: string, context: Context): Promise<BundleFacts> {
  const { digest, size, packages } = await inspect({ path }, context);
  const kubernetes = packages.find(({ name }) => name === 'kubernetes');
  if (kubernetes === undefined) {
    throw new CurlewError('SPEC_INVALID', `cannot use ${path}: it has no package kubernetes`, {
      hint: 'add it to the spec of the bundle: curlew help cluster.md',
    });
  }
  const arch = kubernetes.arch === 'arm64' ? 'aarch64' : 'x86_64';
  const ranges = packages.flatMap(({ name, version, kubernetesVersion: range }) =>
    range === undefined ? [] : [{ name, version, range }],
  );
  return { digest, size, arch, kubernetes: `v${kubernetes.version}`, ...(ranges.length > 0 && { ranges }) };
}
