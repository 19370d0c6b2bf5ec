/** Brings the machines of a cluster to what its file says, over SSH. */
import { resolve } from 'node:path';
import type { Context } from '../core/context.ts';
import { CurlewError } from '../core/errors.ts';
import { fieldsOf, jsonIn } from '../core/json.ts';
import { useCase } from '../core/request.ts';
import { readHosts } from '../machine/run/cluster-file.ts';
import { planOf, type PlannedCluster } from '../machine/run/planned.ts';
import { followPlan, type AppliedCluster } from '../machine/run/settle.ts';
import { readFound } from '../platform/files/state-file.ts';
import { CLUSTER_APPLY } from '../requests/cluster.ts';
import { bundleFacts } from './cluster-plan.ts';

const PLAN_LIMIT = 16 << 20;

/**
 * Continues what an attempt before it, also of another operator, has begun. `BUSY` while another operator applies it, `PLAN_CHANGED` if the
 * plan of `plan` is no longer what would be done. Failures of hosts are in the result.
 */
export const applyCluster = useCase(CLUSTER_APPLY, async (request, context: Context): Promise<AppliedCluster> => {
  const { files, plan: saved, ignore } = request;
  const cluster = await readHosts(files, 'apply', context);
  const bundle = { path: request.bundle, facts: await bundleFacts(request.bundle, context) };
  return followPlan(
    {
      cluster,
      doing: `apply ${cluster.name}`,
      bundle,
      ignore: ignore ?? [],
      next: (look) => planOf(cluster, look, bundle.facts),
      ...(saved !== undefined && { check: async (plan) => requireSame(saved, plan, context) }),
    },
    context,
  );
});

async function requireSame(path: string, plan: PlannedCluster, { cwd }: Context): Promise<void> {
  const text = await readFound(resolve(cwd, path), PLAN_LIMIT);
  if (text === undefined)
    throw new CurlewError('NOT_FOUND', `cannot read ${path}: it does not exist`, { hint: 'check the name' });
  const { format, cluster, digest } = fieldsOf(jsonIn(text.toString('utf8')));
  if (format !== 1 || typeof digest !== 'string')
    throw new CurlewError('USAGE', `cannot apply ${path}: it is not a plan of curlew cluster plan`, {
      hint: 'make it with --out',
    });
  if (cluster === plan.cluster && digest === plan.digest) return;
  throw new CurlewError(
    'PLAN_CHANGED',
    `cannot apply ${path}: the file, the bundle, or the machines have changed since`,
    {
      hint: 'plan again with the same options, and look at what differs',
    },
  );
}
