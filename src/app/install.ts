/** Runs of an installer spec: `install`, `join` and `upgrade`, and their dry runs. */
import { resolve } from 'node:path';
import { refuseExisting } from '../platform/files/name-file.ts';
import { writeText } from '../platform/files/write-whole.ts';
import { requirePrograms } from '../runtime/host/host-facts.ts';
import { plainPlace } from '../runtime/node/node-place.ts';
import { execute } from '../runtime/run/execute.ts';
import { readable } from '../runtime/history/history.ts';
import { formatPlan, requireSamePlan } from '../runtime/run/saved-plan.ts';
import { prepare, viewRun } from '../runtime/prepare/prepare.ts';
import type { Context } from '../core/context.ts';
import { savedOptions } from '../steps/node/saved-options.ts';
import { changing } from '../steps/node/installed-run.ts';
import { findTrialCluster } from '../steps/node/trial-cluster.ts';
import { placeOf, placesOf, nodeTargetOf } from '../steps/node/target.ts';
import { openSource } from '../steps/sources/run-source.ts';
import { toolVersion } from '../own/version.ts';
import { PLANNED_RUN, RUN, type InstallRequest } from '../requests/node.ts';
import { useCase } from '../core/request.ts';
import { upgradeOf } from './node-upgrade.ts';
import { resolveRequest, runRequest } from './install-request.ts';
import { extrasOf, type NodeResult } from './install-result.ts';

/** Executes a run of this kind; an upgrade of the node that add-ons were installed from is an install. */
export const install = useCase(RUN, async (input, context): Promise<NodeResult> =>
  changing(context, async () => perform(input, context)),
);

async function perform(input: InstallRequest, context: Context): Promise<NodeResult> {
  const { request, flags, saved } = await resolveRequest(input, context);
  const target = nodeTargetOf(request, context);
  await requirePrograms(target, context);
  await using source = await openSource(request, context, { directory: target.directory, remember: true });
  const run = await runRequest(request, context, { source, flags });
  // A missing package or setting is named before a cluster is asked, and before there is a sandbox.
  const cluster = await findTrialCluster(request, context);
  const place = { ...(await placeOf(target, context)), cluster: cluster?.facts };
  await using prepared = await prepare({ ...run, place }, context);
  if (saved !== undefined) requireSamePlan(saved, prepared, toolVersion());
  await source.remember?.();
  await using _kubeconfig = await cluster?.writeIn(target.directory);
  const { report, ask, signal } = context;
  const upgrade = await upgradeOf(prepared, request, context);
  const result = await execute(prepared, { report, ask, signal, node: upgrade?.around });
  const next = upgrade?.next();
  return { ...result, ...extrasOf(prepared, source), ...(next === undefined ? {} : { next }) };
}

/** Plans {@link install}. Changes nothing: no lock, no folder, no hook. */
export const planInstall = useCase(PLANNED_RUN, async (input, context): Promise<NodeResult> => {
  const { cwd, report, signal } = context;
  const { request, flags, saved } = await resolveRequest(input, context);
  const { directory, option } = placesOf(request, context);
  const force = input.force === true;
  const out = input.out === undefined ? undefined : resolve(cwd, input.out);
  if (out !== undefined) await refuseExisting(out, force);
  await requirePrograms({ directory, option }, context);
  await using source = await openSource(request, context, { directory, remember: false });
  const run = await runRequest(request, context, { source, flags });
  const cluster = await findTrialCluster(request, context, { isPlan: true });
  const place = { ...plainPlace(directory, option), cluster: cluster?.facts };
  const view = await readable(directory, async () => viewRun({ ...run, place }, context));
  for (const text of view.view.notes) report({ type: 'note', level: 'warning', text });
  if (saved !== undefined) requireSamePlan(saved, view, toolVersion());
  const upgrade = await upgradeOf(view, request, context);
  const words = savedOptions(RUN.fields, request, context);
  const { dryRun } = await import('../runtime/run/dry-run.ts');
  const result = await dryRun(view, { words, tool: toolVersion(), out, report, signal });
  if (out !== undefined) await writeText(out, formatPlan(result), { force, mode: 0o600 });
  const steps = upgrade === undefined ? {} : { upgrade: { node: upgrade.node, steps: upgrade.steps } };
  return { ...result, ...extrasOf(view, source), ...steps };
});
