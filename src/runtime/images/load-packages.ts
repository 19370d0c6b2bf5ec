/** Loads the images of several packages into the container runtime, in parallel. */
import { requireRefusal } from '../../core/errors.ts';
import { reportStep, type Report } from '../../core/events.ts';
import { eachLimited } from '../../platform/limit/each.ts';
import { FailedImages } from './failed-images.ts';
import type { ImageRuntime } from './image-runtime.ts';
import { findMissing, type MissingImages } from './missing-images.ts';
import { loadImages, type LoadedImages } from './load.ts';
import type { RequiredImage } from './required-images.ts';

export interface PackageImages {
  /** ID of the reported step. */
  readonly id: string;
  /** The package, such as `demo-1.0`. */
  readonly title: string;
  readonly images: readonly RequiredImage[];
}

export interface LoadPackagesOptions<Package extends PackageImages> {
  readonly report: Report;
  /** Called around the load of each package; returns what the load returned. */
  readonly around?: (one: Package, load: () => Promise<LoadedImages>) => Promise<LoadedImages>;
  readonly signal: AbortSignal;
}

/**
 * Returns the loaded images of each package, in their order. Queries the runtime only once if nothing is missing. Throws
 * {@link FailedImages} after the load of all others. Images that cannot be protected are a warning.
 */
export async function loadPackages<Package extends PackageImages>(
  runtime: ImageRuntime,
  packages: readonly Package[],
  { report, around = async (_, load) => load(), signal }: LoadPackagesOptions<Package>,
): Promise<readonly LoadedImages[]> {
  const all = await findMissing(
    runtime,
    packages.flatMap(({ images }) => images),
    { signal },
  );
  const results = new Map<Package, LoadedImages>();
  const load = async (one: Package, within: { readonly signal: AbortSignal }): Promise<void> => {
    const { id, title, images } = one;
    const request = {
      doing: `load images of ${title}`,
      images,
      missing: missingOf(all, images),
      progress: (bytes: number, total: number) => {
        report({ type: 'step-progress', id, bytes, total });
      },
      note: (text: string) => {
        report({ type: 'note', level: 'warning', text });
      },
    };
    const result = await around(one, async () =>
      reportStep(
        report,
        { id, title: `load images of ${title}` },
        async () => loadImages(runtime, request, within),
        ({ references: { length } }) => (length === 0 ? 'all already loaded' : `${length} loaded into ${runtime.name}`),
      ),
    );
    results.set(one, result);
  };
  const failed: FailedImages[] = [];
  const orKeep = async (one: Package, within: { readonly signal: AbortSignal }): Promise<void> =>
    load(one, within).catch((error: unknown) => {
      if (!(error instanceof FailedImages)) throw error;
      failed.push(error);
    });
  await eachLimited(packages, orKeep, { width: runtime.width, signal });
  const names = packages.flatMap(({ images }) => images.flatMap((image) => image.names));
  await protectLoaded(runtime, [...names, ...all.aliases.map(({ alias }) => alias)], { report, signal });
  if (failed.length > 0) throw new FailedImages(failed);
  return packages.map((one) => results.get(one) ?? { references: [], bytes: 0 });
}

/** A failure is only a warning: the images are loaded. */
async function protectLoaded(
  runtime: ImageRuntime,
  names: readonly string[],
  { report, signal }: Pick<LoadPackagesOptions<PackageImages>, 'report' | 'signal'>,
): Promise<void> {
  try {
    // A hook of the run pins them, too, but only after its drain, and load-images calls none.
    await runtime.protect?.(names, { signal });
  } catch (error) {
    requireRefusal(error, signal);
    const text = `${error.message}; a kubelet whose disk is full may remove images that no container uses yet`;
    report({ type: 'note', level: 'warning', text });
  }
}

function missingOf(all: MissingImages, images: readonly RequiredImage[]): MissingImages {
  const names = new Set(images.flatMap((image) => image.names));
  return {
    images: new Set(images.filter((image) => all.images.has(image))),
    aliases: all.aliases.filter(({ of }) => names.has(of)),
    listed: all.listed,
  };
}
