/** Images of several packages into the container runtime, side by side. */
import { eachLimited } from '../../platform/limit/each.ts';
import { reportStep, type Report } from '../../core/events.ts';
import type { ImageRuntime } from './image-runtime.ts';
import { findLacking, type Lacking } from './lacking.ts';
import { loadImages, type LoadedImages } from './load.ts';
import type { WantedImage } from './wanted.ts';

export interface PackageImages {
  /** Of the step that is reported. */
  readonly id: string;
  /** Whose images they are, such as `demo-1.0`. */
  readonly title: string;
  readonly images: readonly WantedImage[];
}

export interface LoadPackagesOptions<Package extends PackageImages> {
  readonly report: Report;
  /** Called around the load of each package; returns what the load returned. */
  readonly around?: (one: Package, load: () => Promise<LoadedImages>) => Promise<LoadedImages>;
  readonly signal: AbortSignal;
}

/** What each package brought, in their order. Asks the runtime once when nothing is missing. */
export async function loadPackages<Package extends PackageImages>(
  runtime: ImageRuntime,
  packages: readonly Package[],
  { report, around = async (_, load) => load(), signal }: LoadPackagesOptions<Package>,
): Promise<readonly LoadedImages[]> {
  const all = await findLacking(
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
      lacking: lackingOf(all, images),
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
        ({ references: { length } }) => (length === 0 ? 'all there already' : `${length} loaded into ${runtime.name}`),
      ),
    );
    results.set(one, result);
  };
  await eachLimited(packages, load, { width: runtime.width, signal });
  return packages.map((one) => results.get(one) ?? { references: [], bytes: 0 });
}

function lackingOf(all: Lacking, images: readonly WantedImage[]): Lacking {
  const names = new Set(images.flatMap((image) => image.names));
  return {
    images: new Set(images.filter((image) => all.images.has(image))),
    aliases: all.aliases.filter(({ of }) => names.has(of)),
  };
}
