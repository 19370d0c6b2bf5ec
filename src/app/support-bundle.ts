/** Collects what a vendor needs to see of a machine or of a cluster into one file, without secrets. */
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import type { Context } from '../core/context.ts';
import { useCase } from '../core/request.ts';
import { REMOTE } from '../machine/run/look.ts';
import { folderOf, requireFolders } from '../steps/node/install-folder.ts';
import { toolVersion } from '../own/version.ts';
import { SUPPORT_BUNDLE, type SupportBundleRequest } from '../requests/node.ts';
import { knownSecrets } from '../runtime/support/known-secrets.ts';
import { planCluster } from '../runtime/support/cluster-items.ts';
import { clusterVerdicts } from '../runtime/support/cluster-verdicts.ts';
import { planNode } from '../runtime/support/plan.ts';
import { redactor } from '../runtime/support/redact.ts';
import type { Verdicts } from '../runtime/support/support-index.ts';
import {
  withoutRepeated,
  writeSupportBundle,
  type BundleParts,
  type WrittenBundle,
} from '../runtime/support/write-bundle.ts';

export interface PlannedSupportBundle {
  /** Absolute path. */
  readonly file: string;
  readonly files: readonly { readonly path: string; readonly source: string }[];
}

/** What the bundle would contain. Writes nothing, and runs no program. */
export const planSupportBundle = useCase(
  SUPPORT_BUNDLE,
  async (request, context: Context): Promise<PlannedSupportBundle> => {
    const { file, items } = await partsOf(request, context);
    return { file, files: withoutRepeated(items).map(({ path, source }) => ({ path, source })) };
  },
);

/** What cannot be collected is in the index of the bundle. Once the signal aborts, the bundle is completed with what is there. */
export const supportBundle = useCase(SUPPORT_BUNDLE, async (request, context: Context): Promise<WrittenBundle> => {
  const { file, about, ...parts } = await partsOf(request, context);
  return writeSupportBundle(file, parts, { about, tool: toolVersion(), ...context });
});

async function partsOf(
  request: SupportBundleRequest,
  context: Context,
): Promise<BundleParts & { readonly file: string; readonly about: string }> {
  const { cwd, env } = context;
  await requireFolders(request, context);
  const about = hostname();
  const time = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const file = resolve(cwd, request.out ?? `support-bundle-${about}-${time}.tar.gz`);
  const folders = { directory: folderOf(request, context), root: '/', remote: REMOTE };
  const node = await planNode(folders, { env });
  const specs = node.specs.map((one) => one.cluster);
  const { items, facts, secrets } = await planCluster(
    specs.flatMap(({ collectors }) => collectors),
    context,
  );
  const known = [...(await knownSecrets({ ...folders, env })), ...secrets];
  const verdicts = async (): Promise<Verdicts> => {
    const [own, cluster] = [await node.verdicts(), clusterVerdicts(specs, facts)];
    return {
      results: [...own.results, ...cluster.results],
      notEvaluated: [...own.notEvaluated, ...cluster.notEvaluated],
    };
  };
  return { items: [...node.items, ...items], verdicts, redactor: redactor(known), file, about };
}
