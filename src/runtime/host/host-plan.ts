/** The effects of a plan on this machine: disk space, ports, missing images. */
import { join } from 'node:path';
import type { Cancellable } from '../../core/cancellable.ts';
import { CurlewError } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { nodePath } from '../../core/layout.ts';
import {
  diskSteps,
  imageSteps,
  type ImageRoom,
  type PackageRoom,
  planDisk,
  requireRoom,
  type DiskPlan,
} from '../plan/disk.ts';
import { isContainerRuntime } from '../plan/hooks.ts';
import { mountsOf, memoryFacts, takenBy, type MemoryFacts } from './host-facts.ts';
import { imageRoot } from './image-root.ts';
import type { RuntimeName } from '../images/image-runtime.ts';
import { findImageRuntime, runtimeOrder } from '../images/find-runtime.ts';
import { planImages as planLoads } from '../images/load-plan.ts';
import { portsInUse } from './listening-ports.ts';
import { stagingOf } from '../node/put-in-place.ts';
import type { SourcePackage } from '../node/source.ts';
import { planPorts, portConflicts, portsNeeded, type PortPlan } from '../plan/ports.ts';
import type { RunPlan } from '../plan/run-plan.ts';
import type { PreflightResult } from '../preflight/analyze.ts';
import type { RunView } from '../prepare/request.ts';

/** Images of one add-on. */
export interface AddonImages {
  readonly addon: string;
  /** Number of images in the package. */
  readonly images: number;
  /** References of images that the runtime does not have. */
  readonly missing: readonly string[];
  /** Bytes of image data that are sent to the runtime, in the format of the package. */
  readonly bytes: number;
}

export interface ImagePlan {
  /** The runtime that loads them; undefined if there is none, or none yet. */
  readonly runtime: RuntimeName | undefined;
  /** Why none are loaded; undefined if they are. */
  readonly skipped: string | undefined;
  readonly addons: readonly AddonImages[];
}

export interface HostPlan {
  readonly disk: DiskPlan;
  readonly ports: readonly PortPlan[];
  readonly images: ImagePlan;
  readonly memory: MemoryFacts | undefined;
}

/** Inspects this machine and changes nothing. */
export async function planHost(view: RunView & Cancellable): Promise<HostPlan> {
  const images = await planImages(view);
  const needs = portsNeeded(view.plan);
  const ports = planPorts(needs, await portsInUse(needs, view), view.records);
  const disk = await planRoom(view, images);
  return { disk, ports, images, memory: await memoryFacts(view) };
}

/**
 * Throws `NO_SPACE` if the plan does not fit on this machine, and `IMAGE_LOAD_FAILED` if nothing could load its images; ports in use are
 * only warnings.
 */
export async function requireHost(view: RunView & Cancellable & { readonly report: Report }): Promise<void> {
  const { disk, ports, images } = await planHost(view);
  requireRoom(disk, view.request.place.option);
  if (images.skipped === NO_RUNTIME) throw noRuntime(NO_RUNTIME);
  // The program that uses the port may end in time; if not, kubernetes itself reports it.
  for (const text of portConflicts(ports)) view.report({ type: 'note', level: 'warning', text });
}

/** Throws `NO_SPACE` if these images, by package, do not fit into the runtime's folder, or a kubelet would remove them again. */
export async function requireImageRoom(images: ImageRoom, { signal }: Cancellable): Promise<void> {
  const steps = [...images.missing.keys()].flatMap((addon) => imageSteps({ addon, imageFormat: 'oci' }, images));
  const { mounts } = await mountsOf([images.root], { signal });
  requireRoom(planDisk(steps, mounts), '--install-dir');
}

/** Why images cannot be loaded. */
export const NO_RUNTIME = 'no container runtime responds, and the spec has none';

/** The error of a run whose images nothing loads. */
export function noRuntime(why: string): CurlewError {
  return new CurlewError('IMAGE_LOAD_FAILED', `cannot load images: ${why}`, {
    hint: 'start the container runtime, then run the same command again; --skip-images installs without them',
  });
}

/** The check of `curlew preflight` that a runtime can load the images of these packages. Empty if they have none. */
export async function runtimeResults(
  packages: readonly Pick<SourcePackage, 'ref' | 'addon'>[],
  { env, signal }: Cancellable & Pick<RunView['request'], 'env'>,
): Promise<readonly PreflightResult[]> {
  const needsRuntime = packages.some(({ addon }) => addon.images.length > 0);
  if (!needsRuntime || packages.some(({ ref }) => isContainerRuntime(ref))) return [];
  const runtime = await findImageRuntime({ env, order: runtimeOrder(packages), signal });
  const common = { title: 'Container runtime', strict: false, spec: 'built-in' };
  if (runtime === undefined) return [{ ...common, verdict: 'fail', message: `images cannot be loaded: ${NO_RUNTIME}` }];
  return [{ ...common, verdict: 'pass', message: `${runtime.name} loads the images` }];
}

async function planImages({ request, sources: all, plan, signal }: RunView & Cancellable): Promise<ImagePlan> {
  const { env, skipImages } = request;
  const loads = plan.actions.filter(({ kind }) => kind === 'images');
  if (skipImages !== undefined || loads.length === 0) return { runtime: undefined, skipped: skipImages, addons: [] };
  const runtime = await findImageRuntime({ env, order: runtimeOrder(plan.addons), signal });
  const isPlanned = plan.addons.some(({ ref }) => isContainerRuntime(ref));
  if (runtime === undefined && !isPlanned) {
    return { runtime: undefined, skipped: NO_RUNTIME, addons: [] };
  }
  const names = new Set(loads.map(({ addon }) => addon));
  const sources = all.filter(({ label }) => names.has(label));
  const planned = await planLoads(
    runtime,
    sources.map(({ source }) => source),
    { signal },
  );
  const addons = planned.map((row, at) => {
    const { label = row.addon, source } = sources[at] ?? {};
    return { ...row, addon: label, images: source?.addon.images.length ?? 0 };
  });
  return { runtime: runtime?.name, skipped: undefined, addons };
}

async function planRoom(
  { request: { place, env }, sources, plan, signal }: RunView & Cancellable,
  images: ImagePlan,
): Promise<DiskPlan> {
  const { directory } = place;
  const room = await imageRoom(plan, images, { env, signal });
  const origins = sources.flatMap(({ source }) => source.movedFrom ?? []);
  const paths = [directory, ...(room === undefined ? [] : [room.root]), ...origins];
  const { mounts, points } = await mountsOf(paths, { signal });
  const rooms = sources.map(({ label, source }): PackageRoom => {
    const { addon, files, movedFrom } = source;
    const moved = movedFrom !== undefined && points.get(movedFrom) === points.get(directory);
    const fetched = source.remote?.size ?? 0;
    return { addon: label, files, imageFormat: addon.imageFormat, fetched, moved };
  });
  const steps = diskSteps(plan, rooms, {
    directory,
    leftOvers: await leftOversOf(directory, { signal }),
    images: room,
  });
  const used = new Set(steps.map(({ path }) => path));
  const shown = mounts.filter(({ paths }) => paths.some((path) => used.has(path)) || paths.includes(directory));
  return planDisk(steps, shown);
}

async function leftOversOf(directory: string, { signal }: Cancellable): Promise<number> {
  const folders = [join(directory, nodePath.fetched), ...(await stagingOf(directory))];
  let bytes = 0;
  for (const folder of folders) bytes += await takenBy(folder, { signal });
  return bytes;
}

async function imageRoom(
  plan: RunPlan,
  { runtime, addons }: ImagePlan,
  options: Cancellable & { readonly env: RunView['request']['env'] },
): Promise<ImageRoom | undefined> {
  const missing = new Map(addons.map(({ addon, bytes }) => [addon, bytes] as const));
  if ([...missing.values()].every((bytes) => bytes === 0)) return undefined;
  const docker = plan.addons.some(({ ref }) => ref.name === 'docker');
  const name = runtime ?? (docker ? 'docker' : 'containerd');
  return { root: await imageRoot(name, options), missing };
}
