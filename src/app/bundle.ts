/** Combines all packages of an installer spec into one file. */
import { resolve } from 'node:path';
import { planDelta } from '../ship/bundle/delta/delta-plan.ts';
import { INVENTORY_HINT, INVENTORY_LIMIT, parseInventory, type Inventory } from '../ship/bundle/delta/inventory.ts';
import { planSource } from '../ship/bundle/write/plan-source.ts';
import { summarize, type BundlePlan, type PlanSummary } from '../ship/bundle/bundle-plan.ts';
import { canceledOr, CurlewError, NOTHING_WRITTEN } from '../core/errors.ts';
import { readLimited } from '../platform/files/read-limited.ts';
import type { NotCurrent } from '../ship/release/signed-release.ts';
import { isCompressed, refuseArchive } from '../ship/bundle/file-kind.ts';
import { checkContents } from '../steps/archives/verify-whole.ts';
import { openPlan } from '../steps/bundle/open-plan.ts';
import { bundleTarget, type ByteSink, type WrittenFiles } from '../steps/bundle/target.ts';
import type { Context } from '../core/context.ts';
import { toolVersion } from '../own/version.ts';
import { BUNDLE, type BundleRequest } from '../requests/bundle.ts';
import { useCase } from '../core/request.ts';
import { inventoryOf } from './inventory.ts';

export interface BundleResult extends PlanSummary, WrittenFiles {
  /** Digest of the table of contents, which a signature covers. */
  readonly tocDigest: string;
  /** Set if the named release is not the current one of the store. */
  readonly notCurrent?: NotCurrent | undefined;
}

/** Writes a bundle of unchanged byte ranges of published packages to a file, a store, or `sink` instead of `output`. */
export const bundle = useCase(BUNDLE, async (request, context: Context, sink?: ByteSink): Promise<BundleResult> => {
  return bundleTo(request, context, sink).catch((error: unknown) => {
    const left = sink === undefined ? NOTHING_WRITTEN : `what was written to ${sink.name} is incomplete`;
    throw canceledOr(error, context.signal, left);
  });
});

async function bundleTo(request: BundleRequest, context: Context, sink?: ByteSink): Promise<BundleResult> {
  if (request.spec !== undefined) await refuseArchive(resolve(context.cwd, request.spec), request.spec);
  const write = await bundleTarget(request, context, sink);
  await using open = await openPlan(request, context);
  const plan = await planSince(open.plan, request.since, context);
  if (request.verify === true && request.dryRun !== true) {
    const { index } = plan.splice;
    await checkContents(planSource(request.output ?? 'bundle', plan.splice, open.sources), index, context);
  }
  const { notCurrent } = open;
  const result = { ...(await write({ ...open, plan })), tocDigest: plan.splice.index.tocDigest, ...summarize(plan) };
  return notCurrent === undefined ? result : { ...result, notCurrent };
}

/** The plan itself, or its delta from an inventory. */
async function planSince(plan: BundlePlan, path: string | undefined, context: Context): Promise<BundlePlan> {
  if (path === undefined) return plan;
  if (plan.bundle.delta !== undefined) {
    throw new CurlewError(
      'USAGE',
      'curlew bundle: the saved plan is for a delta: --since requires a plan for a whole bundle',
    );
  }
  return planDelta(plan, await inventoryIn(path, context));
}

/** The inventory in a file, or that of a bundle or package, of which only the table of contents is read. */
async function inventoryIn(path: string, context: Context): Promise<Inventory> {
  const { cwd, report } = context;
  const file = resolve(cwd, path);
  if (await isCompressed(file)) return inventoryOf([path], {}, context);
  const data = await readLimited(file, INVENTORY_LIMIT).catch((error: unknown) => {
    const isOther = error instanceof CurlewError && error.code === 'FILE_UNUSABLE';
    throw isOther ? error.with({ hint: INVENTORY_HINT }) : error;
  });
  const inventory = parseInventory(data.toString('utf8'), path);
  if (inventory.tool !== toolVersion()) {
    report({ type: 'note', level: 'info', text: `${path}: created by curlew ${inventory.tool}` });
  }
  return inventory;
}
