/** Clients, threads and folders of a build, from options, configuration and environment. */
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { createFramePool } from '../../formats/archive/frame-pool.ts';
import { findDonors, type Donors } from '../../build/donors.ts';
import { createSemaphore } from '../../platform/limit/semaphore.ts';
import { createSingleFlightCache } from '../../platform/limit/single-flight-cache.ts';
import type { AddonPlan } from '../../build/plan.ts';
import type { BuildPorts, ImageEngine } from '../../build/ports.ts';
import { CurlewError } from '../../core/errors.ts';
import { openBackends, type BackendRequest } from './backends.ts';
import type { Context } from '../context.ts';
import { xdgFolder } from './config.ts';
import { openNetwork, type NetworkRequest } from './network.ts';
import { toolVersion } from '../version.ts';

/** Blobs transferred at once: enough to keep two cores and a network busy. */
const BLOBS_AT_ONCE = 4;

export interface BuildPortsRequest extends NetworkRequest, BackendRequest {
  /** Folder for packages; default: `out` next to the add-ons. */
  readonly out?: string | undefined;
  /** Folder for unfinished downloads. */
  readonly cache?: string | undefined;
  /** Take images that no registry has from the Docker engine. */
  readonly fromEngine?: boolean | undefined;
}

/**
 * Dispose it to close connections and end threads. Packages go to `--out`, or to the folder `out` of their repository; if they
 * are from several repositories, of the current folder. Throws `USAGE` for a folder inside an add-on, whose next package would
 * contain this one.
 */
export async function openBuildPorts(
  addons: readonly Pick<AddonPlan, 'root'>[],
  request: BuildPortsRequest,
  context: Context,
): Promise<BuildPorts & AsyncDisposable> {
  const { cwd, env, report, signal } = context;
  const out = outFolder(addons, request.out, cwd);
  const cacheFlag = request.cache;
  const cache =
    cacheFlag === undefined ? join(xdgFolder(env, 'XDG_CACHE_HOME', '.cache'), 'curlew') : resolve(cwd, cacheFlag);
  const engine = request.fromEngine === true ? await openEngine(env) : undefined;
  const network = await openNetwork(request, context);
  const backends = openBackends(request, context, network);
  const pool = createFramePool({ threads: Math.min(4, availableParallelism()), width: BLOBS_AT_ONCE });
  let donors: Promise<Donors> | undefined;
  return {
    http: network.http,
    registry: network.registry,
    engine,
    collector: backends.collector,
    containerBuilder: backends.containerBuilder,
    pool,
    transfers: createSemaphore(BLOBS_AT_ONCE),
    ledger: new Map(),
    bodies: createSingleFlightCache({ failures: 'own' }),
    donors: async () => (donors ??= findDonors(out, { signal })),
    report,
    cache,
    out,
    tool: toolVersion(),
    [Symbol.asyncDispose]: async () => {
      await backends[Symbol.asyncDispose]();
      await pool[Symbol.asyncDispose]();
      await network[Symbol.asyncDispose]();
    },
  };
}

function outFolder(addons: readonly Pick<AddonPlan, 'root'>[], given: string | undefined, cwd: string): string {
  const repositories = new Set(addons.map(({ root }) => resolve(root, '../../..')));
  const [repository = cwd, ...others] = repositories;
  const out = given === undefined ? join(others.length === 0 ? repository : cwd, 'out') : resolve(cwd, given);
  const around = addons.find(({ root }) => out === resolve(root) || out.startsWith(`${resolve(root)}/`));
  if (around === undefined) return out;
  throw new CurlewError('USAGE', `--out ${out} is inside the add-on ${around.root}`, {
    hint: 'use a folder outside: all files in the folder of an add-on become part of its package',
  });
}

/** Loaded on demand: the engine's client takes longer to load than a build without changes. */
async function openEngine(env: Context['env']): Promise<ImageEngine> {
  const { createImageEngine } = await import('../../build/containers/engine.ts');
  return createImageEngine(env);
}
