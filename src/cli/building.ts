/** What `build` and `publish` have in common: which add-ons, with what, into which folder. */
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { createFramePool } from '../archive/frame-pool.ts';
import { buildAddons, type BuiltPackage } from '../build/build.ts';
import { findDonors, type Donors } from '../build/donors.ts';
import { createLanes } from '../build/lanes.ts';
import { planBuild, type BuildPlan } from '../build/plan.ts';
import type { ImageEngine } from '../build/ports.ts';
import { CurlewError } from '../core/errors.ts';
import { findAddons } from '../manifest/find-addons.ts';
import { planManifest } from '../manifest/plan.ts';
import { listAddon } from '../manifest/read-addon.ts';
import { archOf } from './arch.ts';
import type { Arguments, CommandContext, OptionSpecs } from './command.ts';
import { xdgFolder } from './config.ts';
import { NETWORK_OPTIONS, openNetwork } from './network.ts';
import { toolVersion } from './version.ts';

export const BUILD_OPTIONS = {
  out: { type: 'string', value: 'DIR', help: 'folder for packages (default: out)' },
  arch: { type: 'string', value: 'ARCH', help: 'amd64 or arm64 (default: amd64)' },
  'image-format': { type: 'string', value: 'FORM', help: 'oci (default) or docker-archive, as kURL has it' },
  'from-engine': { type: 'boolean', help: 'take images that no registry gives from the Docker engine' },
  jobs: { type: 'string', short: 'j', value: 'N', help: 'add-ons at once (default: 4)' },
  cache: { type: 'string', value: 'DIR', help: 'folder for unfinished downloads' },
  ...NETWORK_OPTIONS,
} satisfies OptionSpecs;

/** Blobs on their way at once: enough to keep two cores and a network busy. */
const BLOBS_AT_ONCE = 4;
const JOBS = 4;

/** A whole number of at least 1 from an option. */
export function countOf(args: Arguments, option: string, fallback: number): number {
  const text = args.text(option);
  if (text === undefined) return fallback;
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new CurlewError('USAGE', `--${option} ${text}: not a number from 1`);
  return Number(text);
}

/** Plans the add-ons that the patterns name. Errors in any Manifest come all at once. */
export async function planAddons(
  patterns: readonly string[],
  args: Arguments,
  { cwd, signal }: CommandContext,
): Promise<BuildPlan> {
  const imageFormat = args.text('image-format') ?? 'oci';
  if (imageFormat !== 'oci' && imageFormat !== 'docker-archive') {
    throw new CurlewError('USAGE', `--image-format ${imageFormat}: known are oci, docker-archive`);
  }
  const found = await findAddons(cwd, patterns, { signal });
  const listings = [];
  for (const folder of found.folders) listings.push(await listAddon(folder, { signal }));
  const errors = [...found.diagnostics, ...listings.flatMap(({ diagnostics }) => diagnostics)].filter(
    ({ severity }) => severity === 'error',
  );
  if (errors.length > 0) {
    const count = errors.length === 1 ? '1 error' : `${errors.length} errors`;
    throw new CurlewError('MANIFEST_INVALID', `${count} in the add-ons to be built`, {
      diagnostics: errors,
      hint: 'curlew lint shows them with their lines',
    });
  }
  const addons = listings.map(({ ref, folder, manifest }) => ({ ref, root: folder, steps: planManifest(manifest) }));
  return planBuild(addons, { arch: archOf(args), imageFormat });
}

/** Carries out a plan with the clients and folders that the flags name. */
export async function runBuild(
  plan: BuildPlan,
  args: Arguments,
  context: CommandContext,
): Promise<readonly BuiltPackage[]> {
  const { cwd, env, report, signal } = context;
  const out = resolve(cwd, args.text('out') ?? 'out');
  const cacheFlag = args.text('cache');
  const cache =
    cacheFlag === undefined ? join(xdgFolder(env, 'XDG_CACHE_HOME', '.cache'), 'curlew') : resolve(cwd, cacheFlag);
  await using network = await openNetwork(args, context);
  await using pool = createFramePool({ threads: Math.min(4, availableParallelism()), width: BLOBS_AT_ONCE });
  let donors: Promise<Donors> | undefined;
  const ports = {
    ...network,
    engine: args.flag('from-engine') ? await openEngine(env) : undefined,
    pool,
    lanes: createLanes(BLOBS_AT_ONCE),
    ledger: new Map(),
    shelf: new Map(),
    donors: async () => (donors ??= findDonors(out, { signal })),
    report,
    cache,
    out,
    tool: toolVersion(),
  };
  return await buildAddons(plan, ports, { jobs: countOf(args, 'jobs', JOBS), signal });
}

/** Loaded only when it is asked for: the engine's client costs more than a whole build of nothing. */
async function openEngine(env: CommandContext['env']): Promise<ImageEngine> {
  const { createImageEngine } = await import('../build/engine.ts');
  return createImageEngine(env);
}
