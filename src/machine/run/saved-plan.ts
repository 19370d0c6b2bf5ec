/** Plans of a cluster in files: what people have looked at is done, and nothing else. */
import { resolve } from 'node:path';
import type { Context } from '../../core/context.ts';
import type { Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { fieldsOf, jsonIn } from '../../core/json.ts';
import { readFound } from '../../platform/files/state-file.ts';
import type { Step } from '../cluster.ts';
import type { PlannedCluster } from './planned-cluster.ts';

const PLAN_LIMIT = 16 << 20;

/** The content of the file. */
export interface SavedClusterPlan {
  readonly format: 1;
  readonly cluster: string;
  readonly digest: Digest;
  readonly steps: readonly Step[];
}

/** A plan that people have looked at. */
export interface Saved {
  readonly path: string;
  readonly cluster: unknown;
  readonly digest: string;
  readonly steps: ReadonlySet<string>;
}

/** `NOT_FOUND` without the file, `USAGE` for one that is no plan. */
export async function readSaved(path: string, { cwd }: Pick<Context, 'cwd'>): Promise<Saved> {
  const text = await readFound(resolve(cwd, path), PLAN_LIMIT);
  if (text === undefined)
    throw new CurlewError('NOT_FOUND', `cannot read ${path}: it does not exist`, { hint: 'check the name' });
  const { format, cluster, digest, steps } = fieldsOf(jsonIn(text.toString('utf8')));
  if (format !== 1 || typeof digest !== 'string' || !Array.isArray(steps))
    throw new CurlewError('USAGE', `cannot apply ${path}: it is not a plan of curlew cluster plan`, {
      hint: 'make it with --out',
    });
  return { path, cluster, digest, steps: new Set(steps.map((step) => keyOf(fieldsOf(step)))) };
}

function keyOf({ host, phase, addon, to }: Partial<Readonly<Record<keyof Step, unknown>>>): string {
  return JSON.stringify([host, phase, addon, to]);
}

/** `PLAN_CHANGED` if something else would be done now. */
export function requireSameCluster({ path, cluster, digest }: Saved, plan: PlannedCluster): void {
  if (cluster === plan.cluster && digest === plan.digest) return;
  throw new CurlewError(
    'PLAN_CHANGED',
    `cannot apply ${path}: the file, the bundle, or the machines have changed since`,
    { hint: 'plan again with the same options, and look at what differs' },
  );
}

/** Nothing more is done once there is a step that the saved plan does not have. */
export function withinPlan({ path, steps }: Saved, plan: PlannedCluster): PlannedCluster {
  const unseen = plan.steps.filter((step) => !steps.has(keyOf(step)));
  if (unseen.length === 0) return plan;
  const held = unseen.map(({ host, phase }) => ({
    ...(host !== undefined && { host }),
    reason: `${path} does not have its step ${phase}: plan again, and look at it`,
  }));
  return { ...plan, steps: [], held: [...plan.held, ...held] };
}
