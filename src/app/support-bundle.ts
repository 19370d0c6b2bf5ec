/** Collects what a vendor needs to see of a machine or of a cluster into one file, without secrets. */
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import type { Context } from '../core/context.ts';
import { useCase } from '../core/request.ts';
import { readHosts } from '../machine/run/cluster-file.ts';
import { hostBundles, planHostBundles } from '../machine/run/host-bundles.ts';
import { REMOTE } from '../machine/run/look.ts';
import { clusterHealth } from '../machine/run/node-health.ts';
import { openSsh } from '../machine/ssh/ssh.ts';
import { toolVersion } from '../own/version.ts';
import { SUPPORT_BUNDLE, type SupportBundleRequest } from '../requests/node.ts';
import { planClusterItems } from '../runtime/support/cluster-items.ts';
import type { Item } from '../runtime/support/collect.ts';
import { knownSecrets } from '../runtime/support/known-secrets.ts';
import { planNode } from '../runtime/support/support-plan.ts';
import { redactor } from '../runtime/support/redact.ts';
import type { Verdicts } from '../runtime/support/support-index.ts';
import { clusterVerdicts } from '../runtime/support/verdicts.ts';
import {
  withoutRepeated,
  writeSupportBundle,
  type BundleParts,
  type WrittenBundle,
} from '../runtime/support/write-bundle.ts';
import { folderOf, requireFolders } from '../steps/node/install-folder.ts';

const DOING = 'collect a support bundle of';

export interface PlannedSupportBundle {
  /** Absolute path. */
  readonly file: string;
  readonly files: readonly { readonly path: string; readonly source: string }[];
}

/** The contents that the bundle would have. Writes nothing, and runs no program of an add-on. */
export const planSupportBundle = useCase(SUPPORT_BUNDLE, async (request, context): Promise<PlannedSupportBundle> => {
  const { files = [], config } = request;
  if (files.length > 0) {
    const cluster = await readHosts({ files, config, withoutSettings: true }, DOING, context);
    await using ssh = openSsh(context.env);
    return { file: fileOf(request, cluster.name, context), files: await planHostBundles(cluster, ssh, context) };
  }
  const { items } = await partsOf(request, context);
  const rows = withoutRepeated(items).map(({ path, source }) => ({ path, source }));
  return { file: fileOf(request, hostname(), context), files: rows };
});

/** The index of the bundle names items that cannot be collected. Once the signal aborts, the bundle is completed with what is there. */
export const supportBundle = useCase(SUPPORT_BUNDLE, async (request, context): Promise<WrittenBundle> => {
  const { files = [], config } = request;
  const options = { tool: toolVersion(), ...context };
  if (files.length === 0) {
    const about = hostname();
    return writeSupportBundle(fileOf(request, about, context), await partsOf(request, context), { ...options, about });
  }
  const cluster = await readHosts({ files, config, withoutSettings: true }, DOING, context);
  await using ssh = openSsh(context.env);
  const bundles = await hostBundles(cluster, ssh, context);
  const parts = {
    ...bundles,
    redactor: redactor(await knownSecrets({ ...foldersOf(request, context), env: context.env })),
  };
  const about = cluster.name;
  // Several machines take longer than one, and each has its own limit.
  return await writeSupportBundle(fileOf(request, about, context), parts, { ...options, about, limitOfAll: HOSTS_MS });
});

const HOSTS_MS = 60 * 60_000;

function fileOf({ out }: SupportBundleRequest, about: string, { cwd }: Context): string {
  const time = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '');
  return resolve(cwd, out ?? `support-bundle-${about}-${time}.tar.gz`);
}

function foldersOf(request: SupportBundleRequest, context: Context) {
  return { directory: folderOf(request, context), root: '/', remote: REMOTE };
}

async function partsOf(request: SupportBundleRequest, context: Context): Promise<BundleParts> {
  const { env } = context;
  await requireFolders(request, context);
  const folders = foldersOf(request, context);
  const node = await planNode(folders, { env });
  const specs = node.specs.map((one) => one.cluster);
  const collectors = specs.flatMap((one) => one.collectors);
  const { items, facts, secrets } = await planClusterItems(collectors, context);
  const known = [...(await knownSecrets({ ...folders, env })), ...secrets];
  const health = healthOf(context);
  const verdicts = async (): Promise<Verdicts> => {
    const [own, cluster] = [await node.verdicts(), clusterVerdicts(specs, facts)];
    return {
      results: [...health.results(), ...own.results, ...cluster.results],
      notEvaluated: [...own.notEvaluated, ...cluster.notEvaluated],
    };
  };
  return { items: [health.item, ...node.items, ...items], verdicts, redactor: redactor(known) };
}

/** Problems that this node finds with itself and its cluster, also without the API server. */
function healthOf(context: Context): { readonly item: Item; readonly results: () => Verdicts['results'] } {
  const path = 'curlew/health.json';
  let problems: readonly string[] = [];
  const collect: Item['collect'] = async ({ signal }) => {
    const health = await clusterHealth({ ...context, signal });
    problems = health === undefined ? [] : [...health.broken, ...health.problems];
    return health === undefined ? [] : [{ path, value: health }];
  };
  const rest = { verdict: 'fail', title: 'Health of this node', strict: false, spec: '' } as const;
  return {
    item: { path, source: 'curlew status', limit: HEALTH_MS, collect },
    results: () => problems.map((message) => ({ ...rest, message })),
  };
}

/** More than its own questions take. */
const HEALTH_MS = 90_000;
