/** Clients, threads and folders of a build, from options, configuration and environment. */
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { createFramePool } from '../../formats/archive/frame-pool.ts';
import { layerMemory } from '../../build/cache.ts';
import { createLayerCheck } from '../../formats/oci/check-layers.ts';
import { findLocalPayloads, type LocalPayloads } from '../../build/local-payloads.ts';
import { createSemaphore } from '../../platform/limit/semaphore.ts';
import { createSingleFlightCache } from '../../platform/limit/single-flight-cache.ts';
import type { AddonPlan } from '../../build/plan.ts';
import type { BuildPorts, ImageEngine } from '../../build/ports.ts';
import { CurlewError } from '../../core/errors.ts';
import type { Context } from '../../core/context.ts';
import { cacheFolder, type Config } from '../open/config.ts';
import { openNetwork } from '../open/network.ts';
import { toolVersion } from '../../own/version.ts';
import type { RegistryClient } from '../../build/registry/client.ts';
import type { Containers } from '../../build/containers/containers.ts';
import type { Collector } from '../../build/host-packages/collector.ts';
import { ownScripts } from '../../own/scripts.ts';
import type { BuildPortsRequest } from '../../requests/build.ts';

/** Blobs transferred at once: enough to keep two cores and a network busy. */
const BLOBS_AT_ONCE = 4;

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
  const cache = cacheFlag === undefined ? cacheFolder(env) : resolve(cwd, cacheFlag);
  const engine = request.fromEngine === true ? await openEngine(env) : undefined;
  const network = await openNetwork(request, context);
  const backends = openBackends(request, context, network);
  const pool = createFramePool({ threads: Math.min(4, availableParallelism()), width: BLOBS_AT_ONCE });
  const layers = createLayerCheck(layerMemory(cache));
  let localPayloads: Promise<LocalPayloads> | undefined;
  return {
    http: network.http,
    registry: network.registry,
    engine,
    collector: backends.collector,
    containerBuilder: backends.containerBuilder,
    pool,
    transfers: createSemaphore(BLOBS_AT_ONCE),
    ledger: new Map(),
    layers,
    bodies: createSingleFlightCache({ failures: 'own' }),
    localPayloads: async () => (localPayloads ??= findLocalPayloads(out, { signal })),
    report,
    cache,
    out,
    outsideFiles: request.allowOutsideFiles === true,
    tool: toolVersion(),
    [Symbol.asyncDispose]: async () => {
      await backends[Symbol.asyncDispose]();
      await layers[Symbol.asyncDispose]();
      await pool[Symbol.asyncDispose]();
      await network[Symbol.asyncDispose]();
    },
  };
}

function outFolder(addons: readonly Pick<AddonPlan, 'root'>[], folder: string | undefined, cwd: string): string {
  const repositories = new Set(addons.map(({ root }) => resolve(root, '../../..')));
  const [repository = cwd, ...others] = repositories;
  const out = folder === undefined ? join(others.length === 0 ? repository : cwd, 'out') : resolve(cwd, folder);
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

/** The slowest Dockerfile of kURL's corpus needs minutes. */
const LIMIT_MINUTES = 60;
const PING_MS = 5000;
/** Resolvers and container builds at once, over all add-ons: the systems of one add-on never wait for each other. */
const MIN_AT_ONCE = 8;

type Backends = Pick<BuildPorts, 'collector' | 'containerBuilder'> & AsyncDisposable;

/** Loads modules and contacts the engine only for the first step that needs them. Dispose it to clean up. */
function openBackends(
  request: BuildPortsRequest,
  { env, report, signal }: Context,
  {
    config,
    registry,
    caFile,
  }: { readonly config: Config; readonly registry: RegistryClient; readonly caFile?: string | undefined },
): Backends {
  const limitMs = (request.containerLimit ?? LIMIT_MINUTES) * 60_000;
  const backend = request.packagesBy;
  const builders = {
    ...config.builders,
    ...Object.fromEntries((request.builder ?? []).map(({ os, image }) => [os, image])),
  };
  const network = request.containerNetwork ?? config.containerNetwork;
  let opened: Promise<Containers> | undefined;
  const containers = async (): Promise<Containers> =>
    (opened ??= (async () => {
      const { createContainers } = await import('../../build/containers/containers.ts');
      return createContainers({ env, registry, network, report });
    })());
  const byContainer = async (): Promise<Collector> => {
    const { createContainerCollector } = await import('../../build/host-packages/container-collector.ts');
    return createContainerCollector({
      containers: await containers(),
      scripts: ownScripts(),
      builders,
      repositories: config.repositories,
      caFile,
      limitMs,
    });
  };
  const byHost = async (): Promise<Collector> => {
    const { createHostCollector } = await import('../../build/host-packages/host-collector.ts');
    const trusted = caFile === undefined ? env : { ...env, SSL_CERT_FILE: caFile };
    return createHostCollector({ scripts: ownScripts(), env: trusted, repositories: config.repositories });
  };
  const choose = async (): Promise<Collector> => {
    if (backend === 'host') return byHost();
    return backend === 'container' || (await engineAnswers(env, signal)) ? byContainer() : byHost();
  };
  const places = createSemaphore(Math.max(MIN_AT_ONCE, 2 * availableParallelism()));
  const bounded = (collector: Collector): Collector => ({
    ...collector,
    collect: async (request, options) => places.run(async () => collector.collect(request, options), options),
  });
  let collector: Promise<Collector> | undefined;
  return {
    collector: async () => (collector ??= choose().then(bounded)),
    containerBuilder: async () => {
      const { buildContainer, containerInputs } = await import('../../build/containers/container-build.ts');
      const opened = { containers: await containers() };
      return {
        inputs: async (step, { folder, root, arch }, within) =>
          containerInputs(step, opened, { roots: { addon: folder, repository: root }, arch, ...within }),
        build: async (step, { folder: addon, root: repository, arch }, { id, folder: into, report, signal }) => {
          const roots = { addon, repository };
          const options = { id, roots, arch, into, limitMs, report, signal };
          return places.run(async () => buildContainer(step, opened, options), { signal });
        },
      };
    },
    [Symbol.asyncDispose]: async () => {
      await (await opened)?.[Symbol.asyncDispose]();
    },
  };
}

/** A missing engine fails at once; one that hangs counts as missing. */
async function engineAnswers(env: Context['env'], signal: AbortSignal): Promise<boolean> {
  const { connectDocker } = await import('../../build/containers/docker.ts');
  const within = AbortSignal.any([signal, AbortSignal.timeout(PING_MS)]);
  try {
    const request = { doing: 'query the version of the Docker engine', method: 'GET', path: '/version' } as const;
    return (await connectDocker(env).request(request, { signal: within })).status === 200;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof CurlewError && error.code !== 'USAGE') return false;
    throw error;
  }
}
