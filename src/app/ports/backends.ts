/** Backends that fetch host packages and build containers: a Docker engine, or the machine's own package managers. */
import { availableParallelism } from 'node:os';
import { createSemaphore } from '../../platform/limit/semaphore.ts';
import type { RegistryClient } from '../../registry/client.ts';
import type { BuildPorts } from '../../build/ports.ts';
import type { Containers } from '../../build/containers/containers.ts';
import type { Collector } from '../../build/host-packages/collector.ts';
import { CurlewError } from '../../core/errors.ts';
import type { OsId } from '../../core/os.ts';
import type { Context } from '../context.ts';
import type { Config } from './config.ts';
import { ownScripts } from '../own-scripts.ts';

export interface BackendRequest {
  /** Fetches host packages; default: a container if a Docker engine answers, otherwise the host. */
  readonly packagesBy?: 'container' | 'host' | undefined;
  /** Builder images that replace those of the operating systems. */
  readonly builder?: readonly { readonly os: OsId; readonly image: string }[] | undefined;
  /** Time limit of one container in minutes; default: 60. */
  readonly containerLimit?: number | undefined;
  /** The engine's network for containers. */
  readonly containerNetwork?: string | undefined;
}

/** The slowest Dockerfile of kURL's corpus needs minutes. */
const LIMIT_MINUTES = 60;
const PING_MS = 5000;
/** Resolvers and container builds at once, over all add-ons: the systems of one add-on never wait for each other. */
const LEAST_AT_ONCE = 8;

type Backends = Pick<BuildPorts, 'collector' | 'containerBuilder'> & AsyncDisposable;

/** Loads modules and contacts the engine only for the first step that needs them. Dispose it to clean up. */
export function openBackends(
  request: BackendRequest,
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
  const places = createSemaphore(Math.max(LEAST_AT_ONCE, 2 * availableParallelism()));
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
