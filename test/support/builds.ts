/** Builds of add-ons in a temporary folder against servers on loopback, without a command line. */
import { join } from 'node:path';
import { createFramePool } from '../../src/formats/archive/frame-pool.ts';
import { openFileSource } from '../../src/formats/archive/read.ts';
import { verifyArchive } from '../../src/formats/archive/verify.ts';
import { buildAddons } from '../../src/build/build.ts';
import type { BuiltPackage } from '../../src/build/build-addon.ts';
import type { LockMode } from '../../src/build/committed-lock.ts';
import { findLocalPayloads } from '../../src/build/local-payloads.ts';
import { createSemaphore } from '../../src/platform/limit/semaphore.ts';
import { createSingleFlightCache } from '../../src/platform/limit/single-flight-cache.ts';
import { createLayerCheck, type LayerCheck } from '../../src/formats/oci/check-layers.ts';
import { findOutdated, type OutdatedAddon } from '../../src/build/outdated.ts';
import { planBuild, type BuildPlan } from '../../src/build/plan.ts';
import type { BuildPorts, ImageEngine } from '../../src/build/ports.ts';
import type { ProgressEvent } from '../../src/core/events.ts';
import type { ImageFormat } from '../../src/core/package.ts';
import { findAddons } from '../../src/manifest/find-addons.ts';
import { planManifest } from '../../src/manifest/directives.ts';
import { listAddon } from '../../src/manifest/read-addon.ts';
import { createRegistryClient } from '../../src/build/registry/client.ts';
import { createCredentials } from '../../src/build/registry/credentials.ts';
import { NO_CONFIG } from '../../src/build/registry/docker-config.ts';
import type { Mirrors } from '../../src/build/registry/endpoint.ts';
import { quickHttp } from './client.ts';
import { never } from './context.ts';
import type { Files } from './tree.ts';

export interface BuildGiven {
  /** Folder that holds `addons`; packages go to its `out`, downloads to its `cache`. */
  readonly root: string;
  /** Host that serves `images.example`. */
  readonly registry?: string;
  /** Mirrors by registry host, beside that. */
  readonly mirrors?: Mirrors;
  readonly out?: string;
  readonly jobs?: number;
  readonly lock?: LockMode;
  readonly imageFormat?: ImageFormat;
  readonly engine?: ImageEngine;
  readonly outsideFiles?: boolean;
  /** Default: layers are unpacked. */
  readonly layers?: Pick<LayerCheck, 'check'>;
  readonly events?: ProgressEvent[];
  readonly signal?: AbortSignal;
}

/** The files of `addons/<name>/1.0`. */
export function addon(name: string, manifest: string, more: Files = {}): Files {
  const folder = `addons/${name}/1.0`;
  const own = Object.entries({ Manifest: manifest, 'install.sh': `${name}() { :; }\n`, ...more });
  return Object.fromEntries(own.map(([path, content]) => [`${folder}/${path}`, content]));
}

/** Plans all add-ons of a folder, and hands the plan over with the ports of the test. */
async function withPorts<Result>(
  { root, registry, events, signal = never, ...given }: BuildGiven,
  work: (plan: BuildPlan, ports: BuildPorts) => Promise<Result>,
): Promise<Result> {
  const out = join(root, given.out ?? 'out');
  const { folders } = await findAddons(root, [], { signal });
  const listings = await Promise.all(folders.map(async (folder) => listAddon(folder, { signal })));
  const addons = listings.map(({ ref, folder, manifest }) => ({ ref, root: folder, steps: planManifest(manifest) }));
  const plan = planBuild(addons, { arch: 'amd64', imageFormat: given.imageFormat ?? 'oci' });
  await using http = await quickHttp();
  await using pool = createFramePool({ threads: 1, width: 4 });
  await using opened = createLayerCheck();
  const layers = { ...opened, ...given.layers };
  return await work(plan, {
    http,
    registry: createRegistryClient({
      http,
      credentials: createCredentials(NO_CONFIG, {}),
      mirrors: new Map([
        ...(given.mirrors ?? []),
        ...(registry === undefined ? [] : [['images.example', [registry]] as const]),
      ]),
    }),
    engine: given.engine,
    collector: async () => Promise.reject(new Error('no host packages in this test')),
    containerBuilder: async () => Promise.reject(new Error('no container builds in this test')),
    pool,
    transfers: createSemaphore(4),
    ledger: new Map(),
    layers,
    bodies: createSingleFlightCache({ failures: 'own' }),
    localPayloads: async () => findLocalPayloads(out, { signal }),
    report: (event) => events?.push(event),
    cache: join(root, 'cache'),
    out,
    outsideFiles: given.outsideFiles ?? false,
    tool: '0.0.0',
  });
}

/** Builds all add-ons of a folder; every package is verified as a whole before it is handed back. */
export async function buildAll(given: BuildGiven): Promise<readonly BuiltPackage[]> {
  const { jobs = 2, lock = 'compare', signal = never } = given;
  const built = await withPorts(given, async (plan, ports) => buildAddons(plan, ports, { jobs, lock, signal }));
  for (const { path } of built) {
    await using source = await openFileSource(path);
    await verifyArchive(source, { signal });
  }
  return built;
}

/** Compares all add-ons of a folder with their locks. */
export async function outdatedAll(given: BuildGiven): Promise<readonly OutdatedAddon[]> {
  const { jobs = 2, signal = never } = given;
  return withPorts(given, async (plan, ports) => findOutdated(plan, ports, { jobs, signal }));
}
